#include "schema/quantity_syntax.h"

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

std::string Canonical(std::string_view text) {
  const Result<Amount> amount = ParseAmount(text);
  return amount ? amount->Canonical() : amount.error().message();
}

TEST(QuantitySyntax, WritesTheCanonicalForm) {
  const char* rows[][2] = {{"0.5", "500m"},
                           {"1000m", "1"},
                           {"1", "1"},
                           {"1024Ki", "1Mi"},
                           {"1Gi", "1Gi"},
                           {"1.5Gi", "1536Mi"},
                           {"0.5Ki", "512"},
                           {"100Mi", "100Mi"},
                           {"1e3", "1e3"},
                           {"12E6", "12e6"},
                           {"1000", "1k"},
                           {"1500", "1500"},
                           {"2000000k", "2G"},
                           {"0", "0"},
                           {"0Gi", "0"},
                           {"-5m", "-5m"},
                           {"+5", "5"},
                           {".5", "500m"},
                           {"1.", "1"},
                           {"1n", "1n"},
                           {"0.1n", "1n"},
                           {"1E", "1E"},
                           {"1Ei", "1Ei"},
                           {"100", "100"},
                           {"1025Mi", "1025Mi"},
                           {"0.1Ki", "102400m"},
                           {"1e-3", "1e-3"},
                           {"9223372036854775807", "9223372036854775807"},
                           {"99999999999999999999", "9223372036854775807"},
                           {"16Ei", "9223372036854775807"}};
  for (const auto& row : rows) EXPECT_EQ(Canonical(row[0]), row[1]) << row[0];
}

TEST(QuantitySyntax, RefusesWithUpstreamsWords) {
  for (const char* text :
       {"", "a", "1 Gi", "--1", ".", "Gi", "1e", "1ee3", "1e+", "1.2.3", "0x1", "1gb"}) {
    EXPECT_FALSE(ParseAmount(text).has_value()) << text;
  }
  EXPECT_EQ(Canonical("1Kii"), "unable to parse quantity's suffix");
  EXPECT_EQ(Canonical("1xyz"),
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  EXPECT_FALSE(ParseAmount(std::string(kMaxQuantityTextLength + 1, '1')).has_value());
}

TEST(QuantitySyntax, Compares) {
  EXPECT_LT(*ParseAmount("100m"), *ParseAmount("1"));
  EXPECT_EQ(*ParseAmount("1Gi"), *ParseAmount("1073741824"));
  EXPECT_TRUE(ParseAmount("2")->IsWhole());
  EXPECT_FALSE(ParseAmount("1500m")->IsWhole());
}

}  // namespace
}  // namespace muster::schema
