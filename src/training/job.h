// src/training/job.h
//
// Job: a PyTorchJob (kubeflow.org/v1) as the controller reads it: defaults applied, replica types
// in their canonical spelling. The API server validates and defaults too; a job that came another
// way must not confuse us.
//
// Thread:     any (values and pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::training {

inline constexpr std::string_view kMaster = "Master";
inline constexpr std::string_view kWorker = "Worker";
inline constexpr std::string_view kContainerName = "pytorch";
inline constexpr std::string_view kPortName = "pytorchjob-port";
inline constexpr int64_t kDefaultPort = 23456;
inline constexpr std::string_view kOperatorName = "pytorchjob-controller";
inline constexpr std::string_view kManagedByUs = "kubeflow.org/training-operator";
// Replicas of one job; the pods of a pass are built in one go.
inline constexpr int64_t kMaxReplicas = 10'000;

inline constexpr std::string_view kJobNameLabel = "training.kubeflow.org/job-name";
inline constexpr std::string_view kOperatorNameLabel = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kReplicaTypeLabel = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kReplicaIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kJobRoleLabel = "training.kubeflow.org/job-role";

// On a job whose rendezvous nobody serves: "c10d", the workers meet at worker 0 instead.
inline constexpr std::string_view kC10d = "c10d";
inline constexpr std::string_view kRendezvousAnnotation = "training.muster.dev/rendezvous";

enum class RestartPolicy : uint8_t { kAlways, kOnFailure, kNever, kExitCode };
enum class CleanPodPolicy : uint8_t { kAll, kRunning, kNone };

struct Replica {
  std::string type;  // "Master" or "Worker"
  int64_t count = 1;
  RestartPolicy restart_policy = RestartPolicy::kOnFailure;
  json::Value pod_template;  // metadata and spec

  std::string LowerType() const;
};

struct ElasticPolicy {
  int64_t min_replicas = 0, max_replicas = 0;
  std::string backend = "c10d";
  std::optional<int64_t> port;
  std::string host;  // "": worker 0
  std::optional<std::string> id;
  std::vector<std::pair<std::string, std::string>> conf;
  bool standalone = false;
  std::optional<int64_t> max_restarts;
  json::Value metrics;  // of a HorizontalPodAutoscaler; null: the number of workers is the user's

  // The Service, in the job's namespace or the one named, that a rendezvous outside the job (etcd)
  // is reached at: {namespace, name}. nullopt if the workers meet among themselves, or at a name
  // that may be one of another network.
  std::optional<std::pair<std::string, std::string>> ServiceFor(std::string_view ns) const;
};

struct RunPolicy {
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNone;
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> backoff_limit;
  bool suspend = false;
  std::string managed_by;
  json::Value scheduling_policy;  // null if absent
};

struct Job {
  json::Value object;
  std::string ns, name, uid;
  std::vector<Replica> replicas;  // Master first
  std::optional<ElasticPolicy> elastic;
  RunPolicy run_policy;
  std::string nproc_per_node = "auto";

  const Replica* Find(std::string_view type) const;
  bool HasMaster() const { return Find(kMaster) != nullptr; }
  int64_t TotalReplicas() const;
  // The fewest with which it can train: all of them, or of an elastic job minReplicas workers.
  int64_t MinReplicas() const;
  // Processes per pod as a number; 1 where torchrun counts itself (auto, gpu, cpu).
  int64_t NprocPerNode() const;
  // The port pytorchjob-port of the replica's default container.
  int64_t PortOf(const Replica& replica) const;
  // Ranks restart together: without elastic training the peers of a lost rank hold a dead
  // collective.
  bool RestartsAsGang() const { return !elastic.has_value(); }
};

// Invalid when it cannot be run at all: no replicas, a type other than Master and Worker, no
// container "pytorch", more than one master.
Result<Job> ParseJob(const json::Value& object);
// Whether another controller looks after the job. Asked before ParseJob.
bool IsManagedElsewhere(const json::Value& object);

std::string ReplicaName(std::string_view job, std::string_view lower_type, int64_t index);

}  // namespace muster::training
