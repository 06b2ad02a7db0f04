#include "apiserver/mlflow/scan_turns.h"

#include <gtest/gtest.h>

#include "loop/sim_loop.h"

namespace muster::apiserver {
namespace {

class ScanTurnsTest : public testing::Test {
 protected:
  bool Wait(const std::string& user, const std::string& name) {
    return turns_->Wait(user, [this, name](ScanTurns::Slot slot) {
      begun_ += name;
      slots_.push_back(std::move(slot));
    });
  }
  void EndOne() {
    slots_.pop_front();
    loop_.RunReady();
  }

  SimLoop loop_;
  std::shared_ptr<ScanTurns> turns_ = std::make_shared<ScanTurns>(loop_);
  std::string begun_;
  std::deque<ScanTurns::Slot> slots_;
};

TEST_F(ScanTurnsTest, FewAreTakenAtATimeAndUsersTakeTurns) {
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) EXPECT_TRUE(Wait("flood", name));
  EXPECT_TRUE(Wait("other", "X"));
  EXPECT_EQ(begun_, "abcd");  // kMaxScans
  EndOne();
  EndOne();
  EXPECT_EQ(begun_, "abcdeX");
  while (!slots_.empty()) EndOne();
  EXPECT_EQ(begun_, "abcdeXfg");
  // Free slots are given at once again.
  EXPECT_TRUE(Wait("other", "Y"));
  EXPECT_EQ(begun_, "abcdeXfgY");
}

TEST_F(ScanTurnsTest, WhoFloodsIsToldAndOthersAreNot) {
  for (size_t i = 0; i < kMaxScans + kMaxWaitingScansOfUser; ++i) EXPECT_TRUE(Wait("flood", "a"));
  EXPECT_FALSE(Wait("flood", "a"));
  EXPECT_TRUE(Wait("other", "X"));
  size_t more = 0;
  for (size_t i = 0; i < kMaxWaitingScans; ++i) more += Wait(std::to_string(i), "b") ? 1 : 0;
  EXPECT_EQ(more, kMaxWaitingScans - kMaxWaitingScansOfUser - 1);
}

TEST_F(ScanTurnsTest, SlotsOutliveIt) {
  EXPECT_TRUE(Wait("a", "a"));
  for (size_t i = 0; i < kMaxScans; ++i) EXPECT_TRUE(Wait("a", "b"));
  slots_.pop_front();
  turns_.reset();
  loop_.RunReady();
  slots_.clear();
  EXPECT_EQ(begun_, "abbb");
}

}  // namespace
}  // namespace muster::apiserver
