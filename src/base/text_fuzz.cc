// Times and encodings: what we read we write so that it reads back the same.

#include <string>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "base/strings.h"
#include "base/time.h"

namespace muster {

FUZZ_TARGET(text, input) {
  if (const auto time = ParseTime(input)) {
    CHECK(ParseTime(FormatNanoTime(*time)) == time);
    CHECK(ParseTime(FormatTime(*ParseTime(FormatTime(*time)))) == ParseTime(FormatTime(*time)));
    CHECK(*ParseTime(FormatTime(*time)) <= *time);
  }
  CHECK(Base64Decode(Base64Encode(input)) == input);
  if (const auto bytes = Base64Decode(input)) CHECK(Base64Decode(Base64Encode(*bytes)) == bytes);
  CHECK(PercentDecode(PercentEncode(input), false) == input);
  if (const auto number = ParseInt(input)) CHECK(ParseInt(std::to_string(*number)) == number);
  const std::string_view trimmed = Trim(input);
  CHECK(Trim(trimmed) == trimmed);
  std::vector<std::string> parts;
  for (std::string_view part : Split(input, ',')) parts.emplace_back(part);
  CHECK(Join(parts, ",") == input);
}

}  // namespace muster
