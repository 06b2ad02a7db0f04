#include "store/key_index.h"

#include <map>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster::store {
namespace {

EntryPtr Make(std::string key, Revision revision = 1) {
  auto entry = std::make_shared<Entry>();
  entry->key = std::move(key);
  entry->mod_revision = revision;
  return entry;
}

TEST(KeyIndex, FindsNothingWhenEmpty) {
  const KeyIndex index;
  EXPECT_EQ(index.Find("a"), nullptr);
  EXPECT_EQ(index.Rank("a"), 0U);
  EXPECT_EQ(index.Count("", ""), 0U);
  EXPECT_TRUE(index.AtLeast("").AtEnd());
}

TEST(KeyIndex, EndOfPrefixSkipsTheHighestByte) {
  EXPECT_EQ(PrefixEnd("/a/"), "/a0");
  EXPECT_EQ(PrefixEnd("a\xff"), "b");
  EXPECT_EQ(PrefixEnd("\xff"), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

TEST(KeyIndex, AgreesWithAMapUnderRandomChanges) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng(seed);
    KeyIndex index;
    std::map<std::string, Revision> model;
    for (Revision step = 1; step <= 8000; ++step) {
      const std::string key = fmt::format("/k/{}", rng.Below(step < 4000 ? 3000 : 300));
      if (rng.Chance(step < 4000 ? 0.2 : 0.6)) {
        const EntryPtr removed = index.Erase(key);
        ASSERT_EQ(removed != nullptr, model.erase(key) == 1);
      } else {
        const EntryPtr replaced = index.Set(Make(key, step));
        ASSERT_EQ(replaced != nullptr, !model.insert_or_assign(key, step).second);
      }
      ASSERT_EQ(index.size(), model.size());
      if (step % 97 != 0) continue;
      const auto at = model.lower_bound(key);
      ASSERT_EQ(index.Rank(key), static_cast<size_t>(std::distance(model.begin(), at)));
      KeyIndex::Cursor cursor = index.AtLeast("");
      for (const auto& [k, revision] : model) {
        ASSERT_FALSE(cursor.AtEnd());
        ASSERT_EQ((*cursor)->key, k);
        ASSERT_EQ((*cursor)->mod_revision, revision);
        cursor.Next();
      }
      ASSERT_TRUE(cursor.AtEnd());
    }
  }
}

}  // namespace
}  // namespace muster::store
