#include "json/draft.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/patch.h"
#include "json/write.h"

namespace muster::json {
namespace {

std::string Text(Draft& draft) { return Write(*draft.Get({})); }

TEST(Draft, PutsTakesAndMovesWithoutTouchingTheOriginal) {
  const Value original = *Parse(R"({"a":{"x":1,"y":2},"list":[1,2,3]})");
  Draft draft(original);
  EXPECT_TRUE(draft.Put({"list", "0"}, Draft::Node(0), Draft::Change::kAdd));
  EXPECT_TRUE(draft.Put({"list", "-"}, Draft::Node(4), Draft::Change::kAdd));
  EXPECT_TRUE(draft.Put({"list", "2"}, Draft::Node("two"), Draft::Change::kReplace));
  EXPECT_FALSE(draft.Put({"list", "6"}, Draft::Node(9), Draft::Change::kAdd));
  EXPECT_FALSE(draft.Put({"list", "5"}, Draft::Node(9), Draft::Change::kReplace));
  EXPECT_TRUE(draft.Put({"a", "z"}, Draft::Node(9), Draft::Change::kReplace));
  EXPECT_TRUE(draft.Take({"a", "z"}).has_value());
  EXPECT_FALSE(draft.Put({"a", "x", "deeper"}, Draft::Node(9), Draft::Change::kAdd));
  EXPECT_EQ(Text(draft), R"({"a":{"x":1,"y":2},"list":[0,1,"two",3,4]})");
  std::optional<Draft::Node> list = draft.Take({"list"});
  ASSERT_TRUE(list.has_value());
  EXPECT_FALSE(draft.Get({"list"}).has_value());
  EXPECT_EQ(draft.DepthOf(*list), 1u);
  EXPECT_TRUE(draft.Put({"a", "x"}, std::move(*list), Draft::Change::kAdd));
  EXPECT_TRUE(draft.Take({"a", "x", "0"}).has_value());
  EXPECT_FALSE(draft.Take({"a", "x", "04"}).has_value());
  EXPECT_EQ(Text(draft), R"({"a":{"x":[1,"two",3,4],"y":2}})");
  EXPECT_EQ(Write(original), R"({"a":{"x":1,"y":2},"list":[1,2,3]})");
}

TEST(Draft, KeepsTheOrderOfManyMembers) {
  Object members;
  for (int i = 0; i < 100; ++i) members.emplace_back("k" + std::to_string(i), i);
  Draft draft{Value(members)};
  for (int i = 0; i < 100; i += 2)
    EXPECT_TRUE(draft.Take({"k" + std::to_string(i)}).has_value()) << i;
  EXPECT_FALSE(draft.Get({"k4"}).has_value());
  EXPECT_TRUE(draft.Put({"k4"}, Draft::Node("again"), Draft::Change::kAdd));
  const Value edited = *draft.Get({});
  ASSERT_EQ(edited.size(), 51u);
  EXPECT_EQ(edited.members()[0].first, "k1");
  EXPECT_EQ(edited.members()[49].first, "k99");
  EXPECT_EQ(edited.members()[50].first, "k4");
}

// What each of ten thousand operations may cost does not depend on how large the document is.
TEST(Draft, AnEditOfALargeObjectIsCheap) {
  constexpr size_t kMembers = 20'000;
  Object members;
  for (size_t i = 0; i < kMembers; ++i) members.emplace_back("k" + std::to_string(i), 1);
  Draft draft{Value(members)};
  for (size_t i = 0; i < kMaxPatchOperations; ++i) {
    std::optional<Draft::Node> taken = draft.Take({"k" + std::to_string(i)});
    ASSERT_TRUE(taken.has_value());
    ASSERT_TRUE(draft.Put({"m" + std::to_string(i)}, std::move(*taken), Draft::Change::kAdd));
  }
  EXPECT_EQ(draft.Get({})->size(), kMembers);
  EXPECT_LT(draft.steps(), 3 * kMembers) << "taken apart once, put together once";
}

}  // namespace
}  // namespace muster::json
