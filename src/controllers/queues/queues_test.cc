// The queue controllers together, on the collections of a FakeApi.

#include <algorithm>

#include "controllers/controller_test_base.h"
#include "controllers/queues/queue_controllers.h"
#include "controllers/queues/queued_job_controller.h"
#include "controllers/queues/workload_objects.h"

namespace muster::controllers {
namespace {

constexpr char kWorkloadPath[] = "/apis/kueue.x-k8s.io/v1beta1/workloads";
constexpr char kQueuePath[] = "/apis/kueue.x-k8s.io/v1beta1/localqueues";
constexpr char kClusterQueuePath[] = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues";
constexpr char kFlavorPath[] = "/apis/kueue.x-k8s.io/v1beta1/resourceflavors";
constexpr char kClassPath[] = "/apis/kueue.x-k8s.io/v1beta1/workloadpriorityclasses";
constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

class QueuesTest : public ControllerTest {
 protected:
  void StartAll() {
    for (const schema::QueuedKind& kind : schema::QueuedKinds())
      Add(std::make_unique<QueuedJobController>(kind));
    Add(std::make_unique<LocalQueueController>());
    Add(std::make_unique<ResourceFlavorController>());
    Start(std::make_unique<ClusterQueueController>());
  }

  void PutQueues(const char* quota = "4", const char* more = "") {
    Put(kNamespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: d}}");
    Put(kFlavorPath, R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: a100}
spec: {nodeLabels: {gpu: a100}, tolerations: [{key: gpu, operator: Exists}]}
)");
    Put(kClusterQueuePath, fmt::format(R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: gpus}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{{name: a100, resources: [{{name: nvidia.com/gpu, nominalQuota: {}}}]}}]
{})",
                                       quota, more));
    Put(kQueuePath, R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team, namespace: d}
spec: {clusterQueue: gpus}
)");
  }

  // As the API server would hold it: suspended.
  void PutJob(const std::string& name, int gpus, int64_t minute = 0, const char* labels = "") {
    Put(kJobs, fmt::format(R"(
apiVersion: batch/v1
kind: Job
metadata:
  name: {0}
  namespace: d
  uid: u-{0}
  creationTimestamp: "2026-01-01T00:{2:02}:00Z"
  labels: {{kueue.x-k8s.io/queue-name: team{3}}}
spec:
  suspend: true
  template:
    spec: {{containers: [{{name: c, resources: {{limits: {{nvidia.com/gpu: {1}}}}}}}]}}
)",
                           name, gpus, minute, labels));
    Settle();
  }
  void PutPod(const std::string& job, const char* phase) {
    Put(kPods, fmt::format(R"(
apiVersion: v1
kind: Pod
metadata:
  name: {0}-pod
  namespace: d
  ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: {0}, uid: u-{0}, controller: true}}]
status: {{phase: {1}}}
)",
                           job, phase));
    Settle();
  }
  void End(const std::string& job) {
    const json::Value& now = Get(kJobs, "d", job);
    api_.Put(kJobs,
             now.Set("status", Yaml("{conditions: [{type: Complete, status: 'True', "
                                    "message: Reached expected number of succeeded pods}]}")));
    Settle();
  }

  // As a client does, so that finalizers count.
  void Delete(const client::Resource& resource, const std::string& name) {
    client_.Delete({resource, "", name, ""}, {}, [](Result<json::Value>) {});
    Settle();
  }

  json::Value WorkloadOf(const std::string& job) const {
    for (const json::Value& workload : All(kWorkloadPath)) {
      if (client::ControllerOf(workload)["name"].AsString() == job) return workload;
    }
    return nullptr;
  }
  bool Is(const std::string& job, std::string_view condition) const {
    return Holds(WorkloadOf(job), condition);
  }
  std::string WhyNot(const std::string& job) const {
    const json::Value workload = WorkloadOf(job);
    for (const json::Value& condition : workload["status"]["conditions"].items()) {
      if (condition["type"].AsString() == kQuotaReserved)
        return condition["reason"].Str() + ": " + condition["message"].Str();
    }
    return "";
  }
  bool Suspended(const std::string& job) {
    return Get(kJobs, "d", job)["spec"]["suspend"].AsBool();
  }
  std::string Counts(const char* path, const std::string& ns, const std::string& name) {
    const json::Value& status = Get(path, ns, name)["status"];
    return fmt::format("{} pending, {} reserving, {} admitted", status["pendingWorkloads"].AsInt(),
                       status["reservingWorkloads"].AsInt(), status["admittedWorkloads"].AsInt());
  }
  bool HasEvent(const std::string& text) const {
    return std::ranges::any_of(Events(), [&](const std::string& e) { return e == text; });
  }
};

TEST_F(QueuesTest, AdmitsWhatFitsOnItsFlavorsNodes) {
  PutQueues();
  StartAll();
  PutJob("train", 3);
  const json::Value workload = WorkloadOf("train");
  EXPECT_TRUE(workload["metadata"]["name"].AsString().starts_with("job-train-"));
  EXPECT_EQ(workload["metadata"]["labels"][kJobUidLabel].AsString(), "u-train");
  EXPECT_EQ(WhyNot("train"), "QuotaReserved: Quota reserved in ClusterQueue gpus");
  EXPECT_TRUE(Is("train", kAdmitted));
  EXPECT_FALSE(Suspended("train"));
  const json::Value& pod = Get(kJobs, "d", "train")["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"], Yaml("{gpu: a100}"));
  EXPECT_EQ(pod["tolerations"], Yaml("[{key: gpu, operator: Exists}]"));
  EXPECT_TRUE(HasEvent("Started Admitted by clusterQueue gpus"));
  EXPECT_EQ(Counts(kClusterQueuePath, "", "gpus"), "0 pending, 1 reserving, 1 admitted");
  EXPECT_EQ(Counts(kQueuePath, "d", "team"), "0 pending, 1 reserving, 1 admitted");
  const json::Value& used =
      Get(kClusterQueuePath, "", "gpus")["status"]["flavorsReservation"].At(0)["resources"].At(0);
  EXPECT_EQ(used, Yaml("{name: nvidia.com/gpu, total: '3', borrowed: '0'}"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(QueuesTest, QuotaIsFreeWhenNoPodIsLeft) {
  PutQueues();
  StartAll();
  PutJob("first", 3);
  PutPod("first", "Running");
  PutJob("second", 2, 1);
  EXPECT_EQ(WhyNot("second"),
            "Pending: couldn't assign flavors to pod set main: insufficient unused quota for "
            "nvidia.com/gpu in flavor a100, 1 more needed");
  EXPECT_TRUE(Suspended("second"));
  EXPECT_EQ(Counts(kClusterQueuePath, "", "gpus"), "1 pending, 1 reserving, 1 admitted");
  End("first");
  EXPECT_FALSE(Is("first", kFinished)) << "a pod sleeps on";
  EXPECT_FALSE(Is("second", kAdmitted));
  PutPod("first", "Succeeded");
  EXPECT_TRUE(Is("first", kFinished));
  EXPECT_TRUE(Is("second", kAdmitted));
  EXPECT_FALSE(Suspended("second"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(QueuesTest, ADeletedJobKeepsItsQuotaUntilItsPodsAreGone) {
  PutQueues();
  StartAll();
  PutJob("first", 4);
  PutPod("first", "Running");
  PutJob("second", 4, 1);
  api_.Remove(kJobs, "d", "first");
  Settle();
  EXPECT_TRUE(WorkloadOf("first")["metadata"].Has("deletionTimestamp"));
  EXPECT_FALSE(Is("second", kAdmitted));
  api_.Remove(kPods, "d", "first-pod");
  Settle();
  EXPECT_TRUE(WorkloadOf("first").IsNull());
  EXPECT_TRUE(Is("second", kAdmitted));
}

TEST_F(QueuesTest, StrictQueuesLetNobodyPass) {
  for (const bool strict : {true, false}) {
    if (strict) PutQueues("4", "  queueingStrategy: StrictFIFO");
    if (strict) StartAll();
    if (!strict) PutQueues();
    PutJob("large", 5);
    PutJob("small", 1, 1);
    EXPECT_EQ(Is("small", kAdmitted), !strict);
    if (strict) {
      EXPECT_TRUE(WhyNot("small").starts_with("Pending: waits behind workload d/job-large-"));
    }
  }
}

TEST_F(QueuesTest, TheHigherPriorityIsNext) {
  PutQueues();
  Put(kClassPath,
      "{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: high}, "
      "value: 10}");
  StartAll();
  PutJob("first", 4);
  PutJob("old", 4, 1);
  PutJob("urgent", 4, 2, ", kueue.x-k8s.io/priority-class: high");
  EXPECT_EQ(WorkloadOf("urgent")["spec"]["priority"].AsInt(), 10);
  End("first");
  EXPECT_TRUE(Is("urgent", kAdmitted));
  EXPECT_FALSE(Is("old", kAdmitted));
}

TEST_F(QueuesTest, SaysWhatIsMissingOfTheQueue) {
  StartAll();
  PutJob("train", 1);
  EXPECT_EQ(WhyNot("train"), "Inadmissible: LocalQueue team doesn't exist");
  Put(kQueuePath,
      "{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: team, namespace: "
      "d}, spec: {clusterQueue: gpus}}");
  Settle();
  EXPECT_EQ(WhyNot("train"), "Inadmissible: ClusterQueue gpus doesn't exist");
  const auto active = [&](const char* path, const std::string& ns, const std::string& name) {
    const json::Value& condition = Get(path, ns, name)["status"]["conditions"].At(0);
    return condition["status"].Str() + " " + condition["reason"].Str() + " " +
           condition["message"].Str();
  };
  EXPECT_EQ(active(kQueuePath, "d", "team"),
            "False ClusterQueueDoesNotExist Can't submit new workloads to clusterQueue");
  PutQueues();
  api_.Remove(kFlavorPath, "", "a100");
  Settle();
  EXPECT_EQ(active(kClusterQueuePath, "", "gpus"),
            "False FlavorNotFound Can't admit new workloads: references missing "
            "ResourceFlavor(s): a100.");
  PutQueues("4", "  admissionChecks: [budget]");
  Settle();
  EXPECT_EQ(active(kClusterQueuePath, "", "gpus"),
            "False AdmissionCheckNotFound Can't admit new workloads: references missing "
            "AdmissionCheck(s): budget.");
  PutJob("other", 1);
  EXPECT_EQ(WhyNot("other"), "Inadmissible: ClusterQueue gpus is inactive");
  PutQueues("4", "  stopPolicy: Hold");
  Settle();
  EXPECT_EQ(active(kClusterQueuePath, "", "gpus"),
            "False Stopped Can't admit new workloads: is stopped.");
  PutQueues();
  Settle();
  EXPECT_EQ(active(kClusterQueuePath, "", "gpus"), "True Ready Can admit new workloads");
  EXPECT_TRUE(Is("other", kAdmitted));
}

TEST_F(QueuesTest, WhatIsInUseStaysUntilItIsNot) {
  PutQueues();
  StartAll();
  PutJob("train", 3);
  PutPod("train", "Running");
  PutJob("next", 3, 1);
  Delete(kResourceFlavors, "a100");
  Delete(kClusterQueues, "gpus");
  const json::Value& queue = Get(kClusterQueuePath, "", "gpus");
  EXPECT_TRUE(queue["metadata"].Has("deletionTimestamp"));
  EXPECT_EQ(queue["metadata"]["finalizers"], Yaml("[kueue.x-k8s.io/resource-in-use]"));
  EXPECT_EQ(queue["status"]["conditions"].At(0)["reason"].AsString(), "Terminating");
  EXPECT_TRUE(Get(kFlavorPath, "", "a100")["metadata"].Has("deletionTimestamp"));
  EXPECT_EQ(WhyNot("next"), "Inadmissible: ClusterQueue gpus is inactive");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  End("train");
  PutPod("train", "Succeeded");
  EXPECT_TRUE(Get(kClusterQueuePath, "", "gpus").IsNull());
  EXPECT_TRUE(Get(kFlavorPath, "", "a100").IsNull());
  EXPECT_EQ(WhyNot("next"), "Inadmissible: ClusterQueue gpus doesn't exist");
}

TEST_F(QueuesTest, AFlavorIsFreeWhenNoClusterQueueNamesIt) {
  PutQueues();
  StartAll();
  Delete(kResourceFlavors, "a100");
  EXPECT_FALSE(Get(kFlavorPath, "", "a100").IsNull());
  api_.Put(kClusterQueuePath,
           Get(kClusterQueuePath, "", "gpus").SetPath({"spec", "resourceGroups"}, json::List()));
  Settle();
  EXPECT_TRUE(Get(kFlavorPath, "", "a100").IsNull());
  Delete(kClusterQueues, "gpus");
  EXPECT_TRUE(Get(kClusterQueuePath, "", "gpus").IsNull()) << "nobody has quota of it";
}

TEST_F(QueuesTest, TakesOnlyFromItsNamespaces) {
  PutQueues();
  json::Value queue = Get(kClusterQueuePath, "", "gpus");
  api_.Put(kClusterQueuePath,
           queue.SetPath({"spec", "namespaceSelector"}, Yaml("{matchLabels: {team: ml}}")));
  StartAll();
  PutJob("train", 1);
  EXPECT_EQ(WhyNot("train"), "Pending: Workload namespace doesn't match ClusterQueue selector");
  Put(kNamespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: d, labels: {team: ml}}}");
  Settle();
  EXPECT_TRUE(Is("train", kAdmitted));
}

TEST_F(QueuesTest, OneThatStandsAsideStopsAndGivesItsQuotaBack) {
  PutQueues();
  StartAll();
  PutJob("train", 4);
  PutPod("train", "Running");
  api_.Put(kJobs,
           Get(kJobs, "d", "train").SetPath({"status", "startTime"}, "2026-01-01T00:00:00Z"));
  api_.Put(kWorkloadPath, WorkloadOf("train").SetPath({"spec", "active"}, false));
  Settle();
  EXPECT_TRUE(Suspended("train"));
  EXPECT_TRUE(Is("train", kQuotaReserved)) << "its pod is left";
  api_.Remove(kPods, "d", "train-pod");
  Settle();
  EXPECT_FALSE(Is("train", kQuotaReserved));
  EXPECT_TRUE(Is("train", kEvicted));
  EXPECT_TRUE(WorkloadOf("train")["status"]["admission"].IsNull());
  EXPECT_FALSE(Get(kJobs, "d", "train")["spec"]["template"]["spec"].Has("nodeSelector"));
  api_.Put(kWorkloadPath, WorkloadOf("train").SetPath({"spec", "active"}, true));
  Settle();
  EXPECT_TRUE(Is("train", kAdmitted));
  EXPECT_FALSE(Is("train", kEvicted));
  EXPECT_FALSE(Suspended("train"));
}

TEST_F(QueuesTest, AJobThatGrowsQueuesAnew) {
  PutQueues();
  StartAll();
  PutJob("train", 1);
  PutPod("train", "Running");
  const std::string uid = WorkloadOf("train")["metadata"]["uid"].Str();
  api_.Put(kJobs, Get(kJobs, "d", "train").SetPath({"spec", "parallelism"}, 3));
  Settle();
  EXPECT_TRUE(Suspended("train"));
  EXPECT_TRUE(WorkloadOf("train")["metadata"].Has("deletionTimestamp"));
  api_.Remove(kPods, "d", "train-pod");
  Settle();
  EXPECT_NE(WorkloadOf("train")["metadata"]["uid"].AsString(), uid);
  EXPECT_TRUE(Is("train", kAdmitted));
  EXPECT_EQ(WorkloadOf("train")["spec"]["podSets"].At(0)["count"].AsInt(), 3);
  EXPECT_FALSE(Suspended("train"));
}

TEST_F(QueuesTest, APodIsHeldByItsGate) {
  PutQueues();
  StartAll();
  Put(kPods, R"(
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: d, uid: u-p,
           labels: {kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/managed: "true"}}
spec:
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]
status: {phase: Pending}
)");
  Settle();
  EXPECT_TRUE(Is("p", kAdmitted));
  const json::Value& pod = Get(kPods, "d", "p");
  EXPECT_FALSE(pod["spec"].Has("schedulingGates"));
  EXPECT_EQ(pod["spec"]["nodeSelector"], Yaml("{gpu: a100}"));
  EXPECT_EQ(Counts(kClusterQueuePath, "", "gpus"), "0 pending, 1 reserving, 1 admitted");
  api_.Put(kPods, pod.SetPath({"status", "phase"}, "Succeeded"));
  Settle();
  EXPECT_TRUE(Is("p", kFinished));
  EXPECT_EQ(Counts(kClusterQueuePath, "", "gpus"), "0 pending, 0 reserving, 0 admitted");
}

TEST_F(QueuesTest, LeavesTheQueuesOfUpstreamsKueueAlone) {
  Put(kDefinitions,
      "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "
      "workloads.kueue.x-k8s.io, labels: {app.kubernetes.io/name: kueue}}}");
  PutQueues();
  StartAll();
  PutJob("train", 1);
  EXPECT_TRUE(WorkloadOf("train").IsNull());
}

TEST(WorkloadObjects, EveryKindHasItsSetsOfPods) {
  const auto sets = [](std::string_view group, std::string_view kind, const char* spec) {
    const json::Value job = json::Obj({{"spec", Yaml(spec)}});
    std::string text;
    const json::Value all = PodSetsOf(*schema::FindQueuedKind(group, kind), job);
    for (const json::Value& set : all.items())
      text += fmt::format("{}:{} ", set["name"].AsString(), set["count"].AsInt());
    return text;
  };
  EXPECT_EQ(sets("batch", "Job", "{parallelism: 3, template: {}}"), "main:3 ");
  EXPECT_EQ(sets("batch", "Job", "{parallelism: 3, completions: 2, template: {}}"), "main:2 ");
  EXPECT_EQ(sets("batch", "Job", "{template: {}}"), "main:1 ");
  EXPECT_EQ(sets("kubeflow.org", "PyTorchJob",
                 "{pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 3}}}"),
            "master:1 worker:3 ");
  EXPECT_EQ(
      sets("kubeflow.org", "MPIJob", "{mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 2}}}"),
      "launcher:1 worker:2 ");
  EXPECT_EQ(sets("jobset.x-k8s.io", "JobSet",
                 "{replicatedJobs: [{name: a, replicas: 2, template: {spec: {parallelism: 3}}}, "
                 "{name: b, template: {spec: {}}}]}"),
            "a:6 b:1 ");
  EXPECT_EQ(sets("", "Pod", "{containers: []}"), "main:1 ");
}

TEST(WorkloadObjects, AConditionKeepsItsTimeWhileItsStatusStays) {
  const Time now = *ParseTime("2026-01-02T03:04:05Z");
  const json::Value first = WithCondition({}, kQuotaReserved, false, "Pending", "a", 1, now);
  EXPECT_EQ(WithCondition(first, kQuotaReserved, false, "Pending", "a", 1, now + seconds(9)),
            first);
  const json::Value second =
      WithCondition(first, kQuotaReserved, false, "Pending", "b", 1, now + seconds(9));
  EXPECT_EQ(second["conditions"].At(0)["lastTransitionTime"],
            first["conditions"].At(0)["lastTransitionTime"]);
  const json::Value third =
      WithCondition(second, kQuotaReserved, true, "QuotaReserved", "", 1, now + seconds(9));
  EXPECT_EQ(third["conditions"].At(0)["lastTransitionTime"].AsString(), "2026-01-02T03:04:14Z");
  EXPECT_EQ(third["conditions"].size(), 1u);
}

}  // namespace
}  // namespace muster::controllers
