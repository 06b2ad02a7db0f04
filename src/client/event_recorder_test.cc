#include "client/event_recorder.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "loop/sim_loop.h"

namespace muster::client {
namespace {

constexpr char kEvents[] = "/api/v1/events";

class EventRecorderTest : public testing::Test {
 protected:
  json::Value Pod(const std::string& name) {
    return json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", json::Obj({{"name", name}, {"namespace", "d"}, {"uid", "u-" + name}})}});
  }
  json::Value Only() const { return api_.objects.begin()->second; }

  SimLoop loop_;
  FakeApi api_{loop_};
  InProcessTransport transport_{loop_, api_, {}};
  ApiClient client_{loop_, transport_, "tester"};
  EventRecorder recorder_{client_, "kubelet", "n1"};
};

TEST_F(EventRecorderTest, WritesWhatDescribeShows) {
  recorder_.Record(Pod("a"), EventType::kWarning, "Failed", "no image");
  loop_.RunReady();
  ASSERT_EQ(api_.Count(kEvents), 1u);
  const json::Value event = Only();
  EXPECT_EQ(event["type"].AsString(), "Warning");
  EXPECT_EQ(event["reason"].AsString(), "Failed");
  EXPECT_EQ(event["message"].AsString(), "no image");
  EXPECT_EQ(event["involvedObject"]["uid"].AsString(), "u-a");
  EXPECT_EQ(event["involvedObject"]["kind"].AsString(), "Pod");
  EXPECT_EQ(event["source"]["component"].AsString(), "kubelet");
  EXPECT_EQ(event["source"]["host"].AsString(), "n1");
  EXPECT_EQ(event["reportingComponent"].AsString(), "kubelet");
  EXPECT_EQ(event["firstTimestamp"], event["lastTimestamp"]);
  EXPECT_TRUE(event["metadata"]["name"].AsString().starts_with("a."));
  EXPECT_EQ(event["metadata"]["namespace"].AsString(), "d");
}

TEST_F(EventRecorderTest, EqualEventsAreCounted) {
  for (int i = 0; i < 5; ++i) {
    recorder_.Record(Pod("a"), EventType::kNormal, "Pulled", "again");
    if (i == 2) loop_.RunFor(seconds(5));
  }
  loop_.RunReady();
  EXPECT_EQ(api_.Count(kEvents), 1u);
  EXPECT_EQ(Only()["count"].AsInt(), 5);
  EXPECT_NE(Only()["firstTimestamp"], Only()["lastTimestamp"]);
}

TEST_F(EventRecorderTest, OtherTextObjectOrTimeIsAnotherEvent) {
  recorder_.Record(Pod("a"), EventType::kNormal, "Pulled", "one");
  recorder_.Record(Pod("a"), EventType::kNormal, "Pulled", "two");
  recorder_.Record(Pod("b"), EventType::kNormal, "Pulled", "one");
  loop_.RunFor(kEventAggregationWindow);
  recorder_.Record(Pod("a"), EventType::kNormal, "Pulled", "one");
  loop_.RunReady();
  EXPECT_EQ(api_.Count(kEvents), 4u);
}

TEST_F(EventRecorderTest, LongMessagesAreCutAtACharacter) {
  std::string text(kMaxEventMessageBytes - 1, 'x');
  recorder_.Record(Pod("a"), EventType::kNormal, "Long", text + "\xC3\xA9\xC3\xA9");
  loop_.RunReady();
  EXPECT_EQ(Only()["message"].AsString(), text);
}

TEST_F(EventRecorderTest, RemembersOnlySoMany) {
  for (size_t i = 0; i < kMaxKnownEvents + 1; ++i) {
    recorder_.Record(Pod("a"), EventType::kNormal, "Many", std::to_string(i));
  }
  loop_.RunFor(seconds(1));
  recorder_.Record(Pod("a"), EventType::kNormal, "Many", "0");  // forgotten: an event of its own
  recorder_.Record(Pod("a"), EventType::kNormal, "Many", std::to_string(kMaxKnownEvents));
  loop_.RunReady();
  EXPECT_EQ(api_.Count(kEvents), kMaxKnownEvents + 2);
}

TEST_F(EventRecorderTest, OnlySoManyWritesAtATime) {
  std::vector<net::ResponseWriterPtr> held;
  api_.before_handle = [&](const net::Request&, const net::ResponseWriterPtr& writer) {
    held.push_back(writer);
    return false;
  };
  for (size_t i = 0; i < 3 * kMaxEventsInFlight; ++i) {
    recorder_.Record(Pod("a"), EventType::kNormal, "Many", std::to_string(i));
  }
  loop_.RunReady();
  EXPECT_EQ(held.size(), kMaxEventsInFlight);
  recorder_.Record(Pod("a"), EventType::kNormal, "Many", "95");  // counted while it waits
  api_.before_handle = nullptr;
  held.clear();  // those are lost, the others follow
  loop_.RunReady();
  EXPECT_EQ(api_.Count(kEvents), 2 * kMaxEventsInFlight);
  int64_t most = 0;
  for (const auto& [key, event] : api_.objects) most = std::max(most, event["count"].AsInt());
  EXPECT_EQ(most, 2);
}

TEST_F(EventRecorderTest, ALostEventIsForgotten) {
  api_.before_handle = [](const net::Request&, const net::ResponseWriterPtr& writer) {
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  recorder_.Record(Pod("a"), EventType::kNormal, "Pulled", "one");
  loop_.RunReady();
  api_.before_handle = nullptr;
  recorder_.Record(Pod("a"), EventType::kNormal, "Pulled", "one");
  loop_.RunReady();
  EXPECT_EQ(Only()["count"].AsInt(), 1);
}

}  // namespace
}  // namespace muster::client
