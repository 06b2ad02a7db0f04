// src/controllers/jobset/jobset_facts.h
//
// A JobSet (jobset.x-k8s.io/v1alpha2) as its controller reads it. The API server defaults and
// validates; one that came another way must not confuse us.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/api_client.h"
#include "json/value.h"

namespace muster::controllers {

inline const client::Resource kJobSetResource{"jobset.x-k8s.io", "v1alpha2", "jobsets"};
inline constexpr std::string_view kJobSetControllerName = "jobset.sigs.k8s.io/jobset-controller";
inline constexpr std::string_view kRestartAttemptLabel = "jobset.sigs.k8s.io/restart-attempt";
inline constexpr std::string_view kReplicatedJobNameLabel = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kJobSetNameLabel = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kJobSetUidLabel = "jobset.sigs.k8s.io/jobset-uid";

// What an earlier replicated job must have come to.
struct Dependency {
  std::string name;
  bool complete = false;  // else ready
};

struct ReplicatedJob {
  std::string name, group;
  int64_t replicas = 1;
  json::Value job_template;
  std::vector<Dependency> depends_on;
};

// On a JobSet: "true" gives all of its pods their places together or not at all, through a PodGroup
// of its name. Upstream has no gangs: without it each pod is placed for itself, as there.
inline constexpr std::string_view kGangAnnotation = "muster.dev/gang";

struct JobSetFacts {
  explicit JobSetFacts(const json::Value& job_set);

  std::string JobName(const ReplicatedJob& replicated_job, int64_t index) const;

  json::Value object;
  std::string ns, name, uid;
  std::vector<ReplicatedJob> replicated_jobs;
  int64_t restarts = 0, restarts_towards_max = 0;
  bool suspended = false;
  bool in_order = false;  // startup
  bool gang = false;
  // Always of a gang: the scheduler shall not see one of two attempts.
  bool blocking_recreate = false;
  bool dns_hostnames = true, publish_not_ready = true;
  std::string subdomain;
  std::string coordinator;  // "<pod>.<subdomain>"; "" if there is none
};

// Another controller looks after it.
bool IsJobSetManagedElsewhere(const json::Value& job_set);

// The pods that a Job runs at a time, at most.
int64_t PodsAtATime(const json::Value& job_spec);

}  // namespace muster::controllers
