// src/autoscaler/consolidator.h
//
// Consolidator: lets nodes go whose pods fit on others, one step at a time: the node is closed
// (taint karpenter.sh/disrupted), looked at once more when no binding can be on its way any more,
// and then its NodeClaim is deleted, by which its pods are evicted (node_claim_controller.h), or it
// is opened again.
//
// Life cycle: a part of the Autoscaler.
// Thread:     the loop thread.
// Invariants: one node at a time, within the budgets of its pool, and only consolidateAfter after
//             the last pod came to it or went. What is closed is on the Node: a restart loses
//             nothing but the time of the last pod, which counts from then.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/consolidation_planner.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"

namespace muster::autoscaler {

class Consolidator {
 public:
  // REQUIRES: all outlive it; the informers hold whole objects.
  Consolidator(client::ApiClient& api, client::EventRecorder& recorder,
               const client::Informer& pools, const client::Informer& claims,
               const client::Informer& nodes)
      : api_(api), recorder_(recorder), pools_(pools), claims_(claims), nodes_(nodes) {}

  // A pod came to the node or went.
  void NotePod(const std::string& node, Time now) { last_pod_[node] = now; }
  void ForgetNode(const std::string& node) { last_pod_.erase(node); }

  // The claims to ask PlanConsolidation about, those whose nodes are closed included.
  // `look_again`: when the next one is due.
  std::vector<std::string> Due(Time now, std::optional<Time>& look_again);
  // Takes the next step. Returns when to look again, if so.
  std::optional<Time> Act(const std::vector<ConsolidationVerdict>& verdicts, Time now);
  // Pods wait: nothing goes.
  void OpenAll();

 private:
  bool HasTurn(const NodePool& pool) const;
  void Close(const json::Value& node, Time now);
  void Open(const json::Value& node);
  void Delete(const json::Value& claim, const json::Value& node, size_t pods);
  void Update(const json::Value& node);

  client::ApiClient& api_;
  client::EventRecorder& recorder_;
  const client::Informer& pools_;
  const client::Informer& claims_;
  const client::Informer& nodes_;
  std::map<std::string, Time> last_pod_;  // by node
};

}  // namespace muster::autoscaler
