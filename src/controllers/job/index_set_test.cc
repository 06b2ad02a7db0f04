#include "controllers/job/index_set.h"

#include <gtest/gtest.h>

namespace muster::controllers {
namespace {

TEST(IndexSet, ReadsAndWritesTheStatus) {
  struct Row {
    const char* text;
    int64_t completions;
    const char* written;
    int64_t size;
  };
  const Row rows[] = {{"", 5, "", 0},
                      {"0", 5, "0", 1},
                      {"1,3-5,7", 10, "1,3-5,7", 5},
                      {"0-1", 5, "0,1", 2},
                      {"0,1,2", 5, "0-2", 3},
                      {"1,3-9", 5, "1,3,4", 3},  // completions went down
                      {"1,7-9,2", 5, "1", 1},
                      {"x,2,3-y,4", 9, "2,4", 2},
                      {"5-3,-1,1", 9, "1", 1},
                      {"1-3,2-6", 9, "1-6", 6}};
  for (const Row& row : rows) {
    const IndexSet set = IndexSet::Parse(row.text, row.completions);
    EXPECT_EQ(set.ToString(), row.written) << row.text;
    EXPECT_EQ(set.size(), row.size) << row.text;
  }
}

TEST(IndexSet, RangesMeet) {
  IndexSet set;
  for (const int64_t index : {5, 3, 4, 0, 5, 9}) set.Add(index);
  EXPECT_EQ(set.ToString(), "0,3-5,9");
  EXPECT_TRUE(set.Has(4));
  EXPECT_FALSE(set.Has(6));
  EXPECT_FALSE(IndexSet().Has(0));
  set.Add(IndexSet::Parse("1-2,6-8", 10));
  EXPECT_EQ(set.ToString(), "0-9");
}

TEST(IndexSet, WhatIsMissing) {
  const IndexSet set = IndexSet::Parse("0,2-3,6", 10);
  EXPECT_EQ(set.Missing(8, 10), (std::vector<int64_t>{1, 4, 5, 7}));
  EXPECT_EQ(set.Missing(8, 2), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(set.Missing(3, 9), (std::vector<int64_t>{1}));
  EXPECT_TRUE(IndexSet::Parse("0-7", 8).Missing(8, 1).empty());
  EXPECT_EQ(IndexSet().Missing(2, 9), (std::vector<int64_t>{0, 1}));
}

TEST(IndexSet, Overlaps) {
  const IndexSet rule = IndexSet::Parse("1-4,7", 10);
  EXPECT_EQ(rule.CountIn(IndexSet::Parse("0-1,3,6-9", 10)), 3);
  EXPECT_EQ(rule.CountIn(IndexSet()), 0);
  EXPECT_EQ(rule.CountIn(rule), rule.size());
}

}  // namespace
}  // namespace muster::controllers
