#include "training/job_pass.h"

#include <gtest/gtest.h>

#include "json/patch.h"
#include "training/restarts.h"
#include "training/status.h"
#include "training/test_jobs.h"

namespace muster::training {
namespace {

using client::Reconciled;
using client::Write;

const schema::TrainingKind& kPyTorch = *schema::FindTrainingKind("PyTorchJob");
const Time kNow = *ParseTime("2026-01-02T03:04:05Z");

std::string VerbOf(const Write& write) {
  switch (write.verb) {
    case Write::Verb::kCreate:
      return "create";
    case Write::Verb::kUpdate:
      return "update";
    case Write::Verb::kDelete:
      return "delete";
    default:
      return "patch";
  }
}

std::vector<std::string> Lines(const Reconciled& out, std::string_view verb = "",
                               std::string_view plural = "") {
  std::vector<std::string> lines;
  for (const Write& write : out.writes) {
    if (!verb.empty() && VerbOf(write) != verb) continue;
    if (!plural.empty() && write.target.resource.plural != plural) continue;
    lines.push_back(write.target.name);
  }
  return lines;
}

const json::Value& StatusIn(const Reconciled& out) {
  static const json::Value kNone;
  for (const Write& write : out.writes) {
    if (write.target.subresource == "status") return write.body["status"];
  }
  return kNone;
}

const json::Value& JobPatchIn(const Reconciled& out) {
  static const json::Value kNone;
  for (const Write& write : out.writes) {
    if (VerbOf(write) == "patch" && write.target.resource.plural.ends_with("jobs"))
      return write.body;
  }
  return kNone;
}

bool HasEvent(const Reconciled& out, std::string_view reason) {
  for (const auto& event : out.events) {
    if (event.reason == reason) return true;
  }
  return false;
}

std::string ReasonOf(const json::Value& status, std::string_view type) {
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() == type) return condition["reason"].Str();
  }
  return "";
}

// A job whose status and children are those of a job that runs.
struct Scene {
  explicit Scene(json::Value from, std::string_view phase = "Running") : object(std::move(from)) {
    const Job job = Parsed(object);
    for (const Replica& replica : job.replicas) {
      for (int64_t i = 0; i < replica.count; ++i) {
        children.pods.push_back(PodOf(object, replica.type, i, phase));
        children.services.push_back(MakeService(job, replica, i));
      }
    }
    children.pod_group = MakePodGroup(job);
    const Reconciled out = Run();
    object = object.Set("status", StatusIn(out));
  }
  Reconciled Run(Time now = kNow) const { return ReconcileJob(Parsed(object), children, now); }
  void SetPod(size_t i, json::Value pod) { children.pods[i] = std::move(pod); }
  void Fail(size_t i, int64_t code) {
    SetPod(i, WithExitCode(children.pods[i].SetPath({"status", "phase"}, "Failed"), code));
  }
  void RunPolicy(const char* yaml) { object = object.SetPath({"spec", "runPolicy"}, Yaml(yaml)); }
  void Apply(const json::Value& patch) { object = json::ApplyMergePatch(object, patch); }

  json::Value object;
  JobChildren children;
};

TEST(JobPass, NewJobMakesEverythingAtOnce) {
  const Reconciled out = ReconcileJob(Parsed(DdpJob()), {}, kNow);
  EXPECT_EQ(Lines(out, "create", "podgroups"), (std::vector<std::string>{"ddp"}));
  EXPECT_EQ(Lines(out, "create", "services"),
            (std::vector<std::string>{"ddp-master-0", "ddp-worker-0", "ddp-worker-1"}));
  EXPECT_EQ(Lines(out, "create", "pods"),
            (std::vector<std::string>{"ddp-master-0", "ddp-worker-0", "ddp-worker-1"}));
  const json::Value& status = StatusIn(out);
  EXPECT_EQ(ReasonOf(status, "Created"), "PyTorchJobCreated");
  EXPECT_EQ(status["startTime"].AsString(), "2026-01-02T03:04:05Z");
  EXPECT_EQ(out.writes.front().target.subresource, "status");
  EXPECT_TRUE(HasEvent(out, "SuccessfulCreatePod"));
  EXPECT_TRUE(HasEvent(out, "SuccessfulCreateService"));
  EXPECT_FALSE(HasEvent(out, "SettedPodTemplateRestartPolicy"));
}

TEST(JobPass, SaysWhenItOverwritesTheTemplatesRestartPolicy) {
  const json::Value job = DdpJob().SetPath(
      {"spec", "pytorchReplicaSpecs", "Worker", "template", "spec", "restartPolicy"}, "Always");
  EXPECT_TRUE(HasEvent(ReconcileJob(Parsed(job), {}, kNow), "SettedPodTemplateRestartPolicy"));
}

TEST(JobPass, RunningJobIsAtRest) {
  Scene scene(DdpJob());
  EXPECT_EQ(ReasonOf(scene.object["status"], "Running"), "PyTorchJobRunning");
  EXPECT_EQ(scene.object["status"]["replicaStatuses"]["Worker"]["active"].AsInt(), 2);
  EXPECT_TRUE(scene.Run(kNow + hours(1)).writes.empty());
}

TEST(JobPass, MissingChildrenAreMadeAgain) {
  Scene scene(DdpJob(), "Pending");
  scene.children.services.pop_back();
  scene.children.pods.pop_back();
  scene.children.pod_group = json::Value();
  const Reconciled out = scene.Run();
  EXPECT_EQ(Lines(out), (std::vector<std::string>{"ddp", "ddp-worker-1", "ddp-worker-1"}));
}

TEST(JobPass, SuccessRules) {
  const struct {
    const char* what;
    json::Value job;
    std::vector<size_t> succeeded;
    bool succeeds;
  } rows[] = {
      {"master done", DdpJob(), {0}, true},
      {"workers done, master not", DdpJob(), {1, 2}, false},
      {"no master: one of two",
       DdpJob().SetPath({"spec", "pytorchReplicaSpecs"},
                        DdpJob()["spec"]["pytorchReplicaSpecs"].Remove("Master")),
       {0},
       false},
      {"no master: all",
       DdpJob().SetPath({"spec", "pytorchReplicaSpecs"},
                        DdpJob()["spec"]["pytorchReplicaSpecs"].Remove("Master")),
       {0, 1},
       true},
      {"elastic: any", ElasticJob(), {2}, true},
      {"elastic: none", ElasticJob(), {}, false},
  };
  for (const auto& row : rows) {
    Scene scene(row.job);
    for (const size_t i : row.succeeded) {
      scene.SetPod(i, scene.children.pods[i].SetPath({"status", "phase"}, "Succeeded"));
    }
    const Reconciled out = scene.Run();
    EXPECT_EQ(HasCondition(StatusIn(out), "Succeeded"), row.succeeds) << row.what;
    if (!row.succeeds) continue;
    EXPECT_EQ(ReasonOf(StatusIn(out), "Succeeded"), "PyTorchJobSucceeded");
    EXPECT_EQ(StatusIn(out)["completionTime"].AsString(), "2026-01-02T03:04:05Z");
    for (const json::Member& type : StatusIn(out)["replicaStatuses"].members()) {
      EXPECT_FALSE(type.second.Has("active")) << "folded into succeeded";
    }
    EXPECT_TRUE(HasEvent(out, "PyTorchJobSucceeded"));
  }
}

TEST(JobPass, SuccessRulesOfTensorFlow) {
  constexpr const char* kAll = "{successPolicy: AllWorkers}";
  const struct {
    const char* what;
    const char* roles;
    const char* more;
    std::vector<size_t> succeeded;  // pods, in the order of the roles' names
    bool succeeds;
  } rows[] = {{"chief", "{Chief: 1, PS: 1, Worker: 1}", "{}", {0}, true},
              {"master", "{Master: 1, Worker: 1}", "{}", {0}, true},
              {"chief, whatever the policy", "{Chief: 1, Worker: 1}", kAll, {0}, true},
              {"workers, with a chief", "{Chief: 1, Worker: 2}", "{}", {1, 2}, false},
              {"worker 0", "{PS: 1, Worker: 2}", "{}", {1}, true},
              {"worker 1", "{PS: 1, Worker: 2}", "{}", {2}, false},
              {"worker 0 is not all", "{PS: 1, Worker: 2}", kAll, {1}, false},
              {"all workers", "{PS: 1, Worker: 2}", kAll, {1, 2}, true}};
  for (const auto& row : rows) {
    Scene scene(TensorFlowJob(row.roles, row.more));
    for (const size_t i : row.succeeded)
      scene.SetPod(i, scene.children.pods[i].SetPath({"status", "phase"}, "Succeeded"));
    EXPECT_EQ(HasCondition(StatusIn(scene.Run()), "Succeeded"), row.succeeds) << row.what;
  }
}

TEST(JobPass, ATFJobSaysSoInItsReasonsAndIsToldApart) {
  Scene scene(TensorFlowJob("{Chief: 1, Worker: 2}"));
  EXPECT_EQ(ReasonOf(scene.object["status"], "Running"), "TFJobRunning");
  const json::Value& pod = scene.children.pods[0];
  EXPECT_EQ(pod["metadata"]["labels"], Yaml(R"({training.kubeflow.org/job-name: tf,
    training.kubeflow.org/operator-name: tfjob-controller,
    training.kubeflow.org/replica-type: chief, training.kubeflow.org/replica-index: "0",
    training.kubeflow.org/job-role: master})"));
  EXPECT_EQ(pod["metadata"]["ownerReferences"].At(0)["kind"].AsString(), "TFJob");
  EXPECT_EQ(pod["spec"]["restartPolicy"].AsString(), "Never");
  EXPECT_EQ(pod["spec"]["containers"].At(0)["ports"],
            Yaml("[{containerPort: 2222, name: tfjob-port, protocol: TCP}]"));
  scene.Fail(2, 1);
  const Reconciled out = scene.Run();
  EXPECT_EQ(ReasonOf(StatusIn(out), "Failed"), "TFJobFailed");
  EXPECT_EQ(out.writes[0].target.resource.plural, "tfjobs");
}

TEST(JobPass, DynamicWorkersAreReplacedOneByOne) {
  Scene scene(TensorFlowJob("{PS: 1, Worker: 2}", "{enableDynamicWorker: true}"));
  scene.object = scene.object.SetPath({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 3);
  EXPECT_EQ(Lines(scene.Run(), "create", "pods"), (std::vector<std::string>{"tf-worker-2"}));
  scene.object = scene.object.SetPath({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 1);
  EXPECT_EQ(Lines(scene.Run(), "delete", "pods"), (std::vector<std::string>{"tf-worker-1"}));
  Scene fixed(TensorFlowJob("{PS: 1, Worker: 2}"));
  fixed.object = fixed.object.SetPath({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 3);
  EXPECT_EQ(RestartsOf(JobPatchIn(fixed.Run())).epoch, 1) << "everybody is told of everybody";
}

TEST(JobPass, RestartPolicyTable) {
  const struct {
    const char* policy;
    int64_t code;
    bool restarts;
  } rows[] = {{"Never", 1, false},     {"Never", 137, false},   {"OnFailure", 1, true},
              {"Always", 1, true},     {"ExitCode", 1, false},  {"ExitCode", 127, false},
              {"ExitCode", 128, true}, {"ExitCode", 137, true}, {"ExitCode", 255, true}};
  for (const auto& row : rows) {
    Scene scene(DdpJob(row.policy));
    scene.Fail(1, row.code);
    const Reconciled out = scene.Run();
    if (row.restarts) {
      EXPECT_EQ(RestartsOf(JobPatchIn(out)).epoch, 1) << row.policy << row.code;
      EXPECT_EQ(RestartsOf(JobPatchIn(out)).count, 1);
      EXPECT_EQ(out.writes.size(), 1u) << "the count first, alone";
      EXPECT_TRUE(HasEvent(out, "PyTorchJobRestarting"));
      EXPECT_TRUE(HasEvent(out, "ExitedWithCode"));
    } else {
      EXPECT_EQ(ReasonOf(StatusIn(out), "Failed"), "PyTorchJobFailed") << row.policy << row.code;
      EXPECT_TRUE(StatusIn(out).Has("completionTime")) << "also when the exit code was permanent";
      EXPECT_FALSE(HasEvent(out, "PyTorchJobRestarting"));
      EXPECT_TRUE(HasEvent(out, "PyTorchJobFailed"));
    }
  }
}

TEST(JobPass, ExitCodeOfAnotherContainerDoesNotCount) {
  Scene scene(DdpJob("ExitCode"));
  scene.SetPod(1, scene.children.pods[1].SetPath({"status", "phase"},
                                                 "Failed"));  // evicted: no exit code at all
  EXPECT_EQ(RestartsOf(JobPatchIn(scene.Run())).count, 1);
}

// Pod GC calls it Failed before it removes it; no program failed, and no policy forbids to go on.
TEST(JobPass, APodWhoseNodeIsGoneIsLostNotFailed) {
  for (const char* policy : {"Never", "OnFailure"}) {
    Scene scene(DdpJob(policy));
    scene.RunPolicy("{backoffLimit: 0}");
    const json::Value gone = json::Obj(
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByPodGC"}});
    scene.SetPod(1, scene.children.pods[1]
                        .SetPath({"status", "phase"}, "Failed")
                        .SetPath({"status", "conditions"}, json::List({gone})));
    const Reconciled out = scene.Run();
    EXPECT_EQ(RestartsOf(JobPatchIn(out)).epoch, 1) << policy;
    EXPECT_EQ(RestartsOf(JobPatchIn(out)).count, 0) << policy;
  }
}

TEST(JobPass, APodThatIsDeletedWhileItRunsIsLostNotFailed) {
  for (const char* policy : {"Never", "OnFailure", "ExitCode"}) {
    Scene scene(DdpJob(policy));
    scene.RunPolicy("{backoffLimit: 0}");
    scene.Fail(1, 1);
    scene.SetPod(1, scene.children.pods[1].SetPath({"metadata", "deletionTimestamp"},
                                                   "2026-01-02T03:04:05Z"));
    const Reconciled out = scene.Run();
    EXPECT_FALSE(HasCondition(StatusIn(out), "Failed")) << policy;
    EXPECT_EQ(RestartsOf(JobPatchIn(out)).epoch, 1) << "its peers hold a dead collective";
    EXPECT_EQ(RestartsOf(JobPatchIn(out)).count, 0);
  }
  Scene elastic(ElasticJob());
  elastic.RunPolicy("{backoffLimit: 0}");
  elastic.Fail(1, 1);
  elastic.SetPod(1, elastic.children.pods[1].SetPath({"metadata", "deletionTimestamp"},
                                                     "2026-01-02T03:04:05Z"));
  EXPECT_FALSE(HasCondition(StatusIn(elastic.Run()), "Failed"));
  elastic.children.pods.erase(elastic.children.pods.begin() + 1);
  EXPECT_EQ(Lines(elastic.Run(), "create", "pods"), (std::vector<std::string>{"el-worker-1"}));
}

TEST(JobPass, GangRestartsWhole) {
  Scene scene(DdpJob());
  scene.Fail(1, 1);
  scene.Fail(2, 1);  // the peers die with it: one failure
  scene.Apply(JobPatchIn(scene.Run()));
  EXPECT_EQ(RestartsOf(scene.object).count, 1);
  // All pods of the old epoch go, services stay, nothing is made before the last is gone.
  Reconciled out = scene.Run();
  EXPECT_EQ(Lines(out, "delete", "pods"),
            (std::vector<std::string>{"ddp-master-0", "ddp-worker-0", "ddp-worker-1"}));
  EXPECT_TRUE(Lines(out, "delete", "services").empty());
  EXPECT_TRUE(Lines(out, "create").empty());
  EXPECT_EQ(ReasonOf(StatusIn(out), "Restarting"), "PyTorchJobRestarting");
  EXPECT_FALSE(HasCondition(StatusIn(out), "Running"));
  scene.object = scene.object.Set("status", StatusIn(out));
  scene.children.pods = {
      scene.children.pods[0].SetPath({"metadata", "deletionTimestamp"}, "2026-01-02T03:04:05Z")};
  EXPECT_TRUE(scene.Run().writes.empty()) << "one is still terminating";
  scene.children.pods.clear();
  out = scene.Run();
  EXPECT_EQ(Lines(out, "create", "pods").size(), 3u);
  EXPECT_EQ(EpochOf(out.writes.back().body), 1);
  for (int i = 0; i < 3; ++i)
    scene.children.pods.push_back(
        PodOf(scene.object, i == 0 ? "Master" : "Worker", i == 2, "Running", 1));
  out = scene.Run();
  EXPECT_TRUE(HasCondition(StatusIn(out), "Running"));
}

TEST(JobPass, LaterRestartsWait) {
  Scene scene(DdpJob());
  scene.Apply(RestartsPatch(scene.object, {4, 4, kNow, {}}));
  scene.children.pods.clear();
  const Reconciled out = scene.Run(kNow + seconds(1));
  EXPECT_TRUE(Lines(out, "create", "pods").empty());
  EXPECT_EQ(out.look_again_at, kNow + seconds(4));
  EXPECT_EQ(Lines(scene.Run(kNow + seconds(4)), "create", "pods").size(), 3u);
}

TEST(JobPass, AClockThatIsSetBackDoesNotLengthenTheWait) {
  Scene scene(DdpJob());
  scene.Apply(RestartsPatch(scene.object, {4, 4, kNow, {}}));
  scene.children.pods.clear();
  EXPECT_EQ(Lines(scene.Run(kNow - hours(1)), "create", "pods").size(), 3u);
}

TEST(JobPass, BackoffLimitCountsOverRecreations) {
  const struct {
    int64_t limit, before;
    int64_t in_place;  // restarts by the node of a running pod
    bool failure;      // and a new failed pod
    bool fails;
  } rows[] = {{3, 2, 0, true, false},  {3, 3, 0, true, true},   {0, 0, 0, true, true},
              {0, 0, 0, false, false}, {3, 3, 0, false, false}, {3, 0, 2, false, false},
              {3, 0, 3, false, true},  {3, 2, 1, false, true},  {3, 1, 1, true, false},
              {3, 2, 1, true, true}};
  for (const auto& row : rows) {
    Scene scene(DdpJob());
    scene.RunPolicy(fmt::format("{{backoffLimit: {}}}", row.limit).c_str());
    scene.Apply(RestartsPatch(scene.object, {0, row.before, kNow - hours(1), {}}));
    scene.SetPod(
        0, scene.children.pods[0].SetPath(
               {"status", "containerStatuses"},
               json::List({json::Obj({{"name", "pytorch"}, {"restartCount", row.in_place}})})));
    if (row.failure) scene.Fail(1, 1);
    const Reconciled out = scene.Run();
    EXPECT_EQ(HasCondition(StatusIn(out), "Failed"), row.fails)
        << row.limit << " " << row.before << " " << row.in_place << " " << row.failure;
    if (row.fails) {
      EXPECT_TRUE(StatusIn(out).Has("completionTime"));
    } else if (row.failure) {
      EXPECT_EQ(RestartsOf(JobPatchIn(out)).count, row.before + 1 + row.in_place)
          << "those in place are not forgotten";
    }
  }
}

TEST(JobPass, AJobThatLostAllPodsAtOnceRunsNoMore) {
  Scene scene(DdpJob());
  scene.children.pods.clear();
  const Reconciled out = scene.Run();
  EXPECT_EQ(Lines(out, "create", "pods").size(), 3u);
  EXPECT_EQ(ReasonOf(StatusIn(out), "Restarting"), "PyTorchJobRestarting");
  EXPECT_FALSE(HasCondition(StatusIn(out), "Running"));
}

TEST(JobPass, LostPodRestartsTheGangWithoutCounting) {
  Scene gone(DdpJob());
  gone.children.pods.erase(gone.children.pods.begin() + 1);
  const Restarts restarts = RestartsOf(JobPatchIn(gone.Run()));
  EXPECT_EQ(restarts.epoch, 1);
  EXPECT_EQ(restarts.count, 0);
  Scene going(DdpJob());
  going.SetPod(
      2, going.children.pods[2].SetPath({"metadata", "deletionTimestamp"}, "2026-01-02T03:04:05Z"));
  EXPECT_EQ(RestartsOf(JobPatchIn(going.Run())).epoch, 1);
}

TEST(JobPass, AGangThatWasBoundIsRestartedWhenItLosesAMember) {
  Scene scene(DdpJob(), "Pending");
  scene.children.pods.pop_back();
  EXPECT_TRUE(JobPatchIn(scene.Run()).IsNull()) << "the third pod is still to be made";
  scene.SetPod(0, scene.children.pods[0].SetPath({"spec", "nodeName"}, "n1"));
  EXPECT_EQ(RestartsOf(JobPatchIn(scene.Run())).epoch, 1);
  scene.RunPolicy("{schedulingPolicy: {minAvailable: 2}}");
  EXPECT_TRUE(JobPatchIn(scene.Run()).IsNull()) << "two may be bound before the third is made";
}

TEST(JobPass, ScalingAJobWithoutElasticPolicyRestartsItWithItsNewSize) {
  for (const int64_t workers : {1, 3}) {
    Scene scene(DdpJob());
    scene.object =
        scene.object.SetPath({"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, workers);
    scene.Apply(JobPatchIn(scene.Run()));
    EXPECT_EQ(RestartsOf(scene.object).epoch, 1);
    EXPECT_EQ(RestartsOf(scene.object).count, 0);
    const Reconciled out = scene.Run();
    EXPECT_EQ(Lines(out, "delete", "pods").size(), 3u);
    EXPECT_EQ(Lines(out, "delete", "services").size(), workers == 1 ? 1u : 0u);
    EXPECT_EQ(Lines(out, "create", "services").size(), workers == 1 ? 0u : 1u);
    EXPECT_EQ(Lines(out, "patch", "podgroups").size(), 1u);
    scene.children.pods.clear();
    EXPECT_EQ(Lines(scene.Run(), "create", "pods").size(), static_cast<size_t>(workers + 1));
  }
}

TEST(JobPass, ElasticJobsReplaceOnePod) {
  Scene scene(ElasticJob());
  scene.Fail(1, 1);
  scene.Apply(JobPatchIn(scene.Run()));
  EXPECT_EQ(RestartsOf(scene.object).epoch, 0);
  EXPECT_EQ(RestartsOf(scene.object).count, 1);
  Reconciled out = scene.Run();
  EXPECT_EQ(Lines(out, "delete"), (std::vector<std::string>{"el-worker-1"}));
  EXPECT_TRUE(JobPatchIn(out).IsNull()) << "counted once";
  scene.children.pods.erase(scene.children.pods.begin() + 1);
  out = scene.Run();
  EXPECT_EQ(Lines(out, "create", "pods"), (std::vector<std::string>{"el-worker-1"}));
  // Scaling touches only the highest indices.
  scene.object = scene.object.SetPath({"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 2);
  out = scene.Run();
  EXPECT_EQ(Lines(out, "delete"), (std::vector<std::string>{"el-worker-2", "el-worker-2"}));
}

TEST(JobPass, MetricsOfAnElasticJobAreKeptByAnAutoscaler) {
  Scene scene(ElasticJob());
  EXPECT_TRUE(Lines(scene.Run(), "", "horizontalpodautoscalers").empty());
  const char* metrics = "[{type: Resource, resource: {name: cpu}}]";
  scene.object = scene.object.SetPath({"spec", "elasticPolicy", "metrics"}, Yaml(metrics));
  Reconciled out = scene.Run();
  ASSERT_EQ(Lines(out, "create"), (std::vector<std::string>{"el"}));
  EXPECT_EQ(out.writes[0].body["spec"], Yaml(R"(
scaleTargetRef: {apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: el}
minReplicas: 1
maxReplicas: 3
metrics: [{type: Resource, resource: {name: cpu}}])"));
  scene.children.autoscaler = out.writes[0].body;
  EXPECT_TRUE(scene.Run().writes.empty());
  Scene wider = scene;
  wider.object = wider.object.SetPath({"spec", "elasticPolicy", "maxReplicas"}, 5);
  out = wider.Run();
  EXPECT_EQ(Lines(out, "patch"), (std::vector<std::string>{"el"}));
  EXPECT_EQ(out.writes[0].body, Yaml("{spec: {maxReplicas: 5}}"));
  Scene plain = scene;
  plain.object = plain.object.RemovePath({"spec", "elasticPolicy", "metrics"});
  EXPECT_EQ(Lines(plain.Run(), "delete", "horizontalpodautoscalers").size(), 1u);
  Scene suspended = scene;
  suspended.RunPolicy("{suspend: true}");
  EXPECT_EQ(Lines(suspended.Run(), "delete", "horizontalpodautoscalers").size(), 1u);
  Scene ended = scene;
  ended.SetPod(0, ended.children.pods[0].SetPath({"status", "phase"}, "Succeeded"));
  ended.object = ended.object.Set("status", StatusIn(ended.Run()));
  EXPECT_EQ(Lines(ended.Run(), "delete", "horizontalpodautoscalers").size(), 1u);
  // One that a user made under this name stays theirs.
  suspended.children.autoscaler =
      suspended.children.autoscaler.RemovePath({"metadata", "ownerReferences"});
  EXPECT_TRUE(Lines(suspended.Run(), "", "horizontalpodautoscalers").empty());
}

TEST(JobPass, AnElasticJobWhoseEtcdNobodyServesMeetsAtWorkerZero) {
  json::Value object = ElasticJob().SetPath(
      {"spec", "elasticPolicy"},
      Yaml("{minReplicas: 2, maxReplicas: 8, rdzvBackend: etcd, rdzvHost: etcd-service}"));
  JobChildren children;
  children.missing_rendezvous = "d/etcd-service";
  Reconciled out = ReconcileJob(Parsed(object), children, kNow);
  EXPECT_EQ(Lines(out, "create", "services").size(), 3u);
  EXPECT_TRUE(Lines(out, "create", "pods").empty()) << "the Service may come a moment later";
  EXPECT_EQ(out.look_again_at, kNow + kRendezvousGrace);
  object = object.Set("status", StatusIn(out));

  JobChildren served;
  EXPECT_EQ(Lines(ReconcileJob(Parsed(object), served, kNow), "create", "pods").size(), 3u);

  out = ReconcileJob(Parsed(object), children, kNow + kRendezvousGrace);
  EXPECT_TRUE(Lines(out, "create", "pods").empty());
  EXPECT_TRUE(HasEvent(out, "RendezvousReplaced"));
  object = json::ApplyMergePatch(object, JobPatchIn(out));
  const Job job = Parsed(object);
  EXPECT_FALSE(job.elastic->ServiceFor("d").has_value());
  out = ReconcileJob(job, {}, kNow + kRendezvousGrace);
  EXPECT_EQ(Lines(out, "create", "pods").size(), 3u);
  EXPECT_FALSE(HasEvent(out, "RendezvousReplaced"));

  // Whose Service goes while it trains keeps what it has.
  Scene trains(ElasticJob());
  trains.children.missing_rendezvous = "d/etcd-service";
  EXPECT_TRUE(trains.Run(kNow + hours(1)).writes.empty());
}

TEST(JobPass, DeadlineCountsFromTheStart) {
  Scene scene(DdpJob());
  scene.RunPolicy("{activeDeadlineSeconds: 60}");
  EXPECT_EQ(scene.Run(kNow + seconds(59)).look_again_at, kNow + seconds(60));
  const Reconciled out = scene.Run(kNow + seconds(60));
  EXPECT_TRUE(HasCondition(StatusIn(out), "Failed"));
  EXPECT_EQ(StatusIn(out)["completionTime"].AsString(), FormatTime(kNow + seconds(60)));
}

TEST(JobPass, ADeadlineBeyondAllTimesIsNone) {
  for (const char* many : {"9999999999", "99999999999999", "9223372036854775807"}) {
    Scene scene(DdpJob());
    scene.RunPolicy(fmt::format("{{activeDeadlineSeconds: {}}}", many).c_str());
    EXPECT_FALSE(HasCondition(StatusIn(scene.Run(kNow + hours(24))), "Failed")) << many;
  }
}

TEST(JobPass, CleanPodPolicyTable) {
  const struct {
    const char* policy;
    std::vector<std::string> pods;
    size_t services;
  } rows[] = {{"{cleanPodPolicy: All}", {"ddp-master-0", "ddp-worker-0", "ddp-worker-1"}, 3},
              {"{cleanPodPolicy: Running}", {"ddp-worker-0", "ddp-worker-1"}, 2},
              {"{cleanPodPolicy: None}", {}, 0},
              {"{}", {}, 0}};
  for (const auto& row : rows) {
    Scene scene(DdpJob());
    scene.RunPolicy(row.policy);
    scene.SetPod(0, scene.children.pods[0].SetPath({"status", "phase"}, "Succeeded"));
    scene.SetPod(2, scene.children.pods[2].SetPath({"status", "phase"}, "Pending"));
    scene.object = scene.object.Set("status", StatusIn(scene.Run()));
    ASSERT_TRUE(HasCondition(scene.object["status"], "Succeeded"));
    const Reconciled out = scene.Run();
    EXPECT_EQ(Lines(out, "delete", "pods"), row.pods) << row.policy;
    EXPECT_EQ(Lines(out, "delete", "services").size(), row.services) << row.policy;
    EXPECT_EQ(Lines(out, "delete", "podgroups").size(), 1u);
    EXPECT_TRUE(StatusIn(out).IsNull()) << "a finished job's status does not change";
  }
}

TEST(JobPass, TtlDeletesTheJobOnTime) {
  Scene scene(DdpJob("Never"));
  scene.RunPolicy("{ttlSecondsAfterFinished: 100}");
  scene.Fail(0, 1);
  scene.object = scene.object.Set("status", StatusIn(scene.Run()));
  const Reconciled waiting = scene.Run(kNow + seconds(99));
  EXPECT_TRUE(Lines(waiting, "delete", "pytorchjobs").empty());
  EXPECT_EQ(waiting.look_again_at, kNow + seconds(100));
  scene.object = scene.object.SetPath({"metadata", "resourceVersion"}, "41");
  const Reconciled due = scene.Run(kNow + seconds(100));
  EXPECT_EQ(Lines(due, "delete", "pytorchjobs"), (std::vector<std::string>{"ddp"}));
  // Whoever deletes it in the foreground meanwhile is not overruled from an old cache.
  for (const client::Write& write : due.writes) {
    if (write.verb == client::Write::Verb::kDelete && write.target.name == "ddp" &&
        write.target.resource.plural == "pytorchjobs") {
      EXPECT_EQ(write.delete_options.precondition_resource_version, "41");
    }
  }
}

TEST(JobPass, TtlManagesWithoutCompletionTime) {
  Scene scene(DdpJob("Never"));
  scene.RunPolicy("{ttlSecondsAfterFinished: 0}");
  scene.Fail(0, 1);
  scene.object = scene.object.Set("status", StatusIn(scene.Run()).Remove("completionTime"));
  EXPECT_EQ(Lines(scene.Run(), "delete", "pytorchjobs").size(), 1u);
}

TEST(JobPass, SuspendRemovesChildrenAndResumeStartsAgain) {
  Scene scene(DdpJob());
  scene.RunPolicy("{suspend: true}");
  Reconciled out = scene.Run(kNow + seconds(10));
  EXPECT_EQ(Lines(out, "delete", "pods").size(), 3u);
  EXPECT_EQ(Lines(out, "delete", "services").size(), 3u);
  EXPECT_EQ(Lines(out, "delete", "podgroups").size(), 1u);
  EXPECT_EQ(ReasonOf(StatusIn(out), "Suspended"), "PyTorchJobSuspended");
  EXPECT_FALSE(HasCondition(StatusIn(out), "Running"));
  EXPECT_FALSE(StatusIn(out)["replicaStatuses"]["Worker"].Has("active"));
  EXPECT_TRUE(HasEvent(out, "PyTorchJobSuspended"));
  scene.object = scene.object.Set("status", StatusIn(out));
  scene.children = {};
  EXPECT_TRUE(scene.Run(kNow + seconds(11)).writes.empty());
  scene.RunPolicy("{suspend: false}");
  out = scene.Run(kNow + seconds(20));
  EXPECT_EQ(ReasonOf(StatusIn(out), "Suspended"), "PyTorchJobResumed");
  EXPECT_FALSE(HasCondition(StatusIn(out), "Suspended"));
  EXPECT_EQ(StatusIn(out)["startTime"].AsString(), FormatTime(kNow + seconds(20)));
  EXPECT_EQ(Lines(out, "create", "pods").size(), 3u);
  EXPECT_TRUE(RestartsOf(scene.object).count == 0);
}

TEST(JobPass, ForeignObjectsOfOurNamesAreLeftAlone) {
  const Reconciled out =
      ReconcileJob(Parsed(DdpJob()), {{}, {}, {}, {"pods \"ddp-master-0\""}}, kNow);
  EXPECT_EQ(Lines(out, "create", "pods"),
            (std::vector<std::string>{"ddp-worker-0", "ddp-worker-1"}));
  EXPECT_TRUE(HasEvent(out, "FailedCreatePod"));
  Scene scene(DdpJob());
  scene.RunPolicy("{suspend: true}");
  scene.children.pod_group = scene.children.pod_group.RemovePath({"metadata", "ownerReferences"});
  EXPECT_TRUE(Lines(scene.Run(), "delete", "podgroups").empty());
}

TEST(JobPass, RefusedJobFailsAndSaysWhy) {
  const Status why(Reason::kInvalid, "no container");
  const Reconciled out = RefuseJob(kPyTorch, DdpJob(), why, kNow);
  EXPECT_EQ(ReasonOf(StatusIn(out), "Failed"), "PyTorchJobFailed");
  EXPECT_TRUE(HasEvent(out, "PyTorchJobFailed"));
  EXPECT_TRUE(RefuseJob(kPyTorch, DdpJob().Set("status", StatusIn(out)), why, kNow).writes.empty());
}

}  // namespace
}  // namespace muster::training
