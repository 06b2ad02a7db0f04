// apps/v1: k8s.io/kubernetes pkg/apis/apps/v1/defaults.go.

#include "schema/defaulting.h"
#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {
namespace {

using json::Obj;
using json::Value;

constexpr int kDefaultHistory = 10;
constexpr int kDefaultProgressSeconds = 600;
constexpr std::string_view kDefaultPace = "25%";

// The strategy with its type and, if that is RollingUpdate, with its pace.
template <class Pace>
void DefaultStrategy(Value& spec, std::string_view key, Pace pace) {
  const Value before = spec[key];
  Value strategy = before;
  SetDefault(strategy, "type", "RollingUpdate");
  if (strategy["type"].AsString() == "RollingUpdate") {
    SetIfAbsent(strategy, "rollingUpdate", Obj());
    EditMember(strategy, "rollingUpdate", pace);
  }
  if (!strategy.SameAs(before)) spec = std::move(spec).Set(key, std::move(strategy));
}

// A claim inside a StatefulSet; it says what it is.
Value DefaultClaimTemplate(Value claim) {
  SetDefault(claim, "apiVersion", "v1");
  SetDefault(claim, "kind", "PersistentVolumeClaim");
  SetIfAbsent(claim, "spec", Obj());
  EditMember(claim, "spec", DefaultPersistentVolumeClaimSpec);
  if (IsUnset(claim["status"]["phase"])) claim = claim.SetPath({"status", "phase"}, "Pending");
  return claim;
}

template <class Change>
Value WithSpec(Value object, Change change) {
  const Value before = object["spec"];
  Value spec = before;
  DefaultTemplateOf(spec);
  change(spec);
  if (!spec.SameAs(before)) object = std::move(object).Set("spec", std::move(spec));
  return object;
}

}  // namespace

Value DefaultPodTemplate(Value pod_template) {
  const Value before = pod_template["spec"];
  Value spec = DefaultPodSpec(before);
  if (!spec.SameAs(before)) pod_template = std::move(pod_template).Set("spec", std::move(spec));
  return pod_template;
}

void DefaultTemplateOf(Value& spec) {
  const Value before = spec["template"];
  Value filled = DefaultPodTemplate(before);
  if (!filled.SameAs(before)) spec = std::move(spec).Set("template", std::move(filled));
}

Value DefaultDeployment(Value deployment) {
  return WithSpec(std::move(deployment), [](Value& spec) {
    SetIfAbsent(spec, "replicas", 1);
    DefaultStrategy(spec, "strategy", [](Value pace) {
      SetIfAbsent(pace, "maxUnavailable", kDefaultPace);
      SetIfAbsent(pace, "maxSurge", kDefaultPace);
      return pace;
    });
    SetIfAbsent(spec, "revisionHistoryLimit", kDefaultHistory);
    SetIfAbsent(spec, "progressDeadlineSeconds", kDefaultProgressSeconds);
  });
}

Value DefaultReplicaSet(Value replica_set) {
  return WithSpec(std::move(replica_set), [](Value& spec) { SetIfAbsent(spec, "replicas", 1); });
}

Value DefaultStatefulSet(Value stateful_set) {
  return WithSpec(std::move(stateful_set), [](Value& spec) {
    SetIfAbsent(spec, "replicas", 1);
    SetDefault(spec, "podManagementPolicy", "OrderedReady");
    // Unlike the other kinds', a strategy whose type is given need not have a pace.
    if (!IsUnset(spec["updateStrategy"]["type"])) {
      EditMember(spec, "updateStrategy", [](Value strategy) {
        if (strategy["type"].AsString() != "RollingUpdate") return strategy;
        EditMember(strategy, "rollingUpdate", [](Value pace) {
          SetIfAbsent(pace, "partition", 0);
          return pace;
        });
        return strategy;
      });
    } else {
      DefaultStrategy(spec, "updateStrategy", [](Value pace) {
        SetIfAbsent(pace, "partition", 0);
        return pace;
      });
    }
    SetIfAbsent(spec, "persistentVolumeClaimRetentionPolicy", Obj());
    EditMember(spec, "persistentVolumeClaimRetentionPolicy", [](Value policy) {
      SetDefault(policy, "whenDeleted", "Retain");
      SetDefault(policy, "whenScaled", "Retain");
      return policy;
    });
    SetIfAbsent(spec, "revisionHistoryLimit", kDefaultHistory);
    EditItems(spec, "volumeClaimTemplates", DefaultClaimTemplate);
  });
}

Value DefaultDaemonSet(Value daemon_set) {
  return WithSpec(std::move(daemon_set), [](Value& spec) {
    DefaultStrategy(spec, "updateStrategy", [](Value pace) {
      SetIfAbsent(pace, "maxUnavailable", 1);
      SetIfAbsent(pace, "maxSurge", 0);
      return pace;
    });
    SetIfAbsent(spec, "revisionHistoryLimit", kDefaultHistory);
  });
}

}  // namespace muster::schema
