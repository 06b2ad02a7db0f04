#include "agent/volumes/volume_remover.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>

#include "agent/runtime/files.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

constexpr char kVolumes[] = "/api/v1/persistentvolumes";

class VolumeRemoverTest : public testing::Test {
 protected:
  VolumeRemoverTest() {
    char path[] = "/tmp/agent-remover-XXXXXX";
    dir_ = mkdtemp(path);
    root_ = LocalVolumesDir(dir_);
  }
  ~VolumeRemoverTest() override {
    agent_.reset();
    EXPECT_TRUE(RemoveTree(dir_).ok());
  }

  // What a restart of the agent makes anew.
  struct Agent {
    Agent(SimLoop& loop, client::FakeApi& api, const std::string& root)
        : transport(loop, api, {}),
          client(loop, transport, "kubelet"),
          informers(client),
          remover({"n1", root}, loop, pool, client, informers, users) {
      informers.Start();
      remover.Start();
    }
    client::InProcessTransport transport;
    client::ApiClient client;
    client::InformerSet informers;
    SimPool pool;
    VolumeUsers users;
    VolumeRemover remover;
  };
  void Start() {
    agent_ = std::make_unique<Agent>(loop_, api_, root_);
    loop_.RunFor(seconds(1));
  }

  void Put(const std::string& name, bool deleted, const std::string& node = "n1",
           const std::string& finalizers = R"("muster.dev/local-path")") {
    json::Value volume =
        *json::Parse(R"({"metadata":{"name":")" + name + R"(","finalizers":[)" + finalizers +
                     R"(]},"spec":{"claimRef":{"namespace":"d","name":"data"},)"
                     R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[)"
                     R"({"key":"kubernetes.io/hostname","operator":"In","values":[")" +
                     node + R"("]}]}]}}}})");
    if (const json::Value* known = api_.Find(kVolumes, "", name))
      volume = volume.SetPath({"metadata", "uid"}, (*known)["metadata"]["uid"]);
    if (deleted) volume = volume.SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    api_.Put(kVolumes, volume);
    loop_.RunFor(seconds(1));
  }
  void MakeFolder(const std::string& name) {
    ASSERT_TRUE(MakeLocalVolume(root_, name + "_d_data").ok());
    ASSERT_TRUE(WriteFile(root_ + "/" + name + "_d_data/file", "data").ok());
  }
  bool Has(const std::string& name) const { return PathExists(root_ + "/" + name + "_d_data"); }
  bool Exists(const std::string& name) const { return api_.Find(kVolumes, "", name) != nullptr; }
  ClaimVolume Use(const std::string& volume) const {
    ClaimVolume out;
    out.volume = volume;
    return out;
  }

  std::string dir_, root_;
  SimLoop loop_;
  client::FakeApi api_{loop_};
  std::unique_ptr<Agent> agent_;
};

TEST_F(VolumeRemoverTest, RemovesTheFolderThenTheFinalizer) {
  MakeFolder("pv1");
  MakeFolder("pv2");
  Put("pv1", false);
  Put("pv2", false);
  Start();
  EXPECT_TRUE(Has("pv1"));
  bool there_at_patch = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr&) {
    if (request.method == "PATCH") there_at_patch = Has("pv1");
    return true;
  };
  Put("pv1", true);
  EXPECT_FALSE(Has("pv1"));
  EXPECT_FALSE(there_at_patch);
  EXPECT_FALSE(Exists("pv1"));
  EXPECT_TRUE(Has("pv2") && Exists("pv2"));
}

TEST_F(VolumeRemoverTest, LeavesAloneWhatAClaimHoldsOrAnotherNodeHas) {
  for (const char* name : {"held", "elsewhere", "foreign"}) MakeFolder(name);
  for (const char* name : {"held", "elsewhere", "foreign"}) Put(name, false);
  Start();
  Put("held", true, "n1", R"("kubernetes.io/pv-protection","muster.dev/local-path")");
  Put("elsewhere", true, "n2");
  Put("foreign", true, "n1", R"("somebody/else")");
  for (const char* name : {"held", "elsewhere", "foreign"})
    EXPECT_TRUE(Has(name) && Exists(name)) << name;
  Put("held", true);
  EXPECT_FALSE(Has("held") || Exists("held")) << "the claim let go";
}

TEST_F(VolumeRemoverTest, WaitsForThePodThatHasIt) {
  MakeFolder("pv1");
  Put("pv1", false);
  Start();
  ASSERT_TRUE(agent_->users.Take("a", {Use("pv1")}).ok());
  ASSERT_TRUE(agent_->users.Take("b", {Use("pv1")}).ok());
  Put("pv1", true);
  agent_->users.Release("a");
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(Has("pv1") && Exists("pv1"));
  agent_->users.Release("b");
  loop_.RunFor(seconds(1));
  EXPECT_FALSE(Has("pv1") || Exists("pv1"));
}

TEST_F(VolumeRemoverTest, ARetainedFolderStaysForGood) {
  MakeFolder("pv1");
  Put("pv1", true);
  api_.Put(
      kVolumes,
      api_.Find(kVolumes, "", "pv1")->SetPath({"spec", "persistentVolumeReclaimPolicy"}, "Retain"));
  Start();
  EXPECT_FALSE(Exists("pv1"));
  Start();
  loop_.RunFor(minutes(5));
  EXPECT_TRUE(Has("pv1")) << "not an orphan";
}

// The provisioner's have no finalizer of ours then: nobody asks before they go.
TEST_F(VolumeRemoverTest, WhatIsToBeRetainedIsNoOrphanLater) {
  MakeFolder("pv1");
  MakeFolder("pv2");
  Put("pv1", false);
  Put("pv2", false);
  Start();
  const auto set = [&](const std::string& name, const char* policy) {
    api_.Put(
        kVolumes,
        api_.Find(kVolumes, "", name)->SetPath({"spec", "persistentVolumeReclaimPolicy"}, policy));
    loop_.RunFor(seconds(1));
  };
  set("pv1", "Retain");
  set("pv2", "Retain");
  set("pv2", "Delete");
  agent_.reset();
  api_.Remove(kVolumes, "", "pv1");
  api_.Remove(kVolumes, "", "pv2");
  Start();
  EXPECT_TRUE(Has("pv1") && Has("pv2"));
  EXPECT_EQ(LocalVolumeFolders(root_).size(), 1u) << "of which somebody has to be told";
}

TEST_F(VolumeRemoverTest, ARestartGoesOnWhereItStopped) {
  MakeFolder("pv1");
  Put("pv1", true);
  api_.before_handle = [](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "PATCH") return true;
    client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "not now");
    return false;
  };
  Start();
  EXPECT_FALSE(Has("pv1"));
  EXPECT_TRUE(Exists("pv1"));
  api_.before_handle = nullptr;
  Start();
  EXPECT_FALSE(Exists("pv1"));
}

TEST_F(VolumeRemoverTest, TriesAgainAfterAFailureAndNobodyGetsItMeanwhile) {
  Put("pv1", true);
  int refused = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "PATCH" || ++refused > 2) return true;
    client::FakeApi::SendError(*writer, 409, "Conflict", "the object has been modified");
    return false;
  };
  Start();
  EXPECT_EQ(agent_->users.Take("a", {Use("pv1")}).message(),
            "MountVolume.SetUp failed for volume \"pv1\" : it is being removed");
  loop_.RunFor(seconds(20));
  EXPECT_EQ(refused, 3);
  EXPECT_FALSE(Exists("pv1"));
  EXPECT_TRUE(agent_->users.Take("a", {Use("pv1")}).ok());
}

// Its PersistentVolume may be in the backup that was not restored.
TEST_F(VolumeRemoverTest, AFolderWithoutAPersistentVolumeIsKept) {
  MakeFolder("unknown");
  MakeFolder("known");
  Put("known", false);
  Start();
  loop_.RunFor(minutes(3));
  EXPECT_TRUE(Has("unknown") && Has("known"));
  // Somebody takes the finalizer off by force.
  api_.Remove(kVolumes, "", "known");
  loop_.RunFor(kVolumeSweepDelay + seconds(1));
  Start();
  loop_.RunFor(minutes(3));
  EXPECT_TRUE(Has("unknown") && Has("known"));
}

TEST(VolumeUsers, OnePodAloneGetsAReadWriteOncePodVolume) {
  VolumeUsers users;
  ClaimVolume one;
  one.volume = "pv1";
  one.one_pod = true;
  ASSERT_TRUE(users.Take("a", {one}).ok());
  EXPECT_TRUE(users.Take("a", {one}).ok()) << "again";
  EXPECT_EQ(users.Take("b", {one}).message(),
            "MountVolume.SetUp failed for volume \"pv1\" : volume uses the ReadWriteOncePod access "
            "mode and is already in use by another pod");
  EXPECT_FALSE(users.BeginRemoval("pv1"));
  users.Release("a");
  EXPECT_TRUE(users.Take("b", {one}).ok());
}

}  // namespace
}  // namespace muster::agent
