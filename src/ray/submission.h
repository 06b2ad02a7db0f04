// src/ray/submission.h
//
// How the command of a RayJob gets to its cluster: a Job that runs `ray job submit` (K8sJobMode),
// or one request to the dashboard (HTTPMode). Contract: kuberay controllers/ray/common/job.go.
//
// Thread:     any (pure functions).

#pragma once

#include <string>

#include "base/status.h"
#include "json/value.h"

namespace muster::ray {

// What a submission needs besides the RayJob.
struct Submission {
  std::string id;
  std::string dashboard;  // "c-head-svc.ns.svc.cluster.local:8265"
  std::string image;      // of the head's Ray container
};

// Submits unless that has happened, then follows the log until the job ends.
std::string SubmitScript(const json::Value& ray_job, const Submission& submission);
// A batch/v1 Job, which the RayJob controls.
json::Value MakeSubmitter(const json::Value& ray_job, const Submission& submission);
// The body of POST /api/jobs/.
json::Value SubmitRequest(const json::Value& ray_job, const Submission& submission);

// runtimeEnvYAML as JSON; Invalid if it is no YAML object.
Result<json::Value> RuntimeEnvOf(const json::Value& ray_job);

}  // namespace muster::ray
