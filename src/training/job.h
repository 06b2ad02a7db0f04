// src/training/job.h
//
// Job: a PyTorchJob, TFJob or JAXJob (kubeflow.org/v1) as the controller reads it: defaults
// applied, replica types in their canonical spelling. The API server validates and defaults too; a
// job that came another way must not confuse us.
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
#include "client/api_client.h"
#include "json/value.h"
#include "schema/training_kinds.h"

namespace muster::training {

inline constexpr std::string_view kMaster = "Master";
inline constexpr std::string_view kWorker = "Worker";
inline constexpr std::string_view kManagedByUs = "kubeflow.org/training-operator";
inline constexpr std::string_view kManagedByMpiOperator = "kubeflow.org/mpi-operator";  // also us
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

inline constexpr std::string_view kApiVersion = "kubeflow.org/v1";
client::Resource ResourceOf(const schema::TrainingKind& kind);

enum class RestartPolicy : uint8_t { kAlways, kOnFailure, kNever, kExitCode };
// Of a job without a leading role; with one, that role's end is the job's.
enum class SuccessRule : uint8_t { kAllWorkers, kAnyWorker, kFirstWorker };
enum class CleanPodPolicy : uint8_t { kAll, kRunning, kNone };

struct Replica {
  std::string type;  // "Worker"
  bool leads = false;
  std::string main_container;  // the one that trains
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

struct SshPolicy {
  std::string implementation;      // OpenMPI, Intel, MPICH
  std::string mount_path;          // of the keys
  bool waits_for_workers = false;  // the launcher is made when they are ready
  bool launcher_works = false;     // ranks run beside mpirun, too
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
  const schema::TrainingKind* kind = nullptr;
  json::Value object;
  std::string ns, name, uid;
  std::vector<Replica> replicas;  // in the order of the kind's roles
  std::optional<ElasticPolicy> elastic;
  RunPolicy run_policy;
  std::string nproc_per_node = "auto";  // of a PyTorchJob
  bool dynamic_workers = false;         // of a TFJob
  int64_t slots_per_worker = 1;         // of an MPIJob
  std::optional<SshPolicy> ssh;         // of an MPIJob of kubeflow.org/v2beta1
  SuccessRule success_rule = SuccessRule::kAllWorkers;

  const Replica* Find(std::string_view type) const;
  // The one whose end is the job's; null if there is none.
  const Replica* Leader() const;
  int64_t TotalReplicas() const;
  // The fewest that must have a place at once: all of them, of an elastic job minReplicas workers,
  // of one whose launcher is made later the workers.
  int64_t MinReplicas() const;
  // Processes per pod as a number; 1 where torchrun counts itself (auto, gpu, cpu).
  int64_t NprocPerNode() const;
  // The kind's port of the replica's default container.
  int64_t PortOf(const Replica& replica) const;
  // Ranks restart together: without elastic training the peers of a lost rank hold a dead
  // collective.
  bool RestartsAsGang() const { return !elastic.has_value() && !dynamic_workers; }
  client::Resource Resource() const { return ResourceOf(*kind); }
  std::string OperatorName() const;  // "pytorchjob-controller"
  std::string_view ApiVersion() const {
    return ssh ? "kubeflow.org/v2beta1" : std::string_view(kApiVersion);
  }
};

// Invalid when it cannot be run at all: no replicas, a role that the kind does not have, no
// container of the kind's name, more than one of a single role.
Result<Job> ParseJob(const schema::TrainingKind& kind, const json::Value& object);
// Whether another controller looks after the job. Asked before ParseJob.
bool IsManagedElsewhere(const json::Value& object);

// Of a pod and its service: "j-worker-0"; a launcher has no number.
std::string ReplicaName(std::string_view job, std::string_view lower_type, int64_t index);

}  // namespace muster::training
