#include "serving/serving_pass.h"

#include <gtest/gtest.h>

#include "json/patch.h"
#include "json/write.h"
#include "schema/conditions.h"
#include "serving/builtin_runtime.h"
#include "serving/test_services.h"

namespace muster::serving {
namespace {

using client::Reconciled;
using client::Write;
using json::Value;

const Time kNow = *ParseTime("2026-01-02T03:04:05Z");

// "create deployments iris-predictor"
std::vector<std::string> Lines(const Reconciled& out) {
  std::vector<std::string> lines;
  for (const Write& write : out.writes) {
    if (write.target.subresource == "status") continue;
    const char* verb = write.verb == Write::Verb::kCreate   ? "create"
                       : write.verb == Write::Verb::kDelete ? "delete"
                                                            : "patch";
    lines.push_back(fmt::format("{} {} {}", verb, write.target.resource.plural, write.target.name));
  }
  return lines;
}

bool Wants(const Reconciled& out, std::string_view line) {
  return std::ranges::count(Lines(out), line) == 1;
}

// A cluster of one InferenceService: what a pass writes is there for the next one.
class ServingPassTest : public testing::Test {
 protected:
  ServingPassTest() { children_.choice = {MakeSklearnRuntime(), true, "", ""}; }

  Value* Place(const client::Target& target) {
    const std::string name = target.resource.plural + "/" + target.name;
    if (name == "deployments/iris-predictor") return &children_.stable;
    if (name == "deployments/iris-predictor-canary") return &children_.canary;
    if (name == "services/iris") return &children_.service;
    if (name == "services/iris-predictor") return &children_.predictor_service;
    if (name == "services/iris-predictor-canary") return &children_.canary_service;
    if (name == "endpointslices/iris-gateway") return &children_.gateway_slice;
    if (name == "horizontalpodautoscalers/iris-predictor") return &children_.autoscaler;
    return nullptr;
  }

  Reconciled Pass() {
    Reconciled out = ReconcileService(ParseInferenceService(object_), children_, gateway_, kNow);
    for (const Write& write : out.writes) {
      if (write.target.subresource == "status") {
        object_ = object_.Set("status", write.body["status"]);
      } else if (write.target.resource == client::resources::kConfigMaps) {
        children_.program = write.body["data"][kSklearnProgram].Str();
      } else if (Value* place = Place(write.target)) {
        Apply(write, *place);
      }
    }
    return out;
  }

  static void Apply(const Write& write, Value& place) {
    switch (write.verb) {
      case Write::Verb::kCreate:
        place = write.body.SetPath({"metadata", "generation"}, 1);
        return;
      case Write::Verb::kDelete:
        place = {};
        return;
      case Write::Verb::kPatchJson: {
        const int64_t generation = place["metadata"]["generation"].AsInt();
        auto patched = json::ApplyJsonPatch(place, write.body);
        ASSERT_TRUE(patched.has_value());
        place = patched->SetPath({"metadata", "generation"}, generation + 1);
        return;
      }
      default:
        place = json::ApplyMergePatch(place, write.body);
    }
  }

  // Its pods are all of its template, and ready.
  static void RollOut(Value& deployment) {
    const int64_t wanted = deployment["spec"]["replicas"].AsInt();
    const int64_t generation = deployment["metadata"]["generation"].AsInt();
    deployment = Made(deployment, wanted)
                     .SetPath({"metadata", "generation"}, generation)
                     .SetPath({"status", "observedGeneration"}, generation);
  }

  void BecomeReady() {
    Pass();
    RollOut(children_.stable);
    children_.stable_reachable = true;
    Pass();
  }

  void Change(std::string_view predictor, std::string_view uri) {
    const Value status = object_["status"];
    object_ = Iris(predictor, uri).Set("status", status).SetPath({"metadata", "generation"}, 2);
  }

  std::string Condition(std::string_view type) const {
    const Value& condition = schema::FindCondition(object_["status"]["conditions"], type);
    return condition["status"].Str() + " " + condition["message"].Str();
  }
  // "iris-predictor-00002=10 iris-predictor-00001=90 "
  std::string Traffic() const {
    std::string text;
    for (const Value& one : object_["status"]["components"]["predictor"]["traffic"].items()) {
      text += fmt::format("{}={} ", one["revisionName"].AsString(), one["percent"].AsInt());
    }
    return text;
  }
  const Value& Model() const { return object_["status"]["modelStatus"]; }

  Value object_ = Iris();
  ServingChildren children_;
  const GatewayAddress gateway_{"10.42.0.1", 8012, std::make_shared<std::string>()};
};

TEST_F(ServingPassTest, MakesWhatItNeedsOnceAndIsReadyOnlyWhenThePodsAre) {
  EXPECT_EQ(Lines(Pass()),
            (std::vector<std::string>{"create configmaps muster-sklearnserver",
                                      "create deployments iris-predictor",
                                      "create services iris-predictor", "create services iris",
                                      "create endpointslices iris-gateway"}));
  const Value& pod = children_.stable["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["labels"]["app"].AsString(), "isvc.iris-predictor");
  EXPECT_EQ(children_.gateway_slice["endpoints"].At(0)["addresses"].At(0).AsString(), "10.42.0.1");
  EXPECT_TRUE(children_.service["spec"]["selector"].IsNull());
  EXPECT_EQ(Lines(Pass()), std::vector<std::string>());
  EXPECT_EQ(Condition("Ready").substr(0, 7), "Unknown");
  EXPECT_EQ(Model()["transitionStatus"].AsString(), "InProgress");
  RollOut(children_.stable);
  Pass();
  EXPECT_EQ(Condition("PredictorReady"), "True ");
  // Its Service leads nowhere yet.
  EXPECT_EQ(Condition("Ready").substr(0, 7), "Unknown");
  children_.stable_reachable = true;
  Pass();
  EXPECT_EQ(Condition("Ready"), "True ");
  EXPECT_EQ(Traffic(), "iris-predictor-00001=100 ");
  EXPECT_EQ(Model()["states"]["activeModelState"].AsString(), "Loaded");
  EXPECT_TRUE(Pass().writes.empty());
}

TEST_F(ServingPassTest, WithoutAGatewayTheServiceLeadsToThePods) {
  const Reconciled out = ReconcileService(ParseInferenceService(object_), children_, {}, kNow);
  EXPECT_FALSE(Wants(out, "create endpointslices iris-gateway"));
  for (const Write& write : out.writes) {
    if (write.target.resource.plural != "services") continue;
    EXPECT_EQ(write.body["spec"]["selector"]["app"].AsString(), "isvc.iris-predictor");
  }
}

TEST_F(ServingPassTest, ACanaryGetsItsPartOnlyWhenItIsReadyAndTheOtherStaysAsItIs) {
  BecomeReady();
  const Value stable = children_.stable;
  Change("canaryTrafficPercent: 10", "file:///srv/b");
  EXPECT_EQ(Lines(Pass()), (std::vector<std::string>{"create deployments iris-predictor-canary",
                                                     "create services iris-predictor-canary"}));
  EXPECT_EQ(Traffic(), "iris-predictor-00002=0 iris-predictor-00001=100 ");
  RollOut(children_.canary);
  Pass();
  EXPECT_EQ(Traffic(), "iris-predictor-00002=10 iris-predictor-00001=90 ");
  EXPECT_EQ(children_.stable, stable);
  // Back: none of the traffic, and its pods go.
  Change("canaryTrafficPercent: 0", "file:///srv/b");
  Pass();
  EXPECT_EQ(Traffic(), "iris-predictor-00002=0 iris-predictor-00001=100 ");
  EXPECT_EQ(children_.canary["spec"]["replicas"].AsInt(), 0);
  EXPECT_EQ(children_.stable, stable);
}

TEST_F(ServingPassTest, APromotedCanaryServesUntilTheOtherHasTakenOver) {
  BecomeReady();
  Change("canaryTrafficPercent: 10", "file:///srv/b");
  Pass();
  RollOut(children_.canary);
  Pass();
  Change("", "file:///srv/b");
  EXPECT_TRUE(Wants(Pass(), "patch deployments iris-predictor"));
  EXPECT_EQ(Traffic(), "iris-predictor-00002=10 iris-predictor-00002=90 ");
  EXPECT_FALSE(children_.canary.IsNull());
  RollOut(children_.stable);
  Pass();
  // First the gateway is told, then it goes.
  EXPECT_EQ(Traffic(), "iris-predictor-00002=100 ");
  EXPECT_FALSE(children_.canary.IsNull());
  EXPECT_TRUE(Wants(Pass(), "delete deployments iris-predictor-canary"));
  EXPECT_TRUE(Wants(Pass(), "delete services iris-predictor-canary"));
  const Value& component = object_["status"]["components"]["predictor"];
  EXPECT_EQ(component["latestRolledoutRevision"].AsString(), "iris-predictor-00002");
  EXPECT_EQ(component["previousRolledoutRevision"].AsString(), "iris-predictor-00001");
  EXPECT_TRUE(Pass().writes.empty());
}

TEST_F(ServingPassTest, TheFormerSpecTakesACanaryBack) {
  BecomeReady();
  Change("canaryTrafficPercent: 50", "file:///srv/b");
  Pass();
  RollOut(children_.canary);
  Pass();
  Change("", "file:///srv/a");
  Pass();
  EXPECT_EQ(Traffic(), "iris-predictor-00001=100 ");
  EXPECT_TRUE(Wants(Pass(), "delete deployments iris-predictor-canary"));
}

TEST_F(ServingPassTest, TheFirstSpecIsNoCanary) {
  object_ = Iris("canaryTrafficPercent: 10");
  Pass();
  EXPECT_TRUE(children_.canary.IsNull());
  Change("canaryTrafficPercent: 10", "file:///srv/b");
  EXPECT_TRUE(Wants(Pass(), "patch deployments iris-predictor"));
  EXPECT_TRUE(children_.canary.IsNull());
}

TEST_F(ServingPassTest, AModelThatCannotBeLoadedSaysWhichPodAndWhy) {
  Pass();
  children_.pods = {Yaml(R"(
metadata: {name: iris-predictor-x, labels: {app: isvc.iris-predictor}}
status:
  containerStatuses:
    - name: kserve-container
      ready: false
      state: {waiting: {reason: CrashLoopBackOff, message: back-off}}
      lastState:
        terminated:
          {exitCode: 1, message: no model in /mnt/models, finishedAt: "2026-01-02T03:04:04Z"}
)")};
  Pass();
  EXPECT_EQ(Condition("Ready"),
            "False pod iris-predictor-x: no model in /mnt/models (/mnt/models is file:///srv/a)");
  EXPECT_EQ(Model()["transitionStatus"].AsString(), "BlockedByFailedLoad");
  EXPECT_EQ(Model()["lastFailureInfo"]["reason"].AsString(), "ModelLoadFailed");
  EXPECT_EQ(Model()["lastFailureInfo"]["exitCode"].AsInt(), 1);
}

TEST_F(ServingPassTest, AModelThatIsNotThereSaysWhere) {
  Pass();
  children_.pods = {Yaml(R"(
metadata: {name: iris-predictor-x, labels: {app: isvc.iris-predictor}}
status:
  containerStatuses:
    - name: kserve-container
      ready: false
      state:
        waiting:
          reason: ContainerCreating
          message: 'MountVolume.SetUp failed for volume "kserve-model" : no /srv/a'
)")};
  Pass();
  EXPECT_EQ(Condition("Ready"),
            "False pod iris-predictor-x: MountVolume.SetUp failed for volume \"kserve-model\" : "
            "no /srv/a");
  EXPECT_EQ(Model()["lastFailureInfo"]["reason"].AsString(), "ModelLoadFailed");
  EXPECT_FALSE(Model()["lastFailureInfo"].Has("exitCode"));
}

TEST_F(ServingPassTest, WhatCannotBeServedIsRefusedAndWhatIsServedStays) {
  BecomeReady();
  Change("", "s3://bucket/model");
  EXPECT_EQ(Lines(Pass()), std::vector<std::string>());
  EXPECT_EQ(Condition("Ready").substr(0, 34), "False storageUri s3://bucket/model");
  EXPECT_EQ(Model()["transitionStatus"].AsString(), "InvalidSpec");
  EXPECT_EQ(Traffic(), "iris-predictor-00001=100 ");
  children_.choice = {{}, false, kNoSupportingRuntime, "no runtime"};
  Pass();
  EXPECT_EQ(Condition("PredictorReady"), "False no runtime");
}

TEST_F(ServingPassTest, ARefusedWriteIsAConditionWithItsReason) {
  children_.refused_write =
      Yaml("{verb: create, kind: Deployment, reason: Forbidden, message: exceeded quota}");
  Pass();
  EXPECT_EQ(Condition("Ready"), "False create Deployment: exceeded quota");
}

TEST_F(ServingPassTest, WhyThereIsNoPodIsSaid) {
  Pass();
  children_.stable = children_.stable.SetPath({"status", "conditions"}, Yaml(R"([
    {type: Progressing, status: "True", reason: NewReplicaSetCreated, message: Created},
    {type: ReplicaFailure, status: "True", reason: FailedCreate, message: no such account}])"));
  Pass();
  EXPECT_EQ(Condition("Ready"), "False no such account");
  children_.stable = children_.stable.SetPath({"status", "conditions"}, Yaml(R"([
    {type: ReplicaFailure, status: "False", reason: FailedCreate, message: no such account}])"));
  children_.pods = {Yaml(R"({metadata: {name: p1, labels: {app: isvc.iris-predictor}}, status:
    {conditions: [{type: PodScheduled, status: "False", reason: Unschedulable,
                   message: persistentvolumeclaim models not found}]}})")};
  Pass();
  EXPECT_EQ(Condition("Ready"), "Unknown pod p1: persistentvolumeclaim models not found");
  children_.pods = {children_.pods[0].SetPath({"metadata", "deletionTimestamp"}, "t")};
  Pass();
  EXPECT_EQ(Condition("PredictorReady"), "Unknown ");
}

TEST_F(ServingPassTest, TimeoutsAreBounded) {
  EXPECT_EQ(TimeoutOf({}), kDefaultTimeout);
  EXPECT_EQ(TimeoutOf(-1), kDefaultTimeout);
  EXPECT_EQ(TimeoutOf(10), seconds(10));
  for (const int64_t large : {int64_t{9'223'372'037}, int64_t{99'999'999'999'999}, INT64_MAX})
    EXPECT_EQ(TimeoutOf(large), kMaxTimeout) << large;
}

TEST_F(ServingPassTest, ANameThatSomebodyElseHasIsSaid) {
  children_.service = Yaml("{metadata: {name: iris, namespace: ml}}");
  children_.taken = {"services \"iris\""};
  const Reconciled out = Pass();
  EXPECT_EQ(Condition("IngressReady"),
            "False services \"iris\" exists already and belongs to somebody else");
  EXPECT_FALSE(Wants(out, "patch services iris"));
}

TEST_F(ServingPassTest, AnOlderGraphOfItsNameHasTheService) {
  BecomeReady();
  children_.named_as_a_graph = true;
  Reconciled out = Pass();
  EXPECT_TRUE(Wants(out, "delete services iris"));
  EXPECT_TRUE(Wants(out, "delete endpointslices iris-gateway"));
  EXPECT_EQ(Condition("IngressReady"),
            "False InferenceGraph iris is older and has the name; rename one of them");
  // Its pods are still reached by their own Service; without a gateway no graph has anything.
  EXPECT_FALSE(Wants(out, "delete services iris-predictor"));
  out = ReconcileService(ParseInferenceService(object_), children_, {}, kNow);
  EXPECT_FALSE(Wants(out, "delete services iris"));
}

TEST_F(ServingPassTest, ChildrenTellWhoseTheyCouldBe) {
  const auto owners = [](const std::string& child) {
    std::vector<std::string> names;
    for (const client::ObjectKey& owner : OwnersByName({"ml", child})) {
      EXPECT_EQ(owner.ns, "ml");
      names.push_back(owner.name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(owners("iris"), Names{"iris"});
  EXPECT_EQ(owners("iris-predictor"), (Names{"iris-predictor", "iris"}));
  EXPECT_EQ(owners("iris-predictor-canary"), (Names{"iris-predictor-canary", "iris"}));
  EXPECT_EQ(owners("iris-gateway"), (Names{"iris-gateway", "iris"}));
  EXPECT_EQ(owners("-gateway"), Names{"-gateway"});
}

TEST_F(ServingPassTest, AHostThatAnOlderOneHasIsSaidOnceAndTheOtherHostIsTheUrl) {
  BecomeReady();
  EXPECT_EQ(object_["status"]["url"].AsString(), "http://iris-ml.example.com");
  children_.host_owner = "InferenceService c/a-b";
  const Reconciled out = Pass();
  EXPECT_EQ(Condition("HostTaken"),
            "True iris-ml.example.com leads to InferenceService c/a-b, which is older; this one is "
            "reached as iris.ml.example.com");
  EXPECT_EQ(object_["status"]["url"].AsString(), "http://iris.ml.example.com");
  EXPECT_EQ(Condition("Ready"), "True ");
  EXPECT_EQ(std::ranges::count(out.events, "HostTaken", &client::EventToRecord::reason), 1);
  EXPECT_TRUE(Pass().events.empty());
  children_.host_owner = "";
  Pass();
  EXPECT_EQ(Condition("HostTaken"), " ");
  EXPECT_EQ(object_["status"]["url"].AsString(), "http://iris-ml.example.com");
}

TEST_F(ServingPassTest, WithoutAListenerNobodyIsReachedAndItLooksAgain) {
  BecomeReady();
  *gateway_.fault = "the gateway cannot listen: Address already in use";
  const Reconciled out = Pass();
  EXPECT_EQ(Condition("Ready"), "False the gateway cannot listen: Address already in use");
  EXPECT_EQ(out.look_again_at, kNow + kGatewayLookPeriod);
  gateway_.fault->clear();
  EXPECT_FALSE(Pass().look_again_at.has_value());
  EXPECT_EQ(Condition("Ready"), "True ");
}

TEST_F(ServingPassTest, WhoDecidesAboutTheNumberOfPods) {
  object_ = Iris("minReplicas: 2");
  Pass();
  EXPECT_EQ(children_.stable["spec"]["replicas"].AsInt(), 2);
  children_.stable = children_.stable.SetPath({"spec", "replicas"}, 5);
  Pass();
  EXPECT_EQ(children_.stable["spec"]["replicas"].AsInt(), 2);
  // An autoscaler of pods: whatever it says between the bounds.
  object_ = Iris("minReplicas: 2, maxReplicas: 4, scaleTarget: 60");
  EXPECT_TRUE(Wants(Pass(), "create horizontalpodautoscalers iris-predictor"));
  const Value& metric = children_.autoscaler["spec"]["metrics"].At(0)["resource"];
  EXPECT_EQ(metric["target"]["averageUtilization"].AsInt(), 60);
  children_.stable = children_.stable.SetPath({"spec", "replicas"}, 3);
  EXPECT_EQ(Lines(Pass()), std::vector<std::string>());
  // The gateway: no autoscaler, and none of its pods is asked for here.
  object_ = Iris("minReplicas: 0, maxReplicas: 4, scaleMetric: rps");
  EXPECT_TRUE(Wants(Pass(), "delete horizontalpodautoscalers iris-predictor"));
  children_.stable = children_.stable.SetPath({"spec", "replicas"}, 0);
  EXPECT_EQ(Lines(Pass()), std::vector<std::string>());
}

TEST_F(ServingPassTest, AsleepIsReady) {
  object_ = Iris("minReplicas: 0");
  BecomeReady();
  children_.stable = children_.stable.SetPath({"spec", "replicas"}, 0);
  RollOut(children_.stable);
  children_.stable_reachable = false;
  Pass();
  EXPECT_EQ(Condition("Ready"), "True ");
  EXPECT_EQ(Model()["states"]["activeModelState"].AsString(), "Standby");
}

TEST_F(ServingPassTest, WakingUpIsReadyUnlessThePodFails) {
  object_ = Iris("minReplicas: 0");
  BecomeReady();
  children_.stable_reachable = false;
  children_.stable = Made(children_.stable.SetPath({"spec", "replicas"}, 1), 0);
  Pass();
  EXPECT_EQ(Condition("Ready"), "True ");
  children_.pods = {Yaml(R"(
metadata: {name: p, labels: {app: isvc.iris-predictor}}
status:
  containerStatuses:
    - {name: kserve-container, state: {terminated: {exitCode: 137, reason: OOMKilled}}}
)")};
  Pass();
  EXPECT_EQ(Condition("Ready"), "False pod p: OOMKilled");
}

TEST_F(ServingPassTest, MorePodsThatStartDoNotMakeItUnready) {
  object_ = Iris("maxReplicas: 3");
  BecomeReady();
  children_.stable = children_.stable.SetPath({"spec", "replicas"}, 3);
  Pass();
  EXPECT_EQ(Condition("Ready"), "True ");
  children_.stable = Made(children_.stable, 0);
  Pass();
  EXPECT_EQ(Condition("PredictorReady").substr(0, 7), "Unknown");
}

TEST_F(ServingPassTest, StoppedLeavesNothing) {
  BecomeReady();
  object_ = object_.SetPath({"metadata", "annotations", kStopAnnotation}, "true");
  Pass();
  EXPECT_TRUE(children_.stable.IsNull());
  EXPECT_TRUE(children_.service.IsNull());
  EXPECT_EQ(Condition("Stopped"), "True ");
  EXPECT_EQ(Condition("Ready").substr(0, 5), "False");
  object_ = object_.RemovePath({"metadata", "annotations"});
  EXPECT_TRUE(Wants(Pass(), "create deployments iris-predictor"));
}

}  // namespace
}  // namespace muster::serving
