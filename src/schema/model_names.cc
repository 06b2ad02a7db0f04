#include "schema/model_names.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "schema/names.h"

namespace muster::schema {
namespace {

constexpr size_t kLettersKept = 46;  // a dash and 16 digits make 63

bool IsObjectName(std::string_view name) {
  if (name.empty() || name.size() > kMaxModelObjectName) return false;
  Problems problems;
  CheckDns1123Subdomain(name, problems);
  return problems.empty();
}

}  // namespace

std::string ModelObjectName(std::string_view name) {
  if (IsObjectName(name)) return std::string(name);
  std::string letters;
  for (const char each : ToLower(name.substr(0, kLettersKept))) {
    const bool kept = (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9');
    if (kept || !letters.empty()) letters += kept ? each : '-';
  }
  while (letters.ends_with('-')) letters.pop_back();
  if (letters.empty()) letters = "model";
  return fmt::format("{}-{:016x}", letters, Hash64(name));
}

std::string ModelVersionObjectName(std::string_view model_object, int64_t version) {
  return fmt::format("{}.{}", model_object, version);
}

}  // namespace muster::schema
