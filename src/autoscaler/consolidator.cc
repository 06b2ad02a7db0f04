#include "autoscaler/consolidator.h"

#include <algorithm>

#include <fmt/core.h>

#include "autoscaler/node_claim.h"
#include "autoscaler/node_disruption_controller.h"
#include "base/log.h"
#include "schema/conditions.h"

namespace muster::autoscaler {
namespace {

bool IsClosedByUs(const json::Value& node) {
  return DisruptedTaintOf(node)["value"].AsString() == kUnderutilized;
}

Time InitializedAt(const json::Value& claim, Time otherwise) {
  const json::Value& found = schema::FindCondition(claim["status"]["conditions"], kInitialized);
  return ParseTime(found["lastTransitionTime"].AsString()).value_or(otherwise);
}

}  // namespace

std::vector<std::string> Consolidator::Due(Time now, std::optional<Time>& look_again) {
  std::map<std::string, NodePool> pools;
  for (const auto& [key, object] : pools_.objects()) pools[key.name] = ToNodePool(object);
  std::vector<std::string> due;
  for (const auto& [key, claim] : claims_.objects()) {
    const json::Value* node = nodes_.Find(key);
    const auto of = pools.find(PoolOf(claim));
    if (node == nullptr || of == pools.end() || IsDeleting(claim) || !Holds(claim, kInitialized))
      continue;
    const bool is_protected =
        (*node)["metadata"]["annotations"][kDoNotDisrupt].AsString() == "true" ||
        claim["metadata"]["annotations"][kDoNotDisrupt].AsString() == "true";
    const NodePool& pool = of->second;
    const bool wanted = pool.when_underutilized && pool.consolidate_after && !is_protected;
    if (IsClosedByUs(*node)) {
      due.push_back(key.name);  // also one that may not go any more: it is opened
      continue;
    }
    if (!wanted || !DisruptedTaintOf(*node).IsNull()) continue;
    // Later than now: the clock was set back.
    Time& last = last_pod_.try_emplace(key.name, now).first->second;
    last = std::min(last, now);
    const Time joined = std::min(InitializedAt(claim, now), now) + kFirstPods;
    const Time when = std::max(joined, last) + *pool.consolidate_after;
    if (when <= now) {
      due.push_back(key.name);
    } else if (!look_again || when < *look_again) {
      look_again = when;
    }
  }
  return due;
}

std::optional<Time> Consolidator::Act(const std::vector<ConsolidationVerdict>& verdicts, Time now) {
  bool any_closed = false;
  std::optional<Time> again;
  for (const auto& [key, node] : nodes_.objects()) {
    if (!IsClosedByUs(node)) continue;
    const json::Value* claim = claims_.Find(key);
    if (claim == nullptr || IsDeleting(*claim)) continue;
    any_closed = true;
    const auto verdict = std::ranges::find(verdicts, key.name, &ConsolidationVerdict::claim);
    const Time settled =
        ParseTime(DisruptedTaintOf(node)["timeAdded"].AsString()).value_or(now) + kSettle;
    if (verdict == verdicts.end() || !verdict->why_not.empty()) {
      Open(node);
    } else if (now < settled) {
      again = settled;
    } else {
      Delete(*claim, node, verdict->pods);
    }
  }
  if (any_closed) return again;
  for (const ConsolidationVerdict& verdict : verdicts) {
    if (!verdict.why_not.empty()) break;  // and so are all behind it
    const json::Value* node = nodes_.Find({"", verdict.claim});
    const json::Value* claim = claims_.Find({"", verdict.claim});
    const json::Value* pool = claim == nullptr ? nullptr : pools_.Find({"", PoolOf(*claim)});
    if (node == nullptr || pool == nullptr || !HasTurn(ToNodePool(*pool))) continue;
    Close(*node, now);
    return now + kSettle + seconds(1);
  }
  return again;
}

bool Consolidator::HasTurn(const NodePool& pool) const {
  int64_t going = 0, all = 0;
  for (const auto& [key, claim] : claims_.objects()) {
    if (PoolOf(claim) != pool.name) continue;
    const json::Value* node = nodes_.Find(key);
    ++all;
    going += IsDeleting(claim) || (node != nullptr && !DisruptedTaintOf(*node).IsNull()) ? 1 : 0;
  }
  return going < MayGo(pool, kUnderutilized, all);
}

void Consolidator::OpenAll() {
  for (const auto& [key, node] : nodes_.objects()) {
    const json::Value* claim = claims_.Find(key);
    if (IsClosedByUs(node) && claim != nullptr && !IsDeleting(*claim)) Open(node);
  }
}

void Consolidator::Close(const json::Value& node, Time now) {
  Update(WithDisruptedTaint(node, kUnderutilized, now));
}

void Consolidator::Open(const json::Value& node) { Update(WithoutDisruptedTaint(node)); }

// On the state that was seen alone: somebody else's write is looked at first.
void Consolidator::Update(const json::Value& node) {
  const std::string name = node["metadata"]["name"].Str();
  const json::Value patch = json::Obj(
      {{"metadata", json::Obj({{"uid", node["metadata"]["uid"]},
                               {"resourceVersion", node["metadata"]["resourceVersion"]}})},
       {"spec", json::Obj({{"taints", node["spec"]["taints"]}})}});
  api_.Patch({client::resources::kNodes, "", name, ""}, client::PatchType::kMerge, patch,
             [name](const Result<json::Value>& answer) {
               if (!answer) {
                 LOG_INFO("autoscaler: taint of node {}: {}", name, answer.error().message());
               }
             });
}

void Consolidator::Delete(const json::Value& claim, const json::Value& node, size_t pods) {
  client::DeleteOptions options;
  options.precondition_uid = claim["metadata"]["uid"].Str();
  const std::string name = claim["metadata"]["name"].Str();
  api_.Delete({kNodeClaims, "", name, ""}, options, [name](const Result<json::Value>& answer) {
    if (!answer && answer.error().reason() != Reason::kNotFound) {
      LOG_WARN("autoscaler: delete nodeclaim {}: {}", name, answer.error().message());
    }
  });
  recorder_.Record(
      node, client::EventType::kNormal, "DisruptionTerminating",
      fmt::format("Disrupting Node: Underutilized, its {} pod(s) fit on other nodes", pods));
}

}  // namespace muster::autoscaler
