#include "controllers/pods/int_or_percent.h"

#include "base/strings.h"

namespace muster::controllers {

int64_t ScaledValue(const json::Value& int_or_percent, int64_t whole, bool round_up) {
  if (!IsPercentage(int_or_percent)) return int_or_percent.AsInt();
  std::string_view text = int_or_percent.AsString();
  text.remove_suffix(1);
  const int64_t hundredths = ParseInt(text).value_or(0) * whole;
  return (hundredths + (round_up ? 99 : 0)) / 100;
}

}  // namespace muster::controllers
