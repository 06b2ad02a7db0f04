#include "client/api_client.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/watch_decoder.h"
#include "loop/sim_loop.h"

namespace muster::client {
namespace {

class ApiClientTest : public testing::Test {
 protected:
  json::Value Pod(const std::string& name) {
    return json::Obj({{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", json::Obj({{"name", name}, {"namespace", "d"}})}});
  }

  SimLoop loop_;
  FakeApi api_{loop_};
  InProcessTransport transport_{loop_, api_, {"", "tester", {"system:masters"}}};
  ApiClient client_{loop_, transport_, "tester"};
};

TEST_F(ApiClientTest, PathsFollowGroupNamespaceAndSubresource) {
  EXPECT_EQ(ApiClient::PathOf({resources::kPods, "d", "x", "log"}),
            "/api/v1/namespaces/d/pods/x/log");
  EXPECT_EQ(ApiClient::PathOf({resources::kNodes, "", "n1", ""}), "/api/v1/nodes/n1");
  EXPECT_EQ(ApiClient::PathOf({resources::kPyTorchJobs, "", "", ""}),
            "/apis/kubeflow.org/v1/pytorchjobs");
  EXPECT_EQ(ApiClient::PathOf({resources::kNamespaces, "", "d", "finalize"}),
            "/api/v1/namespaces/d/finalize");
}

TEST_F(ApiClientTest, CreatesThenReadsTheObject) {
  Result<json::Value> created, read;
  client_.Create({resources::kPods, "d", "a", ""}, Pod("a"),
                 [&](auto reply) { created = std::move(reply); });
  loop_.RunReady();
  ASSERT_TRUE(created.has_value());
  client_.Get({resources::kPods, "d", "a", ""}, [&](auto reply) { read = std::move(reply); });
  loop_.RunReady();
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ((*read)["metadata"]["resourceVersion"].AsString(), "1");
  EXPECT_EQ(api_.requests[0], "POST /api/v1/namespaces/d/pods?fieldManager=tester");
}

TEST_F(ApiClientTest, DecodesTheServersStatus) {
  api_.before_handle = [](const net::Request&, const net::ResponseWriterPtr& writer) {
    net::Response response;
    response.status = 422;
    response.body =
        R"({"kind":"Status","reason":"Invalid","message":"no","code":422,
      "details":{"name":"a","kind":"Pod","causes":[{"reason":"FieldValueRequired",
      "message":"Required value","field":"spec.containers"}]}})";
    writer->Send(std::move(response));
    return false;
  };
  Status error;
  client_.Get({resources::kPods, "d", "a", ""}, [&](auto reply) { error = reply.error(); });
  loop_.RunReady();
  EXPECT_EQ(error.reason(), Reason::kInvalid);
  ASSERT_EQ(error.details().causes.size(), 1u);
  EXPECT_EQ(error.details().causes[0].field, "spec.containers");
}

TEST_F(ApiClientTest, AnswerlessHandlerGivesInternalError) {
  api_.before_handle = [](const net::Request&, const net::ResponseWriterPtr&) { return false; };
  Status error;
  client_.Get({resources::kPods, "d", "a", ""}, [&](auto reply) { error = reply.error(); });
  loop_.RunReady();
  EXPECT_EQ(error.reason(), Reason::kInternalError);
}

TEST(InProcessTransport, ALoopThatDiesWithCallsUnderWayIsNotAsked) {
  for (const int steps : {0, 1, 2}) {
    auto loop = std::make_unique<SimLoop>();
    FakeApi api(*loop);
    std::vector<net::ResponseWriterPtr> held;
    api.before_handle = [&](const net::Request&, const net::ResponseWriterPtr& writer) {
      held.push_back(writer);
      return false;
    };
    {
      InProcessTransport transport(*loop, api, {});
      for (int i = 0; i < 3; ++i) transport.Send({.method = "GET", .target = "/x"}, [](auto) {});
      for (int i = 0; i < steps; ++i) loop->Step();
    }
    // The last reference of an unanswered call: in a task of the loop, or in the handler.
    loop.reset();
    held.clear();
  }
}

TEST_F(ApiClientTest, WatchDeliversEventsInOrderAndItsEnd) {
  std::vector<std::string> seen;
  Status end(Reason::kUnknown, "not yet");
  api_.Put("/api/v1/pods", Pod("a"));
  auto handle =
      client_.Watch(resources::kPods, "", {.resource_version = "0"},
                    {.on_event =
                         [&](std::string_view type, json::Value object) {
                           seen.push_back(std::string(type) + object["metadata"]["name"].Str());
                         },
                     .on_end = [&](Status status) { end = std::move(status); }});
  loop_.RunReady();
  api_.Put("/api/v1/pods", Pod("a"));
  api_.Remove("/api/v1/pods", "d", "a");
  loop_.RunReady();
  EXPECT_EQ(seen, (std::vector<std::string>{"ADDEDa", "MODIFIEDa", "DELETEDa"}));
  api_.CutWatches(true);
  loop_.RunReady();
  EXPECT_EQ(end.reason(), Reason::kExpired);
}

TEST_F(ApiClientTest, DestroyedWatchIsSilentAndTellsTheHandler) {
  int events = 0;
  std::unique_ptr<StreamHandle> handle;
  handle = client_.Watch(resources::kPods, "", {},
                         {.on_event =
                              [&](std::string_view, json::Value) {
                                ++events;
                                handle.reset();  // from inside the callback
                              },
                          .on_end = [](Status) {}});
  loop_.RunReady();
  api_.Put("/api/v1/pods", Pod("a"));
  api_.Put("/api/v1/pods", Pod("b"));
  loop_.RunReady();
  EXPECT_EQ(events, 1);
}

TEST_F(ApiClientTest, DestroyedClientAbandonsItsCalls) {
  bool called = false;
  {
    ApiClient client(loop_, transport_, "short-lived");
    client.Get({resources::kPods, "d", "a", ""}, [&](auto) { called = true; });
  }
  loop_.RunReady();
  EXPECT_FALSE(called);
}

TEST(WatchDecoder, ReadsFramesFromAnyChunks) {
  const std::string text =
      "{\"type\":\"ADDED\",\"object\":{\"a\":\"\xC3\xA9\"}}\n\n{\"type\":\"BOOKMARK\",\"object\":{}"
      "}\r\n";
  for (size_t step = 1; step < text.size(); ++step) {
    WatchDecoder decoder;
    std::vector<std::string> types;
    for (size_t at = 0; at < text.size(); at += step) {
      decoder.Feed(std::string_view(text).substr(at, step));
      while (true) {
        const auto frame = decoder.Next();
        ASSERT_TRUE(frame.has_value());
        if (!frame->has_value()) break;
        types.push_back((*frame)->type);
      }
    }
    EXPECT_EQ(types, (std::vector<std::string>{"ADDED", "BOOKMARK"})) << "step " << step;
  }
}

TEST(WatchDecoder, RefusesFramesOverTheLimitAndBrokenOnes) {
  WatchDecoder endless;
  endless.Feed(std::string(kMaxWatchFrameBytes + 1, 'x'));
  EXPECT_EQ(endless.Next().error().reason(), Reason::kRequestEntityTooLarge);
  WatchDecoder broken;
  broken.Feed("{\"type\":\n");
  EXPECT_FALSE(broken.Next().has_value());
  WatchDecoder empty;
  empty.Feed("{\"object\":{}}\n");
  EXPECT_FALSE(empty.Next().has_value());
}

}  // namespace
}  // namespace muster::client
