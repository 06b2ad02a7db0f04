#include "apiserver/kinds/pod_strategy.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "apiserver/kinds/limit_ranger.h"
#include "apiserver/kinds/service_account_admission.h"
#include "apiserver/stored_object.h"
#include "base/bounded_seconds.h"
#include "schema/pod_phase.h"
#include "schema/pod_qos.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

bool Tolerates(const json::Value& tolerations, std::string_view taint) {
  return std::ranges::any_of(tolerations.items(), [&](const json::Value& toleration) {
    const std::string_view effect = toleration["effect"].AsString();
    const std::string_view key = toleration["key"].AsString();
    return (effect.empty() || effect == "NoExecute") && (key.empty() || key == taint);
  });
}

void AddDefaultTolerations(json::Value& pod) {
  for (std::string_view taint :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const json::Value& tolerations = pod["spec"]["tolerations"];
    if (Tolerates(tolerations, taint)) continue;
    pod = std::move(pod).SetPath(
        {"spec", "tolerations"},
        tolerations.Append(json::Obj({{"key", taint},
                                      {"operator", "Exists"},
                                      {"effect", "NoExecute"},
                                      {"tolerationSeconds", kDefaultTolerationSeconds}})));
  }
}

// Device nodes come of it: only a Binding says it.
constexpr std::string_view kGangDevicesAnnotation = "muster.dev/gang-devices";

}  // namespace

Status PodStrategy::PrepareUpdate(WriteContext&, const json::Value& before, json::Value& after) {
  const json::Value& own = before["metadata"]["annotations"][kGangDevicesAnnotation];
  const json::Value& sent = after["metadata"]["annotations"][kGangDevicesAnnotation];
  if (own == sent) return Status::Ok();
  after = own.IsNull() ? after.RemovePath({"metadata", "annotations", kGangDevicesAnnotation})
                       : after.SetPath({"metadata", "annotations", kGangDevicesAnnotation}, own);
  return Status::Ok();
}

Status PodStrategy::PrepareCreate(WriteContext& context, json::Value& pod) {
  if (pod["metadata"]["annotations"].Has(kGangDevicesAnnotation))
    pod = pod.RemovePath({"metadata", "annotations", kGangDevicesAnnotation});
  ApplyLimitRangeDefaults(store_, context, pod);
  RETURN_IF_ERROR(ApplyServiceAccount(store_, context, pod));
  AddDefaultTolerations(pod);
  RETURN_IF_ERROR(SetPriority(context, pod));
  json::Value status = json::Obj({{"phase", "Pending"}, {"qosClass", schema::QosClassOf(pod)}});
  pod = std::move(pod).Set("status", std::move(status));
  return Status::Ok();
}

bool PodStrategy::AwaitsFurniture(const WriteContext& context, const json::Value& pod) {
  return AwaitsServiceAccount(store_, context, pod);
}

Status PodStrategy::Reserve(WriteContext& context, const json::Value* before, json::Value& pod) {
  return before == nullptr ? CheckPodInLimitRanges(store_, context, pod) : Status::Ok();
}

Status PodStrategy::PrepareStatusUpdate(WriteContext&, const json::Value& before,
                                        json::Value& after) {
  // A kubelet may leave out what was computed when the pod was made.
  if (after["status"]["qosClass"].AsString().empty() && before["status"].Has("qosClass"))
    after = after.SetPath({"status", "qosClass"}, before["status"]["qosClass"]);
  return Status::Ok();
}

Status PodStrategy::SetPriority(const WriteContext& context, json::Value& pod) const {
  const json::Value& spec = pod["spec"];
  const std::string name = spec["priorityClassName"].Str();
  const json::Value found = name.empty() ? DefaultPriorityClass(store_) : FindPriorityClass(name);
  if (found.IsNull() && !name.empty()) {
    return ForbiddenError(context.kind, context.name,
                          fmt::format("no PriorityClass with name {} was found", name));
  }
  const int64_t priority = found["value"].AsInt();
  if (const std::optional<int64_t> sent = spec["priority"].Int(); sent && *sent != priority) {
    return ForbiddenError(
        context.kind, context.name,
        fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority "
                    "admission controller computed {} from the given PriorityClass name",
                    *sent, priority));
  }
  const std::string policy = found["preemptionPolicy"].Str("PreemptLowerPriority");
  const std::string_view sent_policy = spec["preemptionPolicy"].AsString();
  if (!sent_policy.empty() && sent_policy != policy) {
    return ForbiddenError(
        context.kind, context.name,
        fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                    "priority admission controller computed {} from the given PriorityClass name",
                    sent_policy, policy));
  }
  if (name.empty() && !found.IsNull()) {
    pod = std::move(pod).SetPath({"spec", "priorityClassName"}, found["metadata"]["name"]);
  }
  pod = std::move(pod)
            .SetPath({"spec", "priority"}, priority)
            .SetPath({"spec", "preemptionPolicy"}, policy);
  return Status::Ok();
}

json::Value PodStrategy::FindPriorityClass(std::string_view name) const {
  const schema::KindPtr kind =
      schema::Registry::BuiltIn().Find("scheduling.k8s.io", "v1", "priorityclasses");
  const store::EntryPtr entry = store_.GetLatest(ObjectKey(*kind, "", name));
  return entry == nullptr ? json::Value() : DecodeStored(*kind, *entry->value);
}

json::Value DefaultPriorityClass(const store::Store& store) {
  const schema::KindPtr kind =
      schema::Registry::BuiltIn().Find("scheduling.k8s.io", "v1", "priorityclasses");
  const Result<store::RangeResult> range = store.Range(KeyPrefix(*kind), "", 0, 0);
  json::Value lowest;
  if (!range) return lowest;
  for (const store::EntryPtr& entry : range->entries) {
    // Few classes exist, and the word is only in those that set it.
    if (entry->value->find("\"globalDefault\":true") == std::string::npos) continue;
    json::Value one = DecodeStored(*kind, *entry->value);
    if (one["globalDefault"].AsBool() &&
        (lowest.IsNull() || one["value"].AsInt() < lowest["value"].AsInt())) {
      lowest = std::move(one);
    }
  }
  return lowest;
}

Deletion PodStrategy::PlanDeletion(const json::Value& pod, std::optional<int64_t> requested) {
  int64_t grace = requested.value_or(
      pod["spec"]["terminationGracePeriodSeconds"].AsInt(kDefaultTerminationSeconds));
  const std::string_view phase = pod["status"]["phase"].AsString();
  // Nobody runs it: nothing has to be waited for.
  if (pod["spec"]["nodeName"].AsString().empty() || schema::IsFinalPhase(phase)) grace = 0;
  if (grace < 0) grace = 1;
  return {.graceful = grace > 0, .grace_period_seconds = BoundSeconds(grace)};
}

}  // namespace muster::apiserver
