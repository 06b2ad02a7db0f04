#include "training/distributed_training.h"

#include <gtest/gtest.h>

#include "json/patch.h"
#include "schema/queued_kinds.h"
#include "training/job.h"
#include "training/test_jobs.h"

namespace muster::training {
namespace {

using client::Reconciled;
using client::Write;

const Time kNow = *ParseTime("2026-01-02T03:04:05Z");

json::Value Training(const char* more = "{}") {
  const json::Value spec = Yaml(more);
  json::Value training = Yaml(R"(
apiVersion: ml.example.com/v1
kind: DistributedTraining
metadata: {name: my-training, namespace: d, uid: u1}
spec: {modelType: transformer, datasetSize: 100GB, gpuType: H100, numWorkers: 8,
       trainingDuration: 24h, gpusPerWorker: 1, checkpointSize: 10Gi, maxRestarts: 3}
)");
  for (const auto& [field, value] : spec.members())
    training = training.SetPath({"spec", field}, value);
  return training;
}

const std::set<std::string> kProducts = {"NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3"};

const Write* Find(const Reconciled& out, Write::Verb verb, std::string_view plural) {
  for (const Write& write : out.writes) {
    if (write.verb == verb && write.target.resource.plural == plural) return &write;
  }
  return nullptr;
}

const json::Value& Template(const json::Value& job, const char* role) {
  return job["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"];
}

std::string EnvOf(const json::Value& pod, std::string_view name) {
  for (const json::Value& env : pod["containers"].At(0)["env"].items()) {
    if (env["name"].AsString() == name) return env["value"].Str();
  }
  return "";
}

json::Value VolumeOf(const json::Value& pod, std::string_view name) {
  for (const json::Value& volume : pod["volumes"].items()) {
    if (volume["name"].AsString() == name) return volume;
  }
  return nullptr;
}

std::string ReasonOf(const json::Value& training, std::string_view type) {
  for (const json::Value& condition : training["status"]["conditions"].items()) {
    if (condition["type"].AsString() == type && condition["status"].AsString() == "True")
      return condition["reason"].Str();
  }
  return "";
}

bool HasEvent(const Reconciled& out, std::string_view reason) {
  return std::ranges::any_of(out.events, [&](const auto& e) { return e.reason == reason; });
}

// A training and its children, to which the writes of each pass are made.
struct Scene {
  explicit Scene(json::Value from) : training(std::move(from)) {}

  Reconciled Run(Time now = kNow) {
    Reconciled out = ReconcileTraining(training, children, now);
    for (const Write& write : out.writes) Apply(write);
    return out;
  }
  void Apply(const Write& write) {
    if (write.target.subresource == "status") {
      training = training.Set("status", write.body["status"]);
      return;
    }
    json::Value& child = write.target.resource.plural == "pytorchjobs"  ? children.job
                         : write.target.resource.plural == "configmaps" ? children.program
                                                                        : children.claim;
    if (write.verb == Write::Verb::kDelete) {
      child = nullptr;
    } else if (write.verb == Write::Verb::kPatchMerge) {
      child = json::ApplyMergePatch(child, write.body);
    } else {
      child = write.body.SetPath({"metadata", "uid"}, "c-" + write.target.name);
    }
  }
  void Job(const char* type, int64_t masters, int64_t workers) {
    children.job = children.job.Set(
        "status",
        Yaml(fmt::format("{{conditions: [{{type: {}, status: 'True', message: because}}],"
                         " replicaStatuses: {{Master: {{active: {}}}, Worker: {{active: {}}}}}}}",
                         type, masters, workers)));
  }

  json::Value training;
  TrainingChildren children{.products = kProducts};
};

TEST(DistributedTraining, BecomesAJobOfItsWorkersWithTheGpusThatItNames) {
  Scene scene(Training());
  const Reconciled out = scene.Run();
  const json::Value& job = scene.children.job;
  EXPECT_EQ(job["metadata"]["ownerReferences"].At(0)["kind"].AsString(), "DistributedTraining");
  const Result<Job> parsed = ParseJob(*schema::FindTrainingKind("PyTorchJob"), job);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->TotalReplicas(), 8);
  EXPECT_EQ(parsed->run_policy.backoff_limit, 3);
  for (const char* role : {"Master", "Worker"}) {
    const json::Value& pod = Template(job, role);
    EXPECT_EQ(pod["containers"].At(0)["resources"]["limits"]["nvidia.com/gpu"].AsInt(), 1);
    const json::Value& terms =
        pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
           ["nodeSelectorTerms"];
    EXPECT_EQ(terms.At(0)["matchExpressions"].At(0)["values"],
              json::Strings({"NVIDIA-H100-80GB-HBM3", "H100"}));
    EXPECT_EQ(EnvOf(pod, "MODEL_TYPE"), "transformer");
    EXPECT_EQ(EnvOf(pod, "DATASET_SIZE_BYTES"), "100000000000");
    EXPECT_EQ(EnvOf(pod, "TRAINING_DURATION_SECONDS"), "86400");
    EXPECT_EQ(EnvOf(pod, "CHECKPOINT_DIR"), "/checkpoints");
    EXPECT_EQ(VolumeOf(pod, "data")["emptyDir"]["sizeLimit"].AsString(), "100G");
  }
  EXPECT_EQ(VolumeOf(Template(job, "Master"), "checkpoints")["persistentVolumeClaim"]["claimName"]
                .AsString(),
            "my-training-checkpoints");
  EXPECT_TRUE(VolumeOf(Template(job, "Worker"), "checkpoints").Has("emptyDir"));
  EXPECT_EQ(scene.children.claim["spec"]["resources"]["requests"]["storage"].AsString(), "10Gi");
  EXPECT_TRUE(scene.children.program["data"]["train.py"].AsString().starts_with("\"\"\"Trains"));
  EXPECT_TRUE(HasEvent(out, "ReferenceProgram"));
  EXPECT_FALSE(HasEvent(out, "GpuTypeNotFound"));
  EXPECT_EQ(ReasonOf(scene.training, "Created"), "DistributedTrainingCreated");
  scene.Run();
  EXPECT_TRUE(scene.Run().writes.empty());
}

constexpr const char* kOwnProgram = R"(
checkpointClaim: mine
gpusPerWorker: 4
template:
  metadata: {labels: {a: b}}
  spec:
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [z1]}]}]
    containers:
      - {name: side, image: s}
      - name: pytorch
        image: i
        env: [{name: MODEL_TYPE, value: own}]
        volumeMounts: [{name: d, mountPath: /data}]
    volumes: [{name: d, emptyDir: {}}]
)";

TEST(DistributedTraining, OwnProgramsAreGivenWhatTheyLack) {
  Scene scene(Training(kOwnProgram));
  EXPECT_FALSE(HasEvent(scene.Run(), "ReferenceProgram"));
  EXPECT_TRUE(scene.children.program.IsNull());
  EXPECT_TRUE(scene.children.claim.IsNull());
  const json::Value& job = scene.children.job;
  EXPECT_EQ(job["spec"]["nprocPerNode"].AsString(), "4");
  const json::Value& worker = Template(job, "Worker");
  EXPECT_EQ(job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"]["labels"]["a"]
                .AsString(),
            "b");
  const json::Value& container = worker["containers"].At(1);
  EXPECT_EQ(container["env"].At(0)["value"].AsString(), "own");
  EXPECT_EQ(container["volumeMounts"].At(0)["name"].AsString(), "d");
  EXPECT_EQ(container["volumeMounts"].size(), 2u);
  EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"].AsInt(), 4);
  EXPECT_FALSE(worker["containers"].At(0).Has("resources"));
  EXPECT_EQ(VolumeOf(worker, "checkpoints")["persistentVolumeClaim"]["claimName"].AsString(),
            "mine");
  const json::Value& rules =
      worker["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            ["nodeSelectorTerms"]
                .At(0)["matchExpressions"];
  EXPECT_EQ(rules.size(), 2u);
}

TEST(DistributedTraining, SaysWhichGpusThereAreAndFollowsNewOnesUntilItRuns) {
  Scene scene(Training("{gpuType: B200}"));
  EXPECT_TRUE(HasEvent(scene.Run(), "GpuTypeNotFound"));
  scene.Job("Created", 0, 0);
  scene.Run();
  EXPECT_TRUE(scene.Run().writes.empty());
  scene.children.products.insert("NVIDIA-B200");
  const Reconciled out = scene.Run();
  EXPECT_NE(Find(out, Write::Verb::kDelete, "pytorchjobs"), nullptr);
  EXPECT_FALSE(HasEvent(scene.Run(), "GpuTypeNotFound"));
  scene.Job("Running", 1, 7);
  scene.Run();
  scene.children.products.insert("NVIDIA-B200-NVL");
  EXPECT_TRUE(scene.Run().writes.empty());
}

TEST(DistributedTraining, RunsWhenAllWorkersDoAndEndsAsItsJob) {
  Scene scene(Training());
  scene.Run();
  scene.Job("Running", 1, 6);
  scene.Run();
  EXPECT_EQ(ReasonOf(scene.training, "Running"), "");
  EXPECT_FALSE(scene.training["status"].Has("startTime"));
  scene.Job("Running", 1, 7);
  scene.Run();
  EXPECT_EQ(ReasonOf(scene.training, "Running"), "DistributedTrainingRunning");
  EXPECT_EQ(scene.training["status"]["activeWorkers"].AsInt(), 8);
  EXPECT_EQ(scene.training["status"]["startTime"].AsString(), "2026-01-02T03:04:05Z");
  scene.Job("Restarting", 0, 0);
  scene.Run();
  EXPECT_EQ(ReasonOf(scene.training, "Restarting"), "DistributedTrainingRestarting");
  Scene failed = scene;
  failed.Job("Failed", 0, 0);
  failed.Run();
  EXPECT_EQ(ReasonOf(failed.training, "Failed"), "DistributedTrainingFailed");
  scene.Job("Succeeded", 0, 0);
  EXPECT_TRUE(HasEvent(scene.Run(), "DistributedTrainingSucceeded"));
  EXPECT_EQ(ReasonOf(scene.training, "Succeeded"), "DistributedTrainingSucceeded");
  EXPECT_TRUE(scene.training["status"].Has("completionTime"));
  EXPECT_TRUE(scene.Run().writes.empty());
}

TEST(DistributedTraining, ItsDurationEndsItAndStopsTheJob) {
  Scene scene(Training());
  scene.Run();
  scene.Job("Running", 1, 7);
  EXPECT_EQ(scene.Run().look_again_at, kNow + std::chrono::hours(24));
  scene.Run(kNow + std::chrono::hours(23));
  EXPECT_EQ(ReasonOf(scene.training, "Succeeded"), "");
  scene.Run(kNow + std::chrono::hours(24));
  EXPECT_EQ(ReasonOf(scene.training, "Succeeded"), "DistributedTrainingDurationReached");
  EXPECT_TRUE(scene.children.job["spec"]["runPolicy"]["suspend"].AsBool());
  EXPECT_TRUE(scene.Run(kNow + std::chrono::hours(25)).writes.empty());
}

TEST(DistributedTraining, WorkersAreAddedAndTakenAway) {
  Scene scene(Training());
  scene.Run();
  for (const int64_t workers : {4, 1, 2}) {
    scene.training = scene.training.SetPath({"spec", "numWorkers"}, workers);
    scene.Run();
    EXPECT_EQ(scene.children.job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"].AsInt(),
              workers - 1);
  }
}

TEST(DistributedTraining, SuspendedItsJobIsSuspendedAndTheClockStartsAnew) {
  Scene scene(Training());
  scene.Run();
  scene.Job("Running", 1, 7);
  scene.Run();
  scene.training = scene.training.SetPath({"spec", "suspend"}, true);
  scene.Run();
  EXPECT_TRUE(scene.children.job["spec"]["runPolicy"]["suspend"].AsBool());
  EXPECT_EQ(ReasonOf(scene.training, "Suspended"), "DistributedTrainingSuspended");
  EXPECT_FALSE(scene.training["status"].Has("startTime"));
  scene.training = scene.training.SetPath({"spec", "suspend"}, false);
  scene.Job("Suspended", 0, 0);
  scene.Run();
  EXPECT_FALSE(scene.children.job["spec"]["runPolicy"]["suspend"].AsBool());
  scene.Job("Running", 1, 7);
  scene.Run(kNow + minutes(5));
  EXPECT_EQ(ReasonOf(scene.training, "Suspended"), "");
  EXPECT_EQ(scene.training["status"]["startTime"].AsString(), "2026-01-02T03:09:05Z");
}

TEST(DistributedTraining, InAQueueItsJobIsTheQueuesToStart) {
  json::Value training = Training();
  training = training.SetPath({"metadata", "labels"},
                              json::Obj({{std::string(schema::kQueueNameLabel), "team"}}));
  Scene scene(training);
  scene.Run();
  EXPECT_EQ(scene.children.job["metadata"]["labels"][schema::kQueueNameLabel].AsString(), "team");
  EXPECT_TRUE(scene.children.job["spec"]["runPolicy"]["suspend"].AsBool());
  scene.Job("Suspended", 0, 0);
  scene.Run();
  EXPECT_TRUE(scene.children.job["spec"]["runPolicy"]["suspend"].AsBool()) << "not ours to change";
  scene.training = scene.training.SetPath({"spec", "suspend"}, true);
  scene.Run();
  EXPECT_TRUE(scene.children.job.IsNull()) << "it leaves the queue";
  scene.training = scene.training.SetPath({"spec", "suspend"}, false);
  scene.Run();
  EXPECT_FALSE(scene.children.job.IsNull());
}

TEST(DistributedTraining, LeavesAJobOfItsNameThatIsNotItsAlone) {
  Scene scene(Training());
  scene.children.job = Yaml("{metadata: {name: my-training, uid: x}, spec: {}}");
  const Reconciled out = scene.Run();
  EXPECT_TRUE(HasEvent(out, "FailedCreatePyTorchJob"));
  EXPECT_EQ(Find(out, Write::Verb::kPatchMerge, "pytorchjobs"), nullptr);
  EXPECT_EQ(Find(out, Write::Verb::kCreate, "pytorchjobs"), nullptr);
}

}  // namespace
}  // namespace muster::training
