// src/training/test_jobs.h
//
// Jobs and pods for this folder's tests, written as YAML.

#pragma once

#include <string>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "training/job.h"
#include "training/pods.h"

namespace muster::training {

inline json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// A master and two workers, one container each.
inline json::Value DdpJob(std::string_view restart_policy = "OnFailure") {
  json::Value job = Yaml(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: ddp, namespace: d, uid: u1, resourceVersion: "7"}
spec:
  nprocPerNode: auto
  runPolicy: {}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec: {containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}
    Worker:
      replicas: 2
      template:
        spec: {containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}
)");
  for (const char* type : {"Master", "Worker"}) {
    job = job.SetPath({"spec", "pytorchReplicaSpecs", type, "restartPolicy"}, restart_policy);
  }
  return job;
}

inline json::Value ElasticJob() {
  return Yaml(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: el, namespace: d, uid: u2, resourceVersion: "7"}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: c10d, maxRestarts: 10}
  runPolicy: {}
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: pytorch, image: i}]}}
)");
}

// `roles`: "{Chief: 1, Worker: 2}"; `more`: other fields of the spec.
inline json::Value TensorFlowJob(const char* roles, const char* more = "{}") {
  const json::Value replica =
      Yaml("{template: {spec: {containers: [{name: tensorflow, image: i}]}}}");
  json::Value specs;
  const json::Value counts = Yaml(roles);
  for (const json::Member& role : counts.members())
    specs = specs.Set(role.first, replica.Set("replicas", role.second));
  return Yaml(R"({apiVersion: kubeflow.org/v1, kind: TFJob,
                  metadata: {name: tf, namespace: d, uid: u3, resourceVersion: "7"}})")
      .Set("spec", Yaml(more).Set("tfReplicaSpecs", specs));
}

inline Job Parsed(const json::Value& object) {
  Result<Job> job = ParseJob(*schema::FindTrainingKind(object["kind"].AsString()), object);
  CHECK(job.has_value());
  return std::move(*job);
}

// A pod of the job as the API server would hold it.
inline json::Value PodOf(const json::Value& object, std::string_view type, int64_t index,
                         std::string_view phase, int64_t epoch = 0) {
  const Job job = Parsed(object);
  const json::Value pod = MakePod(job, *job.Find(type), index, epoch);
  return pod.SetPath({"metadata", "uid"}, fmt::format("{}-{}-{}", type, index, epoch))
      .SetPath({"status", "phase"}, phase);
}

inline json::Value WithExitCode(const json::Value& pod, int64_t code) {
  return pod.SetPath(
      {"status", "containerStatuses"},
      json::List(
          {json::Obj({{"name", pod["spec"]["containers"].At(0)["name"]},
                      {"state", json::Obj({{"terminated", json::Obj({{"exitCode", code}})}})}})}));
}

}  // namespace muster::training
