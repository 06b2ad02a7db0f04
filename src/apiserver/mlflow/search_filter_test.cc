#include "apiserver/mlflow/search_filter.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::apiserver {
namespace {

json::Value Lookup(const json::Value& object, const std::string& field) { return object[field]; }

bool Holds(const std::string& filter, const std::string& object) {
  const Result<SearchFilter> parsed = SearchFilter::Parse(filter);
  EXPECT_TRUE(parsed.has_value()) << filter;
  return parsed &&
         parsed->Apply({*json::Parse(object)}, Lookup).value_or(json::Array()).size() == 1;
}

constexpr const char* kObject =
    R"({"name": "Digits", "tags.team": "vision", "tags.my key": "x", "metrics.loss": 0.25,
        "status": "FINISHED", "params.rate": "0.1"})";

TEST(SearchFilterTest, ComparesTextsNumbersAndPatterns) {
  for (const char* filter :
       {"", "  ", "name = 'Digits'", "name = \"Digits\" and tags.team = 'vision'",
        "name LIKE 'Dig%'", "name like '%git%'", "name ILIKE 'dIG_TS'", "tags.`my key` = 'x'",
        "tag.team != 'audio'", "metrics.loss < 0.3", "metric.loss >= 0.25", "metrics.loss = 0.25",
        "attributes.status IN ('FAILED', 'FINISHED')", "params.rate = '0.1'"})
    EXPECT_TRUE(Holds(filter, kObject)) << filter;
  for (const char* filter :
       {"name = 'digits'", "name LIKE 'dig%'", "name LIKE '%x%'", "tags.owner = 'me'",
        "tags.owner != 'me'", "metrics.loss < 0.25", "status IN ('FAILED')",
        "name = 'Digits' AND metrics.loss > 1", "name LIKE ''"})
    EXPECT_FALSE(Holds(filter, kObject)) << filter;
}

TEST(SearchFilterTest, SaysWhatItCannotRead) {
  for (const char* filter : {"name", "name =", "name = Digits", "= 'a'", "name = 'a' OR name = 'b'",
                             "name = 'a", "name IN 'a'", "name IN ('a'", "name NEAR 'a'",
                             "name = 'a' name = 'b'", "(name = 'a')", "name ( 'a'"})
    EXPECT_FALSE(SearchFilter::Parse(filter).has_value()) << filter;
  EXPECT_FALSE(SearchFilter::Parse(std::string(kMaxFilterBytes + 1, ' ')).has_value());
  std::string many = "a = 'b'";
  for (size_t i = 0; i < kMaxFilterTerms; ++i) many += " AND a = 'b'";
  EXPECT_FALSE(SearchFilter::Parse(many).has_value());
}

TEST(SearchFilterTest, ALikeOfManyPercentSignsEnds) {
  std::string pattern, text(5000, 'a');
  for (int i = 0; i < 500; ++i) pattern += "%a";
  EXPECT_TRUE(Holds("name LIKE '" + pattern + "'", R"({"name": ")" + text + "\"}"));
  EXPECT_FALSE(Holds("name LIKE '" + pattern + "b'", R"({"name": ")" + text + "\"}"));
}

TEST(SearchFilterTest, PatternsThatTakeTooLongAreRefused) {
  const json::Value object = json::Obj({{"name", std::string(5000, 'a')}});
  const Result<SearchFilter> filter =
      SearchFilter::Parse("name ILIKE '%" + std::string(2000, 'a') + "b' AND name LIKE '%" +
                          std::string(2000, '_') + "b'");
  ASSERT_TRUE(filter.has_value());
  const Result<json::Array> found = filter->Apply(json::Array(10, object), Lookup);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().reason(), Reason::kInvalid);
  // What is short is not: each object of a full registry.
  const Result<SearchFilter> usual = SearchFilter::Parse("name LIKE '%git%'");
  const json::Array many(5000, json::Obj({{"name", "handwritten digits of MNIST"}}));
  EXPECT_EQ(usual->Apply(many, Lookup).value_or(json::Array()).size(), 5000u);
}

TEST(SearchFilterTest, OrdersByFieldsThoseWithoutLast) {
  const json::Array objects =
      json::Parse(R"([{"id": 1, "metrics.loss": 10, "name": "b"}, {"id": 2, "name": "a"},
      {"id": 3, "metrics.loss": 9, "name": "b"}])")
          ->items();
  const auto ids = [&](std::initializer_list<json::Value> order) {
    std::string out;
    const Result<json::Array> sorted = Ordered(objects, json::List(order), Lookup);
    EXPECT_TRUE(sorted.has_value());
    for (const json::Value& each : *sorted) out += std::to_string(each["id"].AsInt());
    return out;
  };
  EXPECT_EQ(ids({}), "123");
  EXPECT_EQ(ids({"metrics.loss"}), "312");
  EXPECT_EQ(ids({"metrics.loss DESC"}), "132");
  EXPECT_EQ(ids({"name", "metrics.loss asc"}), "231");
  EXPECT_EQ(ids({"attribute.name DESC", "`metrics.loss` ASC"}), "312");
  for (const char* wrong : {"name SIDEWAYS", "name DESC DESC", "", "'name'"})
    EXPECT_FALSE(Ordered(objects, json::List({wrong}), Lookup).has_value()) << wrong;
  const json::Value many(json::Array(kMaxOrderTerms + 1, "name"));
  EXPECT_FALSE(Ordered(objects, many, Lookup).has_value());
}

}  // namespace
}  // namespace muster::apiserver
