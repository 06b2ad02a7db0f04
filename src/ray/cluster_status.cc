#include "ray/cluster_status.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cluster/quantity.h"
#include "controllers/pods/pod_facts.h"
#include "schema/conditions.h"

namespace muster::ray {
namespace {

using cluster::Quantity;

struct Amounts {
  Quantity cpu, memory, gpu, tpu;
};

// More than any machine has: not added up, so that no sum is beyond what a Quantity holds.
constexpr int64_t kMaxAmount = 1'000'000'000'000'000'000;

Quantity Times(Quantity amount, int64_t count) {
  Quantity product;
  for (; count > 0; count /= 2) {
    if (count % 2 != 0) product = product + amount;
    amount = amount + amount;
  }
  return product;
}

// What its containers ask for, limits where they do not.
void AddPods(const json::Value& pod_template, int64_t count, Amounts& sum) {
  for (const json::Value& container : pod_template["spec"]["containers"].items()) {
    std::map<std::string, json::Value> amounts;
    for (const char* kind : {"limits", "requests"}) {
      for (const auto& [name, amount] : container["resources"][kind].members())
        amounts[name] = amount;
    }
    for (const auto& [name, amount] : amounts) {
      const auto quantity = Quantity::FromJson(amount);
      if (!quantity || quantity->Units() > kMaxAmount) continue;
      Quantity* total = name == "cpu"              ? &sum.cpu
                        : name == "memory"         ? &sum.memory
                        : name == "google.com/tpu" ? &sum.tpu
                        : name.ends_with("gpu")    ? &sum.gpu
                                                   : nullptr;
      if (total != nullptr) *total = *total + Times(*quantity, count);
    }
  }
}

json::Value WithAmounts(const Cluster& cluster, json::Value status) {
  Amounts sum;
  if (!cluster.suspend) {
    AddPods(cluster.head["template"], 1, sum);
    for (const WorkerGroup& group : cluster.groups)
      AddPods(group.pod_template, group.Desired(), sum);
  }
  return std::move(status)
      .Set("desiredCPU", sum.cpu.ToString())
      .Set("desiredMemory", sum.memory.ToString())
      .Set("desiredGPU", sum.gpu.ToString())
      .Set("desiredTPU", sum.tpu.ToString());
}

// A zero is absent, as a Go client writes it.
json::Value WithCount(json::Value status, std::string_view name, int64_t count) {
  return count == 0 ? status.Remove(name) : std::move(status).Set(name, count);
}

json::Value WithCounts(const Cluster& cluster, const std::vector<json::Value>& pods,
                       json::Value status) {
  int64_t running = 0, ready = 0, least = 0, most = 0;
  for (const json::Value& pod : pods) {
    if (IsHead(pod) || !controllers::IsActive(pod)) continue;
    running += pod["status"]["phase"].AsString() == "Running" ? 1 : 0;
    ready += controllers::IsReady(pod) ? 1 : 0;
  }
  for (const WorkerGroup& group : cluster.groups) {
    if (group.suspend) continue;
    least += group.min_replicas;
    most = std::min<int64_t>(most + group.max_replicas, 2147483647);
  }
  const int64_t desired = cluster.suspend ? 0 : cluster.DesiredWorkers();
  status = WithCount(std::move(status), "desiredWorkerReplicas", desired);
  status = WithCount(std::move(status), "availableWorkerReplicas", running);
  status = WithCount(std::move(status), "readyWorkerReplicas", ready);
  status = WithCount(std::move(status), "minWorkerReplicas", least);
  return WithCount(std::move(status), "maxWorkerReplicas", most);
}

const json::Value* HeadOf(const std::vector<json::Value>& pods) {
  for (const json::Value& pod : pods) {
    if (IsHead(pod) && controllers::IsActive(pod)) return &pod;
  }
  return nullptr;
}

json::Value WithHead(const json::Value* head, const json::Value& service, json::Value status) {
  json::Value info;
  if (head != nullptr) {
    info = json::Obj({{"podName", (*head)["metadata"]["name"]}});
    const json::Value& address = (*head)["status"]["podIP"];
    if (!address.IsNull()) info = std::move(info).Set("podIP", address);
  }
  if (!service.IsNull()) {
    info = std::move(info).Set("serviceName", service["metadata"]["name"]);
    const std::string_view address = service["spec"]["clusterIP"].AsString();
    const json::Value reached =
        address.empty() || address == "None" ? info["podIP"] : service["spec"]["clusterIP"];
    if (!reached.IsNull()) info = std::move(info).Set("serviceIP", reached);
  }
  status = info.IsNull() ? status.Remove("head") : std::move(status).Set("head", info);
  json::Object endpoints;
  for (const json::Value& port : service["spec"]["ports"].items()) {
    const int64_t node_port = port["nodePort"].AsInt();
    const int64_t number = node_port > 0 ? node_port : port["targetPort"].AsInt(0);
    endpoints.emplace_back(port["name"].Str(), std::to_string(number));
  }
  if (endpoints.empty()) return status.Remove("endpoints");
  return std::move(status).Set("endpoints", json::Value(std::move(endpoints)));
}

bool AllReady(const Cluster& cluster, const std::vector<json::Value>& pods) {
  for (const WorkerGroup& group : cluster.groups) {
    const auto ready = std::count_if(pods.begin(), pods.end(), [&group](const json::Value& pod) {
      return !IsHead(pod) && GroupOf(pod) == group.name && controllers::IsActive(pod) &&
             controllers::IsReady(pod);
    });
    if (ready < group.Desired()) return false;
  }
  return true;
}

// What of the head is not well, in one word.
std::pair<std::string, std::string> HeadTrouble(const json::Value* head) {
  if (head == nullptr) return {"HeadPodNotFound", "Head Pod not found"};
  const json::Value& conditions = (*head)["status"]["conditions"];
  for (const char* type : {"PodScheduled", "Ready"}) {
    const json::Value& condition = schema::FindCondition(conditions, type);
    if (condition["status"].AsString() == "False")
      return {condition["reason"].Str("ContainersNotReady"), condition["message"].Str()};
  }
  return {"ContainersNotReady", ""};
}

class Conditions {
 public:
  Conditions(const Cluster& cluster, Time now)
      : generation_(cluster.object["metadata"]["generation"].AsInt()),
        now_(now),
        conditions_(cluster.object["status"]["conditions"]) {}

  void Set(std::string_view type, bool holds, std::string_view reason, std::string_view message) {
    conditions_ = WithCondition(conditions_, type, holds, reason, message, generation_, now_);
  }
  void Remove(std::string_view type) { conditions_ = WithoutCondition(conditions_, type); }
  bool Holds(std::string_view type) const { return schema::ConditionHolds(conditions_, type); }
  const json::Value& value() const { return conditions_; }

 private:
  const int64_t generation_;
  const Time now_;
  json::Value conditions_;
};

std::string SuspendedState(const std::vector<json::Value>& pods, Conditions& conditions) {
  constexpr std::string_view kReason = "UserRequestedSuspend";
  conditions.Set(kSuspending, !pods.empty(), kReason, "");
  conditions.Set(kClusterSuspended, pods.empty(), kReason, "");
  conditions.Set(kHeadPodReady, false, "HeadPodNotFound", "Head Pod not found");
  conditions.Set(kProvisioned, false, "RayClusterPodsProvisioning",
                 "RayCluster Pods are suspended");
  conditions.Remove(kReplicaFailure);
  return pods.empty() ? std::string(kSuspended) : "";
}

std::string RunningState(const Cluster& cluster, const std::vector<json::Value>& pods,
                         const json::Value* head, const json::Value& refused,
                         Conditions& conditions) {
  const bool head_ready = head != nullptr && controllers::IsReady(*head);
  if (head_ready) {
    conditions.Set(kHeadPodReady, true, "HeadPodRunningAndReady", "");
  } else {
    const auto [reason, message] = HeadTrouble(head);
    conditions.Set(kHeadPodReady, false, reason, message);
  }
  if (head_ready && AllReady(cluster, pods)) {
    conditions.Set(kProvisioned, true, "AllPodRunningAndReadyFirstTime",
                   "All Ray Pods are ready for the first time");
  } else if (!conditions.Holds(kProvisioned)) {
    conditions.Set(kProvisioned, false, "RayClusterPodsProvisioning",
                   "RayCluster Pods are being provisioned for first time");
  }
  if (refused["kind"].AsString() == "Pod") {
    conditions.Set(kReplicaFailure, true,
                   head == nullptr ? "FailedCreateHeadPod" : "FailedCreateWorkerPod",
                   refused["message"].AsString());
  } else {
    conditions.Remove(kReplicaFailure);
  }
  for (const std::string_view type : {kSuspending, kClusterSuspended}) {
    if (conditions.Holds(type)) conditions.Set(type, false, "UserRequestedResume", "");
  }
  return head_ready && conditions.Holds(kProvisioned) ? std::string(kReady) : "";
}

}  // namespace

json::Value WithCondition(const json::Value& conditions, std::string_view type, bool holds,
                          std::string_view reason, std::string_view message, int64_t generation,
                          Time now) {
  const std::string_view truth = holds ? "True" : "False";
  const json::Value& before = schema::FindCondition(conditions, type);
  if (before["status"].AsString() == truth && before["reason"].AsString() == reason &&
      before["message"].AsString() == message)
    return conditions;
  json::Value condition =
      json::Obj({{"type", type},
                 {"status", truth},
                 {"observedGeneration", generation},
                 {"lastTransitionTime", schema::TransitionTime(before, truth, now)},
                 {"reason", reason},
                 {"message", message}});
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.At(i)["type"].AsString() == type)
      return conditions.SetAt(i, std::move(condition));
  }
  return conditions.Append(std::move(condition));
}

json::Value WithoutCondition(const json::Value& conditions, std::string_view type) {
  json::Array kept;
  for (const json::Value& condition : conditions.items()) {
    if (condition["type"].AsString() != type) kept.push_back(condition);
  }
  return kept.size() == conditions.size() ? conditions : json::Value(std::move(kept));
}

json::Value ClusterStatus(const Cluster& cluster, const std::vector<json::Value>& pods,
                          const json::Value& head_service, const json::Value& refused, Time now) {
  const json::Value& before = cluster.object["status"];
  json::Value status = before;
  const json::Value* head = HeadOf(pods);
  status = WithAmounts(cluster, std::move(status));
  status = WithCounts(cluster, pods, std::move(status));
  status = WithHead(head, head_service, std::move(status));
  Conditions conditions(cluster, now);
  const std::string state = cluster.suspend
                                ? SuspendedState(pods, conditions)
                                : RunningState(cluster, pods, head, refused, conditions);
  status = std::move(status)
               .Set("conditions", conditions.value())
               .Set("observedGeneration", cluster.object["metadata"]["generation"]);
  if (state != before["state"].AsString()) {
    status = state.empty() ? status.Remove("state") : std::move(status).Set("state", state);
    if (!state.empty())
      status = std::move(status).SetPath({"stateTransitionTimes", state}, FormatTime(now));
  }
  return status == before ? before : std::move(status).Set("lastUpdateTime", FormatTime(now));
}

}  // namespace muster::ray
