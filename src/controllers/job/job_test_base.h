// src/controllers/job/job_test_base.h
//
// A Job "train" in namespace "d" and the ends that its pods come to, for this folder's tests.

#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "controllers/controller_test_base.h"
#include "controllers/job/job_controller.h"
#include "controllers/job/job_pods.h"
#include "controllers/job/tracked_pods_controller.h"
#include "controllers/pods/pod_facts.h"

namespace muster::controllers {

inline std::string JobYaml(const std::string& spec, const std::string& restart_policy = "Never") {
  return fmt::format(R"(
apiVersion: batch/v1
kind: Job
metadata: {{name: train, namespace: d, uid: j1, generation: 1}}
spec:
  selector: {{matchLabels: {{batch.kubernetes.io/controller-uid: j1}}}}
  template:
    metadata: {{labels: {{batch.kubernetes.io/controller-uid: j1, job-name: train}}}}
    spec: {{restartPolicy: {}, containers: [{{name: c, image: none}}]}}
{}
)",
                     restart_policy, spec);
}

class JobTest : public ControllerTest {
 protected:
  JobTest() {
    Add(std::make_unique<TrackedPodsController>());
    Start(std::make_unique<JobController>());
  }

  void PutJob(const std::string& spec, const std::string& restart_policy = "Never") {
    Put(kJobs, JobYaml(spec, restart_policy));
    Settle();
  }
  void SetSpec(const char* field, json::Value value) {
    api_.Put(kJobs, Job().SetPath({"spec", field}, std::move(value)));
    Settle();
  }
  json::Value Job() { return Get(kJobs, "d", "train"); }
  json::Value Status() { return Job()["status"]; }
  std::vector<json::Value> Pods() const { return All(kPods); }
  std::vector<json::Value> ActivePods() const {
    std::vector<json::Value> pods = Pods();
    std::erase_if(pods, [](const json::Value& pod) { return !IsActive(pod); });
    return pods;
  }
  json::Value PodOfIndex(int64_t index) const {
    for (const json::Value& pod : ActivePods()) {
      if (CompletionIndexOf(pod) == index) return pod;
    }
    return {};
  }
  // As its agent would say.
  void End(const json::Value& pod, const char* phase, int exit_code = 0) {
    json::Value end = json::Obj({{"exitCode", exit_code}, {"finishedAt", FormatTime(loop_.Now())}});
    json::Value status = json::Obj({{"name", "c"}, {"state", json::Obj({{"terminated", end}})}});
    api_.Put(kPods, pod.Set("status", json::Obj({{"phase", phase},
                                                 {"containerStatuses", json::List({status})}})));
    Settle();
  }
  void Succeed(const json::Value& pod) { End(pod, "Succeeded"); }
  void Fail(const json::Value& pod, int exit_code = 1) { End(pod, "Failed", exit_code); }

  json::Value Condition(const char* type) {
    for (const json::Value& condition : Status()["conditions"].items()) {
      if (condition["type"].AsString() == type) return condition;
    }
    return {};
  }
  // "Failed True BackoffLimitExceeded", one for each.
  std::vector<std::string> Conditions() {
    std::vector<std::string> out;
    for (const json::Value& condition : Status()["conditions"].items()) {
      out.push_back(fmt::format("{} {} {}", condition["type"].AsString(),
                                condition["status"].AsString(), condition["reason"].AsString()));
    }
    return out;
  }
  bool HasEvent(const std::string& text) const {
    const std::vector<std::string> events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }
  size_t Tracked() const {
    const std::vector<json::Value> pods = Pods();
    return static_cast<size_t>(std::count_if(pods.begin(), pods.end(), IsTracked));
  }
};

}  // namespace muster::controllers
