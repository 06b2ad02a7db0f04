#include "apiserver/recent_trees.h"

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/stored_object.h"
#include "base/strings.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kPod[] = R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"annotations":{"a":"<b>"},"name":"p","selfLink":"x"},
    "spec":{"containers":[{"name":"c","image":"i","command":["true"],
                           "resources":{"limits":{"cpu":"1000m"}}}]}})";

net::Headers Type(std::string type) {
  net::Headers headers;
  headers.Add("Content-Type", std::move(type));
  return headers;
}

std::shared_ptr<FakeWriter> Near() {
  auto writer = std::make_shared<FakeWriter>();
  writer->takes_values = true;
  return writer;
}

// A caller in this process sees as trees what others see as text, member for member.
TEST(RecentTrees, WatchersHereSeeWhatTheOthersSee) {
  TestServer test;
  const std::string watch = std::string(kPods) + "?watch=true&resourceVersion=" +
                            std::to_string(test.store->CommittedRevision());
  const auto far = test.Send("GET", watch);
  const auto near = test.Begin("GET", watch, "", {}, Near());
  const auto leaver = test.Begin("GET", watch + "&labelSelector=a%3Db", "", {}, Near());
  test.loop.RunReady();
  test.Send("POST", kPods, kPod);
  const std::string path = std::string(kPods) + "/p";
  test.Send("PATCH", path, R"({"metadata":{"labels":{"a":"b"}}})",
            Type("application/merge-patch+json"));
  test.Send("POST", path + "/binding",
            R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},
                "target":{"kind":"Node","name":"n"}})");
  test.Send("PATCH", path, R"([{"op":"remove","path":"/metadata/labels/a"}])",
            Type("application/json-patch+json"));
  test.Send("DELETE", path + "?gracePeriodSeconds=0");
  std::vector<std::string> frames;
  for (std::string_view line : SplitNonEmpty(far->body, '\n')) frames.emplace_back(line);
  ASSERT_EQ(frames.size(), 5u);
  ASSERT_EQ(near->values.size(), frames.size());
  EXPECT_EQ(near->body, "");
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(json::Write(near->values[i]), json::Write(*json::Parse(frames[i])));
  }
  ASSERT_EQ(leaver->values.size(), 3u);
  EXPECT_EQ(leaver->values[0]["type"].AsString(), "ADDED");
  EXPECT_EQ(leaver->values[2]["type"].AsString(), "DELETED");
  EXPECT_EQ(leaver->values[2]["object"]["metadata"]["resourceVersion"],
            near->values[3]["object"]["metadata"]["resourceVersion"]);
}

TEST(RecentTrees, AnswersAreTheStoredObjects) {
  TestServer test;
  for (const std::string query : {"?dryRun=All", ""}) {
    const auto near = test.Begin("POST", kPods + query, kPod, {}, Near());
    test.loop.RunReady();
    EXPECT_EQ(near->status, 201);
    ASSERT_EQ(near->values.size(), 1u);
    EXPECT_FALSE(near->values[0]["metadata"].Has("selfLink"));
    EXPECT_EQ(near->values[0]["metadata"].Has("resourceVersion"), query.empty());
    if (!query.empty()) continue;
    const auto far = test.Send("GET", std::string(kPods) + "/p");
    EXPECT_EQ(json::Write(near->values[0]), json::Write(TestServer::Json(*far)));
  }
}

// The tree of other bytes at the same revision, or in the same place, is never taken for it.
TEST(RecentTrees, BelongsToItsBytesAlone) {
  const schema::KindPtr maps = schema::Registry::BuiltIn().Find("", "v1", "configmaps");
  RecentTrees trees;
  const auto entry_of = [](store::Revision revision, const std::string& bytes) {
    store::Entry entry;
    entry.mod_revision = revision;
    entry.value = std::make_shared<const std::string>(bytes);
    return entry;
  };
  const store::Entry one = entry_of(5, R"({"metadata":{"name":"one"}})");
  const store::Entry dry = entry_of(5, R"({"metadata":{"name":"dry"}})");
  const store::Entry later = entry_of(5 + kRecentTrees, R"({"metadata":{"name":"later"}})");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(trees.Of(*maps, one)["metadata"]["name"].AsString(), "one");
    EXPECT_EQ(trees.Of(*maps, dry)["metadata"]["name"].AsString(), "dry");
    EXPECT_EQ(trees.Of(*maps, later)["metadata"]["name"].AsString(), "later");
  }
  schema::Kind newer;
  newer.kind = maps->kind;
  newer.version = "v2";
  EXPECT_EQ(trees.Of(newer, later)["apiVersion"].AsString(), "v2");
  EXPECT_EQ(trees.Of(*maps, later)["apiVersion"].AsString(), "v1");
}

TEST(RecentTrees, GreatObjectsAreNotKept) {
  const schema::KindPtr maps = schema::Registry::BuiltIn().Find("", "v1", "configmaps");
  RecentTrees trees;
  for (const auto& [size, kept] :
       {std::pair(kMaxRecentTreeBytes - 100, true), std::pair(kMaxRecentTreeBytes + 1, false)}) {
    const json::Value object = json::Obj(
        {{"apiVersion", "v1"}, {"metadata", json::Obj({{"name", std::string(size, 'x')}})}});
    store::Entry entry;
    entry.value = std::make_shared<const std::string>(EncodeStored(*maps, object).bytes);
    trees.Remember(entry, object);
    EXPECT_EQ(trees.Of(*maps, entry)["metadata"]["name"].SameAs(object["metadata"]["name"]), kept);
  }
}

TEST(RecentTrees, DiscoveryIsTheSameForBoth) {
  TestServer test;
  for (const char* path : {"/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"}) {
    const auto near = test.Begin("GET", path, "", {}, Near());
    const auto far = test.Begin("GET", path);
    test.loop.RunReady();
    ASSERT_EQ(near->values.size(), 1u) << path;
    EXPECT_EQ(near->body, "");
    EXPECT_EQ(json::Write(near->values[0]) + "\n", far->body);
  }
}

}  // namespace
}  // namespace muster::apiserver
