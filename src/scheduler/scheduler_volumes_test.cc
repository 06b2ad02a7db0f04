// The scheduler and claims that wait for their first pod: what it writes, what it waits for, and
// what it does when that goes wrong. The volume controller and the provisioner are the test.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "scheduler/scheduler_test_base.h"
#include "scheduler/volume_binder.h"
#include "scheduler/volume_test_support.h"

namespace muster::scheduler {
namespace {

constexpr char kClaims[] = "/api/v1/persistentvolumeclaims";
constexpr char kVolumes[] = "/api/v1/persistentvolumes";
constexpr char kClasses[] = "/apis/storage.k8s.io/v1/storageclasses";

class SchedulerVolumesTest : public SchedulerTest {
 protected:
  SchedulerVolumesTest() {
    api_.Put(kClasses, MakeClass("local", kNoProvisioner, true));
    api_.Put(kClasses, MakeClass("cloud", "csi.example.com", true));
    AddNode("n0", 4);
  }

  json::Value PodWith(const std::string& name, const std::string& claim,
                      const std::string& gang = "") {
    return MakePod(name, 1, gang)
        .SetPath(
            {"spec", "volumes"},
            json::List({json::Obj(
                {{"name", "v"}, {"persistentVolumeClaim", json::Obj({{"claimName", claim}})}})}));
  }
  void AddPodWith(const std::string& name, const std::string& claim, const std::string& gang = "") {
    api_.Put(kPods, PodWith(name, claim, gang));
  }
  const json::Value& Claim(const std::string& name) { return *api_.Find(kClaims, "default", name); }
  const json::Value& Volume(const std::string& name) { return *api_.Find(kVolumes, "", name); }
  std::string SelectedNode(const std::string& claim) {
    return Claim(claim)["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].Str();
  }
  std::string ClaimOf(const std::string& volume) {
    return Volume(volume)["spec"]["claimRef"]["name"].Str();
  }
  // As the volume controller does.
  void BindClaim(const std::string& claim, const std::string& volume) {
    api_.Put(kClaims,
             Claim(claim)
                 .SetPath({"spec", "volumeName"}, volume)
                 .SetPath({"metadata", "annotations", "pv.kubernetes.io/bind-completed"}, "yes"));
  }
  void Deselect(const std::string& claim) {
    api_.Put(kClaims, Claim(claim).SetPath({"metadata", "annotations"}, json::Obj({})));
  }
  size_t Patches() {
    return static_cast<size_t>(
        std::count_if(api_.requests.begin(), api_.requests.end(), [](const std::string& request) {
          return request.starts_with("PATCH") &&
                 request.find("persistentvolume") != std::string::npos;
        }));
  }
  std::string Message(const std::string& pod) { return Condition(pod)["message"].Str(); }
};

TEST_F(SchedulerVolumesTest, GivesAVolumeToTheClaimAndBindsThePodOnceTheTwoAgree) {
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(Volume("v")["spec"]["claimRef"], json::Obj({{"apiVersion", "v1"},
                                                        {"kind", "PersistentVolumeClaim"},
                                                        {"namespace", "default"},
                                                        {"name", "data"},
                                                        {"uid", "uid-data"}}));
  EXPECT_EQ(Volume("v")["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"].Str(),
            "yes");
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(Condition("p")["reason"].Str(), "WaitingForVolumes");
  EXPECT_EQ(Message("p"),
            "has its place on node n0; waits for PersistentVolumeClaim default/data to be bound");
  EXPECT_EQ(Events("FailedScheduling", ""), 0);
  BindClaim("data", "v");
  Settle();
  EXPECT_EQ(NodeOf("p"), "n0");
  EXPECT_EQ(Patches(), 1u);
}

TEST_F(SchedulerVolumesTest, AVolumeThatAUserReservedIsNotMarkedAsOurs) {
  api_.Put(kVolumes,
           MakeVolume("v", "local", "5Gi", ", claimRef: {namespace: default, name: data}"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(Volume("v")["spec"]["claimRef"]["uid"].Str(), "uid-data");
  EXPECT_FALSE(Volume("v")["metadata"].Has("annotations"));
}

TEST_F(SchedulerVolumesTest, SelectsANodeForTheProvisionerAndWaitsForTheVolume) {
  api_.Put(kClaims, MakeClaim("data", "cloud"));
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(SelectedNode("data"), "n0");
  EXPECT_EQ(NodeOf("p"), "");
  api_.Put(kVolumes, MakeVolume("made", "cloud", "5Gi",
                                ", claimRef: {namespace: default, name: data, uid: uid-data}"));
  BindClaim("data", "made");
  Settle();
  EXPECT_EQ(NodeOf("p"), "n0");
  EXPECT_EQ(Patches(), 1u);
}

TEST_F(SchedulerVolumesTest, APodWhoseClaimIsBoundIsBoundAtOnce) {
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeBoundClaim("data", "local", "v"));
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(NodeOf("p"), "n0");
  EXPECT_EQ(Patches(), 0u);
}

TEST_F(SchedulerVolumesTest, AMissingClaimIsNamedAndItsCreationWakes) {
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(Condition("p")["reason"].Str(), "Unschedulable");
  EXPECT_TRUE(Message("p").starts_with(
      "0/1 nodes are available: persistentvolumeclaim \"data\" not found."))
      << Message("p");
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeBoundClaim("data", "local", "v"));
  Settle();
  EXPECT_EQ(NodeOf("p"), "n0");
}

// -- What goes wrong.

TEST_F(SchedulerVolumesTest, AProvisionerThatCannotIsAskedAnew) {
  api_.Put(kClaims, MakeClaim("data", "cloud"));
  AddPodWith("p", "data");
  Settle();
  ASSERT_EQ(SelectedNode("data"), "n0");
  Deselect("data");
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(Condition("p")["reason"].Str(), "SchedulerError");
  EXPECT_NE(Message("p").find("binding volumes: provisioning failed for PVC \"data\""),
            std::string::npos)
      << Message("p");
  EXPECT_EQ(Events("FailedScheduling", "provisioning failed for PVC"), 1);
  Settle();
  EXPECT_EQ(SelectedNode("data"), "n0");
  EXPECT_EQ(Patches(), 2u);
  EXPECT_EQ(NodeOf("p"), "");
}

TEST_F(SchedulerVolumesTest, WaitsForVolumesTenMinutesAtMost) {
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  loop_.RunFor(seconds(1));
  AddPod("large", 4);  // waits for the room that is kept
  loop_.RunFor(kVolumeBindTimeout - seconds(3));
  EXPECT_EQ(NodeOf("large"), "");
  EXPECT_EQ(Events("FailedScheduling", "binding volumes"), 0);
  loop_.RunFor(seconds(4));
  EXPECT_EQ(Events("FailedScheduling", "binding volumes: timed out waiting for the condition"), 1);
  EXPECT_EQ(NodeOf("large"), "n0");
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(ClaimOf("v"), "data");
}

TEST_F(SchedulerVolumesTest, ARefusedWriteBacksOff) {
  const auto bind = api_.before_handle;
  int refused = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method == "PATCH" && request.target.starts_with(kVolumes) && refused++ < 2) {
      client::FakeApi::SendError(*writer, 403, "Forbidden", "no");
      return false;
    }
    return bind(request, writer);
  };
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(refused, 3);
  EXPECT_GE(scheduler_->metrics().errors, 2u);
  EXPECT_EQ(ClaimOf("v"), "data");
}

TEST_F(SchedulerVolumesTest, AWriteThatConflictsOrIsNotAnsweredIsRepeated) {
  const auto bind = api_.before_handle;
  int tries = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method == "PATCH" && request.target.starts_with(kVolumes) && ++tries <= 2) {
      client::FakeApi::SendError(*writer, tries == 1 ? 409 : 504,
                                 tries == 1 ? "Conflict" : "Timeout", "again");
      return false;
    }
    return bind(request, writer);
  };
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  Settle();
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(scheduler_->metrics().errors, 0u);
  EXPECT_EQ(ClaimOf("v"), "data");
}

TEST_F(SchedulerVolumesTest, AWriteThatIsNeverDecidedFailsInTheEnd) {
  const auto bind = api_.before_handle;
  int tries = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method == "PATCH" && request.target.starts_with(kVolumes)) {
      ++tries;
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    }
    return bind(request, writer);
  };
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  while (scheduler_->metrics().errors == 0 && tries < 100) loop_.RunFor(milliseconds(10));
  EXPECT_EQ(tries, kMaxVolumeWrites);
}

TEST_F(SchedulerVolumesTest, AVolumeThatIsTakenBackFailsTheBinding) {
  api_.Put(kVolumes, MakeVolume("v", "local"));
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  Settle();
  json::Value released = Volume("v");
  released = released.Set("spec", released["spec"].Remove("claimRef"))
                 .SetPath({"status", "phase"}, "Released");
  api_.Put(kVolumes, released);
  Settle();
  EXPECT_EQ(Events("FailedScheduling", "ClaimRef got reset for pv \"v\""), 1);
  EXPECT_TRUE(
      Message("p").starts_with("0/1 nodes are available: 1 node(s) didn't find available "
                               "persistent volumes to bind."))
      << Message("p");
}

TEST_F(SchedulerVolumesTest, AClaimThatIsDeletedFailsTheBinding) {
  api_.Put(kClaims, MakeClaim("data", "cloud"));
  AddPodWith("p", "data");
  Settle();
  api_.Remove(kClaims, "default", "data");
  Settle();
  EXPECT_EQ(Events("FailedScheduling", "binding volumes: persistentvolumeclaim"), 1);
  EXPECT_TRUE(Message("p").starts_with(
      "0/1 nodes are available: persistentvolumeclaim \"data\" not found."));
}

TEST_F(SchedulerVolumesTest, APodThatGoesMeanwhileIsNotBound) {
  api_.Put(kClaims, MakeClaim("data", "cloud"));
  AddPodWith("p", "data");
  Settle();
  api_.Remove(kPods, "default", "p");
  Settle();
  // One of its name that comes later is another one.
  AddPod("p", 4);
  Settle();
  EXPECT_EQ(NodeOf("p"), "n0");
  EXPECT_EQ(binds_, 1);
}

// -- A restart changes nothing.

TEST_F(SchedulerVolumesTest, ARestartInTheMiddleGoesOnWithWhatWasWritten) {
  AddNode("n1", 4);
  api_.Put(kVolumes, MakeVolume("v", "local", "5Gi", OnlyOnHost("n1")));
  json::Value node = *api_.Find(kNodes, "", "n1");
  api_.Put(kNodes,
           node.SetPath({"metadata", "labels"}, json::Obj({{"kubernetes.io/hostname", "n1"}})));
  api_.Put(kClaims, MakeClaim("a", "local"));
  api_.Put(kClaims, MakeClaim("b", "cloud"));
  AddPodWith("p", "a");
  AddPodWith("q", "b");
  Settle();
  const std::string selected = SelectedNode("b");
  ASSERT_EQ(ClaimOf("v"), "a");
  StartScheduler();
  Settle();
  EXPECT_EQ(Patches(), 2u);
  BindClaim("a", "v");
  api_.Put(kVolumes, MakeVolume("made", "cloud"));
  BindClaim("b", "made");
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
  EXPECT_EQ(NodeOf("q"), selected);
  EXPECT_EQ(binds_, 2);
}

// -- Gangs.

TEST_F(SchedulerVolumesTest, AGangOfTwoWithOneVolumeWritesNothing) {
  api_.Put(kVolumes, MakeVolume("v", "local"));
  AddGroup("g", 2);
  for (const char* pod : {"g-0", "g-1"}) {
    api_.Put(kClaims, MakeClaim(pod, "local"));
    AddPodWith(pod, pod, "g");
  }
  Settle();
  EXPECT_EQ(Patches(), 0u);
  EXPECT_NE(Message("g-0").find("1 node(s) didn't find available persistent volumes to bind"),
            std::string::npos);
  // The second volume lets it in.
  api_.Put(kVolumes, MakeVolume("w", "local"));
  Settle();
  EXPECT_EQ(Patches(), 2u);
  EXPECT_NE(ClaimOf("v"), ClaimOf("w"));
}

TEST_F(SchedulerVolumesTest, NoneOfAGangIsBoundBeforeAllItsClaimsAre) {
  AddGroup("g", 3);
  for (const char* pod : {"g-0", "g-1"}) {
    api_.Put(kClaims, MakeClaim(pod, "cloud"));
    AddPodWith(pod, pod, "g");
  }
  api_.Put(kPods, MakePod("g-2", 1, "g"));
  api_.Put(kVolumes, MakeVolume("made-0", "cloud"));
  api_.Put(kVolumes, MakeVolume("made-1", "cloud"));
  // What is free already is taken; the point is who waits for whom.
  Settle();
  const std::string first = ClaimOf("made-0");
  const std::string second = ClaimOf("made-1");
  BindClaim(first, "made-0");
  Settle();
  EXPECT_EQ(BoundOf("g", 3), 0);
  EXPECT_EQ(Message("g-2"),
            "has its place on node n0; waits for the claims of its gang: PersistentVolumeClaim "
            "default/g-0 to be bound");
  BindClaim(second, "made-1");
  Settle();
  EXPECT_EQ(BoundOf("g", 3), 3);
}

TEST_F(SchedulerVolumesTest, AFailureGivesThePlacesOfTheWholeGangBack) {
  AddGroup("g", 2);
  for (const char* pod : {"g-0", "g-1"}) {
    api_.Put(kClaims, MakeClaim(pod, "cloud"));
    AddPodWith(pod, pod, "g");
  }
  Settle();
  AddPod("large", 4);
  Settle();
  EXPECT_EQ(NodeOf("large"), "");
  // It fails for good.
  api_.Remove(kClaims, "default", "g-1");
  Settle();
  EXPECT_EQ(NodeOf("large"), "n0");
  EXPECT_EQ(BoundOf("g", 2), 0);
}

TEST_F(SchedulerVolumesTest, AGangThatLostAMemberMeanwhileIsNotBound) {
  AddGroup("g", 2);
  api_.Put(kClaims, MakeClaim("data", "cloud"));
  AddPodWith("g-0", "data", "g");
  api_.Put(kPods, MakePod("g-1", 1, "g"));
  Settle();
  ASSERT_EQ(SelectedNode("data"), "n0");
  api_.Remove(kPods, "default", "g-1");
  Settle();
  api_.Put(kVolumes, MakeVolume("made", "cloud"));
  BindClaim("data", "made");
  Settle();
  EXPECT_EQ(NodeOf("g-0"), "");
  EXPECT_EQ(binds_, 0);
  api_.Put(kPods, MakePod("g-1", 1, "g"));
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 2);
}

// -- Servers without storage.

TEST_F(SchedulerVolumesTest, AServerThatServesNoVolumesKeepsNobodyElseWaiting) {
  const auto bind = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target.starts_with(kVolumes) || request.target.starts_with(kClasses)) {
      client::FakeApi::SendError(*writer, 404, "NotFound", "no such resource");
      return false;
    }
    return bind(request, writer);
  };
  StartScheduler();
  AddPod("plain", 1);
  api_.Put(kClaims, MakeClaim("data", "local"));
  AddPodWith("p", "data");
  loop_.RunFor(seconds(1));
  EXPECT_EQ(NodeOf("plain"), "n0");
  Settle();
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(Message("p"),
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. Storage: "
            "PersistentVolumeClaim default/data is not bound: its StorageClass local does not "
            "exist, so it waits for somebody to create a PersistentVolume of 5Gi.");
}

}  // namespace
}  // namespace muster::scheduler
