// What may change in a Pod: k8s.io/kubernetes pkg/apis/core/validation ValidatePodUpdate.

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "json/value_hash.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxShownDifferences = 10;
constexpr std::string_view kMayNotChange =
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec."
    "tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was "
    "previously negative)";

// The containers of `after` with the images of `before`, if the lists have one length.
Value WithImagesOf(const Value& before, const Value& after) {
  json::Array items;
  for (size_t i = 0; i < after.size(); ++i) {
    const Value& image = before.At(i)["image"];
    items.push_back(image.IsNull() ? after.At(i).Remove("image") : after.At(i).Set("image", image));
  }
  return items.empty() ? after : Value(std::move(items));
}

void Differences(const Value& before, const Value& after, const Path& path,
                 std::vector<std::string>& found) {
  if (found.size() >= kMaxShownDifferences || before == after) return;
  if (before.IsObject() && after.IsObject()) {
    for (const auto& [key, value] : before.members())
      Differences(value, after[key], path.Child(key), found);
    for (const auto& [key, value] : after.members()) {
      if (!before.Has(key)) Differences(Value(), value, path.Child(key), found);
    }
  } else if (before.IsArray() && after.IsArray() && before.size() == after.size()) {
    for (size_t i = 0; i < before.size(); ++i)
      Differences(before.At(i), after.At(i), path.Index(i), found);
  } else {
    found.push_back(fmt::format("{}: {} -> {}", path.ToString(), Shown(before), Shown(after)));
  }
}

// Every toleration must stay; only its seconds may change, and more may come.
void ValidateTolerationsKept(const Value& before, const Value& after, const Path& path,
                             FieldErrors& errors) {
  json::ValueSet now;
  json::ValueSet now_without_seconds;
  for (const Value& toleration : after.items()) {
    now.insert(toleration);
    now_without_seconds.insert(toleration.Remove("tolerationSeconds"));
  }
  for (const Value& old : before.items()) {
    const bool kept =
        now.contains(old) || (old["effect"].AsString() == "NoExecute" &&
                              now_without_seconds.contains(old.Remove("tolerationSeconds")));
    if (!kept)
      errors.Forbidden(path,
                       "existing toleration can not be modified except its tolerationSeconds");
  }
}

void ValidateDeadline(const Value& before, const Value& after, const Path& path,
                      FieldErrors& errors) {
  if (before.IsNull() || before == after) return;
  if (after.IsNull()) {
    errors.Invalid(path, after, "must not update from a positive integer to nil value");
  } else if (after.AsInt() < 0 || after.AsInt() > before.AsInt()) {
    errors.Invalid(path, after, "must be less than or equal to previous value");
  }
}

// Scheduling gates may only go away.
void ValidateGatesRemoved(const Value& before, const Value& after, const Path& path,
                          FieldErrors& errors) {
  const json::ValueSet old(before.items().begin(), before.items().end());
  for (size_t i = 0; i < after.size(); ++i) {
    if (old.contains(after.At(i))) continue;
    const Path place = path.Index(i);
    errors.Forbidden(place.Child("name"),
                     "only deletion is allowed, but found new scheduling gate '" +
                         after.At(i)["name"].Str() + "'");
  }
}

// Whether a list begins with all of another.
bool BeginsWith(const Value& list, const Value& start) {
  return list.size() >= start.size() &&
         std::equal(start.items().begin(), start.items().end(), list.items().begin());
}

bool OnlyAdds(const Value& before, const Value& after) {
  constexpr std::array<std::string_view, 2> kLists = {"matchExpressions", "matchFields"};
  const auto empty = [&](const Value& term) {
    return std::ranges::all_of(kLists, [&](std::string_view key) { return term[key].empty(); });
  };
  // A term without requirements matches nothing; with one it would match something.
  if (empty(before)) return empty(after);
  return std::ranges::all_of(
      kLists, [&](std::string_view key) { return BeginsWith(after[key], before[key]); });
}

// While a pod is gated its placement may still be narrowed.
void ValidateNarrowed(const Value& old, const Value& now, const Path& spec, FieldErrors& errors) {
  for (const auto& [key, value] : old["nodeSelector"].members()) {
    if (now["nodeSelector"][key] == value) continue;
    errors.Invalid(spec.Child("nodeSelector"), now["nodeSelector"],
                   "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    break;
  }
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const Value& before = old.Path({"affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"});
  const Value& after = now.Path({"affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"});
  const Path affinity = spec.Child("affinity");
  const Path node_affinity = affinity.Child("nodeAffinity");
  const Path required = node_affinity.Child(kRequired);
  const Path terms = required.Child("nodeSelectorTerms");
  if (before.empty()) return;
  if (before.size() != after.size()) {
    return errors.Invalid(terms, after,
                          "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (!OnlyAdds(before.At(i), after.At(i)))
      errors.Invalid(terms.Index(i), after.At(i),
                     "only additions are allowed (no mutations or deletions)");
  }
}

// `now` as it would be if nothing had changed that may change.
Value WithoutAllowedChanges(const Value& old, Value now) {
  const auto keep = [&](const char* key) {
    now = old.Has(key) ? std::move(now).Set(key, old[key]) : now.Remove(key);
  };
  for (const char* key : {"activeDeadlineSeconds", "tolerations", "schedulingGates"}) keep(key);
  if (old["terminationGracePeriodSeconds"].AsInt() < 0 &&
      now["terminationGracePeriodSeconds"].AsInt() == 1) {
    keep("terminationGracePeriodSeconds");
  }
  if (!old["schedulingGates"].empty()) {
    keep("nodeSelector");
    const Value& node_affinity = old["affinity"]["nodeAffinity"];
    now = node_affinity.IsNull() ? now.RemovePath({"affinity", "nodeAffinity"})
                                 : now.SetPath({"affinity", "nodeAffinity"}, node_affinity);
    if (now["affinity"].empty() && !old.Has("affinity")) now = now.Remove("affinity");
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (now.Has(list)) now = now.Set(list, WithImagesOf(old[list], now[list]));
  }
  return now;
}

// Whoever mirrors a static pod says so when it makes the mirror.
void ValidateMirrorKept(const Value& before, const Value& after, FieldErrors& errors) {
  constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
  const Value& old = before["metadata"]["annotations"];
  const Value& now = after["metadata"]["annotations"];
  const Path metadata("metadata");
  const Path annotations = metadata.Child("annotations");
  if (old.Has(kMirror) && !(old[kMirror] == now[kMirror]))
    errors.Forbidden(annotations.Key(kMirror), "may not remove or update mirror pod annotation");
  if (!old.Has(kMirror) && now.Has(kMirror))
    errors.Forbidden(annotations.Key(kMirror), "may not add mirror pod annotation");
}

// The addresses of a pod or of its host: `key` is "podIPs" or "hostIPs".
void ValidateAddresses(const Value& status, const char* key, const Path& path,
                       FieldErrors& errors) {
  const Path list = path.Child(key);
  size_t v4 = 0, v6 = 0;
  json::ValueSet seen;
  for (size_t i = 0; i < status[key].size(); ++i) {
    const std::string_view ip = status[key].At(i)["ip"].AsString();
    errors.Check(CheckIp, list.Index(i), ip);
    v4 += IsIpv4(ip) ? 1 : 0;
    v6 += IsIpv6(ip) ? 1 : 0;
    if (!seen.insert(status[key].At(i)).second) errors.Duplicate(list.Index(i), status[key].At(i));
  }
  if (status[key].size() > 1 && (v4 > 1 || v6 > 1 || status[key].size() > 2))
    errors.Invalid(list, status[key], "may specify no more than one IP for each IP family");
}

// What ran to its end stays ended, unless the pod's policy starts it again.
void ValidateStatesKept(const Value& before, const Value& after, const char* key,
                        std::string_view policy, const Path& path, FieldErrors& errors) {
  if (policy == "Always") return;
  const Path list = path.Child(key);
  json::ValueSet running;  // names of containers that have not ended
  for (const Value& now : after[key].items()) {
    if (now["state"]["terminated"].IsNull()) running.insert(now["name"]);
  }
  for (size_t i = 0; i < before[key].size(); ++i) {
    const Value& old = before[key].At(i);
    const Value& ended = old["state"]["terminated"];
    if (ended.IsNull() || (ended["exitCode"].AsInt() != 0 && policy == "OnFailure")) continue;
    const Path place = list.Index(i);
    if (running.contains(old["name"]))
      errors.Forbidden(place.Child("state"), "may not be transitioned to non-terminated state");
  }
}

}  // namespace

void ValidatePodUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("spec");
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  ValidateMirrorKept(before, after, errors);
  if (old.SameAs(now) || old == now) return;
  for (const char* list : {"containers", "initContainers"}) {
    if (old[list].size() == now[list].size()) continue;
    errors.Forbidden(path.Child(list), "pod updates may not add or remove containers");
    return;
  }
  ValidateDeadline(old["activeDeadlineSeconds"], now["activeDeadlineSeconds"],
                   path.Child("activeDeadlineSeconds"), errors);
  ValidateTolerationsKept(old["tolerations"], now["tolerations"], path.Child("tolerations"),
                          errors);
  ValidateGatesRemoved(old["schedulingGates"], now["schedulingGates"],
                       path.Child("schedulingGates"), errors);
  if (!old["schedulingGates"].empty()) ValidateNarrowed(old, now, path, errors);
  const Value comparable = WithoutAllowedChanges(old, now);
  if (comparable == old) return;
  std::vector<std::string> found;
  Differences(old, comparable, path, found);
  errors.Forbidden(path, fmt::format("{}\n{}", kMayNotChange, Join(found, "\n")));
}

void ValidatePodStatusUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& old = before["status"];
  const Value& now = after["status"];
  const Path path("status");
  const Path metadata("metadata");
  const Path conditions = metadata.Child("conditions");  // where upstream says they are
  for (size_t i = 0; i < now["conditions"].size(); ++i) {
    const Path place = conditions.Index(i);
    errors.Check(CheckQualifiedName, place.Child("Type"), now["conditions"].At(i)["type"]);
  }
  const std::string_view nominated = now["nominatedNodeName"].AsString();
  if (!nominated.empty())
    errors.Check(CheckDns1123Subdomain, path.Child("nominatedNodeName"), nominated);
  if (!(old["qosClass"] == now["qosClass"]))
    errors.Invalid(path.Child("qosClass"), now["qosClass"], kImmutable);
  const std::string_view policy = before["spec"]["restartPolicy"].AsString();
  ValidateStatesKept(old, now, "containerStatuses", policy, path, errors);
  ValidateAddresses(now, "podIPs", path, errors);
  ValidateAddresses(now, "hostIPs", path, errors);
  if (!now["hostIPs"].empty() && !(now["hostIP"] == now["hostIPs"].At(0)["ip"])) {
    const Path list = path.Child("hostIPs");
    const Path first = list.Index(0);
    errors.Invalid(first.Child("ip"), now["hostIPs"].At(0)["ip"], "must be equal to `hostIP`");
  }
  const std::string_view phase = now["phase"].AsString();
  if (!phase.empty()) {
    errors.OneOf(path.Child("phase"), phase,
                 {"Failed", "Pending", "Running", "Succeeded", "Unknown"});
  }
}

}  // namespace muster::schema
