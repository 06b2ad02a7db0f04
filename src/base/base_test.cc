#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/time.h"

namespace muster {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return Error(Reason::kInvalid, "{} is odd", value);
  return value / 2;
}

Result<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

TEST(Status, CarriesTheKubernetesReasonAndCode) {
  const Result<int> result = Quarter(6);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().reason(), Reason::kInvalid);
  EXPECT_EQ(result.error().code(), 422);
  EXPECT_EQ(result.error().message(), "3 is odd");
  EXPECT_EQ(ReasonFromName("Expired", 410), Reason::kExpired);
  EXPECT_EQ(ReasonFromName("", 404), Reason::kNotFound);
  EXPECT_EQ(ReasonFromName("", 500), Reason::kInternalError);
  EXPECT_EQ(ReasonFromName("", 409), Reason::kConflict);
  EXPECT_EQ(ReasonFromName("", 418), Reason::kUnknown);
}

TEST(Time, RoundTripsRfc3339) {
  const std::optional<Time> time = ParseTime("2026-11-28T01:02:03.123456789+01:30");
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(FormatNanoTime(*time), "2026-11-27T23:32:03.123456789Z");
  EXPECT_EQ(FormatMicroTime(*time), "2026-11-27T23:32:03.123456Z");
  EXPECT_EQ(FormatTime(*time), "2026-11-27T23:32:03Z");
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const char* bad :
       {"", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx", "9999-01-01T00:00:00Z"}) {
    EXPECT_FALSE(ParseTime(bad).has_value()) << bad;
  }
}

TEST(Time, PrintsAgesAsKubectlDoes) {
  EXPECT_EQ(HumanDuration(seconds(119)), "119s");
  EXPECT_EQ(HumanDuration(seconds(123)), "2m3s");
  EXPECT_EQ(HumanDuration(minutes(61)), "61m");
  EXPECT_EQ(HumanDuration(hours(5) + minutes(7)), "5h7m");
  EXPECT_EQ(HumanDuration(hours(49)), "2d1h");
}

TEST(Strings, Base64RefusesBadInput) {
  for (const char* text : {"", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(Base64Decode(Base64Encode(text)), text);
  }
  EXPECT_EQ(Base64Decode("aGV="), "he") << "two bits too many";
  EXPECT_FALSE(Base64Decode("abc").has_value());
  EXPECT_FALSE(Base64Decode("a=bc").has_value());
  EXPECT_FALSE(Base64Decode("ab!=").has_value());
}

TEST(Strings, SplitsAndParses) {
  EXPECT_EQ(Split("a,,b", ',').size(), 3u);
  EXPECT_EQ(SplitNonEmpty("a,,b", ',').size(), 2u);
  EXPECT_EQ(Trim(" \tx y\r\n"), "x y");
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_FALSE(ParseInt("12x").has_value());
  EXPECT_FALSE(ParseInt("9223372036854775808").has_value());
  EXPECT_EQ(PercentDecode("a%2Fb+c", true), "a/b c");
  EXPECT_FALSE(PercentDecode("%2", false).has_value());
  EXPECT_EQ(PercentEncode("a b/c"), "a%20b%2Fc");
}

TEST(Rng, SameSeedSameNumbers) {
  Rng a(7), b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.Below(10), b.Below(10));
  EXPECT_EQ(a.Uuid().size(), 36u);
  EXPECT_EQ(a.Uuid()[14], '4');
}

}  // namespace
}  // namespace muster
