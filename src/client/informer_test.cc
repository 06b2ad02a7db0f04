#include "client/informer.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "loop/sim_loop.h"

namespace muster::client {
namespace {

constexpr char kPods[] = "/api/v1/pods";

class InformerTest : public testing::Test {
 protected:
  json::Value Pod(const std::string& name, const std::string& node = "") {
    return json::Obj({{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", json::Obj({{"name", name}, {"namespace", "d"}})},
                      {"spec", json::Obj({{"nodeName", node}})}});
  }

  InformerEvents Log() {
    return {.on_change =
                [this](const ObjectKey& key, const json::Value& before, const json::Value& after) {
                  log_.push_back((before.IsNull() ? "+" : after.IsNull() ? "-" : "~") + key.name);
                },
            .on_synced = [this] { log_.push_back("synced"); }};
  }

  using Lines = std::vector<std::string>;
  SimLoop loop_;
  FakeApi api_{loop_};
  InProcessTransport transport_{loop_, api_, {}};
  ApiClient client_{loop_, transport_, "tester"};
  InformerSet informers_{client_};
  Lines log_;
};

TEST_F(InformerTest, ListsThenFollows) {
  api_.Put(kPods, Pod("a"));
  Informer& pods = informers_.Get(resources::kPods);
  pods.Subscribe(Log());
  informers_.Start();
  loop_.RunReady();
  EXPECT_TRUE(pods.Synced());
  api_.Put(kPods, Pod("b"));
  api_.Put(kPods, Pod("a"));
  api_.Remove(kPods, "d", "a");
  loop_.RunReady();
  EXPECT_EQ(log_, (Lines{"+a", "synced", "+b", "~a", "-a"}));
  EXPECT_EQ(pods.SeenRevision(), api_.revision());
}

TEST_F(InformerTest, ListedObjectsHaveTheirTypeBack) {
  api_.Put(kPods, Pod("a"));
  informers_.Get(resources::kPods);
  informers_.Start();
  loop_.RunReady();
  const json::Value* pod = informers_.Get(resources::kPods).Find({"d", "a"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ((*pod)["kind"].AsString(), "Pod");
  EXPECT_EQ((*pod)["apiVersion"].AsString(), "v1");
}

TEST_F(InformerTest, RelistsOn410AndTellsOnlyTheDifference) {
  api_.Put(kPods, Pod("a"));
  api_.Put(kPods, Pod("b"));
  Informer& pods = informers_.Get(resources::kPods);
  pods.Subscribe(Log());
  informers_.Start();
  loop_.RunReady();
  log_.clear();
  bool lost = true;  // what happens while the watch is away is not seen
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!lost || request.target.find("watch=true") == std::string::npos) return true;
    FakeApi::SendError(*writer, 410, "Expired", "too old resource version");
    return false;
  };
  api_.CutWatches(false);
  api_.Remove(kPods, "d", "a");
  api_.Remove(kPods, "d", "b");
  api_.Put(kPods, Pod("b"));  // another object of the same name
  api_.Put(kPods, Pod("c"));
  loop_.RunFor(seconds(1));
  lost = false;
  loop_.RunFor(seconds(60));
  ASSERT_GE(log_.size(), 5u);
  EXPECT_EQ(Lines(log_.begin(), log_.begin() + 4), (Lines{"-a", "-b", "+b", "+c"}));
  for (size_t i = 4; i < log_.size(); ++i) EXPECT_EQ(log_[i], "synced");
  EXPECT_EQ(pods.objects().size(), 2u);
}

TEST_F(InformerTest, BacksOffWhileTheServerIsAway) {
  int tries = 0;
  api_.before_handle = [&](const net::Request&, const net::ResponseWriterPtr& writer) {
    ++tries;
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  informers_.Get(resources::kPods);
  informers_.Start();
  loop_.RunFor(seconds(60));
  EXPECT_GE(tries, 8);
  EXPECT_LE(tries, 20);
  api_.before_handle = nullptr;
  loop_.RunFor(seconds(31));
  EXPECT_TRUE(informers_.AllSynced());
}

// A part may ask for what only some servers have: the others do not wait for it, and it is found
// when it comes.
TEST_F(InformerTest, WhatTheServerDoesNotServeKeepsNobodyWaiting) {
  bool served = false;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (served || !request.target.contains("/configmaps")) return true;
    FakeApi::SendError(*writer, 404, "NotFound", "the server could not find the resource");
    return false;
  };
  informers_.Get(resources::kPods);
  const Informer& optional = informers_.Get(resources::kConfigMaps);
  EXPECT_FALSE(informers_.AllSynced());
  informers_.Start();
  loop_.RunFor(seconds(1));
  EXPECT_TRUE(informers_.AllSynced());
  EXPECT_FALSE(optional.Served());
  EXPECT_FALSE(optional.Synced());
  served = true;
  loop_.RunFor(seconds(61));
  EXPECT_TRUE(optional.Served());
  EXPECT_TRUE(optional.Synced());
}

TEST_F(InformerTest, ShortEmptyWatchesAreNotReopenedInALoop) {
  informers_.Get(resources::kPods);
  informers_.Start();
  loop_.RunReady();
  const size_t before = api_.requests.size();
  for (int i = 0; i < 100; ++i) {
    api_.CutWatches(false);
    loop_.RunFor(milliseconds(10));
  }
  EXPECT_LE(api_.requests.size() - before, 10u);
}

TEST_F(InformerTest, ResumesTheWatchWhereItEnded) {
  Informer& pods = informers_.Get(resources::kPods);
  pods.Subscribe(Log());
  informers_.Start();
  loop_.RunReady();
  api_.Put(kPods, Pod("a"));
  loop_.RunFor(seconds(2));
  api_.CutWatches(false);
  api_.Put(kPods, Pod("b"));
  loop_.RunFor(seconds(1));
  EXPECT_EQ(log_, (Lines{"synced", "+a", "+b"}));
}

TEST_F(InformerTest, IgnoresLateDuplicates) {
  Informer& pods = informers_.Get(resources::kPods, {{"spec"}});
  pods.Subscribe(Log());
  std::vector<net::ResponseWriterPtr> watchers;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target.find("watch=true") != std::string::npos) watchers.push_back(writer);
    return true;
  };
  informers_.Start();
  loop_.RunReady();
  api_.Put(kPods, Pod("a"));
  const json::Value first = *api_.Find(kPods, "d", "a");
  api_.Put(kPods, Pod("a", "n1"));
  loop_.RunReady();
  watchers.at(0)->Write(std::make_shared<const std::string>(
      json::Write(json::Obj({{"type", "ADDED"}, {"object", first}})) + "\n"));
  loop_.RunReady();
  EXPECT_EQ(pods.Find({"d", "a"})->Path({"spec", "nodeName"}).AsString(), "n1");
}

TEST_F(InformerTest, LateSubscriberGetsThePresentFirst) {
  api_.Put(kPods, Pod("a"));
  informers_.Get(resources::kPods);
  informers_.Start();
  loop_.RunReady();
  informers_.Get(resources::kPods).Subscribe(Log());
  EXPECT_TRUE(log_.empty());
  api_.Put(kPods, Pod("b"));
  loop_.RunReady();
  EXPECT_EQ(log_, (Lines{"+a", "synced", "+b"}));
}

TEST_F(InformerTest, IndexFollowsChanges) {
  Informer& pods = informers_.Get(resources::kPods, {{"spec"}});
  pods.AddIndex("node", [](const json::Value& pod) {
    return std::vector<std::string>{pod["spec"]["nodeName"].Str()};
  });
  informers_.Start();
  api_.Put(kPods, Pod("b", "n1"));
  api_.Put(kPods, Pod("a", "n1"));
  loop_.RunReady();
  EXPECT_EQ(pods.Lookup("node", "n1"), (std::vector<ObjectKey>{{"d", "a"}, {"d", "b"}}));
  api_.Put(kPods, Pod("a", "n2"));
  api_.Remove(kPods, "d", "b");
  loop_.RunReady();
  EXPECT_TRUE(pods.Lookup("node", "n1").empty());
  EXPECT_EQ(pods.Lookup("node", "n2"), (std::vector<ObjectKey>{{"d", "a"}}));
}

TEST_F(InformerTest, KeepsWhatItsUsersRead) {
  api_.Put(kPods, Pod("a", "n1")
                      .SetPath({"metadata", "labels"}, json::Obj({{"x", "y"}}))
                      .SetPath({"spec", "hostname"}, "h")
                      .SetPath({"status", "phase"}, "Running"));
  Informer& pods = informers_.Get(resources::kPods, {{"spec", "nodeName"}});
  informers_.Get(resources::kPods, {{"status"}});
  informers_.Get(resources::kPods);  // only reads
  informers_.Start();
  loop_.RunReady();
  const json::Value* pod = pods.Find({"d", "a"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ((*pod)["kind"].AsString(), "Pod");
  EXPECT_TRUE((*pod)["metadata"].Has("uid") && (*pod)["metadata"].Has("resourceVersion"));
  EXPECT_FALSE((*pod)["metadata"].Has("labels"));
  EXPECT_EQ((*pod)["spec"], json::Obj({{"nodeName", "n1"}}));
  EXPECT_EQ((*pod)["status"], json::Obj({{"phase", "Running"}}));
  // From now on what was dropped is not here any more; what is kept may still be asked for.
  informers_.Get(resources::kPods, {{"status", "phase"}});
  EXPECT_DEATH(informers_.Get(resources::kPods, {{"spec", "hostname"}}), "pods");
}

TEST_F(InformerTest, TellsProjectionsAndEveryChange) {
  api_.Put(kPods, Pod("a", "n1").SetPath({"spec", "hostname"}, "h1"));
  std::vector<std::pair<json::Value, json::Value>> told;
  informers_.Get(resources::kPods, {{"spec", "nodeName"}})
      .Subscribe({.on_change =
                      [&](const ObjectKey&, const json::Value& before, const json::Value& after) {
                        told.emplace_back(before["spec"], after["spec"]);
                      },
                  .on_synced = {}});
  informers_.Start();
  loop_.RunReady();
  api_.Put(kPods, Pod("a", "n2").SetPath({"spec", "hostname"}, "h1"));
  api_.Put(kPods, Pod("a", "n2").SetPath({"spec", "hostname"}, "h2"));  // nobody reads it
  loop_.RunReady();
  const json::Value n1 = json::Obj({{"nodeName", "n1"}}), n2 = json::Obj({{"nodeName", "n2"}});
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0], std::pair(json::Value(), n1));
  EXPECT_EQ(told[1], std::pair(n1, n2));
  EXPECT_EQ(told[2], std::pair(n2, n2));
}

TEST_F(InformerTest, EqualPartsOfObjectsAreKeptOnce) {
  for (const char* name : {"a", "b"}) api_.Put(kPods, Pod(name, "n1"));
  Informer& pods = informers_.Get(resources::kPods, json::Fields::Whole());
  informers_.Start();
  loop_.RunReady();
  EXPECT_TRUE((*pods.Find({"d", "a"}))["spec"].SameAs((*pods.Find({"d", "b"}))["spec"]));
}

TEST_F(InformerTest, SendsItsFieldSelector) {
  informers_.Get(resources::kPods, {}, "spec.nodeName=n1");
  informers_.Start();
  loop_.RunReady();
  EXPECT_NE(api_.requests.at(0).find("fieldSelector=spec.nodeName%3Dn1"), std::string::npos);
}

}  // namespace
}  // namespace muster::client
