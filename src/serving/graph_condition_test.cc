#include "serving/graph_condition.h"

#include <gtest/gtest.h>

#include "serving/test_services.h"

namespace muster::serving {
namespace {

using json::Value;

TEST(GraphCondition, HasABoundedLength) {
  std::string nested;
  for (size_t i = 0; i < kMaxConditionBytes; ++i) nested += "#(";
  EXPECT_FALSE(GraphConditionHolds(nested, Yaml("[1]")).has_value());
  EXPECT_FALSE(GraphConditionHolds(nested.substr(0, kMaxConditionBytes), Yaml("[1]")).has_value());
}

TEST(GraphCondition, FindsMembersIndexesAndWhatFits) {
  const Value value = Yaml(R"({a: {b: [10, {c: "x"}]}, list: [{k: 1}, {k: 2}]})");
  const auto holds = [&](std::string_view condition) {
    const Result<bool> result = GraphConditionHolds(condition, value);
    return result ? (*result ? "yes" : "no") : "refused";
  };
  for (const char* condition :
       {"a", "a.b.0", "a.b.1.c", "list.#(k==2)", "list.#(k>1)", "list.#(k!=1).k", "list.#(k)",
        "[@this].#(a.b.1.c==\"x\")", "@this.a", "[@this].#(a.b.0<=10)"})
    EXPECT_STREQ(holds(condition), "yes") << condition;
  for (const char* condition : {"z", "a.b.2", "a.b.x", "list.#(k==3)", "list.#(k<\"a\")",
                                "[@this].#(a.b.1.c>=\"y\")", "a.#(k==1)"})
    EXPECT_STREQ(holds(condition), "no") << condition;
  for (const char* condition : {"a..b", "a|b", "list.#.k", "a.*", "list.#(k==x)", "a.b@c"})
    EXPECT_STREQ(holds(condition), "refused") << condition;
}

// Wherever in it: also where no value has led yet.
TEST(GraphCondition, IsCheckedAsAWhole) {
  for (const char* condition : {"", "a", "a.0.b", "@this.a", "[@this].#(a.b==\"x\").c", "#(a)",
                                "[@this].#(predictions.0==1)", "#(k<=-1.5)"})
    EXPECT_TRUE(CheckGraphCondition(condition).ok()) << condition;
  for (const char* condition : {"[[", "a..b", "a.#", "z.#(k==x)", "z.#(a|b==1)", "#(k==)", "a.b@c"})
    EXPECT_EQ(CheckGraphCondition(condition).reason(), Reason::kInvalid) << condition;
  std::string nested;
  for (size_t i = 0; i < kMaxConditionBytes; ++i) nested += "#(";
  EXPECT_FALSE(CheckGraphCondition(nested).ok());
  EXPECT_FALSE(CheckGraphCondition(nested.substr(0, kMaxConditionBytes)).ok());
}

}  // namespace
}  // namespace muster::serving
