#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/list_parameters.h"
#include "apiserver/stored_object.h"
#include "apiserver/watch/event_hub.h"
#include "apiserver/watch/watcher.h"
#include "base/strings.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

size_t Count(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

void Create(TestServer& test, const std::string& name, const std::string& data = "") {
  const auto writer =
      test.Send("POST", "/api/v1/namespaces/default/configmaps",
                "{\"metadata\":{\"name\":\"" + name + "\"},\"data\":{\"k\":\"" + data + "\"}}");
  ASSERT_EQ(writer->status, 201) << writer->body;
}

constexpr char kWatchAll[] = "/api/v1/configmaps?watch=true";

TEST(Watch, TheFirstPartNeverRunsAheadOfTheReader) {
  TestServer test;
  for (int i = 0; i < 250; ++i) Create(test, "c" + std::to_string(i));
  auto writer = std::make_shared<FakeWriter>();
  writer->buffered_bytes = kInitialBacklogBytes + 1;
  test.Begin("GET", kWatchAll, "", {}, writer);
  test.loop.RunReady();
  EXPECT_EQ(Count(writer->body, "ADDED"), 0u);
  writer->buffered_bytes = 0;
  test.loop.RunFor(kInitialRetry);
  EXPECT_EQ(Count(writer->body, "ADDED"), 250u);
  EXPECT_GE(writer->writes, 3);  // in slices
}

TEST(Watch, WhatComesDuringTheFirstPartWaitsBehindIt) {
  TestServer test;
  Create(test, "old");
  auto writer = std::make_shared<FakeWriter>();
  writer->buffered_bytes = kInitialBacklogBytes + 1;
  test.Begin("GET", kWatchAll, "", {}, writer);
  Create(test, "new");
  EXPECT_EQ(writer->body, "");
  writer->buffered_bytes = 0;
  test.loop.RunFor(kInitialRetry);
  EXPECT_EQ(Count(writer->body, "ADDED"), 2u);
  EXPECT_LT(writer->body.find("\"old\""), writer->body.find("\"new\""));
}

TEST(Watch, AReaderThatFallsBehindIsCutOff) {
  TestServer test;
  const auto slow = test.Send("GET", kWatchAll);
  const auto quick = test.Send("GET", kWatchAll);
  slow->buffered_bytes = kMaxWatchBacklogBytes + 1;
  Create(test, "a");
  EXPECT_TRUE(slow->cut);
  EXPECT_NE(slow->body.find("\"code\":410"), std::string::npos) << slow->body;
  EXPECT_EQ(slow.use_count(), 1);
  EXPECT_GT(quick.use_count(), 1);
  Create(test, "b");
  EXPECT_EQ(Count(slow->body, "ADDED"), 1u);
  EXPECT_EQ(Count(quick->body, "ADDED"), 2u);
}

TEST(Watch, EventsThatWaitBehindAFirstPartAreBounded) {
  TestServer test;
  Create(test, "old");
  auto writer = std::make_shared<FakeWriter>();
  writer->buffered_bytes = kInitialBacklogBytes + 1;
  test.Begin("GET", kWatchAll, "", {}, writer);
  const std::string big(512 * 1024, 'x');
  for (int i = 0; i < 20 && writer.use_count() > 1; ++i)
    Create(test, "big" + std::to_string(i), big);
  EXPECT_EQ(writer.use_count(), 1);
}

TEST(Watch, ManyWatchesShareTheMemoryOfWhatWaits) {
  EXPECT_EQ(WatchBudget{1}.BacklogOfEach(), kMaxWatchBacklogBytes);
  EXPECT_EQ(WatchBudget{128}.BacklogOfEach(), kMaxAllWatchBacklogBytes / 128);
  EXPECT_EQ(WatchBudget{10'000}.BacklogOfEach(), kMinWatchBacklogBytes);
}

// Beyond a hundred watchers events go out in batches; nobody gets one twice or out of order.
TEST(Watch, ManyWatchersGetEventsInBatches) {
  TestServer test;
  std::vector<std::shared_ptr<FakeWriter>> watchers;
  for (int i = 0; i < 200; ++i) watchers.push_back(test.Send("GET", kWatchAll));
  const auto create = [&test](const std::string& name) {
    test.Begin("POST", "/api/v1/namespaces/default/configmaps",
               R"({"metadata":{"name":")" + name + R"("}})");
    test.loop.RunReady();
  };
  for (const char* name : {"a", "b", "c"}) create(name);
  EXPECT_EQ(Count(watchers[0]->body, "ADDED"), 1u);  // the first goes at once
  // Who comes now sees what waits, once.
  const auto late = test.Send(
      "GET",
      std::string(kWatchAll) + "&resourceVersion=" +
          test.Json(*test.Send(
              "GET", "/api/v1/namespaces/default/configmaps/a"))["metadata"]["resourceVersion"]
              .Str());
  EXPECT_EQ(Count(late->body, "ADDED"), 2u);
  create("d");
  test.loop.RunFor(kMaxBatchDelay);
  for (const auto& watcher : watchers) {
    EXPECT_EQ(watcher->body, watchers[0]->body);
    EXPECT_LE(watcher->writes, 3);
  }
  EXPECT_EQ(Count(watchers[0]->body, "ADDED"), 4u);
  EXPECT_LT(watchers[0]->body.find("\"b\""), watchers[0]->body.find("\"c\""));
  EXPECT_EQ(Count(late->body, "ADDED"), 3u);
}

TEST(Watch, ALostPeerIsForgotten) {
  TestServer test;
  const auto writer = test.Send("GET", kWatchAll);
  const std::string watchers = "apiserver_registered_watchers 1";
  EXPECT_NE(test.Send("GET", "/metrics")->body.find(watchers), std::string::npos);
  writer->LosePeer();
  test.loop.RunReady();
  EXPECT_EQ(test.Send("GET", "/metrics")->body.find(watchers), std::string::npos);
}

TEST(Watch, AStartBeforeTheRingIsReplayed) {
  TestServer test;
  Create(test, "first");
  const auto live = test.Send("GET", kWatchAll);  // makes the hub
  for (size_t i = 0; i < kHubRingEvents + 10; ++i) Create(test, "c" + std::to_string(i));
  const auto late = test.Send("GET", std::string(kWatchAll) + "&resourceVersion=1");
  EXPECT_EQ(Count(late->body, "ADDED"), kHubRingEvents + 11);
  Create(test, "after");
  EXPECT_NE(late->body.find("\"after\""), std::string::npos);
}

TEST(Watch, WatchersOfOneNodeHearOnlyOfTheirPods) {
  TestServer test;
  const std::string pods = "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3D";
  const auto one = test.Send("GET", pods + "n1");
  const auto other = test.Send("GET", pods + "n2");
  const auto unbound = test.Send("GET", pods);
  const auto all = test.Send("GET", "/api/v1/pods?watch=true");
  ASSERT_EQ(test.Send("POST", "/api/v1/namespaces/default/pods",
                      R"({"metadata":{"name":"p"},
                          "spec":{"containers":[{"name":"c","image":"i"}]}})")
                ->status,
            201);
  EXPECT_EQ(Count(unbound->body, "ADDED"), 1u);
  ASSERT_EQ(test.Send("POST", "/api/v1/namespaces/default/pods/p/binding",
                      R"({"metadata":{"name":"p"},"target":{"name":"n1"}})")
                ->status,
            201);
  EXPECT_EQ(Count(one->body, "ADDED"), 1u);
  EXPECT_EQ(Count(unbound->body, "DELETED"), 1u);  // it has left "bound to no node"
  EXPECT_EQ(other->body, "");
  EXPECT_EQ(Count(all->body, "MODIFIED"), 1u);
  test.Send("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0");
  EXPECT_EQ(Count(one->body, "DELETED"), 1u);
  one->LosePeer();
  test.loop.RunReady();
  EXPECT_NE(test.Send("GET", "/metrics")->body.find("apiserver_registered_watchers 3"),
            std::string::npos);
}

TEST(Watch, ACompactedStartIsExpired) {
  TestServer test;
  Create(test, "a");
  Create(test, "b");
  ASSERT_TRUE(test.store->Compact(test.store->CommittedRevision()).ok());
  const auto writer = test.Send("GET", std::string(kWatchAll) + "&resourceVersion=2");
  EXPECT_EQ(writer->status, 200);
  EXPECT_TRUE(writer->ended);
  EXPECT_NE(writer->body.find("\"type\":\"ERROR\""), std::string::npos);
  EXPECT_NE(writer->body.find("\"code\":410"), std::string::npos);
}

TEST(Watch, ShutdownEndsWatchesAndReadiness) {
  TestServer test;
  const auto writer = test.Send("GET", kWatchAll);
  test.server->BeginShutdown();
  EXPECT_TRUE(writer->ended);
  EXPECT_EQ(test.Send("GET", "/readyz")->status, 500);
  EXPECT_EQ(test.Send("GET", "/livez")->status, 200);
  EXPECT_EQ(test.Send("GET", kWatchAll)->status, 503);
}

TEST(List, AnExpiredTokenOffersAnInconsistentRest) {
  TestServer test;
  for (const char* name : {"a", "b", "c"}) Create(test, name);
  const json::Value page = TestServer::Json(*test.Send("GET", "/api/v1/configmaps?limit=1"));
  Create(test, "d");
  ASSERT_TRUE(test.store->Compact(test.store->CommittedRevision()).ok());
  const auto expired =
      test.Send("GET", "/api/v1/configmaps?limit=1&continue=" + page["metadata"]["continue"].Str());
  EXPECT_EQ(expired->status, 410);
  const json::Value status = TestServer::Json(*expired);
  EXPECT_EQ(status["reason"].AsString(), "Expired");
  const json::Value rest = TestServer::Json(
      *test.Send("GET", "/api/v1/configmaps?continue=" + status["metadata"]["continue"].Str()));
  EXPECT_EQ(rest["items"].size(), 3u);  // b, c and the new d
}

TEST(List, ASearchThatTakesTooLongGoesOnWithAToken) {
  TestServer test;
  // Straight into the store: what matters is how many there are.
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", "configmaps");
  for (size_t i = 0; i <= kMaxSearchedEntries; ++i) {
    const std::string name = fmt::format("c{:06}", i);
    const std::string label = i == kMaxSearchedEntries ? R"({"last":"yes"})" : "{}";
    StoredForm form = EncodeStored(
        *kind, *json::Parse("{\"metadata\":{\"name\":\"" + name + "\",\"labels\":" + label + "}}"));
    store::Put put;
    put.key = ObjectKey(*kind, "default", name);
    put.value = std::move(form.bytes);
    put.revision_slot = form.revision_slot;
    put.meta = std::move(form.meta);
    ASSERT_TRUE(test.store->Write(std::move(put), {}).has_value());
    if (i % 1000 == 0) test.loop.RunReady();
  }
  test.loop.RunReady();
  const std::string url = "/api/v1/configmaps?limit=5&labelSelector=last";
  const json::Value first = TestServer::Json(*test.Send("GET", url));
  EXPECT_EQ(first["items"].size(), 0u);
  const std::string token = first["metadata"]["continue"].Str();
  ASSERT_NE(token, "");
  const json::Value rest =
      TestServer::Json(*test.Send("GET", url + "&continue=" + PercentEncode(token)));
  EXPECT_EQ(rest["items"].size(), 1u);
}

TEST(List, TheBodyComesInPieces) {
  TestServer test;
  for (int i = 0; i < 40; ++i) Create(test, "c" + std::to_string(i), std::string(1000, 'x'));
  for (const size_t piece : {size_t{1}, size_t{100}, size_t{5000}, size_t{1000000}}) {
    auto writer = std::make_shared<FakeWriter>();
    writer->piece_bytes = piece;
    test.Begin("GET", "/api/v1/configmaps", "", {}, writer);
    EXPECT_EQ(TestServer::Json(*writer)["items"].size(), 40u) << piece;
  }
}

TEST(DeleteCollection, TakesManyObjectsInSlices) {
  TestServer test;
  for (int i = 0; i < 130; ++i) Create(test, "c" + std::to_string(i));
  const auto writer = test.Send("DELETE", "/api/v1/namespaces/default/configmaps");
  EXPECT_EQ(writer->status, 200);
  EXPECT_EQ(TestServer::Json(*test.Send("GET", "/api/v1/configmaps"))["items"].size(), 0u);
}

TEST(Server, RefusesBodiesOverTheLimit) {
  TestServer test;
  const std::string big(3 * 1024 * 1024, 'x');
  const auto writer = test.Send("POST", "/api/v1/namespaces/default/configmaps",
                                "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"" + big + "\"}}");
  EXPECT_EQ(writer->status, 413);
}

TEST(Server, DefinitionsAreServedAgainAfterARestart) {
  TestServer test;
  const std::string crd =
      R"({"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Cluster",
      "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,
        "storage":true,
      "schema":{"openAPIV3Schema":{"type":"object",
        "x-kubernetes-preserve-unknown-fields":true}}}]}})";
  const auto created =
      test.Send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
  ASSERT_EQ(created->status, 201) << created->body;
  ASSERT_EQ(test.Send("POST", "/apis/example.com/v1/widgets",
                      R"({"apiVersion":"example.com/v1","kind":"Widget",
      "metadata":{"name":"w"}})")
                ->status,
            201);
  test.server.reset();
  test.server = std::make_unique<ApiServer>(test.loop, *test.store, TestServer::WithFewKinds({}));
  EXPECT_EQ(test.Send("GET", "/apis/example.com/v1/widgets/w")->status, 200);
  EXPECT_EQ(test.Send("GET", "/readyz")->status, 500);  // until Start() is done
  const store::Revision before = test.store->CommittedRevision();
  test.server->Start([](Status status) { EXPECT_TRUE(status.ok()) << status.ToString(); });
  test.loop.RunReady();
  EXPECT_EQ(test.Send("GET", "/readyz")->status, 200);
  EXPECT_EQ(test.store->CommittedRevision(), before);  // a second start writes nothing
}

}  // namespace
}  // namespace muster::apiserver
