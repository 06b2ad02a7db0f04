// POST on pods/NAME/eviction: a DELETE that the pod's disruption budget must allow. The budget pays
// first: its status says that the pod goes, and only then the pod does, so that two evictions never
// spend the same disruption. Logic: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go.

#include <optional>

#include "apiserver/admission/admission.h"
#include "apiserver/deletion.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "apiserver/stored_object.h"
#include "schema/conditions.h"
#include "schema/disruption_target.h"
#include "schema/label_selector.h"
#include "schema/pod_phase.h"

namespace muster::apiserver {
namespace {

// Evictions of one budget that its controller has not seen yet; more are refused.
constexpr size_t kMaxDisruptedPods = 2000;
// What a client is told to wait for a budget that its controller has not looked at.
constexpr int kUnseenBudgetRetrySeconds = 10;
constexpr std::string_view kAllowedCondition = "DisruptionAllowed";

// Evictions are sent and not stored: the registry of kinds does not have them.
const schema::Kind& EvictionKind() {
  static const schema::Kind kKind = UnservedKind("policy", "v1", "Eviction");
  return kKind;
}

Status CheckEviction(const json::Value& eviction, const RequestInfo& info) {
  const json::Value& metadata = eviction["metadata"];
  if (metadata["name"].AsString() != info.name)
    return Error(Reason::kBadRequest, "name in URL does not match name in Eviction object");
  if (const std::string_view ns = metadata["namespace"].AsString(); !ns.empty() && ns != info.ns) {
    return Error(
        Reason::kBadRequest,
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  return Status::Ok();
}

// It ends anyway, has ended, or has not begun: no budget counts it.
bool NeedsNoBudget(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return pod["metadata"].Has("deletionTimestamp") || phase == "Pending" ||
         schema::IsFinalPhase(phase);
}

std::vector<Found> BudgetsOf(Core& core, const schema::Kind& kind, const json::Value& pod) {
  std::vector<Found> budgets;
  const std::string ns = pod["metadata"]["namespace"].Str();
  const Result<store::RangeResult> range = core.store.Range(CollectionPrefix(kind, ns), "", 0, 0);
  if (!range) return budgets;
  for (const store::EntryPtr& entry : range->entries) {
    Result<Found> budget = FindObject(core, kind, ns, ParseKey(entry->key).name);
    if (!budget) continue;
    const auto selector = schema::LabelSelector::FromJson(budget->object["spec"]["selector"]);
    if (selector && selector->Matches(pod["metadata"]["labels"]))
      budgets.push_back(std::move(*budget));
  }
  return budgets;
}

Status BudgetError(std::string cause, int retry_seconds) {
  StatusDetails details;
  details.causes.push_back({"DisruptionBudget", "", std::move(cause)});
  details.retry_after_seconds = retry_seconds;
  return Status(Reason::kTooManyRequests,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                std::move(details));
}

// A pod that is not ready takes nothing away where enough others are, or where nobody minds.
bool IsFreeToGo(const json::Value& pod, const json::Value& budget) {
  if (schema::ConditionHolds(pod["status"]["conditions"], "Ready")) return false;
  if (budget["spec"]["unhealthyPodEvictionPolicy"].AsString() == "AlwaysAllow") return true;
  const json::Value& status = budget["status"];
  const int64_t desired = status["desiredHealthy"].AsInt();
  return desired > 0 && status["currentHealthy"].AsInt() >= desired;
}

Status CheckBudget(const json::Value& budget) {
  const std::string name = budget["metadata"]["name"].Str();
  const json::Value& status = budget["status"];
  if (status["observedGeneration"].AsInt() < budget["metadata"]["generation"].AsInt()) {
    return BudgetError(
        fmt::format("The disruption budget {} is still being processed by the server.", name),
        kUnseenBudgetRetrySeconds);
  }
  schema::Kind singular;  // as upstream names it here
  singular.group = "policy";
  singular.plural = "poddisruptionbudget";
  const int64_t allowed = status["disruptionsAllowed"].AsInt();
  if (allowed < 0) return ForbiddenError(singular, name, "pdb disruptions allowed is negative");
  if (status["disruptedPods"].size() > kMaxDisruptedPods) {
    return ForbiddenError(
        singular, name,
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (allowed > 0) return Status::Ok();
  return BudgetError(
      fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                  status["desiredHealthy"].AsInt(), status["currentHealthy"].AsInt()),
      0);
}

// What is left of the budget when the pod goes.
json::Value Spend(json::Value budget, std::string_view pod, Time now) {
  const int64_t left = budget["status"]["disruptionsAllowed"].AsInt() - 1;
  budget = std::move(budget)
               .SetPath({"status", "disruptionsAllowed"}, left)
               .SetPath({"status", "disruptedPods", pod}, FormatTime(now));
  if (left > 0) return budget;
  const json::Value status = budget["status"];
  const json::Value before = schema::FindCondition(status["conditions"], kAllowedCondition);
  json::Value after =
      json::Obj({{"type", kAllowedCondition},
                 {"status", "False"},
                 {"observedGeneration", status["observedGeneration"].AsInt()},
                 {"lastTransitionTime", schema::TransitionTime(before, "False", now)},
                 {"reason", "InsufficientPods"},
                 {"message", ""}});
  json::Array conditions;
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() != kAllowedCondition) conditions.push_back(condition);
  }
  conditions.push_back(std::move(after));
  return budget.SetPath({"status", "conditions"}, json::Value(std::move(conditions)));
}

// Says why the pod goes, for controllers that do not count such an end against a job.
json::Value WithDisruptionTarget(const json::Value& pod, Time now) {
  json::Array conditions;
  for (const json::Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].AsString() != schema::kDisruptionTarget) conditions.push_back(condition);
  }
  conditions.push_back(schema::DisruptionTarget(pod, "EvictionByEvictionAPI",
                                                "Eviction API: evicting", now));
  return pod.SetPath({"status", "conditions"}, json::Value(std::move(conditions)));
}

void Delete(Core& core, const CallPtr& call, const ResourcePtr& pods,
            const DeleteOptions& options) {
  DeleteObject(core, pods, call->info().ns, call->info().name, options,
               [call](const Result<Deleted>& deleted) {
                 if (!deleted) return call->Fail(deleted.error());
                 call->Reply(201, json::Obj({{"kind", "Status"},
                                             {"apiVersion", "v1"},
                                             {"metadata", json::Obj()},
                                             {"status", "Success"},
                                             {"code", 201}}));
               });
}

// Whether the DELETE itself would be taken: what it would refuse costs no budget anything.
Status TryDelete(Core& core, const ResourcePtr& pods, const RequestInfo& info,
                 DeleteOptions options) {
  Status refused;
  options.dry_run = true;  // answered at once
  DeleteObject(core, pods, info.ns, info.name, options, [&refused](const Result<Deleted>& deleted) {
    if (!deleted) refused = deleted.error();
  });
  return refused;
}

// Marks the pod, then deletes it: the very pod that the preconditions meant before it was marked.
void Evict(Core& core, const CallPtr& call, const ResourcePtr& pods, DeleteOptions options) {
  const RequestInfo& info = call->info();
  if (options.dry_run) return Delete(core, call, pods, options);
  if (const Status refused = TryDelete(core, pods, info, options); !refused.ok())
    return call->Fail(refused);
  const Result<Found> pod = FindObject(core, *pods->kind, info.ns, info.name);
  if (!pod) return call->Fail(pod.error());
  options.uid = pod->object["metadata"]["uid"].Str();
  options.resource_version.clear();
  const Time now = core.loop.Now();
  WriteContext context{*pods->kind, info.ns, info.name, now, false, {}};
  ReplaceObject(core, pods, context, *pod, WithDisruptionTarget(pod->object, now),
                [&core, call, pods, options](const Result<store::EntryPtr>& entry) {
                  if (!entry) return call->Fail(entry.error());
                  Delete(core, call, pods, options);
                });
}

// The budget that has to pay; nothing if none has.
Result<std::optional<Found>> FindPayer(Core& core, const schema::Kind& kind,
                                       const json::Value& pod) {
  if (NeedsNoBudget(pod)) return std::nullopt;
  std::vector<Found> budgets = BudgetsOf(core, kind, pod);
  if (budgets.size() > 1) {
    return Error(Reason::kUnknown,
                 "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                 "does not support.");
  }
  if (budgets.empty() || IsFreeToGo(pod, budgets[0].object)) return std::nullopt;
  RETURN_IF_ERROR(CheckBudget(budgets[0].object));
  return std::move(budgets[0]);
}

Status EvictAdmitted(Core& core, const CallPtr& call, const ResourcePtr& pods,
                     const json::Value& eviction, DeleteOptions options) {
  const RequestInfo& info = call->info();
  ASSIGN_OR_RETURN(options, ReadDeleteOptions(eviction["deleteOptions"], options));
  RETURN_IF_ERROR(CheckNamespace(core, *pods->kind, info.ns, info.name));
  ASSIGN_OR_RETURN(const Found pod, FindObject(core, *pods->kind, info.ns, info.name));
  const ResourcePtr budgets = core.registry.Find("policy", "v1", "poddisruptionbudgets");
  ASSIGN_OR_RETURN(const std::optional<Found> payer, FindPayer(core, *budgets->kind, pod.object));
  if (!payer || options.dry_run) {
    Evict(core, call, pods, options);
    return Status::Ok();
  }
  RETURN_IF_ERROR(TryDelete(core, pods, info, options));
  const Time now = core.loop.Now();
  WriteContext context{*budgets->kind, info.ns, payer->object["metadata"]["name"].Str(), now,
                       false,          {}};
  // What the budget paid for is this pod, not another of its name.
  if (options.uid.empty()) options.uid = pod.object["metadata"]["uid"].Str();
  ReplaceObject(core, budgets, context, *payer, Spend(payer->object, info.name, now),
                [&core, call, pods, options](const Result<store::EntryPtr>& entry) {
                  if (!entry) return call->Fail(entry.error());
                  Evict(core, call, pods, options);
                });
  return Status::Ok();
}

Status HandleEvict(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  const RequestInfo& info = call->info();
  if (info.method != "POST") return MethodNotAllowedError();
  DeleteOptions options;
  ASSIGN_OR_RETURN(options.dry_run, DryRunOf(info, "CreateOptions"));
  const schema::Kind& kind = EvictionKind();
  ASSIGN_OR_RETURN(json::Value eviction, DecodeObject(*call, kind));
  RETURN_IF_ERROR(CheckEviction(eviction, info));
  AdmitUnstored(core, call, pods, Operation::kCreate, options.dry_run,
                eviction.Set("kind", kind.kind).Set("apiVersion", kind.GroupVersion()),
                [&core, call, pods, options](const json::Value& admitted) {
                  return EvictAdmitted(core, call, pods, admitted, options);
                });
  return Status::Ok();
}

}  // namespace

void HandleEviction(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  if (Status status = HandleEvict(core, call, pods); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
