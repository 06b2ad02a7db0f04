#include "agent/node/policy_publisher.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "agent/network/policy_planner.h"
#include "agent/runtime/files.h"
#include "agent/spawner/network_config.h"
#include "agent/spawner/spawner.h"
#include "base/log.h"

namespace muster::agent {

namespace {

// Far below what one message to the spawner may have.
constexpr size_t kMaxTableInMessage = kMaxSpawnerMessageBytes / 4;

// Of pods anywhere in the cluster.
json::Fields PeerFields() {
  return {{"metadata", "labels"},
          {"spec", "nodeName"},
          {"spec", "hostNetwork"},
          {"spec", "containers", "ports"},
          {"spec", "initContainers", "ports"},
          {"spec", "initContainers", "restartPolicy"},
          {"status", "podIP"},
          {"status", "phase"}};
}

// What of a pod the policies look at.
bool IsSamePeer(const json::Value& before, const json::Value& after) {
  return before["metadata"]["uid"] == after["metadata"]["uid"] &&
         before["metadata"]["labels"] == after["metadata"]["labels"] &&
         before["spec"] == after["spec"] && before["status"]["podIP"] == after["status"]["podIP"] &&
         before["status"]["phase"] == after["status"]["phase"];
}

std::vector<json::Value> ObjectsOf(const client::Informer& informer) {
  std::vector<json::Value> out;
  out.reserve(informer.objects().size());
  for (const auto& [key, object] : informer.objects()) out.push_back(object);
  return out;
}

}  // namespace

PolicyPublisher::PolicyPublisher(Loop& loop, Pool& pool, client::ApiClient& client,
                                 client::InformerSet& informers, client::Informer& pods_of_node,
                                 SpawnerClient& spawner, client::EventRecorder& events, Node node)
    : loop_(loop),
      pool_(pool),
      client_(client),
      policies_(informers.Get(client::resources::kNetworkPolicies, json::Fields::Whole())),
      namespaces_(informers.Get(client::resources::kNamespaces, {{"metadata", "labels"}})),
      pods_(informers.Get(client::resources::kPods, PeerFields())),
      pods_of_node_(pods_of_node),
      spawner_(spawner),
      events_(events),
      node_(std::move(node)) {}

PolicyPublisher::~PolicyPublisher() {
  loop_.Cancel(retry_);
  loop_.Cancel(look_again_);
}

void PolicyPublisher::Start() {
  started_ = true;
  client::InformerEvents of_policies, of_namespaces, of_pods;
  of_policies.on_change = lifetime_.Guard(
      [this](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
        if (!(before["spec"] == after["spec"]) || before.IsNull() || after.IsNull()) Changed();
      });
  of_namespaces.on_change = lifetime_.Guard(
      [this](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
        if (!(before["metadata"]["labels"] == after["metadata"]["labels"])) Changed();
      });
  const auto on_pod = [this](const client::ObjectKey&, const json::Value& before,
                             const json::Value& after) {
    if (!IsSamePeer(before, after)) Changed();
  };
  of_pods.on_change = lifetime_.Guard(on_pod);
  client::InformerEvents of_local_pods;
  of_local_pods.on_change = lifetime_.Guard(on_pod);
  for (client::InformerEvents* events : {&of_policies, &of_namespaces, &of_pods})
    events->on_synced = events->on_unserved = lifetime_.Guard([this] { Changed(); });
  policies_.Subscribe(std::move(of_policies));
  namespaces_.Subscribe(std::move(of_namespaces));
  pods_.Subscribe(std::move(of_pods));
  pods_of_node_.Subscribe(std::move(of_local_pods));
  Changed();
}

void PolicyPublisher::LocalPodsChanged() {
  ForgetTheGone();
  Changed();
}

// Pods that went while they waited.
void PolicyPublisher::ForgetTheGone() {
  if (revisions_.empty()) return;
  std::set<Place> here;
  for (const json::Value& pod : node_.pods())
    here.emplace(pod["metadata"]["uid"].Str(), pod["status"]["podIP"].Str());
  std::erase_if(revisions_, [&](const auto& entry) { return !here.contains(entry.first); });
}

std::optional<uint64_t> PolicyPublisher::RevisionFor(const Place& place, const std::string& ns) {
  const auto [entry, is_new] = revisions_.try_emplace(place);
  if (!is_new) return entry->second;
  client_.List(client::resources::kNetworkPolicies, ns, {},
               lifetime_.Guard([this, place](Result<json::Value> list) {
                 const auto waiting = revisions_.find(place);
                 if (waiting == revisions_.end()) return;
                 if (!list && list.error().reason() != Reason::kNotFound) {
                   LOG_WARN("agent: list network policies: {}", list.error().message());
                   revisions_.erase(waiting);
                   return LookAgainLater();
                 }
                 uint64_t newest = 0;
                 if (list) {
                   for (const json::Value& policy : (*list)["items"].items())
                     newest = std::max(newest, client::RevisionOf(policy));
                 }
                 waiting->second = newest;
                 node_.on_policies_changed();
               }));
  return std::nullopt;
}

bool PolicyPublisher::Known() const {
  return started_ && policies_.Known() && namespaces_.Known() && pods_.Known();
}

bool PolicyPublisher::IsIdle() const {
  return applied_once_ && applied_.empty() && !planning_ && policies_.objects().empty();
}

PolicyGuard::Answer PolicyPublisher::Look(const json::Value& pod, const std::string& address) {
  if (pod["spec"]["hostNetwork"].AsBool()) return {};
  if (!Known()) return {Answer::Is::kNotYet};
  const json::Value& meta = pod["metadata"];
  const Place place{meta["uid"].Str(), address};
  const std::optional<uint64_t> revision = RevisionFor(place, meta["namespace"].Str());
  if (revision && policies_.SeenRevision() < *revision) LookAgainLater();
  if (!revision || policies_.SeenRevision() < *revision) return {Answer::Is::kNotYet};
  if (IsIdle() || (in_force_.contains(place) && applied_revision_ >= *revision)) {
    revisions_.erase(place);
    return {};
  }
  if (!failure_.empty())
    return {Answer::Is::kFailed, fmt::format("network policies: {}", failure_)};
  Changed();
  return {Answer::Is::kNotYet};
}

// Where no pass comes that would say so.
void PolicyPublisher::LookAgainLater() {
  if (look_again_ != 0) return;
  look_again_ = loop_.After(kLookAgain, [this] {
    look_again_ = 0;
    node_.on_policies_changed();
  });
}

void PolicyPublisher::Changed() {
  if (!Known() || again_) return;
  if (IsIdle()) return;
  again_ = true;
  // All that changes in one turn of the loop is one pass.
  loop_.Post(lifetime_.Guard([this] { Plan(); }));
}

void PolicyPublisher::Plan() {
  if (planning_ || !again_ || retry_ != 0) return;  // OnApplied() looks again
  again_ = false;
  planning_ = true;
  PolicyInput input;
  input.policies = ObjectsOf(policies_);
  input.local_pods = node_.pods();
  planned_revision_ = policies_.SeenRevision();
  planned_.clear();
  for (const json::Value& pod : input.local_pods)
    planned_.emplace(pod["metadata"]["uid"].Str(), pod["status"]["podIP"].Str());
  if (!input.policies.empty()) {
    input.namespaces = ObjectsOf(namespaces_);
    for (const auto& [key, pod] : pods_.objects()) {
      if (pod["spec"]["nodeName"].AsString() != node_.name) input.other_pods.push_back(pod);
    }
  }
  auto table = std::make_shared<std::string>();
  pool_.Run([input = std::move(input), table] { *table = ToText(PlanPolicies(input)); }, loop_,
            lifetime_.Guard([this, table] { Apply(std::move(*table)); }));
}

void PolicyPublisher::Apply(std::string table) {
  if (applied_once_ && table == applied_) return OnApplied(std::move(table), Status::Ok());
  json::Value request = json::Obj({{"network", ToJson(node_.network)}});
  if (table.size() <= kMaxTableInMessage) {
    request = request.Set("table", table);
  } else {
    const Status written = WriteFile(node_.table_file, table, 0600);
    if (!written.ok()) return OnApplied(std::move(table), written);
    request = request.Set("file", node_.table_file);
  }
  spawner_.Call(
      "applyPolicies", std::move(request),
      lifetime_.Guard([this, table = std::move(table)](Result<json::Value> answer) mutable {
        OnApplied(std::move(table), answer ? Status::Ok() : answer.error());
      }));
}

void PolicyPublisher::OnApplied(std::string table, const Status& status) {
  planning_ = false;
  if (status.ok()) {
    applied_once_ = true;
    applied_ = std::move(table);
    failure_.clear();
    in_force_ = std::move(planned_);
    applied_revision_ = planned_revision_;
  } else {
    // The spawner may have done a part of it.
    applied_once_ = false;
    if (failure_ != status.message()) {
      LOG_WARN("agent: apply network policies: {}", status.message());
      const json::Value node =
          json::Obj({{"apiVersion", "v1"},
                     {"kind", "Node"},
                     {"metadata", json::Obj({{"name", node_.name}, {"uid", node_.name}})}});
      events_.Record(node, client::EventType::kWarning, kPolicyNotEnforced,
                     fmt::format("network policies are not in force as they are now, new pods wait "
                                 "until they are: {}",
                                 status.message()));
    }
    failure_ = status.message();
    again_ = true;
    retry_ = loop_.After(kPoliciesRetry, [this] {
      retry_ = 0;
      Plan();
    });
  }
  node_.on_policies_changed();
  if (again_) loop_.Post(lifetime_.Guard([this] { Plan(); }));
}

}  // namespace muster::agent
