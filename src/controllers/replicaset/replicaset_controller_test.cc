#include "controllers/replicaset/replicaset_controller.h"

#include <algorithm>

#include "controllers/controller_test_base.h"
#include "controllers/pods/pod_facts.h"

namespace muster::controllers {
namespace {

using testing::Test;

class ReplicaSetTest : public ControllerTest {
 protected:
  ReplicaSetTest() { Start(std::make_unique<ReplicaSetController>()); }

  void PutReplicaSet(int replicas, const std::string& extra = "") {
    Put(kReplicaSets, fmt::format(R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web, namespace: d, uid: r1, generation: 1}}
spec:
  replicas: {}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}, annotations: {{note: x}}}}
    spec: {{containers: [{{name: c, image: none}}]}}
{}
)",
                                  replicas, extra));
    Settle();
  }
  void Scale(int replicas) {
    api_.Put(kReplicaSets, Get(kReplicaSets, "d", "web").SetPath({"spec", "replicas"}, replicas));
    Settle();
  }
  std::vector<json::Value> Pods() const { return All(kPods); }
  json::Value Status() { return Get(kReplicaSets, "d", "web")["status"]; }
  bool HasEvent(const std::string& text) const {
    const std::vector<std::string> events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }
};

TEST_F(ReplicaSetTest, MakesItsPodsAndCountsThem) {
  PutReplicaSet(3);
  ASSERT_EQ(Pods().size(), 3u);
  const json::Value pod = Pods()[0];
  EXPECT_EQ(pod["metadata"]["labels"], Yaml("{app: web}"));
  EXPECT_EQ(pod["metadata"]["annotations"], Yaml("{note: x}"));
  EXPECT_EQ(pod["metadata"]["ownerReferences"], Yaml(R"(
- {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true,
   blockOwnerDeletion: true}
)"));
  EXPECT_EQ(pod["spec"], Yaml("{containers: [{name: c, image: none}]}"));
  EXPECT_TRUE(pod["metadata"]["name"].Str().starts_with("web-"));
  EXPECT_EQ(pod["metadata"]["name"].Str().size(), 9u);
  EXPECT_TRUE(HasEvent("SuccessfulCreate Created pod: " + pod["metadata"]["name"].Str()));
  EXPECT_EQ(Status(), Yaml("{replicas: 3, fullyLabeledReplicas: 3, observedGeneration: 1}"));
  MakeReady(pod);
  Settle();
  EXPECT_EQ(Status(), Yaml("{replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 1, "
                           "availableReplicas: 1, observedGeneration: 1}"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(ReplicaSetTest, ReplacesPodsThatGoOrFail) {
  PutReplicaSet(2);
  api_.Remove(kPods, "d", Pods()[0]["metadata"]["name"].Str());
  Settle();
  EXPECT_EQ(Pods().size(), 2u);
  api_.Put(kPods, Pods()[0].SetPath({"status", "phase"}, "Failed"));
  Settle();
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(Status()["replicas"].AsInt(), 2);
}

TEST_F(ReplicaSetTest, EndsThoseThatMatterLeast) {
  PutReplicaSet(3);
  const std::string kept = Pods()[2]["metadata"]["name"].Str();
  MakeReady(Pods()[2]);
  Settle();
  Scale(1);
  ASSERT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Pods()[0]["metadata"]["name"].AsString(), kept);
  EXPECT_EQ(Status()["replicas"].AsInt(), 1);
  Scale(0);
  EXPECT_TRUE(Pods().empty());
  EXPECT_TRUE(HasEvent("SuccessfulDelete Deleted pod: " + kept));
}

TEST_F(ReplicaSetTest, AdoptsOrphansAndReleasesStrangers) {
  Put(kPods,
      "{apiVersion: v1, kind: Pod, metadata: {name: lone, namespace: d, labels: {app: web}}}");
  PutReplicaSet(2);
  ASSERT_EQ(Pods().size(), 2u);
  EXPECT_EQ(client::ControllerOf(Get(kPods, "d", "lone"))["uid"].AsString(), "r1");
  api_.Put(kPods, Get(kPods, "d", "lone").SetPath({"metadata", "labels"}, Yaml("{app: other}")));
  Settle();
  EXPECT_TRUE(client::ControllerOf(Get(kPods, "d", "lone")).IsNull());
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(Status()["replicas"].AsInt(), 2);
}

TEST_F(ReplicaSetTest, LeavesPodsOfOthersAlone) {
  Put(kPods, R"(
apiVersion: v1
kind: Pod
metadata:
  name: theirs
  namespace: d
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: other, uid: r9, controller: true}]
)");
  PutReplicaSet(1);
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_EQ(client::ControllerOf(Get(kPods, "d", "theirs"))["uid"].AsString(), "r9");
}

// Its cache still shows the ReplicaSet, the server does not.
TEST_F(ReplicaSetTest, AsksBeforeItAdopts) {
  PutReplicaSet(0);
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "GET" || request.target.find("/replicasets/web") == std::string::npos)
      return true;
    client::FakeApi::SendError(*writer, 404, "NotFound", "gone");
    return false;
  };
  Put(kPods,
      "{apiVersion: v1, kind: Pod, metadata: {name: lone, namespace: d, labels: {app: web}}}");
  Settle();
  EXPECT_TRUE(client::ControllerOf(Get(kPods, "d", "lone")).IsNull());
  EXPECT_EQ(Requests("GET /apis/apps/v1/namespaces/d/replicasets/web"), 1u);
}

TEST_F(ReplicaSetTest, SaysWhyPodsCannotBeMade) {
  bool refuse = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!refuse || request.method != "POST" || request.target.find("/pods") == std::string::npos)
      return true;
    client::FakeApi::SendError(*writer, 403, "Forbidden", "exceeded quota: q");
    return false;
  };
  PutReplicaSet(1);
  const json::Value condition = Status()["conditions"].At(0);
  EXPECT_EQ(condition["type"].AsString(), "ReplicaFailure");
  EXPECT_EQ(condition["reason"].AsString(), "FailedCreate");
  EXPECT_EQ(condition["message"].AsString(), "exceeded quota: q");
  EXPECT_TRUE(HasEvent("FailedCreate Error creating: exceeded quota: q"));
  refuse = false;
  loop_.RunFor(seconds(30));
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_FALSE(Status().Has("conditions"));
}

TEST_F(ReplicaSetTest, AReplicaIsAvailableAfterItsTime) {
  PutReplicaSet(1, "  minReadySeconds: 30");
  MakeReady(Pods()[0]);
  Settle();
  EXPECT_EQ(Status()["readyReplicas"].AsInt(), 1);
  EXPECT_FALSE(Status().Has("availableReplicas"));
  loop_.RunFor(seconds(30));
  EXPECT_EQ(Status()["availableReplicas"].AsInt(), 1);
  loop_.JumpClock(-hours(1));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u) << "it still is, whatever the clock says";
}

TEST_F(ReplicaSetTest, APodWhoseCreationWasNotAnsweredIsNotMadeTwice) {
  int lost = 2;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (lost == 0 || request.method != "POST" || request.target.find("/pods") == std::string::npos)
      return true;
    --lost;
    json::Value pod = client::FakeApi::BodyOf(request);
    api_.Put(kPods, pod.SetPath({"metadata", "namespace"}, "d"));
    client::FakeApi::SendError(*writer, 504, "Timeout", "lost");
    return false;
  };
  PutReplicaSet(4);
  EXPECT_EQ(Pods().size(), 4u);
  EXPECT_EQ(Requests("DELETE"), 0u);
}

TEST(SortForDeletion, RowsInOrder) {
  const Time now = *ParseTime("2026-01-02T00:00:00Z");
  const auto pod = [](const std::string& name, const std::string& spec, const std::string& status,
                      const std::string& metadata = "") {
    return Yaml(fmt::format("{{metadata: {{name: {}{}}}, spec: {{{}}}, status: {{{}}}}}", name,
                            metadata, spec, status));
  };
  const std::string ready =
      "phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: "
      "'2026-01-01T00:00:00Z'}]";
  const std::string young =
      "phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: "
      "'2026-01-01T23:59:50Z'}]";
  const std::vector<json::Value> wanted = {
      pod("a", "", "phase: Pending"),
      pod("b", "nodeName: n", "phase: Pending"),
      pod("c", "nodeName: n", "phase: Unknown"),
      pod("d", "nodeName: n", "phase: Running"),
      pod("e", "nodeName: n", ready,
          ", annotations: {controller.kubernetes.io/pod-deletion-cost: '-5'}"),
      pod("f", "nodeName: n", young),
      pod("g", "nodeName: n", ready + ", containerStatuses: [{restartCount: 3}]"),
      pod("h", "nodeName: n", ready, ", creationTimestamp: '2026-01-01T23:00:00Z'"),
      pod("i", "nodeName: n", ready, ", creationTimestamp: '2025-01-01T00:00:00Z'"),
      pod("j", "nodeName: m", ready, ", creationTimestamp: '2025-01-01T00:00:00Z'")};
  std::vector<json::Value> pods(wanted.rbegin(), wanted.rend());
  SortForDeletion(pods, pods, now);
  EXPECT_EQ(pods, wanted);
}

}  // namespace
}  // namespace muster::controllers
