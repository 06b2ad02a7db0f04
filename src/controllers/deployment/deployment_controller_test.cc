#include "controllers/deployment/deployment_controller.h"

#include <algorithm>

#include "controllers/controller_test_base.h"
#include "controllers/deployment/replica_sets.h"
#include "controllers/deployment/rollout.h"
#include "controllers/pods/template_hash.h"
#include "controllers/replicaset/replicaset_controller.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

class DeploymentTest : public ControllerTest {
 protected:
  DeploymentTest() {
    Add(std::make_unique<ReplicaSetController>());
    Start(std::make_unique<DeploymentController>());
  }

  void PutDeployment(int replicas, const std::string& image, const std::string& extra = "") {
    const json::Value before = Get(kDeployments, "d", "web");
    json::Value deployment = Yaml(fmt::format(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: d, uid: d1, annotations: {{team: a}}}}
spec:
  replicas: {}
  selector: {{matchLabels: {{app: web}}}}
  strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 25%, maxUnavailable: 25%}}}}
  revisionHistoryLimit: 10
  progressDeadlineSeconds: 600
{}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: {}}}]}}
)",
                                              replicas, extra, image));
    if (!before.IsNull()) {
      deployment = before.Set("spec", deployment["spec"]);
    }
    api_.Put(kDeployments, deployment);
  }
  void Change(std::initializer_list<std::string_view> path, json::Value value) {
    api_.Put(kDeployments, Get(kDeployments, "d", "web").SetPath(path, std::move(value)));
  }

  std::vector<json::Value> Pods() const { return All(kPods); }
  static std::string ImageOf(const json::Value& object) {
    const json::Value& spec =
        object["spec"].Has("template") ? object["spec"]["template"]["spec"] : object["spec"];
    return spec["containers"].At(0)["image"].Str();
  }
  json::Value ReplicaSetOf(const std::string& image) const {
    for (const json::Value& replica_set : All(kReplicaSets)) {
      if (ImageOf(replica_set) == image) return replica_set;
    }
    return {};
  }
  int64_t SizeOf(const std::string& image) const {
    return ReplicaSetOf(image)["spec"]["replicas"].AsInt(-1);
  }
  json::Value Status() { return Get(kDeployments, "d", "web")["status"]; }
  json::Value Condition(std::string_view type) {
    return schema::FindCondition(Status()["conditions"], type);
  }

  static bool IsReadyPod(const json::Value& pod) {
    return schema::ConditionHolds(pod["status"]["conditions"], "Ready");
  }
  int64_t ReadyPods() const {
    const std::vector<json::Value> pods = Pods();
    return std::count_if(pods.begin(), pods.end(), IsReadyPod);
  }
  // Pods come up one by one until nothing changes; after each, the bounds of the rollout hold.
  void ComeUp(const std::string& image, int64_t least_ready, int64_t most_pods) {
    Settle();
    while (true) {
      EXPECT_GE(ReadyPods(), least_ready);
      EXPECT_LE(static_cast<int64_t>(Pods().size()), most_pods);
      const std::vector<json::Value> pods = Pods();
      const auto next = std::find_if(pods.begin(), pods.end(), [&](const json::Value& pod) {
        return !IsReadyPod(pod) && ImageOf(pod) == image;
      });
      if (next == pods.end()) return;
      MakeReady(*next);
      Settle();
    }
  }
  bool HasEvent(const std::string& text) const {
    const std::vector<std::string> events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }
};

TEST_F(DeploymentTest, MakesAReplicaSetAndSaysHowItStands) {
  PutDeployment(3, "v1");
  Settle();
  ASSERT_EQ(All(kReplicaSets).size(), 1u);
  const json::Value set = ReplicaSetOf("v1");
  const std::string hash = set["metadata"]["labels"]["pod-template-hash"].Str();
  EXPECT_EQ(set["metadata"]["name"].Str(), "web-" + hash);
  EXPECT_EQ(set["spec"]["selector"]["matchLabels"]["pod-template-hash"].AsString(), hash);
  EXPECT_EQ(set["spec"]["template"]["metadata"]["labels"]["app"].AsString(), "web");
  EXPECT_EQ(set["metadata"]["annotations"], Yaml(R"(
{team: a, deployment.kubernetes.io/revision: "1", deployment.kubernetes.io/desired-replicas: "3",
 deployment.kubernetes.io/max-replicas: "4"})"));
  EXPECT_EQ(
      Get(kDeployments, "d", "web")["metadata"]["annotations"][kRevisionAnnotation].AsString(),
      "1");
  EXPECT_TRUE(HasEvent("ScalingReplicaSet Scaled up replica set web-" + hash + " from 0 to 3"));
  EXPECT_EQ(Condition("Progressing")["reason"].AsString(), "ReplicaSetUpdated");
  EXPECT_EQ(Condition("Available")["reason"].AsString(), "MinimumReplicasUnavailable");
  ComeUp("v1", 0, 3);
  EXPECT_EQ(Condition("Progressing")["reason"].AsString(), "NewReplicaSetAvailable");
  EXPECT_EQ(Condition("Progressing")["message"].Str(),
            "ReplicaSet \"web-" + hash + "\" has successfully progressed.");
  EXPECT_EQ(Condition("Available")["message"].AsString(), "Deployment has minimum availability.");
  EXPECT_EQ(Status().Remove("conditions"),
            Yaml("{replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(DeploymentTest, RollsWithinItsBounds) {
  PutDeployment(8, "v1");
  ComeUp("v1", 0, 8);
  PutDeployment(8, "v2");
  ComeUp("v2", 6, 10);
  EXPECT_EQ(SizeOf("v1"), 0);
  EXPECT_EQ(SizeOf("v2"), 8);
  EXPECT_EQ(ReadyPods(), 8);
  EXPECT_EQ(ReplicaSetOf("v2")["metadata"]["annotations"][kRevisionAnnotation].AsString(), "2");
  EXPECT_EQ(Condition("Progressing")["reason"].AsString(), "NewReplicaSetAvailable");
  // kubectl rollout undo: the former template, whose ReplicaSet becomes the newest again.
  PutDeployment(8, "v1");
  ComeUp("v1", 6, 10);
  EXPECT_EQ(All(kReplicaSets).size(), 2u);
  const json::Value annotations = ReplicaSetOf("v1")["metadata"]["annotations"];
  EXPECT_EQ(annotations[kRevisionAnnotation].AsString(), "3");
  EXPECT_EQ(annotations[kRevisionHistoryAnnotation].AsString(), "1");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// The old ReplicaSet was told to shrink and has not said yet what is left: nobody is ended twice.
TEST_F(DeploymentTest, AStatusThatIsBehindEndsNobody) {
  PutDeployment(4, "v1");
  ComeUp("v1", 0, 4);
  PutDeployment(4, "v2");
  Settle();
  const auto with = [](json::Value replica_set, int64_t replicas, int64_t available) {
    return replica_set.SetPath({"spec", "replicas"}, replicas)
        .SetPath({"status", "replicas"}, available)
        .SetPath({"status", "availableReplicas"}, available);
  };
  const json::Value old = with(ReplicaSetOf("v1"), 3, 4);
  DeploymentInput input;
  input.deployment = Get(kDeployments, "d", "web");
  input.replica_sets = {old, with(ReplicaSetOf("v2"), 2, 2)};
  input.has_pods = [](const json::Value&) { return true; };
  input.is_taken = [](const std::string&) { return false; };
  client::Reconciled out;
  ReconcileDeployment(input, loop_.Now(), out);
  // Nor while the new one speaks of what it had before it was scaled down, and up again.
  input.replica_sets = {with(ReplicaSetOf("v1"), 4, 4),
                        with(ReplicaSetOf("v2"), 1, 1).SetPath({"metadata", "generation"}, 3)};
  client::Reconciled waits;
  ReconcileDeployment(input, loop_.Now(), waits);
  for (const client::Write& write : waits.writes)
    EXPECT_NE(write.target.name, old["metadata"]["name"].AsString());
  for (const client::Write& write : out.writes) {
    if (write.target.name == old["metadata"]["name"].AsString()) {
      EXPECT_GE(write.body["spec"]["replicas"].AsInt(), 1);
    }
  }
}

TEST_F(DeploymentTest, APodThatNeverComesUpStopsTheRollout) {
  PutDeployment(4, "v1");
  ComeUp("v1", 0, 4);
  PutDeployment(4, "broken");
  Settle();
  EXPECT_EQ(SizeOf("v1"), 3);
  EXPECT_EQ(SizeOf("broken"), 2);
  EXPECT_EQ(ReadyPods(), 3);
  EXPECT_EQ(Condition("Available")["status"].AsString(), "True");
  loop_.RunFor(seconds(610));
  EXPECT_EQ(Condition("Progressing")["status"].AsString(), "False");
  EXPECT_EQ(Condition("Progressing")["reason"].AsString(), "ProgressDeadlineExceeded");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  // Rollover: the broken one goes first.
  PutDeployment(4, "v3");
  ComeUp("v3", 3, 5);
  EXPECT_EQ(SizeOf("broken"), 0);
  EXPECT_EQ(SizeOf("v3"), 4);
  EXPECT_EQ(Condition("Progressing")["reason"].AsString(), "NewReplicaSetAvailable");
}

// The numbers are those of upstream's conformance test of proportional scaling.
TEST_F(DeploymentTest, ScalesInProportionInTheMiddleOfARollout) {
  PutDeployment(10, "v1");
  Change({"spec", "strategy", "rollingUpdate"}, Yaml("{maxSurge: 3, maxUnavailable: 2}"));
  ComeUp("v1", 0, 10);
  Change({"spec", "template", "spec"}, Yaml("{containers: [{name: c, image: broken}]}"));
  Settle();
  EXPECT_EQ(SizeOf("v1"), 8);
  EXPECT_EQ(SizeOf("broken"), 5);
  Change({"spec", "replicas"}, 30);
  Settle();
  EXPECT_EQ(SizeOf("v1"), 20);
  EXPECT_EQ(SizeOf("broken"), 13);
}

TEST_F(DeploymentTest, RecreateEndsAllBeforeItStartsAny) {
  PutDeployment(3, "v1");
  Change({"spec", "strategy"}, Yaml("{type: Recreate}"));
  ComeUp("v1", 0, 3);
  // Pods take their time to end.
  for (const json::Value& pod : Pods())
    api_.Put(kPods, pod.SetPath({"metadata", "finalizers"}, json::List({"test/ends-slowly"})));
  Change({"spec", "template", "spec"}, Yaml("{containers: [{name: c, image: v2}]}"));
  Settle();
  EXPECT_EQ(SizeOf("v1"), 0);
  EXPECT_EQ(SizeOf("v2"), -1);
  const std::vector<json::Value> ending = Pods();
  ASSERT_EQ(ending.size(), 3u);
  for (const json::Value& pod : ending) {
    EXPECT_EQ(SizeOf("v2"), -1);
    api_.Remove(kPods, "d", pod["metadata"]["name"].Str());
    Settle();
  }
  EXPECT_EQ(SizeOf("v2"), 3);
  EXPECT_EQ(Pods().size(), 3u);
}

TEST_F(DeploymentTest, WhilePausedOnlyItsSizeChanges) {
  PutDeployment(2, "v1");
  ComeUp("v1", 0, 2);
  Change({"spec", "paused"}, true);
  Settle();
  EXPECT_EQ(Condition("Progressing")["reason"].AsString(), "DeploymentPaused");
  EXPECT_EQ(Condition("Progressing")["status"].AsString(), "Unknown");
  Change({"spec", "template", "spec"}, Yaml("{containers: [{name: c, image: v2}]}"));
  Change({"spec", "replicas"}, 3);
  Settle();
  EXPECT_EQ(SizeOf("v1"), 3);
  EXPECT_EQ(SizeOf("v2"), -1);
  Change({"spec", "paused"}, false);
  Settle();
  EXPECT_NE(SizeOf("v2"), -1);
}

TEST_F(DeploymentTest, KeepsSoMuchHistory) {
  PutDeployment(1, "v1");
  Change({"spec", "revisionHistoryLimit"}, 1);
  ComeUp("v1", 0, 1);
  for (const char* image : {"v2", "v3", "v4"}) {
    Change({"spec", "template", "spec"},
           Yaml(fmt::format("{{containers: [{{name: c, image: {}}}]}}", image)));
    ComeUp(image, 1, 2);
  }
  EXPECT_EQ(All(kReplicaSets).size(), 2u);
  EXPECT_EQ(SizeOf("v3"), 0);
  EXPECT_EQ(SizeOf("v4"), 1);
}

TEST_F(DeploymentTest, ANameThatIsTakenGetsAnotherHash) {
  const json::Value pod_template =
      Yaml("{metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: v1}]}}");
  const std::string taken = "web-" + TemplateHash(pod_template, 0);
  Put(kReplicaSets, fmt::format("{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: {}, "
                                "namespace: d}}, spec: {{replicas: 0, selector: {{matchLabels: "
                                "{{app: other}}}}}}}}",
                                taken));
  PutDeployment(1, "v1");
  Settle();
  EXPECT_EQ(Status()["collisionCount"].AsInt(), 1);
  EXPECT_EQ(ReplicaSetOf("v1")["metadata"]["name"].Str(), "web-" + TemplateHash(pod_template, 1));
  EXPECT_EQ(Pods().size(), 1u);
}

TEST_F(DeploymentTest, AdoptsAReplicaSetOfItsTemplate) {
  Put(kReplicaSets, R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: lone, namespace: d, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: v1}]}
)");
  PutDeployment(2, "v1");
  Settle();
  EXPECT_EQ(All(kReplicaSets).size(), 1u);
  EXPECT_EQ(client::ControllerOf(Get(kReplicaSets, "d", "lone"))["uid"].AsString(), "d1");
}

TEST_F(DeploymentTest, PassesOnWhyPodsCannotBeMade) {
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST" || request.target.find("/pods") == std::string::npos) return true;
    client::FakeApi::SendError(*writer, 403, "Forbidden", "exceeded quota: q");
    return false;
  };
  PutDeployment(1, "v1");
  Settle();
  EXPECT_EQ(Condition("ReplicaFailure")["reason"].AsString(), "FailedCreate");
  EXPECT_EQ(Condition("ReplicaFailure")["message"].AsString(), "exceeded quota: q");
}

TEST_F(DeploymentTest, WhyTheGpuOperatorHasNoPodsIsAnEvent) {
  PutDeployment(0, "nvcr.io/nvidia/gpu-operator:v24.9.0");
  Change({"metadata", "generation"}, 1);
  Settle();
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::ranges::count_if(
                events,
                [](const std::string& event) {
                  return event.starts_with("GpuOperatorNotNeeded muster's nodes offer");
                }),
            1);
  EXPECT_EQ(Condition("Available")["status"].AsString(), "True");
}

TEST_F(DeploymentTest, ASelectorForAllPodsIsRefused) {
  PutDeployment(1, "v1");
  Change({"spec", "selector"}, json::Obj());
  Settle();
  EXPECT_TRUE(HasEvent(
      "SelectingAll This deployment is selecting all pods. A non-empty selector is required."));
}

}  // namespace
}  // namespace muster::controllers
