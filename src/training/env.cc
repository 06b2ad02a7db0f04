#include "training/env.h"

#include "base/strings.h"
#include "json/write.h"
#include "training/mpi.h"

namespace muster::training {
namespace {

constexpr std::string_view kEvaluator = "Evaluator";
constexpr std::string_view kParameterServer = "PS";

void AddMaster(const Job& job, const Replica& replica, int64_t index, std::vector<EnvVar>& env) {
  const std::string port = std::to_string(job.PortOf(*job.Find(kMaster)));
  const std::string address = ReplicaName(job.name, "master", 0);
  env.emplace_back("MASTER_PORT", port);
  env.emplace_back("PET_MASTER_PORT", port);
  env.emplace_back("MASTER_ADDR", address);
  env.emplace_back("PET_MASTER_ADDR", address);
  const std::string rank = std::to_string(replica.type == kWorker ? index + 1 : index);
  env.emplace_back("WORLD_SIZE", std::to_string(job.TotalReplicas() * job.NprocPerNode()));
  env.emplace_back("RANK", rank);
  env.emplace_back("PET_NODE_RANK", rank);
}

void AddElastic(const Job& job, std::vector<EnvVar>& env) {
  const ElasticPolicy& policy = *job.elastic;
  const Replica* workers = job.Find(kWorker);
  const int64_t port = policy.port          ? *policy.port
                       : workers != nullptr ? job.PortOf(*workers)
                                            : job.kind->port;
  const std::string host = policy.host.empty() ? ReplicaName(job.name, "worker", 0) : policy.host;
  env.emplace_back("PET_RDZV_ENDPOINT", fmt::format("{}:{}", host, port));
  env.emplace_back("PET_RDZV_BACKEND", policy.backend);
  env.emplace_back("PET_NNODES", fmt::format("{}:{}", policy.min_replicas, policy.max_replicas));
  if (policy.max_restarts)
    env.emplace_back("PET_MAX_RESTARTS", std::to_string(*policy.max_restarts));
  if (policy.id) env.emplace_back("PET_RDZV_ID", *policy.id);
  if (!policy.conf.empty()) {
    std::vector<std::string> settings;
    for (const auto& [key, value] : policy.conf) settings.push_back(key + "=" + value);
    env.emplace_back("PET_RDZV_CONF", Join(settings, ","));
  }
  if (policy.standalone) env.emplace_back("PET_STANDALONE", "");
}

std::vector<EnvVar> PyTorchEnv(const Job& job, const Replica& replica, int64_t index) {
  std::vector<EnvVar> env{{"PYTHONUNBUFFERED", "1"}};
  if (job.Leader() != nullptr) AddMaster(job, replica, index, env);
  env.emplace_back("PET_NPROC_PER_NODE", job.nproc_per_node);
  if (job.elastic) {
    AddElastic(job, env);
  } else {
    env.emplace_back("PET_NNODES", std::to_string(job.TotalReplicas()));
  }
  return env;
}

// "j-worker-0.ns.svc:2222"
std::string TensorFlowAddress(const Job& job, const Replica& replica, int64_t index) {
  return fmt::format("{}.{}.svc:{}", ReplicaName(job.name, replica.LowerType(), index), job.ns,
                     job.PortOf(replica));
}

json::Value TensorFlowAddresses(const Job& job, const Replica& replica) {
  json::Array addresses;
  for (int64_t i = 0; i < replica.count; ++i)
    addresses.emplace_back(TensorFlowAddress(job, replica, i));
  return json::Value(std::move(addresses));
}

// The evaluator looks on: it is no member of the cluster.
json::Value TensorFlowCluster(const Job& job) {
  json::Object cluster;
  for (const Replica& replica : job.replicas) {
    if (replica.type != kEvaluator)
      cluster.emplace_back(replica.LowerType(), TensorFlowAddresses(job, replica));
  }
  return json::Value(std::move(cluster));
}

// Nobody is told of the other workers, so that they may come and go.
json::Value SparseCluster(const Job& job, const Replica& replica, int64_t index) {
  json::Value servers{json::Array()};
  json::Object worker;
  if (replica.type == kParameterServer) {
    servers = json::List({TensorFlowAddress(job, replica, index)});
  } else if (replica.type == kWorker) {
    if (const Replica* all = job.Find(kParameterServer)) servers = TensorFlowAddresses(job, *all);
    worker.emplace_back(std::to_string(index), TensorFlowAddress(job, replica, index));
  }
  return json::Obj({{"worker", json::Value(std::move(worker))}, {"ps", servers}});
}

std::vector<EnvVar> TensorFlowEnv(const Job& job, const Replica& replica, int64_t index) {
  if (job.TotalReplicas() <= 1) return {};
  const json::Value task = json::Obj({{"type", replica.LowerType()}, {"index", index}});
  const json::Value config =
      job.dynamic_workers
          ? json::Obj({{"sparseCluster", SparseCluster(job, replica, index)}, {"task", task}})
          : json::Obj(
                {{"cluster", TensorFlowCluster(job)}, {"task", task}, {"environment", "cloud"}});
  return {{"TF_CONFIG", json::Write(config)}};
}

std::vector<EnvVar> JaxEnv(const Job& job, const Replica& replica, int64_t index) {
  return {{"PYTHONUNBUFFERED", "1"},
          {"COORDINATOR_PORT", std::to_string(job.PortOf(replica))},
          {"COORDINATOR_ADDRESS", ReplicaName(job.name, "worker", 0)},
          {"NUM_PROCESSES", std::to_string(job.TotalReplicas())},
          {"PROCESS_ID", std::to_string(index)}};
}

}  // namespace

std::vector<EnvVar> EnvOf(const Job& job, const Replica& replica, int64_t index) {
  if (job.kind->kind == "TFJob") return TensorFlowEnv(job, replica, index);
  if (job.kind->kind == "JAXJob") return JaxEnv(job, replica, index);
  if (IsMpi(job)) return MpiEnv(job, replica);
  return PyTorchEnv(job, replica, index);
}

}  // namespace muster::training
