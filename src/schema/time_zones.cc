#include "schema/time_zones.h"

#include <unordered_map>

#include "base/strings.h"

namespace muster::schema {

std::string_view PosixTimeZone(std::string_view name) {
  using Rules = std::unordered_map<std::string_view, std::string_view>;
  static const Rules& rules = *[] {
    auto* by_name = new Rules;
    for (const TimeZoneRule& row : kTimeZoneRules) {
      for (const std::string_view one : SplitNonEmpty(row.names, ' '))
        by_name->emplace(one, row.rule);
    }
    return by_name;
  }();
  const auto found = rules.find(name);
  return found == rules.end() ? std::string_view() : found->second;
}

}  // namespace muster::schema
