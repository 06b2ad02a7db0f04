#include "training/env.h"

#include "base/strings.h"

namespace muster::training {
namespace {

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
                                            : kDefaultPort;
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

}  // namespace

std::vector<EnvVar> EnvOf(const Job& job, const Replica& replica, int64_t index) {
  std::vector<EnvVar> env{{"PYTHONUNBUFFERED", "1"}};
  if (job.HasMaster()) AddMaster(job, replica, index, env);
  env.emplace_back("PET_NPROC_PER_NODE", job.nproc_per_node);
  if (job.elastic) {
    AddElastic(job, env);
  } else {
    env.emplace_back("PET_NNODES", std::to_string(job.TotalReplicas()));
  }
  return env;
}

}  // namespace muster::training
