#include "autoscaler/node_claim_controller.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "autoscaler/node_claim.h"
#include "schema/conditions.h"

namespace muster::autoscaler {
namespace {

using client::EventType;
using client::ObjectKey;
using client::Reconciled;
namespace resources = client::resources;

client::Target ClaimTarget(const json::Value& claim, const char* subresource = "") {
  return {kNodeClaims, "", claim["metadata"]["name"].Str(), subresource};
}

void DeleteClaim(const json::Value& claim, Reconciled& out) {
  client::DeleteOptions options;
  options.precondition_uid = claim["metadata"]["uid"].Str();
  out.Delete(ClaimTarget(claim), std::move(options));
}

void Evict(const json::Value& pod, Reconciled& out) {
  const ObjectKey key = client::KeyOf(pod);
  const json::Value options =
      json::Obj({{"preconditions", json::Obj({{"uid", pod["metadata"]["uid"]}})}});
  out.Create({resources::kPods, key.ns, key.name, "eviction"},
             json::Obj({{"apiVersion", "policy/v1"},
                        {"kind", "Eviction"},
                        {"metadata", json::Obj({{"name", key.name}, {"namespace", key.ns}})},
                        {"deleteOptions", options}}));
}

// Tells them to go.
bool StillHasPods(const client::Informer& pods, const std::string& node, Reconciled& out) {
  bool any = false;
  for (const ObjectKey& key : PodsOn(pods, node)) {
    const json::Value& pod = *pods.Find(key);
    if (!Counts(pod)) continue;
    any = true;
    if (!IsDeleting(pod)) Evict(pod, out);
  }
  return any;
}

// Those that are there because of the node end with it.
void RemoveNode(const client::Informer& pods, const json::Value& node, Reconciled& out) {
  const std::string name = node["metadata"]["name"].Str();
  client::DeleteOptions options;
  for (const ObjectKey& key : PodsOn(pods, name)) {
    options.grace_period_seconds = 0;
    options.precondition_uid = (*pods.Find(key))["metadata"]["uid"].Str();
    out.Delete({resources::kPods, key.ns, key.name, ""}, options);
  }
  options = {};
  options.precondition_uid = node["metadata"]["uid"].Str();
  out.Delete({resources::kNodes, "", name, ""}, std::move(options));
}

void Terminate(const json::Value& claim, const json::Value* node, const client::Informer& pods,
               Time now, Reconciled& out) {
  if (node == nullptr) {
    json::Array finalizers;
    for (const json::Value& each : claim["metadata"]["finalizers"].items()) {
      if (each.AsString() != kTerminationFinalizer) finalizers.push_back(each);
    }
    if (finalizers.size() == claim["metadata"]["finalizers"].size()) return;
    out.Update(ClaimTarget(claim),
               claim.SetPath({"metadata", "finalizers"}, json::Value(std::move(finalizers))));
    return;
  }
  if (DisruptedTaintOf(*node).IsNull()) {
    out.Update({resources::kNodes, "", (*node)["metadata"]["name"].Str(), ""},
               WithDisruptedTaint(*node, "", now));
    return;
  }
  if (StillHasPods(pods, (*node)["metadata"]["name"].Str(), out)) return;
  RemoveNode(pods, *node, out);
  out.Event(
      claim, EventType::kNormal, "Terminated",
      fmt::format("Node {} was empty and is removed", (*node)["metadata"]["name"].AsString()));
}

// One pass over a claim that is wanted.
class Life {
 public:
  Life(const ProviderOptions& options, const json::Value& claim, const json::Value* node,
       const json::Value* pool, Time now)
      : options_(options),
        claim_(claim),
        node_(node),
        pool_(pool),
        now_(now),
        status_(claim["status"]) {}

  Reconciled Run() {
    Proceed();
    if (status_ != claim_["status"])
      out_.UpdateStatus(ClaimTarget(claim_), claim_.Set("status", status_));
    return std::move(out_);
  }

 private:
  std::string Name() const { return claim_["metadata"]["name"].Str(); }
  Time Since(std::string_view condition) const {
    const json::Value& found = schema::FindCondition(claim_["status"]["conditions"], condition);
    return ParseTime(found["lastTransitionTime"].AsString()).value_or(now_);
  }
  void Say(std::string_view condition, bool holds, std::string_view reason,
           std::string_view message = "") {
    status_ = WithCondition(status_, condition, holds, reason, message, now_);
  }
  void GiveUp(std::string reason, std::string message) {
    out_.Event(claim_, EventType::kWarning, std::move(reason), std::move(message));
    DeleteClaim(claim_, out_);
  }

  void Proceed() {
    const cluster::InstanceType* type = TypeOf(claim_, options_.catalog);
    if (type == nullptr || pool_ == nullptr) {
      if (!Holds(claim_, kRegistered))
        GiveUp("LaunchFailed",
               fmt::format("NodeClaim {}: its instance type or NodePool is unknown", Name()));
      return;
    }
    if (!Holds(claim_, kLaunched)) Launch(*type);
    if (Holds(claim_, kRegistered)) return node_ == nullptr ? Lost() : Initialize();
    if (node_ != nullptr) return Register();
    Join(*type);
  }

  void Launch(const cluster::InstanceType& type) {
    status_ = (status_.IsObject() ? status_ : json::Obj())
                  .Set("providerID", "muster-simulated:///" + Name())
                  .Set("imageID", "simulated")
                  .Set("capacity", CapacityOf(type))
                  .Set("allocatable", AllocatableOf(type));
    Say(kLaunched, true, "Launched");
    Say(kRegistered, false, "NodeNotFound", "the machine starts");
    Say(kInitialized, false, "NodeNotRegistered");
    Say(kClaimReady, false, "NotReady");
    out_.Event(claim_, EventType::kNormal, "Launched",
               fmt::format("{} ({}, {} USD/h) starts", type.name, ToString(CapacityTypeOf(claim_)),
                           cluster::UsdText(type.Price(CapacityTypeOf(claim_)))));
  }

  // The provider's part: the Node of the machine.
  void Join(const cluster::InstanceType& type) {
    const Time asked = ParseTime(claim_["metadata"]["creationTimestamp"].AsString()).value_or(now_);
    // A clock that was set back keeps nobody waiting.
    const Time joins = std::min(asked, now_) + options_.start_delay;
    if (now_ < joins) return out_.LookAgainAt(joins);
    if (now_ >= asked + kRegistrationDeadline + options_.start_delay) {
      return GiveUp("RegistrationTimeout",
                    fmt::format("NodeClaim {}: no Node has joined within {}", Name(),
                                HumanDuration(kRegistrationDeadline)));
    }
    out_.Create({resources::kNodes, "", Name(), ""},
                NodeObject(ToNodePool(*pool_), type, CapacityTypeOf(claim_), Name(), now_));
  }

  void Register() {
    status_ = (status_.IsObject() ? status_ : json::Obj()).Set("nodeName", Name());
    Say(kRegistered, true, "Registered");
    out_.Event(claim_, EventType::kNormal, "Registered", fmt::format("Node {} has joined", Name()));
  }

  void Initialize() {
    if (Holds(claim_, kInitialized)) return;
    if (IsInitialized(claim_, *node_)) {
      Say(kInitialized, true, "Initialized");
      Say(kClaimReady, true, "Ready");
      return;
    }
    Say(kInitialized, false, "ResourceNotRegistered",
        "the node is not Ready, or devices that it must have have not appeared");
    const Time due = Since(kRegistered) + kInitializationDeadline;
    if (now_ < due) return out_.LookAgainAt(due);
    GiveUp("InitializationTimeout",
           fmt::format("NodeClaim {}: node {} has not got what it must have within {}; another "
                       "type is tried",
                       Name(), Name(), HumanDuration(kInitializationDeadline)));
  }

  // Deleted by somebody, or taken back.
  void Lost() {
    out_.Event(claim_, EventType::kNormal, "NodeLost", fmt::format("Node {} is gone", Name()));
    DeleteClaim(claim_, out_);
  }

  const ProviderOptions& options_;
  const json::Value& claim_;
  const json::Value* node_;
  const json::Value* pool_;
  const Time now_;
  json::Value status_;
  Reconciled out_;
};

}  // namespace

std::vector<client::Trigger> NodeClaimController::Setup(client::InformerSet& informers) {
  informers.Get(kNodeClaims, json::Fields::Whole());
  informers.Get(kNodePools, json::Fields::Whole());
  informers.Get(resources::kNodes, json::Fields::Whole());
  IndexByNode(informers.Get(resources::kPods, CountedPodFields()));
  const auto same_name = [](const ObjectKey& key, const json::Value&, const json::Value&) {
    return std::vector<ObjectKey>{key};
  };
  const auto of_pod = [](const ObjectKey&, const json::Value& before, const json::Value& after) {
    const std::string node = (after.IsNull() ? before : after)["spec"]["nodeName"].Str();
    return node.empty() ? std::vector<ObjectKey>() : std::vector<ObjectKey>{{"", node}};
  };
  return {client::OnSelf(kNodeClaims), {resources::kNodes, same_name}, {resources::kPods, of_pod}};
}

Reconciled NodeClaimController::Reconcile(const client::View& view, const client::Observations&,
                                          const ObjectKey& key, Time now, uint64_t) {
  const json::Value* claim = view.Of(kNodeClaims).Find(key);
  if (claim == nullptr) return {};
  const json::Value* node = view.Of(resources::kNodes).Find(key);
  if (IsDeleting(*claim)) {
    Reconciled out;
    Terminate(*claim, node, view.Of(resources::kPods), now, out);
    return out;
  }
  const json::Value* pool = view.Of(kNodePools).Find({"", PoolOf(*claim)});
  return Life(options_, *claim, node, pool, now).Run();
}

}  // namespace muster::autoscaler
