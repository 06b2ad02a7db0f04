#include "training/job.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::training {
namespace {

RestartPolicy RestartPolicyOf(std::string_view text) {
  if (text == "Always") return RestartPolicy::kAlways;
  if (text == "Never") return RestartPolicy::kNever;
  if (text == "ExitCode") return RestartPolicy::kExitCode;
  return RestartPolicy::kOnFailure;
}

CleanPodPolicy CleanPodPolicyOf(std::string_view text) {
  if (text == "All") return CleanPodPolicy::kAll;
  if (text == "Running") return CleanPodPolicy::kRunning;
  return CleanPodPolicy::kNone;
}

RunPolicy RunPolicyOf(const json::Value& from) {
  RunPolicy policy;
  policy.clean_pod_policy = CleanPodPolicyOf(from["cleanPodPolicy"].AsString());
  policy.ttl_seconds_after_finished = from["ttlSecondsAfterFinished"].Int();
  policy.active_deadline_seconds = from["activeDeadlineSeconds"].Int();
  policy.backoff_limit = from["backoffLimit"].Int();
  policy.suspend = from["suspend"].AsBool();
  policy.managed_by = from["managedBy"].Str();
  policy.scheduling_policy = from["schedulingPolicy"];
  return policy;
}

const json::Value& DefaultContainer(const json::Value& pod_template) {
  static const json::Value kNone;
  for (const json::Value& container : pod_template["spec"]["containers"].items()) {
    if (container["name"].AsString() == kContainerName) return container;
  }
  return kNone;
}

ElasticPolicy ElasticPolicyOf(const json::Value& from, int64_t workers) {
  ElasticPolicy policy;
  const std::optional<int64_t> low = from["minReplicas"].Int();
  const std::optional<int64_t> high = from["maxReplicas"].Int();
  policy.min_replicas = low.value_or(high.value_or(workers));
  policy.max_replicas = high.value_or(policy.min_replicas);
  policy.backend = from["rdzvBackend"].Str(std::string(kC10d));
  policy.port = from["rdzvPort"].Int();
  policy.host = from["rdzvHost"].Str();
  if (from["rdzvId"].IsString()) policy.id = from["rdzvId"].Str();
  for (const json::Value& entry : from["rdzvConf"].items()) {
    policy.conf.emplace_back(entry["key"].Str(), entry["value"].Str());
  }
  policy.standalone = from["standalone"].AsBool();
  policy.max_restarts = from["maxRestarts"].Int();
  if (!from["metrics"].empty()) policy.metrics = from["metrics"];
  return policy;
}

// Among the workers themselves, whatever was asked for.
void MeetAtWorkerZero(ElasticPolicy& policy) {
  policy.backend = kC10d;
  policy.host.clear();
  policy.port.reset();
}

Result<Replica> ReplicaOf(const std::string& job, std::string_view key, const json::Value& from) {
  Replica replica;
  for (const std::string_view type : {kMaster, kWorker}) {
    if (EqualsIgnoreCase(key, type)) replica.type = type;
  }
  if (replica.type.empty()) {
    return Error(Reason::kInvalid,
                 "PyTorchJob {:?}: spec.pytorchReplicaSpecs has the type {:?}; the types are "
                 "Master and Worker",
                 job, key);
  }
  replica.count = from["replicas"].AsInt(1);
  if (replica.count < 0 || replica.count > kMaxReplicas) {
    return Error(Reason::kInvalid,
                 "PyTorchJob {:?}: {}.replicas is {}; it must be between 0 and {}", job,
                 replica.type, replica.count, kMaxReplicas);
  }
  if (replica.type == kMaster && replica.count != 1) {
    return Error(Reason::kInvalid,
                 "PyTorchJob {:?}: Master.replicas is {}; there is exactly one master", job,
                 replica.count);
  }
  replica.restart_policy = RestartPolicyOf(from["restartPolicy"].AsString());
  replica.pod_template = from["template"];
  if (DefaultContainer(replica.pod_template).IsNull()) {
    return Error(Reason::kInvalid,
                 "PyTorchJob {:?}: {}.template has no container named {:?}; name the container "
                 "that trains so",
                 job, replica.type, kContainerName);
  }
  return replica;
}

}  // namespace

std::string Replica::LowerType() const { return ToLower(type); }

std::optional<std::pair<std::string, std::string>> ElasticPolicy::ServiceFor(
    std::string_view ns) const {
  if (!backend.starts_with("etcd")) return std::nullopt;
  const std::vector<std::string_view> parts = SplitNonEmpty(host, '.');
  if (parts.size() == 1) return std::pair(std::string(ns), host);
  if (parts.size() < 3 || parts[2] != "svc") return std::nullopt;
  return std::pair(std::string(parts[1]), std::string(parts[0]));
}

const Replica* Job::Find(std::string_view type) const {
  const auto found = std::find_if(replicas.begin(), replicas.end(),
                                  [type](const Replica& replica) { return replica.type == type; });
  return found == replicas.end() ? nullptr : &*found;
}

int64_t Job::MinReplicas() const {
  const Replica* workers = Find(kWorker);
  if (!elastic.has_value() || workers == nullptr) return TotalReplicas();
  return TotalReplicas() - workers->count +
         std::clamp<int64_t>(elastic->min_replicas, 0, workers->count);
}

int64_t Job::TotalReplicas() const {
  int64_t total = 0;
  for (const Replica& replica : replicas) total += replica.count;
  return total;
}

int64_t Job::NprocPerNode() const { return ParseInt(nproc_per_node).value_or(1); }

int64_t Job::PortOf(const Replica& replica) const {
  for (const json::Value& port : DefaultContainer(replica.pod_template)["ports"].items()) {
    if (port["name"].AsString() == kPortName) return port["containerPort"].AsInt(kDefaultPort);
  }
  return kDefaultPort;
}

bool IsManagedElsewhere(const json::Value& object) {
  const std::string_view manager = object["spec"]["runPolicy"]["managedBy"].AsString();
  return !manager.empty() && manager != kManagedByUs;
}

Result<Job> ParseJob(const json::Value& object) {
  Job job;
  job.object = object;
  job.ns = object["metadata"]["namespace"].Str();
  job.name = object["metadata"]["name"].Str();
  job.uid = object["metadata"]["uid"].Str();
  const json::Value& spec = object["spec"];
  for (const json::Member& member : spec["pytorchReplicaSpecs"].members()) {
    ASSIGN_OR_RETURN(Replica replica, ReplicaOf(job.name, member.first, member.second));
    if (job.Find(replica.type) != nullptr) {
      return Error(Reason::kInvalid, "PyTorchJob {:?}: spec.pytorchReplicaSpecs names {} twice",
                   job.name, replica.type);
    }
    job.replicas.push_back(std::move(replica));
  }
  if (job.replicas.empty()) {
    return Error(Reason::kInvalid,
                 "PyTorchJob {:?}: spec.pytorchReplicaSpecs is empty; give it a Master or Workers",
                 job.name);
  }
  std::sort(job.replicas.begin(), job.replicas.end(), [](const Replica& a, const Replica& b) {
    return a.type < b.type;
  });  // "Master" < "Worker"
  job.run_policy = RunPolicyOf(spec["runPolicy"]);
  job.nproc_per_node = spec["nprocPerNode"].Str("auto");
  if (const json::Value& elastic = spec["elasticPolicy"]; elastic.IsObject()) {
    const Replica* workers = job.Find(kWorker);
    job.elastic = ElasticPolicyOf(elastic, workers == nullptr ? 0 : workers->count);
    if (const std::optional<int64_t> nproc = elastic["nProcPerNode"].Int()) {
      job.nproc_per_node = std::to_string(*nproc);
    }
    const json::Value& annotations = object["metadata"]["annotations"];
    if (annotations[kRendezvousAnnotation].AsString() == kC10d) MeetAtWorkerZero(*job.elastic);
  }
  return job;
}

std::string ReplicaName(std::string_view job, std::string_view lower_type, int64_t index) {
  return fmt::format("{}-{}-{}", job, lower_type, index);
}

}  // namespace muster::training
