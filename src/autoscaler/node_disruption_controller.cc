#include "autoscaler/node_disruption_controller.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "autoscaler/node_claim.h"
#include "schema/conditions.h"

namespace muster::autoscaler {
namespace {

using client::EventType;
using client::ObjectKey;
using client::Reconciled;
namespace resources = client::resources;

constexpr char kPoolIndex[] = "disruption-pool";
constexpr char kLastPodEvent[] = "lastPodEventTime";
constexpr std::string_view kNotEmpty = "NodeNotEmpty";

bool IsProtected(const json::Value& object) {
  return object["metadata"]["annotations"][kDoNotDisrupt].AsString() == "true";
}

// What keeps the node; nullopt: nothing does, it is empty.
std::optional<std::string> WhyItStays(const json::Value& claim, const json::Value& node,
                                      const client::Informer& pods) {
  if (IsProtected(claim) || IsProtected(node))
    return fmt::format("the node has the annotation {}", kDoNotDisrupt);
  std::vector<std::string> names;
  for (const ObjectKey& key : PodsOn(pods, node["metadata"]["name"].Str())) {
    const json::Value& pod = *pods.Find(key);
    if (!Counts(pod)) continue;
    if (IsProtected(pod))
      return fmt::format("pod {} has the annotation {}", key.ToString(), kDoNotDisrupt);
    names.push_back(key.ToString());
  }
  if (names.empty()) return std::nullopt;
  std::ranges::sort(names);
  return names.size() == 1
             ? fmt::format("pod {} runs on it", names[0])
             : fmt::format("pod {} and {} more run on it", names[0], names.size() - 1);
}

// One pass over one claim whose node is there.
class Decision {
 public:
  Decision(const client::View& view, const json::Value& claim, const json::Value& node,
           const json::Value& pool, std::map<std::string, Time>& closing, Time now)
      : closing_(closing),
        claims_(view.Of(kNodeClaims)),
        nodes_(view.Of(resources::kNodes)),
        pods_(view.Of(resources::kPods)),
        claim_(claim),
        node_(node),
        pool_(ToNodePool(pool)),
        now_(now),
        status_(claim["status"]) {}

  // `empty_since` is kept between passes; nullopt while it is not empty.
  Reconciled Run(std::optional<Time>& empty_since) {
    std::optional<std::string> stays = WhyItStays(claim_, node_, pods_);
    if (stays) {
      empty_since.reset();
      // One that was closed because its pods fit elsewhere is the autoscaler's to open.
      const json::Value& taint = DisruptedTaintOf(node_);
      if (!taint.IsNull() && taint["value"].AsString() != kUnderutilized) Open();
      Tell(false, kNotEmpty, *stays);
    } else {
      // A clock that was set back must not keep it for the hours that it was ahead.
      empty_since = std::min(empty_since.value_or(Remembered()), now_);
      // Whole seconds, rounded up: it does not go too early.
      status_ = status_.Set(kLastPodEvent, FormatTime(*empty_since + milliseconds(999)));
      LetGo(*empty_since);
    }
    return std::move(out_);
  }

 private:
  client::Target NodeTarget() const {
    return {resources::kNodes, "", node_["metadata"]["name"].Str(), ""};
  }

  // What was written down before this process began, if the node was empty then, too.
  Time Remembered() const {
    const json::Value& told =
        schema::FindCondition(claim_["status"]["conditions"], kConsolidatable);
    if (told.IsNull() || told["reason"].AsString() == kNotEmpty) return now_;
    return ParseTime(claim_["status"][kLastPodEvent].AsString()).value_or(now_);
  }

  void Tell(bool may_go, std::string_view reason, std::string_view message) {
    const json::Value status =
        WithCondition(status_, kConsolidatable, may_go, reason, message, now_);
    if (status == claim_["status"]) return;
    out_.UpdateStatus({kNodeClaims, "", claim_["metadata"]["name"].Str(), ""},
                      claim_.Set("status", status));
  }

  void LetGo(Time empty_since) {
    if (!pool_.consolidate_after)
      return Tell(false, "NeverConsolidated", "consolidateAfter of its NodePool is Never");
    const json::Value& ready = schema::FindCondition(claim_["status"]["conditions"], kInitialized);
    const Time joined = ParseTime(ready["lastTransitionTime"].AsString()).value_or(now_);
    const Time due = std::max(empty_since + *pool_.consolidate_after, joined + kFirstPods);
    if (now_ < due) {
      out_.LookAgainAt(due);
      return Tell(false, "Waiting",
                  fmt::format("it is empty, and goes when it has been for {}",
                              HumanDuration(*pool_.consolidate_after)));
    }
    if (const json::Value& taint = DisruptedTaintOf(node_); !taint.IsNull()) return Finish(taint);
    if (!HasTurn()) {
      out_.LookAgainAt(now_ + kBudgetPeriod);
      return Tell(false, "Budget", "as many nodes of its NodePool go already as its budgets allow");
    }
    Close();
    Tell(true, "Empty", "it is empty, and goes");
  }

  // Claims of the pool that go, and those whose nodes are closed for it, count.
  bool HasTurn() {
    int64_t going = 0, all = 0;
    for (const ObjectKey& key : claims_.Lookup(kPoolIndex, pool_.name)) {
      const json::Value& other = *claims_.Find(key);
      const json::Value* node = nodes_.Find(key);
      ++all;
      const bool closed = node != nullptr && !DisruptedTaintOf(*node).IsNull();
      if (closed) closing_.erase(key.name);
      const auto closing = closing_.find(key.name);
      const bool closes = closing != closing_.end() && now_ < closing->second + kBudgetPeriod;
      going += IsDeleting(other) || closed || closes ? 1 : 0;
    }
    return going < MayGo(pool_, "Empty", all);
  }

  void Close() {
    closing_[node_["metadata"]["name"].Str()] = now_;
    out_.Update(NodeTarget(), WithDisruptedTaint(node_, "", now_));
  }

  void Open() { out_.Update(NodeTarget(), WithoutDisruptedTaint(node_)); }

  void Finish(const json::Value& taint) {
    // Times of taints are whole seconds.
    const Time settled = ParseTime(taint["timeAdded"].AsString()).value_or(now_) + kSettle;
    if (now_ < settled) return out_.LookAgainAt(settled);
    client::DeleteOptions options;
    options.precondition_uid = claim_["metadata"]["uid"].Str();
    out_.Delete({kNodeClaims, "", claim_["metadata"]["name"].Str(), ""}, std::move(options));
    out_.Event(
        node_, EventType::kNormal, "DisruptionTerminating",
        fmt::format("Disrupting Node: Empty for {}", HumanDuration(*pool_.consolidate_after)));
  }

  std::map<std::string, Time>& closing_;
  const client::Informer& claims_;
  const client::Informer& nodes_;
  const client::Informer& pods_;
  const json::Value& claim_;
  const json::Value& node_;
  const NodePool pool_;
  const Time now_;
  json::Value status_;
  Reconciled out_;
};

}  // namespace

std::vector<client::Trigger> NodeDisruptionController::Setup(client::InformerSet& informers) {
  client::Informer& claims = informers.Get(kNodeClaims, json::Fields::Whole());
  informers.Get(kNodePools, json::Fields::Whole());
  informers.Get(resources::kNodes, json::Fields::Whole());
  IndexByNode(informers.Get(resources::kPods, CountedPodFields()));
  claims.AddIndex(kPoolIndex,
                  [](const json::Value& claim) { return std::vector<std::string>{PoolOf(claim)}; });
  const auto same_name = [](const ObjectKey& key, const json::Value&, const json::Value&) {
    return std::vector<ObjectKey>{key};
  };
  const auto of_pod = [](const ObjectKey&, const json::Value& before, const json::Value& after) {
    const std::string node = (after.IsNull() ? before : after)["spec"]["nodeName"].Str();
    return node.empty() ? std::vector<ObjectKey>() : std::vector<ObjectKey>{{"", node}};
  };
  const auto of_pool = [&claims](const ObjectKey& key, const json::Value&, const json::Value&) {
    return claims.Lookup(kPoolIndex, key.name);
  };
  return {client::OnSelf(kNodeClaims),
          {resources::kNodes, same_name},
          {resources::kPods, of_pod},
          {kNodePools, of_pool}};
}

Reconciled NodeDisruptionController::Reconcile(const client::View& view,
                                               const client::Observations&, const ObjectKey& key,
                                               Time now, uint64_t) {
  const json::Value* claim = view.Of(kNodeClaims).Find(key);
  const json::Value* node = view.Of(resources::kNodes).Find(key);
  const json::Value* pool =
      claim == nullptr ? nullptr : view.Of(kNodePools).Find({"", PoolOf(*claim)});
  const bool there = node != nullptr && pool != nullptr;
  if (!there || IsDeleting(*claim) || IsDeleting(*node) || !Holds(*claim, kInitialized)) {
    empty_since_.erase(key.name);
    closing_.erase(key.name);
    return {};
  }
  std::optional<Time> since;
  if (const auto known = empty_since_.find(key.name); known != empty_since_.end())
    since = known->second;
  Reconciled out = Decision(view, *claim, *node, *pool, closing_, now).Run(since);
  if (since) {
    empty_since_[key.name] = *since;
  } else {
    empty_since_.erase(key.name);
  }
  return out;
}

}  // namespace muster::autoscaler
