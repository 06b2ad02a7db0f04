#include "json/value.h"

#include <gtest/gtest.h>

#include "json/write.h"

namespace muster::json {
namespace {

TEST(Value, ReadingNeverFails) {
  const Value pod =
      Obj({{"metadata", Obj({{"name", "a"}})}, {"list", List({1, "two", true, nullptr})}});
  EXPECT_EQ(pod["metadata"]["name"].AsString(), "a");
  EXPECT_EQ(pod["spec"]["nodeName"].AsString("none"), "none");
  EXPECT_TRUE(pod.Path({"metadata", "name", "deeper"}).IsNull());
  EXPECT_EQ(pod["list"].At(0).AsInt(), 1);
  EXPECT_TRUE(pod["list"].At(2).AsBool());
  EXPECT_TRUE(pod["list"].At(9).IsNull());
  EXPECT_EQ(pod["list"].size(), 4u);
  EXPECT_TRUE(Obj({{"a", nullptr}}).Has("a"));
}

TEST(Value, UpdatesShareWhatDidNotChange) {
  const Value before = Obj({{"spec", Obj({{"a", 1}})}, {"status", Obj({{"phase", "Pending"}})}});
  const Value after = before.SetPath({"status", "phase"}, "Running");
  EXPECT_EQ(before["status"]["phase"].AsString(), "Pending");
  EXPECT_EQ(after["status"]["phase"].AsString(), "Running");
  EXPECT_TRUE(after["spec"].SameAs(before["spec"]));
  EXPECT_EQ(Write(after.RemovePath({"status", "phase"})), R"({"spec":{"a":1},"status":{}})");
  EXPECT_TRUE(after.RemovePath({"status", "other"}).SameAs(after));
  EXPECT_EQ(Write(Value().SetPath({"a", "b"}, 1)), R"({"a":{"b":1}})");
}

TEST(Value, APathOfAValueGivenUpIsSharedWithNobodyWhoLooksOn) {
  Value value = Obj({{"spec", Obj({{"a", Obj({{"b", 1}})}})}, {"other", List({1})}});
  const Value whole = value;
  value = std::move(value).SetPath({"spec", "a", "b"}, 2);
  EXPECT_EQ(Write(whole), R"({"spec":{"a":{"b":1}},"other":[1]})");
  const Value inner = value["spec"]["a"];
  value = std::move(value).SetPath({"spec", "a", "b"}, 3);
  EXPECT_EQ(inner["b"].AsInt(), 2);
  value = std::move(value).SetPath({"spec", "self"}, value["spec"]);
  EXPECT_EQ(Write(value), R"({"spec":{"a":{"b":3},"self":{"a":{"b":3}}},"other":[1]})");
  value = std::move(value).SetPath({"other", "made", "anew"}, true);
  EXPECT_EQ(Write(value["other"]), R"({"made":{"anew":true}})");
  EXPECT_EQ(Write(Value().SetPath({"a"}, 1)), R"({"a":1})");
}

TEST(Value, AValueGivenUpChangesInPlaceOnlyWhenNobodyElseHoldsIt) {
  Value value = Obj({{"a", 1}});
  const Value copy = value;
  value = std::move(value).Set("a", 2);
  EXPECT_EQ(copy["a"].AsInt(), 1);
  EXPECT_EQ(value["a"].AsInt(), 2);
  value = std::move(value).Set("b", 3);
  EXPECT_EQ(Write(value), R"({"a":2,"b":3})");
  Value list = List({1});
  list = std::move(list).Append(2);
  EXPECT_EQ(Write(list), "[1,2]");
}

TEST(Value, NumbersCompareByValueAndKeepTheirDigits) {
  EXPECT_EQ(Value::Number("1.0"), Value(1));
  EXPECT_EQ(Value::Number("1e0"), Value(1));
  EXPECT_EQ(Value::Number("-0"), Value(0));
  EXPECT_EQ(Value::Number("1e400"), Value::Number("10e399"));
  EXPECT_FALSE(Value::Number("9007199254740993") == Value::Number("9007199254740992"));
  EXPECT_EQ(Value::Number("1e3").Int(), 1000);
  EXPECT_EQ(Value::Number("1.5").Int(), std::nullopt);
  EXPECT_EQ(Value::Number("9223372036854775807").Int(), INT64_MAX);
  EXPECT_EQ(Value::Number("9223372036854775808").Int(), std::nullopt);
  EXPECT_EQ(Value::Number("-9223372036854775808").Int(), INT64_MIN);
  EXPECT_EQ(Value::Number("100e-2").Int(), 1);
  EXPECT_EQ(Value(uint64_t{18446744073709551615u}).NumberToken(), "18446744073709551615");
}

TEST(Value, DoublesAreWrittenAsGoWritesThem) {
  EXPECT_EQ(Write(Value(0.1)), "0.1");
  EXPECT_EQ(Write(Value(1.0)), "1");
  EXPECT_EQ(Write(Value(1e21)), "1e+21");
  EXPECT_EQ(Write(Value(1e20)), "100000000000000000000");
  EXPECT_EQ(Write(Value(1e-7)), "1e-7");
  EXPECT_EQ(Write(Value(0.000001)), "0.000001");
  EXPECT_EQ(Write(Value(1.0 / 0.0)), "null");
}

TEST(Value, LargeObjectsFindByIndex) {
  Object members;
  for (int i = 0; i < 1000; ++i) members.emplace_back("key-" + std::to_string(i), i);
  Value value(std::move(members));
  EXPECT_EQ(value["key-999"].AsInt(), 999);
  EXPECT_FALSE(value.Has("key-1000"));
  value = value.Set("key-1000", 1000).Set("key-5", "changed").Set("aaa", 1);
  EXPECT_EQ(value["key-1000"].AsInt(), 1000);
  EXPECT_EQ(value["key-5"].AsString(), "changed");
  EXPECT_EQ(value["aaa"].AsInt(), 1);
  EXPECT_EQ(value.size(), 1002u);
  value = value.Remove("key-7");
  EXPECT_FALSE(value.Has("key-7"));
  EXPECT_EQ(value["key-8"].AsInt(), 8);
}

TEST(Value, ObjectsCrossTheIndexThresholdBySet) {
  Value value;
  for (size_t i = 0; i < 3 * kMaxMembersWithoutIndex; ++i)
    value = std::move(value).Set(std::to_string(i), int64_t(i));
  for (size_t i = 0; i < 3 * kMaxMembersWithoutIndex; ++i)
    EXPECT_EQ(value[std::to_string(i)].AsInt(-1), int64_t(i));
}

TEST(Value, EqualityIgnoresMemberOrder) {
  EXPECT_EQ(Obj({{"a", 1}, {"b", List({1, 2})}}), Obj({{"b", List({1, 2})}, {"a", 1}}));
  EXPECT_FALSE(List({1, 2}) == List({2, 1}));
  EXPECT_FALSE(Obj({{"a", nullptr}}) == Obj({{"b", nullptr}}));
  EXPECT_EQ(Write(SortKeys(Obj({{"b", Obj({{"d", 1}, {"c", 2}})}, {"a", 1}}))), R"({"a":1,"b":{)"
                                                                                R"("c":2,"d":1}})");
}

TEST(Value, StringListsGoBothWays) {
  EXPECT_EQ(ToStrings(Strings({"a", "b"})), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace muster::json
