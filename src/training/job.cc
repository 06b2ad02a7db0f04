#include "training/job.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::training {
namespace {

RestartPolicy RestartPolicyOf(std::string_view text, const schema::TrainingKind& kind) {
  if (text.empty()) text = kind.restart_policy;
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

// "" if there is none.
std::string MainContainerOf(const schema::TrainingKind& kind, const json::Value& pod_spec,
                            std::string_view asked_for) {
  const std::string_view wanted = asked_for.empty() ? kind.container : asked_for;
  const json::Value& containers = pod_spec["containers"];
  for (const json::Value& container : containers.items()) {
    if (container["name"].AsString() == wanted) return std::string(wanted);
  }
  return kind.any_container && asked_for.empty() ? containers.At(0)["name"].Str() : "";
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

Result<Replica> ReplicaOf(const schema::TrainingKind& kind, const std::string& job,
                          std::string_view key, const json::Value& from,
                          std::string_view main_container) {
  Replica replica;
  const schema::TrainingRole* role = kind.FindRole(key);
  if (role == nullptr) {
    std::vector<std::string> types;
    for (const schema::TrainingRole& each : kind.roles) types.emplace_back(each.type);
    return Error(Reason::kInvalid, "{} {:?}: spec.{} has the type {:?}; the types are {}",
                 kind.kind, job, kind.specs, key, Join(types, ", "));
  }
  replica.type = role->type;
  replica.leads = role->leads;
  replica.count = from["replicas"].AsInt(1);
  if (replica.count < 0 || replica.count > kMaxReplicas) {
    return Error(Reason::kInvalid, "{} {:?}: {}.replicas is {}; it must be between 0 and {}",
                 kind.kind, job, replica.type, replica.count, kMaxReplicas);
  }
  if (role->single && replica.count != 1) {
    return Error(Reason::kInvalid, "{} {:?}: {}.replicas is {}; there is exactly one {}", kind.kind,
                 job, replica.type, replica.count, replica.LowerType());
  }
  replica.restart_policy = RestartPolicyOf(from["restartPolicy"].AsString(), kind);
  replica.pod_template = from["template"];
  replica.main_container = MainContainerOf(kind, replica.pod_template["spec"], main_container);
  if (replica.main_container.empty()) {
    return Error(Reason::kInvalid,
                 "{} {:?}: {}.template has no container named {:?}; name the container that trains "
                 "so",
                 kind.kind, job, replica.type,
                 main_container.empty() ? kind.container : main_container);
  }
  return replica;
}

Result<std::vector<Replica>> ReplicasOf(const schema::TrainingKind& kind, const std::string& job,
                                        const json::Value& spec) {
  std::vector<Replica> replicas;
  for (const json::Member& member : spec[kind.specs].members()) {
    ASSIGN_OR_RETURN(Replica replica, ReplicaOf(kind, job, member.first, member.second,
                                                spec["mainContainer"].AsString()));
    if (std::ranges::find(replicas, replica.type, &Replica::type) != replicas.end()) {
      return Error(Reason::kInvalid, "{} {:?}: spec.{} names {} twice", kind.kind, job, kind.specs,
                   replica.type);
    }
    replicas.push_back(std::move(replica));
  }
  if (replicas.empty()) {
    return Error(Reason::kInvalid, "{} {:?}: spec.{} is empty; give it {}", kind.kind, job,
                 kind.specs, kind.FindRole(kMaster) != nullptr ? "a Master or Workers" : "Workers");
  }
  for (const schema::TrainingRole& role : kind.roles) {
    if (!role.required || std::ranges::find(replicas, role.type, &Replica::type) != replicas.end())
      continue;
    return Error(Reason::kInvalid, "{} {:?}: spec.{} has no {}", kind.kind, job, kind.specs,
                 role.type);
  }
  // The kinds' roles are in the order of their names, too.
  std::ranges::sort(replicas, {}, &Replica::type);
  return replicas;
}

void ReadElastic(const json::Value& spec, Job& job) {
  const json::Value& elastic = spec["elasticPolicy"];
  job.nproc_per_node = spec["nprocPerNode"].Str("auto");
  if (!elastic.IsObject()) return;
  const Replica* workers = job.Find(kWorker);
  job.elastic = ElasticPolicyOf(elastic, workers == nullptr ? 0 : workers->count);
  job.success_rule = SuccessRule::kAnyWorker;
  if (const std::optional<int64_t> nproc = elastic["nProcPerNode"].Int()) {
    job.nproc_per_node = std::to_string(*nproc);
  }
  const json::Value& annotations = job.object["metadata"]["annotations"];
  if (annotations[kRendezvousAnnotation].AsString() == kC10d) MeetAtWorkerZero(*job.elastic);
}

void ReadMpi(const json::Value& spec, Job& job) {
  job.slots_per_worker = std::max<int64_t>(spec["slotsPerWorker"].AsInt(1), 1);
  if (!spec["runPolicy"].Has("cleanPodPolicy"))
    job.run_policy.clean_pod_policy = CleanPodPolicyOf(spec["cleanPodPolicy"].AsString());
  // Only the later version has it, and always.
  if (spec["mpiImplementation"].AsString().empty()) return;
  job.ssh = SshPolicy{spec["mpiImplementation"].Str(), spec["sshAuthMountPath"].Str("/root/.ssh"),
                      spec["launcherCreationPolicy"].AsString() == "WaitForWorkersReady",
                      spec["runLauncherAsWorker"].AsBool()};
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

const Replica* Job::Leader() const {
  const auto found = std::ranges::find_if(replicas, &Replica::leads);
  return found == replicas.end() ? nullptr : &*found;
}

std::string Job::OperatorName() const {
  return ssh ? "mpi-operator" : ToLower(kind->kind) + "-controller";
}

int64_t Job::MinReplicas() const {
  const Replica* workers = Find(kWorker);
  if (ssh && ssh->waits_for_workers) return workers == nullptr ? 0 : workers->count;
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
  for (const json::Value& container : replica.pod_template["spec"]["containers"].items()) {
    if (container["name"].AsString() != replica.main_container) continue;
    for (const json::Value& port : container["ports"].items()) {
      if (port["name"].AsString() == kind->port_name)
        return port["containerPort"].AsInt(kind->port);
    }
  }
  return kind->port;
}

bool IsManagedElsewhere(const json::Value& object) {
  const std::string_view manager = object["spec"]["runPolicy"]["managedBy"].AsString();
  return !manager.empty() && manager != kManagedByUs && manager != kManagedByMpiOperator;
}

Result<Job> ParseJob(const schema::TrainingKind& kind, const json::Value& object) {
  Job job;
  job.kind = &kind;
  job.object = object;
  job.ns = object["metadata"]["namespace"].Str();
  job.name = object["metadata"]["name"].Str();
  job.uid = object["metadata"]["uid"].Str();
  const json::Value& spec = object["spec"];
  ASSIGN_OR_RETURN(job.replicas, ReplicasOf(kind, job.name, spec));
  job.run_policy = RunPolicyOf(spec["runPolicy"]);
  if (kind.kind == "PyTorchJob") ReadElastic(spec, job);
  if (kind.kind == "TFJob") {
    job.dynamic_workers = spec["enableDynamicWorker"].AsBool();
    if (spec["successPolicy"].AsString() != "AllWorkers")
      job.success_rule = SuccessRule::kFirstWorker;
  }
  if (kind.kind == "MPIJob") ReadMpi(spec, job);
  return job;
}

client::Resource ResourceOf(const schema::TrainingKind& kind) {
  return {"kubeflow.org", "v1", std::string(kind.plural)};
}

std::string ReplicaName(std::string_view job, std::string_view lower_type, int64_t index) {
  if (lower_type == "launcher") return fmt::format("{}-launcher", job);
  return fmt::format("{}-{}-{}", job, lower_type, index);
}

}  // namespace muster::training
