#include "controllers/namespaces/namespace_controller.h"

#include <algorithm>
#include <string>

#include "controllers/namespaces/namespace_conditions.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kFinalizer[] = "kubernetes";
constexpr Duration kSayAfter = seconds(5);
constexpr Duration kPatience = seconds(20);  // with a server that is asked to delete something
constexpr Duration kLookAgain = seconds(1);  // when a live list shows what an informer does not

std::string ProbeName(const client::Resource& resource) {
  return resource.group + "/" + resource.plural;
}

// Events are too many to hold a copy of each, and nothing hangs on one: no informer follows them,
// and they go last, as a collection.
bool IsFollowed(const client::ServedKind& kind) {
  return kind.namespaced && kind.resource != resources::kEvents;
}

bool HasFinalizer(const json::Value& ns) {
  for (const json::Value& finalizer : ns["spec"]["finalizers"].items()) {
    if (finalizer.AsString() == kFinalizer) return true;
  }
  return false;
}

json::Value WithoutFinalizer(const json::Value& ns) {
  json::Array kept;
  for (const json::Value& finalizer : ns["spec"]["finalizers"].items()) {
    if (finalizer.AsString() != kFinalizer) kept.push_back(finalizer);
  }
  return ns.SetPath({"spec", "finalizers"}, json::Value(std::move(kept)));
}

// Deletes what the informer shows of one kind, and counts what there still is.
void Empty(const client::Informer& informer, const std::string& ns, bool asked,
           NamespaceRemains& remains, client::Reconciled& out) {
  const auto& objects = informer.objects();
  for (auto it = objects.lower_bound({ns, ""}); it != objects.end() && it->first.ns == ns; ++it) {
    remains.Add(informer.resource(), it->second, asked);
    const json::Value& metadata = it->second["metadata"];
    if (metadata.Has("deletionTimestamp")) continue;
    client::DeleteOptions options;
    options.precondition_uid = metadata["uid"].Str();
    options.propagation_policy = "Background";
    out.Delete({informer.resource(), ns, it->first.name, ""}, std::move(options));
  }
}

Time DeletedAt(const json::Value& ns) {
  return ParseTime(ns["metadata"]["deletionTimestamp"].AsString()).value_or(Time());
}

// When the status may say something else; a namespace that is emptied in the usual time says
// nothing, and one with thousands of objects not every time that one of them goes.
Time MaySayAt(const json::Value& ns) {
  Time last = DeletedAt(ns);
  for (const json::Value& condition : ns["status"]["conditions"].items()) {
    const auto changed = ParseTime(condition["lastTransitionTime"].AsString());
    if (changed) last = std::max(last, *changed);
  }
  return last + kSayAfter;
}

void SayWhatRemains(const json::Value& ns, const NamespaceRemains& remains, Time now,
                    client::Reconciled& out) {
  const json::Value& before = ns["status"]["conditions"];
  const json::Value conditions = ConditionsOf(remains, before, now);
  if (conditions.SameAs(before)) return;
  if (const Time at = MaySayAt(ns); now < at) {
    out.LookAgainAt(at);
  } else {
    out.UpdateStatus({resources::kNamespaces, "", ns["metadata"]["name"].Str(), ""},
                     ns.SetPath({"status", "conditions"}, conditions));
  }
}

}  // namespace

NamespaceController::NamespaceController(client::ResourceDiscovery& discovery)
    : discovery_(discovery) {}

std::vector<client::Trigger> NamespaceController::Setup(client::InformerSet& informers) {
  informers_ = &informers;
  informers.Get(resources::kNamespaces, json::Fields::Whole());
  return {client::OnSelf(resources::kNamespaces)};
}

void NamespaceController::Attach(std::function<void(const client::ObjectKey&)> wake) {
  discovery_.Subscribe(lifetime_.Guard([this, wake](const client::ServedKind& kind) {
    if (!IsFollowed(kind)) return;
    // An object that went may have been the last; one that came into a dying namespace must go.
    informers_->Get(kind.resource)
        .Subscribe({.on_change = lifetime_.Guard([this, wake](const client::ObjectKey& key,
                                                              const json::Value& before,
                                                              const json::Value& after) {
                      if (!before.IsNull() && !after.IsNull()) return;
                      const json::Value* ns =
                          informers_->Get(resources::kNamespaces).Find({"", key.ns});
                      if (ns != nullptr && (*ns)["metadata"].Has("deletionTimestamp")) {
                        wake({"", key.ns});
                      }
                    }),
                    .on_synced = {}});
  }));
}

client::Reconciled NamespaceController::Reconcile(const client::View& view,
                                                  const client::Observations& observations,
                                                  const client::ObjectKey& key, Time now,
                                                  uint64_t) {
  client::Reconciled out;
  const json::Value* ns = view.Of(resources::kNamespaces).Find(key);
  if (ns == nullptr || !(*ns)["metadata"].Has("deletionTimestamp") || !HasFinalizer(*ns)) {
    return out;
  }
  if (!discovery_.Synced()) {
    out.LookAgainAt(now + kLookAgain);
    return out;
  }
  NamespaceRemains remains;
  client::Reconciled deletes;
  const auto refusal = observations.find(client::kRefusedWrite);
  if (refusal != observations.end()) remains.refusal = refusal->second["message"].Str();
  const bool long_asked = !remains.refusal.empty() || now - DeletedAt(*ns) >= kPatience;
  for (const client::ServedKind& kind : discovery_.kinds()) {
    if (IsFollowed(kind)) Empty(view.Of(kind.resource), key.name, long_asked, remains, deletes);
  }
  if (!remains.empty()) {
    // First, because a delete may fail.
    SayWhatRemains(*ns, remains, now, out);
    out.writes.insert(out.writes.end(), std::make_move_iterator(deletes.writes.begin()),
                      std::make_move_iterator(deletes.writes.end()));
    return out;
  }
  bool asked = true;
  bool empty = true;
  for (const client::ServedKind& kind : discovery_.kinds()) {
    if (!kind.namespaced) continue;
    const auto answer = observations.find(ProbeName(kind.resource));
    asked &= answer != observations.end();
    empty &= answer != observations.end() && answer->second["items"].empty();
  }
  if (asked && empty) {
    out.Update({resources::kNamespaces, "", key.name, "finalize"}, WithoutFinalizer(*ns));
  } else if (asked) {
    out.LookAgainAt(now + kLookAgain);
  } else {
    out.Delete({resources::kEvents, key.name, "", ""});
    for (const client::ServedKind& kind : discovery_.kinds()) {
      if (kind.namespaced) out.Ask(ProbeName(kind.resource), {kind.resource, key.name, "", ""});
    }
  }
  return out;
}

}  // namespace muster::controllers
