#include "training/distributed_training.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/go_duration.h"
#include "base/strings.h"
#include "cluster/quantity.h"
#include "schema/distributed_training.h"
#include "schema/queued_kinds.h"
#include "training/reference_program.h"
#include "training/status.h"

namespace muster::training {
namespace {

using client::EventType;
using client::Reconciled;
using client::Target;
namespace resources = client::resources;

constexpr std::string_view kKind = schema::kDistributedTraining;
constexpr std::string_view kContainer = "pytorch";
constexpr std::string_view kImage = "pytorch/pytorch:latest";
constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
constexpr std::string_view kGpuResource = "nvidia.com/gpu";
constexpr std::string_view kDataFolder = "/data";
constexpr std::string_view kCheckpointFolder = "/checkpoints";
constexpr std::string_view kProgramFolder = "/opt/training";

std::string_view NameOf(const json::Value& object) { return object["metadata"]["name"].AsString(); }
std::string_view UidOf(const json::Value& object) { return object["metadata"]["uid"].AsString(); }

std::string ProgramName(const json::Value& training) {
  return fmt::format("{}-program", NameOf(training));
}

std::string ClaimName(const json::Value& training) {
  const std::string named = training["spec"]["checkpointClaim"].Str();
  return named.empty() ? fmt::format("{}-checkpoints", NameOf(training)) : named;
}

bool BringsClaim(const json::Value& training) {
  return !training["spec"]["checkpointClaim"].AsString().empty();
}

int64_t WorkersOf(const json::Value& training) { return training["spec"]["numWorkers"].AsInt(1); }

json::Value ChildMetadata(const json::Value& training, std::string_view name) {
  return json::Obj({{"name", name},
                    {"namespace", training["metadata"]["namespace"]},
                    {"ownerReferences", json::List({json::Obj({{"apiVersion", "ml.example.com/v1"},
                                                               {"kind", kKind},
                                                               {"name", NameOf(training)},
                                                               {"uid", UidOf(training)},
                                                               {"controller", true},
                                                               {"blockOwnerDeletion", true}})})}});
}

// ---- the pod of a worker ----

// `entries` with those of `more` whose `key` is not there yet.
json::Value WithMissing(json::Value entries, const char* key, std::vector<json::Value> more) {
  if (entries.IsNull()) entries = json::Value(json::Array());
  for (json::Value& entry : more) {
    const bool present = std::ranges::any_of(
        entries.items(),
        [&](const json::Value& present_entry) { return present_entry[key] == entry[key]; });
    if (!present) entries = entries.Append(std::move(entry));
  }
  return entries;
}

json::Value Env(std::string_view name, std::string value) {
  return json::Obj({{"name", name}, {"value", std::move(value)}});
}

json::Value Mount(std::string_view volume, std::string_view path) {
  return json::Obj({{"name", volume}, {"mountPath", path}});
}

std::vector<json::Value> EnvFor(const json::Value& spec) {
  std::vector<json::Value> env;
  env.push_back(Env("MODEL_TYPE", spec["modelType"].Str()));
  env.push_back(Env("DATA_DIR", std::string(kDataFolder)));
  env.push_back(Env("CHECKPOINT_DIR", std::string(kCheckpointFolder)));
  const auto size =
      cluster::Quantity::Parse(schema::SizeAsQuantity(spec["datasetSize"].AsString()));
  if (size) env.push_back(Env("DATASET_SIZE_BYTES", std::to_string(size->Units())));
  if (const auto duration = ParseGoDuration(spec["trainingDuration"].AsString())) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*duration).count();
    env.push_back(Env("TRAINING_DURATION_SECONDS", std::to_string(whole)));
  }
  return env;
}

json::Value ReferenceTemplate(int64_t gpus) {
  const std::string program = fmt::format("{}/train.py", kProgramFolder);
  // One process for each GPU of a pod needs torchrun.
  const std::vector<std::string> command =
      gpus > 1 ? std::vector<std::string>{"python", "-m", "torch.distributed.run", program}
               : std::vector<std::string>{"python", program};
  return json::Obj(
      {{"spec",
        json::Obj({{"containers",
                    json::List({json::Obj(
                        {{"name", kContainer},
                         {"image", kImage},
                         {"command", json::Strings(command)},
                         // A share of a busy machine; it fits on a small one eight times.
                         {"resources", json::Obj({{"requests", json::Obj({{"cpu", "100m"}})}})},
                         {"volumeMounts", json::List({Mount("program", kProgramFolder)})}})})}})}});
}

json::Value Volume(std::string_view name, const char* source, json::Value what) {
  return json::Obj({{"name", name}, {source, std::move(what)}});
}

// Every worker has both folders; what worker 0 keeps outlives its pod.
std::vector<json::Value> VolumesFor(const json::Value& training, bool writes_checkpoints) {
  const json::Value& spec = training["spec"];
  const std::string size = schema::SizeAsQuantity(spec["datasetSize"].AsString());
  std::vector<json::Value> volumes;
  const json::Value limit = size.empty() ? json::Obj({}) : json::Obj({{"sizeLimit", size}});
  volumes.push_back(Volume("data", "emptyDir", limit));
  if (writes_checkpoints || BringsClaim(training)) {
    volumes.push_back(Volume("checkpoints", "persistentVolumeClaim",
                             json::Obj({{"claimName", ClaimName(training)}})));
  } else {
    volumes.push_back(Volume("checkpoints", "emptyDir", json::Obj({})));
  }
  if (!spec.Has("template")) {
    volumes.push_back(Volume("program", "configMap", json::Obj({{"name", ProgramName(training)}})));
  }
  return volumes;
}

// Nodes whose GPUs are of the type: those labels that there are now, and the type itself, with
// which others may label theirs.
json::Value WithGpuType(const json::Value& pod, const std::string& type,
                        const std::set<std::string>& products) {
  std::vector<std::string> values;
  for (const std::string& product : products) {
    if (schema::IsGpuType(product, type)) values.push_back(product);
  }
  if (std::ranges::find(values, type) == values.end()) values.push_back(type);
  const json::Value rule =
      json::Obj({{"key", kProductLabel}, {"operator", "In"}, {"values", json::Strings(values)}});
  const std::vector<std::string> path = {"affinity", "nodeAffinity",
                                         "requiredDuringSchedulingIgnoredDuringExecution",
                                         "nodeSelectorTerms"};
  const json::Value& present = pod[path[0]][path[1]][path[2]][path[3]];
  json::Array terms;
  for (const json::Value& term : present.items())
    terms.push_back(term.Set("matchExpressions", term["matchExpressions"].Append(rule)));
  if (terms.empty()) terms.push_back(json::Obj({{"matchExpressions", json::List({rule})}}));
  return pod.SetPath({path[0], path[1], path[2], path[3]}, json::Value(std::move(terms)));
}

json::Value TrainingContainer(const json::Value& training, json::Value container) {
  const json::Value& spec = training["spec"];
  container = container.Set("env", WithMissing(container["env"], "name", EnvFor(spec)));
  container = container.Set("volumeMounts", WithMissing(container["volumeMounts"], "mountPath",
                                                        {Mount("data", kDataFolder),
                                                         Mount("checkpoints", kCheckpointFolder)}));
  const int64_t gpus = spec["gpusPerWorker"].AsInt(1);
  if (gpus == 0 || container["resources"]["limits"].Has(kGpuResource)) return container;
  return container.SetPath({"resources", "limits", std::string(kGpuResource)}, gpus);
}

json::Value TemplateFor(const json::Value& training, const std::set<std::string>& products,
                        bool writes_checkpoints) {
  const json::Value& spec = training["spec"];
  const json::Value pod_template =
      spec.Has("template") ? spec["template"] : ReferenceTemplate(spec["gpusPerWorker"].AsInt(1));
  json::Value pod = pod_template["spec"];
  json::Array containers;
  for (const json::Value& container : pod["containers"].items()) {
    containers.push_back(container["name"].AsString() == kContainer
                             ? TrainingContainer(training, container)
                             : container);
  }
  pod = pod.Set("containers", json::Value(std::move(containers)));
  pod = pod.Set("volumes",
                WithMissing(pod["volumes"], "name", VolumesFor(training, writes_checkpoints)));
  if (const std::string type = spec["gpuType"].Str(); !type.empty())
    pod = WithGpuType(pod, type, products);
  return pod_template.Set("spec", pod);
}

json::Value ReplicaFor(const json::Value& training, const std::set<std::string>& products,
                       bool first, int64_t count) {
  return json::Obj({{"replicas", count},
                    {"restartPolicy", "OnFailure"},
                    {"template", TemplateFor(training, products, first)}});
}

// ---- the pass ----

bool IsQueued(const json::Value& training) {
  return !training["metadata"]["labels"][schema::kQueueNameLabel].AsString().empty();
}

// The terms by which nodes are chosen, of a job's first worker.
const json::Value& GpuRuleOf(const json::Value& job) {
  return job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["affinity"]
            ["nodeAffinity"];
}

class TrainingPass {
 public:
  TrainingPass(const json::Value& training, const TrainingChildren& children, Time now)
      : training_(training), children_(children), now_(now), status_(training["status"]) {}

  Reconciled Run() {
    out_.subject = training_;
    if (!IsFinished(status_)) Proceed();
    if (IsFinished(status_)) StopJob();
    WriteStatus();
    return std::move(out_);
  }

 private:
  Target TargetOf(const client::Resource& resource, std::string name) const {
    return {resource, training_["metadata"]["namespace"].Str(), std::move(name), ""};
  }
  Target JobTarget() const { return TargetOf(resources::kPyTorchJobs, std::string(Name())); }
  std::string_view Name() const { return NameOf(training_); }
  bool IsOurs(const json::Value& child) const {
    return client::ControllerOf(child)["uid"].AsString() == UidOf(training_);
  }

  void SetCondition(std::string_view type, std::string message, std::string_view reason = "") {
    status_ = WithCondition(status_,
                            {type, true, fmt::format("{}{}", kKind, reason.empty() ? type : reason),
                             std::move(message)},
                            now_);
  }

  void Proceed() {
    if (status_["conditions"].empty())
      SetCondition(kCreated, fmt::format("{} {} is created.", kKind, Name()));
    status_ = status_.Set("checkpoints",
                          fmt::format("claim {}, at {}", ClaimName(training_), kCheckpointFolder));
    MakeClaim();
    MakeProgram();
    if (!children_.job.IsNull() && !IsOurs(children_.job)) return RefuseName();
    if (training_["spec"]["suspend"].AsBool()) return Suspend();
    if (children_.job.IsNull()) return MakeMissingJob();
    if (children_.job["metadata"].Has("deletionTimestamp")) return;
    ReadJob();
    if (!IsFinished(status_)) FollowSpec();
    if (!IsFinished(status_)) KeepToDuration();
  }

  void RefuseName() {
    const std::string message = fmt::format(
        "pytorchjobs \"{}\" exists already and does not belong to {} {}; delete it or choose "
        "another name",
        Name(), kKind, Name());
    out_.Event(training_, EventType::kWarning, "FailedCreatePyTorchJob", message);
  }

  void MakeClaim() {
    if (BringsClaim(training_) || !children_.claim.IsNull()) return;
    const std::string size =
        schema::SizeAsQuantity(training_["spec"]["checkpointSize"].AsString("10Gi"));
    const json::Value claim = json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "PersistentVolumeClaim"},
         {"metadata", ChildMetadata(training_, ClaimName(training_))},
         {"spec",
          json::Obj({{"accessModes", json::Strings({"ReadWriteOnce"})},
                     {"resources", json::Obj({{"requests", json::Obj({{"storage", size}})}})}})}});
    out_.Create(TargetOf(resources::kPersistentVolumeClaims, ClaimName(training_)), claim);
  }

  void MakeProgram() {
    if (training_["spec"].Has("template") || !children_.program.IsNull()) return;
    const json::Value program =
        json::Obj({{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", ChildMetadata(training_, ProgramName(training_))},
                   {"data", json::Obj({{"train.py", kReferenceProgram}})}});
    out_.Create(TargetOf(resources::kConfigMaps, ProgramName(training_)), program);
    out_.Event(training_, EventType::kNormal, "ReferenceProgram",
               "no template is given: a small reference model learns made-up data; put your "
               "program into spec.template");
  }

  void MakeMissingJob() {
    out_.Create(JobTarget(), MakeJob(training_, children_.products));
    out_.Event(training_, EventType::kNormal, "SuccessfulCreatePyTorchJob",
               fmt::format("Created PyTorchJob: {}", Name()));
    TellOfMissingType();
  }

  void TellOfMissingType() {
    const std::string type = training_["spec"]["gpuType"].Str();
    if (type.empty() || std::ranges::any_of(children_.products, [&](const std::string& product) {
          return schema::IsGpuType(product, type);
        }))
      return;
    const std::vector<std::string> products(children_.products.begin(), children_.products.end());
    out_.Event(training_, EventType::kWarning, "GpuTypeNotFound",
               fmt::format("no node has GPUs of the type {} ({} says {}): the workers wait for one",
                           type, kProductLabel,
                           products.empty() ? "nothing on any node" : Join(products, ", ")));
  }

  // What became of the job is what became of the training.
  void ReadJob() {
    const json::Value& job = children_.job["status"];
    int64_t active = 0;
    for (const char* role : {"Master", "Worker"})
      active += job["replicaStatuses"][role]["active"].AsInt();
    status_ = status_.Set("activeWorkers", active)
                  .Set("selector", fmt::format("{}={}", kJobNameLabel, Name()));
    for (std::string_view type : {kSucceeded, kFailed}) {
      if (HasCondition(job, type)) return Finish(type, type);
    }
    if (HasCondition(job, kSuspended)) {
      if (!HasCondition(status_, kSuspended)) SetSuspended();
      return;
    }
    if (HasCondition(status_, kSuspended)) Resume();
    if (HasCondition(job, kRestarting)) {
      SetCondition(kRestarting, fmt::format("{} {} is restarting.", kKind, Name()));
    } else if (active >= WorkersOf(training_)) {
      if (!status_.Has("startTime")) status_ = status_.Set("startTime", FormatTime(now_));
      SetCondition(kRunning, fmt::format("{} {} is running: {} workers.", kKind, Name(), active));
    }
  }

  void Finish(std::string_view type, std::string_view reason) {
    std::string message = fmt::format("{} {} is successfully completed.", kKind, Name());
    for (const json::Value& condition : children_.job["status"]["conditions"].items()) {
      if (type == kFailed && condition["type"].AsString() == kFailed)
        message = condition["message"].Str();
    }
    FinishWith(type, reason, std::move(message));
  }

  void FinishWith(std::string_view type, std::string_view reason, std::string message) {
    out_.Event(training_, type == kFailed ? EventType::kWarning : EventType::kNormal,
               fmt::format("{}{}", kKind, reason), message);
    status_ = status_.Set("completionTime", FormatTime(now_)).Set("activeWorkers", int64_t{0});
    SetCondition(type, std::move(message), reason);
  }

  void SetSuspended() {
    status_ = status_.Remove("startTime");
    SetCondition(kSuspended, fmt::format("{} {} is suspended.", kKind, Name()));
  }

  void Resume() {
    status_ = WithCondition(status_,
                            {kSuspended, false, fmt::format("{}Resumed", kKind),
                             fmt::format("{} {} is resumed.", kKind, Name())},
                            now_);
  }

  // One in a queue is the queue's to suspend and resume, so it leaves the queue.
  void Suspend() {
    if (!HasCondition(status_, kSuspended)) SetSuspended();
    status_ = status_.Set("activeWorkers", int64_t{0});
    if (children_.job.IsNull()) return;
    if (IsQueued(training_)) return DeleteJob();
    SuspendJob(true);
  }

  void SuspendJob(bool suspend) {
    if (children_.job["spec"]["runPolicy"]["suspend"].AsBool() == suspend) return;
    out_.PatchMerge(
        JobTarget(),
        json::Obj({{"metadata", json::Obj({{"uid", children_.job["metadata"]["uid"]}})},
                   {"spec", json::Obj({{"runPolicy", json::Obj({{"suspend", suspend}})}})}}));
  }

  void DeleteJob() {
    if (children_.job["metadata"].Has("deletionTimestamp")) return;
    client::DeleteOptions options;
    options.precondition_uid = std::string(UidOf(children_.job));
    options.propagation_policy = "Foreground";  // its pods are gone before the next one is made
    out_.Delete(JobTarget(), std::move(options));
  }

  // More or fewer workers; on, after a suspension; other nodes, where none of the type were there.
  void FollowSpec() {
    if (!IsQueued(training_)) SuspendJob(false);
    const int64_t others = WorkersOf(training_) - 1;
    const json::Value& present = children_.job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"];
    if (present.AsInt() != others) {
      const json::Value roles = json::Obj({{"Worker", json::Obj({{"replicas", others}})}});
      out_.PatchMerge(
          JobTarget(),
          json::Obj({{"metadata", json::Obj({{"uid", children_.job["metadata"]["uid"]}})},
                     {"spec", json::Obj({{"pytorchReplicaSpecs", roles}})}}));
    }
    const bool began = status_.Has("startTime") || status_["activeWorkers"].AsInt() > 0 ||
                       HasCondition(children_.job["status"], kRunning);
    const json::Value wanted = MakeJob(training_, children_.products);
    if (!began && GpuRuleOf(wanted) != GpuRuleOf(children_.job)) DeleteJob();
  }

  void KeepToDuration() {
    const auto duration = ParseGoDuration(training_["spec"]["trainingDuration"].AsString());
    const std::optional<Time> start = ParseTime(status_["startTime"].AsString());
    if (!duration || !start) return;
    const Time due = *start + *duration;
    if (now_ < due) return out_.LookAgainAt(due);
    FinishWith(kSucceeded, "DurationReached",
               fmt::format("{} {} has trained for {} (spec.trainingDuration) and is stopped; what "
                           "it kept is on claim {}.",
                           kKind, Name(), training_["spec"]["trainingDuration"].AsString(),
                           ClaimName(training_)));
  }

  // Pods that run on after the end give their GPUs back.
  void StopJob() {
    if (children_.job.IsNull() || !IsOurs(children_.job) || IsFinished(children_.job["status"]))
      return;
    if (IsQueued(training_)) return DeleteJob();
    SuspendJob(true);
  }

  void WriteStatus() {
    if (status_ == training_["status"]) return;
    Target target = TargetOf(kDistributedTrainings, std::string(Name()));
    target.subresource = "status";
    out_.writes.insert(
        out_.writes.begin(),
        {client::Write::Verb::kUpdate, target, training_.Set("status", status_), {}});
  }

  const json::Value& training_;
  const TrainingChildren& children_;
  const Time now_;
  json::Value status_;
  Reconciled out_;
};

}  // namespace

json::Value MakeJob(const json::Value& training, const std::set<std::string>& products) {
  const json::Value& spec = training["spec"];
  json::Value metadata = ChildMetadata(training, NameOf(training));
  json::Value labels;
  for (std::string_view label : {schema::kQueueNameLabel, schema::kQueuePriorityLabel}) {
    const json::Value& value = training["metadata"]["labels"][label];
    if (value.IsString()) labels = labels.Set(label, value);
  }
  if (!labels.IsNull()) metadata = metadata.Set("labels", labels);
  const int64_t gpus = spec["gpusPerWorker"].AsInt(1);
  const json::Value policy = json::Obj({{"cleanPodPolicy", "Running"},
                                        {"backoffLimit", spec["maxRestarts"].AsInt(3)},
                                        {"suspend", IsQueued(training)}});
  return json::Obj(
      {{"apiVersion", kApiVersion},
       {"kind", "PyTorchJob"},
       {"metadata", metadata},
       {"spec", json::Obj({{"nprocPerNode", gpus > 1 ? std::to_string(gpus) : "auto"},
                           {"runPolicy", policy},
                           {"pytorchReplicaSpecs",
                            json::Obj({{"Master", ReplicaFor(training, products, true, 1)},
                                       {"Worker", ReplicaFor(training, products, false,
                                                             WorkersOf(training) - 1)}})}})}});
}

Reconciled ReconcileTraining(const json::Value& training, const TrainingChildren& children,
                             Time now) {
  return TrainingPass(training, children, now).Run();
}

}  // namespace muster::training
