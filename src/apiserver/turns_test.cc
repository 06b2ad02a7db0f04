#include "apiserver/turns.h"

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "loop/sim_loop.h"

namespace muster::apiserver {
namespace {

constexpr int kPerTask = 2;

class TurnsTest : public testing::Test {
 protected:
  bool Wait(const std::string& user, const std::string& name) {
    return turns_->Wait(user, [this, name] { handled_ += name; });
  }

  SimLoop loop_;
  std::unique_ptr<Turns> turns_ = std::make_unique<Turns>(loop_, kPerTask);
  std::string handled_;
};

TEST_F(TurnsTest, UsersTakeTurns) {
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(Wait("flood", name));
  EXPECT_TRUE(Wait("other", "X"));
  EXPECT_TRUE(Wait("other", "Y"));
  EXPECT_EQ(handled_, "");
  EXPECT_EQ(turns_->waiting(), 6u);
  loop_.RunReady();
  EXPECT_EQ(handled_, "aXbYcd");
  EXPECT_EQ(turns_->waiting(), 0u);
}

TEST_F(TurnsTest, OtherTasksOfTheLoopComeInBetween) {
  for (const char* name : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(Wait("flood", name));
  loop_.Post([this] { handled_ += "!"; });
  loop_.RunReady();
  EXPECT_EQ(handled_, "ab!cde");
}

TEST_F(TurnsTest, WhatIsTooMuchIsRefused) {
  for (size_t i = 0; i < kMaxWaitingOfUser; ++i) ASSERT_TRUE(Wait("flood", "."));
  EXPECT_FALSE(Wait("flood", "x"));
  for (size_t i = kMaxWaitingOfUser; i < kMaxWaitingRequests; ++i)
    ASSERT_TRUE(Wait("user" + std::to_string(i), "."));
  EXPECT_FALSE(Wait("late", "x"));
  loop_.RunReady();
  EXPECT_EQ(handled_, std::string(kMaxWaitingRequests, '.'));
  EXPECT_TRUE(Wait("flood", "y"));
}

TEST_F(TurnsTest, AHandlerMayWaitAgain) {
  ASSERT_TRUE(turns_->Wait("a", [this] {
    handled_ += "1";
    Wait("a", "2");
  }));
  loop_.RunReady();
  EXPECT_EQ(handled_, "12");
}

TEST_F(TurnsTest, DestructionDropsWhatWaits) {
  EXPECT_TRUE(Wait("a", "x"));
  turns_ = nullptr;
  loop_.RunReady();
  EXPECT_EQ(handled_, "");
}

// The server's use of it: a request from outside waits, health and this process' own parts do not,
// and who comes too late is told when to try again.
TEST(Overload, RequestsFromOutsideWaitHealthDoesNot) {
  TestServer test;
  const auto begin = [&test](const std::string& method, const std::string& target,
                             const std::string& address) {
    net::Request request;
    request.method = method;
    request.target = target;
    request.peer = {address, "admin", {"system:masters"}};
    auto writer = std::make_shared<FakeWriter>();
    test.server->Handle(std::move(request), writer);
    return writer;
  };
  constexpr char kPods[] = "/api/v1/namespaces/default/pods";
  constexpr char kOutside[] = "192.0.2.1:4711";
  std::vector<std::shared_ptr<FakeWriter>> waiting;
  for (size_t i = 0; i < kMaxWaitingOfUser; ++i) waiting.push_back(begin("GET", kPods, kOutside));
  EXPECT_EQ(waiting.back()->status, 0);
  const auto refused = begin("GET", kPods, kOutside);
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->headers.Get("Retry-After"), "1");
  EXPECT_EQ(TestServer::Json(*refused)["reason"].AsString(), "TooManyRequests");
  EXPECT_EQ(begin("GET", "/livez", kOutside)->status, 200);
  EXPECT_EQ(begin("GET", "/readyz", kOutside)->status, 200);
  EXPECT_EQ(begin("GET", kPods, "")->status, 200);
  // A read of one object does not queue behind lists and writes.
  const auto read = begin("GET", "/api/v1/namespaces/default", kOutside);
  test.loop.RunReady();
  EXPECT_EQ(read->status, 200);
  EXPECT_EQ(waiting.back()->status, 200);
}

}  // namespace
}  // namespace muster::apiserver
