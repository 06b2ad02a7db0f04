#include "cluster/quantity.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "json/value.h"

namespace muster::cluster {
namespace {

std::string Canonical(std::string_view text) {
  const Result<Quantity> parsed = Quantity::Parse(text);
  return parsed.has_value() ? parsed->ToString() : "error: " + parsed.error().message();
}

int64_t Milli(std::string_view text) { return Quantity::Parse(text)->Milli(); }
int64_t Units(std::string_view text) { return Quantity::Parse(text)->Units(); }

TEST(Quantity, WritesTheCanonicalForm) {
  struct Row {
    const char* text;
    const char* canonical;
  };
  const Row rows[] = {
      {"0", "0"},
      {"0n", "0"},
      {"0.0Ki", "0"},
      {"-0", "0"},
      {"1", "1"},
      {"+1", "1"},
      {"-1", "-1"},
      {"007", "7"},
      {"1000", "1k"},
      {"1500", "1500"},
      {"1500000", "1500k"},
      {"0.5", "500m"},
      {".5", "500m"},
      {"5.", "5"},
      {"1.5", "1500m"},
      {"100m", "100m"},
      {"1000m", "1"},
      {"0.001", "1m"},
      {"0.0001", "100u"},
      {"1n", "1n"},
      {"1u", "1u"},
      {"1000000n", "1m"},
      {"1k", "1k"},
      {"1000k", "1M"},
      {"1M", "1M"},
      {"1G", "1G"},
      {"1T", "1T"},
      {"1P", "1P"},
      {"1E", "1E"},
      {"1Ki", "1Ki"},
      {"1024Ki", "1Mi"},
      {"1536Mi", "1536Mi"},
      {"1Gi", "1Gi"},
      {"1.5Gi", "1536Mi"},
      {"0.5Ki", "512"},
      {"0.5Gi", "512Mi"},
      {"1Ti", "1Ti"},
      {"1Pi", "1Pi"},
      {"1Ei", "1Ei"},
      {"1000Ki", "1000Ki"},
      {"0.1Ki", "102400m"},
      {"1.1Ki", "1126400m"},
      {"1e3", "1e3"},
      {"1E3", "1e3"},
      {"12e6", "12e6"},
      {"1e0", "1"},
      {"1e1", "10"},
      {"100e3", "100e3"},
      {"1000e3", "1e6"},
      {"1e-3", "1e-3"},
      {"1.5e3", "1500"},
      {"1e-1", "100e-3"},
      {"-1.5Gi", "-1536Mi"},
  };
  for (const Row& row : rows) EXPECT_EQ(Canonical(row.text), row.canonical) << row.text;
}

TEST(Quantity, CanonicalFormReadsBackEqual) {
  for (const char* text :
       {"1", "100m", "1Gi", "1.5Gi", "123456789n", "12e6", "7Ei", "0.1Ki", "-3", "999999999999k"}) {
    const Quantity parsed = *Quantity::Parse(text);
    EXPECT_EQ(*Quantity::Parse(parsed.ToString()), parsed) << text;
  }
}

TEST(Quantity, RoundsUpBelowANano) {
  EXPECT_EQ(Canonical("0.1n"), "1n");
  EXPECT_EQ(Canonical("1.1n"), "2n");
  EXPECT_EQ(Canonical("1e-30"), "1e-9");
  EXPECT_EQ(Canonical("-0.1n"), "-1n");
  EXPECT_EQ(Canonical("0.0000000001"), "1n");
  EXPECT_EQ(Canonical("1e-99999"), "1e-9");
}

TEST(Quantity, RoundsUpToWholeUnitsAndMillis) {
  EXPECT_EQ(Milli("0.1m"), 1);
  EXPECT_EQ(Milli("1.5"), 1500);
  EXPECT_EQ(Units("1.1"), 2);
  EXPECT_EQ(Units("100m"), 1);
  EXPECT_EQ(Units("1Gi"), int64_t{1} << 30);
  EXPECT_TRUE(Quantity::Parse("2")->IsWhole());
  EXPECT_FALSE(Quantity::Parse("2500m")->IsWhole());
  EXPECT_TRUE(Quantity::Parse("0.5Ki")->IsWhole());
}

TEST(Quantity, CapsAtTheLargestInt64) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* text :
       {"9223372036854775807", "9223372036854775808", "10E", "8Ei", "1e19", "1e400", "1e99999",
        "99999999999999999999999999999999999999999999999999"}) {
    EXPECT_EQ(Units(text), kMost) << text;
  }
  EXPECT_EQ(Milli("1E"), kMost);
  EXPECT_EQ(Units("-1e19"), -kMost);
}

TEST(Quantity, KeepsDigitsThatDoublesLose) {
  EXPECT_EQ(Units("9007199254740993"), 9007199254740993);
  EXPECT_EQ(Canonical("0.100000001"), "100000001n");
}

TEST(Quantity, RefusesWhatUpstreamRefuses) {
  for (const char* text : {"",    "+",     "-",    ".",   "m",     "Gi",   "1 Gi", " 1",  "1 ",
                           "1mm", "1KiB",  "1K",   "1i",  "1ki",   "0x10", "1e",   "1e+", "1.2.3",
                           "--1", "1e3.5", "1Gi2", "one", "1_000", "1,5",  "Inf",  "NaN"}) {
    EXPECT_FALSE(Quantity::Parse(text).has_value()) << text;
  }
  EXPECT_FALSE(Quantity::Parse(std::string(schema::kMaxQuantityTextLength + 1, '1')).has_value());
  EXPECT_TRUE(Quantity::Parse(std::string(schema::kMaxQuantityTextLength, '1')).has_value());
  EXPECT_EQ(Quantity::Parse("1 Gi").error().reason(), Reason::kBadRequest);
}

TEST(Quantity, ReadsJsonStringsAndNumbers) {
  EXPECT_EQ(Quantity::FromJson(json::Value("2Gi"))->ToString(), "2Gi");
  EXPECT_EQ(Quantity::FromJson(json::Value(2))->ToString(), "2");
  EXPECT_EQ(Quantity::FromJson(json::Value::Number("0.5"))->ToString(), "500m");
  EXPECT_TRUE(Quantity::FromJson(json::Value())->IsZero());
  EXPECT_FALSE(Quantity::FromJson(json::Value(true)).has_value());
  EXPECT_FALSE(Quantity::FromJson(json::List({1})).has_value());
}

TEST(Quantity, AddsSubtractsAndCompares) {
  const Quantity gi = *Quantity::Parse("1Gi");
  EXPECT_EQ((gi + gi).ToString(), "2Gi");
  EXPECT_EQ((gi - gi).ToString(), "0");
  EXPECT_TRUE((Quantity() - gi).IsNegative());
  EXPECT_EQ((Quantity() + gi).ToString(), "1Gi");
  EXPECT_LT(*Quantity::Parse("999m"), Quantity::FromUnits(1));
  EXPECT_EQ(*Quantity::Parse("1024Mi"), gi);
  EXPECT_EQ(Quantity::FromMilli(1500).ToString(), "1500m");
  EXPECT_EQ(Quantity::FromUnits(2048, Quantity::Format::kBinarySi).ToString(), "2Ki");
}

}  // namespace
}  // namespace muster::cluster
