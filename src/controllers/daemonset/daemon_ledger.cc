#include "controllers/daemonset/daemon_ledger.h"

#include <algorithm>

#include "controllers/history/history.h"
#include "controllers/pods/int_or_percent.h"
#include "controllers/pods/pod_facts.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

bool IsTerminating(const json::Value& object) {
  return object["metadata"].Has("deletionTimestamp");
}

// Without the name of a node, of which every node would be another one.
json::Value SpecToJudgeBy(const json::Value& daemon_set) {
  const json::Value spec = MakeDaemonPod(daemon_set, "", "", "")["spec"];
  const json::Value& affinity = daemon_set["spec"]["template"]["spec"]["affinity"];
  return affinity.IsNull() ? spec.Remove("affinity") : spec.Set("affinity", affinity);
}

std::pair<std::string, std::string> RankOf(const json::Value& pod) {
  return {pod["metadata"]["creationTimestamp"].Str(), NameOf(pod)};
}

std::string_view HashOf(const json::Value& pod) {
  return pod["metadata"]["labels"][kRevisionHashLabel].AsString();
}

}  // namespace

void DaemonCounts::Add(const DaemonCounts& other, int64_t times) {
  desired += times * other.desired;
  current += times * other.current;
  misscheduled += times * other.misscheduled;
  ready += times * other.ready;
  available += times * other.available;
  updated += times * other.updated;
  unavailable += times * other.unavailable;
}

// The newest of the present template and the newest of another one, of those that are not over.
struct DaemonLedger::Pair {
  const json::Value* present = nullptr;
  const json::Value* old = nullptr;
  bool too_many = false;
};

DaemonLedger::DaemonLedger(const json::Value& daemon_set)
    : set_(daemon_set),
      pod_spec_(SpecToJudgeBy(daemon_set)),
      min_ready_(seconds(daemon_set["spec"]["minReadySeconds"].AsInt())),
      goes_(IsTerminating(daemon_set)) {}

bool DaemonLedger::IsOf(const json::Value& daemon_set) const {
  return daemon_set["metadata"]["uid"] == set_["metadata"]["uid"] &&
         IsTerminating(daemon_set) == goes_ && daemon_set["spec"] == set_["spec"];
}

void DaemonLedger::PutPod(const json::Value& pod) {
  const std::string name = NameOf(pod);
  RemovePod(name);
  const std::string node = NodeOfDaemonPod(pod);
  node_of_[name] = node;
  nodes_[node].pods[RankOf(pod)] = pod;
  ++hashes_[std::string(HashOf(pod))];
  Touch(node);
}

void DaemonLedger::RemovePod(const std::string& name) {
  const auto known = node_of_.find(name);
  if (known == node_of_.end()) return;
  auto& pods = nodes_[known->second].pods;
  const auto pod = std::find_if(pods.begin(), pods.end(),
                                [&](const auto& entry) { return entry.first.second == name; });
  const auto hash = hashes_.find(HashOf(pod->second));
  if (--hash->second == 0) hashes_.erase(hash);
  pods.erase(pod);
  Touch(known->second);
  node_of_.erase(known);
}

void DaemonLedger::Update(const client::Informer& nodes, const std::string& hash, Time now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    touched_.insert(due_.begin()->second);
    due_.erase(due_.begin());
  }
  if (hash != hash_) {
    hash_ = hash;
    for (const auto& [name, node] : nodes_) touched_.insert(name);
  }
  for (const std::string& name : touched_) {
    NodeState& node = nodes_[name];
    Judge(name, node, nodes);
    Replan(name, node, now);
    if (!node.is_there && node.pods.empty()) nodes_.erase(name);
  }
  touched_.clear();
  const bool surges = Bound("maxSurge", false) > 0;
  if (surges == surges_) return;
  surges_ = surges;
  for (auto& [name, node] : nodes_) Replan(name, node, now);
}

std::optional<Time> DaemonLedger::look_again_at() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

int64_t DaemonLedger::Bound(const char* field, bool otherwise_one) const {
  const json::Value& value = set_["spec"]["updateStrategy"]["rollingUpdate"][field];
  return value.IsNull() && otherwise_one ? 1 : ScaledValue(value, sums_.desired, true);
}

void DaemonLedger::Judge(const std::string& name, NodeState& node,
                         const client::Informer& nodes) const {
  const json::Value* object = nodes.Find({"", name});
  node.is_there = object != nullptr;
  node.verdict = object != nullptr ? JudgeNode(pod_spec_, *object) : NodeVerdict();
}

void DaemonLedger::Replan(const std::string& name, NodeState& node, Time now) {
  sums_.Add(node.plan.counts, -1);
  if (node.plan.look_again_at.has_value()) due_.erase({*node.plan.look_again_at, name});
  node.plan = MakePlan(node, now);
  sums_.Add(node.plan.counts, 1);
  if (node.plan.look_again_at.has_value()) due_.emplace(*node.plan.look_again_at, name);
  const auto keep = [&](std::set<std::string>& names, bool is_one) {
    if (is_one) {
      names.insert(name);
    } else {
      names.erase(name);
    }
  };
  keep(acting_, node.plan.create || !node.plan.ends.empty());
  keep(replaceable_, node.plan.replaceable.has_value());
}

DaemonNodePlan DaemonLedger::MakePlan(const NodeState& node, Time now) const {
  DaemonNodePlan plan;
  if (!node.is_there) {
    // Nobody else ends one that never came to its node.
    for (const auto& [rank, pod] : node.pods) {
      if (pod["spec"]["nodeName"].AsString().empty() && !IsTerminating(pod))
        plan.ends.push_back(pod);
    }
    return plan;
  }
  CountStatus(node, now, plan);
  if (goes_) return plan;
  plan.create = node.verdict.should_run && node.pods.empty();
  // The oldest stays; while pods are replaced one beside the other, the oldest of each template.
  bool has_present = false, has_old = false;
  for (const auto& [rank, pod] : node.pods) {
    if (IsTerminating(pod)) continue;
    const bool is_over = schema::IsFinalPhase(pod["status"]["phase"].AsString());
    bool ends = !node.verdict.may_go_on || is_over;
    if (!ends) {
      bool& has_one = surges_ && IsPresent(pod) ? has_present : has_old;
      ends = std::exchange(has_one, true);
    } else if (node.verdict.may_go_on) {
      plan.over.push_back(pod);
    }
    if (ends) plan.ends.push_back(pod);
  }
  if (set_["spec"]["updateStrategy"]["type"].AsString() == "OnDelete") return plan;
  surges_ ? PlanReplacementBeside(node, now, plan) : PlanReplacement(node, now, plan);
  return plan;
}

DaemonLedger::Pair DaemonLedger::PairOf(const NodeState& node) const {
  Pair pair;
  for (const auto& [rank, pod] : node.pods) {
    if (!IsActive(pod)) continue;
    const json::Value*& slot = IsPresent(pod) ? pair.present : pair.old;
    pair.too_many |= slot != nullptr;
    slot = &pod;
  }
  return pair;
}

// Old pods that are not available go at once, the others as the bound allows.
void DaemonLedger::PlanReplacement(const NodeState& node, Time now, DaemonNodePlan& plan) const {
  if (!node.verdict.should_run && node.pods.empty()) return;
  const Pair pair = PairOf(node);
  if (pair.too_many || (pair.present == nullptr) == (pair.old == nullptr)) {
    plan.counts.unavailable = 1;
  } else if (pair.present != nullptr) {
    plan.counts.unavailable = IsAvailable(*pair.present, now, plan) ? 0 : 1;
  } else if (!IsAvailable(*pair.old, now, plan)) {
    plan.counts.unavailable = 1;
    plan.ends.push_back(*pair.old);
  } else {
    plan.replaceable = *pair.old;
  }
}

// The new pod comes first; the old one goes when it is available.
void DaemonLedger::PlanReplacementBeside(const NodeState& node, Time now,
                                         DaemonNodePlan& plan) const {
  const Pair pair = PairOf(node);
  if (pair.too_many) {
    plan.counts.unavailable = 1;
  } else if (pair.old == nullptr || !node.verdict.should_run) {
    return;
  } else if (pair.present == nullptr) {
    if (IsAvailable(*pair.old, now, plan)) {
      plan.replaceable = *pair.old;
    } else {
      plan.create = true;
    }
  } else if (IsAvailable(*pair.present, now, plan)) {
    plan.ends.push_back(*pair.old);
  } else {
    plan.counts.unavailable = 1;
  }
}

void DaemonLedger::CountStatus(const NodeState& node, Time now, DaemonNodePlan& plan) const {
  DaemonCounts& counts = plan.counts;
  if (!node.verdict.should_run) {
    counts.misscheduled = node.pods.empty() ? 0 : 1;
    return;
  }
  counts.desired = 1;
  if (node.pods.empty()) return;
  counts.current = 1;
  // The oldest counts.
  const json::Value& pod = node.pods.begin()->second;
  counts.ready = IsReady(pod) ? 1 : 0;
  counts.available = IsReady(pod) && IsAvailable(pod, now, plan) ? 1 : 0;
  counts.updated = std::any_of(node.pods.begin(), node.pods.end(),
                               [&](const auto& entry) { return IsPresent(entry.second); })
                       ? 1
                       : 0;
}

bool DaemonLedger::IsPresent(const json::Value& pod) const { return HashOf(pod) == hash_; }

bool DaemonLedger::IsAvailable(const json::Value& pod, Time now, DaemonNodePlan& plan) const {
  const std::optional<Time> from = AvailableFrom(pod, min_ready_, now);
  if (from.has_value() && *from > now)
    plan.look_again_at = std::min(plan.look_again_at.value_or(*from), *from);
  return from.has_value() && *from <= now;
}

}  // namespace muster::controllers
