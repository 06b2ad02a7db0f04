#include "apiserver/kinds/event_expiry.h"

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"

namespace muster::apiserver {
namespace {

constexpr char kEvents[] = "/api/v1/namespaces/default/events";

class EventExpiryTest : public ::testing::Test {
 protected:
  void Make(const std::string& name) {
    const auto made = test_.Send("POST", kEvents, R"({"metadata":{"name":")" + name + R"("},
        "involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"r"})");
    ASSERT_EQ(made->status, 201) << made->body;
  }
  bool Has(const std::string& name) {
    return test_.Send("GET", std::string(kEvents) + "/" + name)->status == 200;
  }
  TestServer test_;
};

TEST_F(EventExpiryTest, AnHourIsAnHourWhateverTheClockIsSetTo) {
  for (const Duration jump : {Duration(hours(1)), Duration(hours(-1)), Duration(hours(48))}) {
    Make("e");
    test_.loop.RunFor(minutes(5));
    Make("later");
    test_.loop.JumpClock(jump);
    test_.loop.RunFor(minutes(54));
    EXPECT_TRUE(Has("e")) << "nothing goes early: " << jump / hours(1);
    test_.loop.RunFor(minutes(3));
    EXPECT_FALSE(Has("e")) << "nothing stays: " << jump / hours(1);
    EXPECT_TRUE(Has("later"));
    test_.loop.RunFor(minutes(5));
    EXPECT_FALSE(Has("later"));
  }
}

TEST_F(EventExpiryTest, ManyOfOneMomentGoInSeveralTasks) {
  const size_t count = 2 * kEventsExpiredPerTask + 1;
  for (size_t i = 0; i < count; ++i) Make("e" + std::to_string(i));
  test_.loop.RunFor(kEventLifetime + 2 * kEventExpiryPeriod);
  EXPECT_FALSE(Has("e0"));
  EXPECT_FALSE(Has("e" + std::to_string(count - 1)));
}

}  // namespace
}  // namespace muster::apiserver
