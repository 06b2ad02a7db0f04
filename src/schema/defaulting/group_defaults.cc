// The kinds of policy, storage, autoscaling, rbac and networking, and of core what belongs to them.
// Source: k8s.io/kubernetes pkg/apis/*/v*/defaults.go.

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {

using json::Value;

// Go writes these numbers even when nobody has counted yet.
Value DefaultPodDisruptionBudget(Value budget) {
  Value status = budget["status"];
  for (const char* key :
       {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    if (status[key].IsNull()) status = std::move(status).Set(key, 0);
  }
  if (!status.SameAs(budget["status"])) budget = std::move(budget).Set("status", std::move(status));
  return budget;
}

namespace {

// A volume source that was declared without these has them.
void SetSourceDefaults(Value& spec, std::string_view source,
                       std::initializer_list<std::pair<std::string_view, Value>> defaults) {
  EditMember(spec, source, [&](Value value) {
    for (const auto& [key, otherwise] : defaults) {
      if (value[key].IsNull() || (IsUnset(value[key]) && !otherwise.AsString().empty()))
        value = std::move(value).Set(key, otherwise);
    }
    return value;
  });
}

}  // namespace

Value DefaultPersistentVolume(Value volume) {
  EditMember(volume, "spec", [](Value spec) {
    SetDefault(spec, "persistentVolumeReclaimPolicy", "Retain");
    SetDefault(spec, "volumeMode", "Filesystem");
    SetSourceDefaults(spec, "hostPath", {{"type", ""}});
    SetSourceDefaults(spec, "iscsi", {{"iscsiInterface", "default"}});
    SetSourceDefaults(spec, "rbd",
                      {{"pool", "rbd"}, {"user", "admin"}, {"keyring", "/etc/ceph/keyring"}});
    SetSourceDefaults(spec, "azureDisk",
                      {{"cachingMode", "ReadWrite"},
                       {"kind", "Shared"},
                       {"fsType", "ext4"},
                       {"readOnly", false}});
    SetSourceDefaults(spec, "scaleIO", {{"storageMode", "ThinProvisioned"}, {"fsType", "xfs"}});
    return spec;
  });
  if (IsUnset(volume["status"]["phase"])) volume = volume.SetPath({"status", "phase"}, "Pending");
  return volume;
}

Value DefaultStorageClass(Value storage_class) {
  SetDefault(storage_class, "reclaimPolicy", "Delete");
  SetDefault(storage_class, "volumeBindingMode", "Immediate");
  return storage_class;
}

Value DefaultCsiDriver(Value driver) {
  Value spec = driver["spec"];
  for (const auto& [key, otherwise] :
       {std::pair("attachRequired", true), std::pair("podInfoOnMount", false),
        std::pair("storageCapacity", false), std::pair("requiresRepublish", false),
        std::pair("seLinuxMount", false)}) {
    if (spec[key].IsNull()) spec = std::move(spec).Set(key, otherwise);
  }
  SetDefault(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  if (spec["volumeLifecycleModes"].empty())
    spec = std::move(spec).Set("volumeLifecycleModes", json::List({"Persistent"}));
  if (!spec.SameAs(driver["spec"])) driver = std::move(driver).Set("spec", std::move(spec));
  return driver;
}

// Of both kinds of binding: roles, users and groups are of one API group.
Value DefaultRoleBinding(Value binding) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  EditMember(binding, "roleRef", [&](Value role) {
    SetDefault(role, "apiGroup", kGroup);
    return role;
  });
  EditItems(binding, "subjects", [&](Value subject) {
    const std::string_view kind = subject["kind"].AsString();
    if (kind == "User" || kind == "Group") SetDefault(subject, "apiGroup", kGroup);
    return subject;
  });
  return binding;
}

Value DefaultIngressClass(Value ingress_class) {
  EditMember(ingress_class, "spec", [](Value spec) {
    EditMember(spec, "parameters", [](Value parameters) {
      if (parameters["scope"].IsNull()) parameters = std::move(parameters).Set("scope", "Cluster");
      return parameters;
    });
    return spec;
  });
  return ingress_class;
}

// A policy that does not say which directions it restricts restricts what comes in, and what goes
// out if it has rules for it.
// One that says nothing is for all pods of its namespace.
Value DefaultNetworkPolicy(Value policy) {
  SetIfAbsent(policy, "spec", json::Obj());
  EditMember(policy, "spec", [](Value spec) {
    SetIfAbsent(spec, "podSelector", json::Obj());
    for (const char* direction : {"ingress", "egress"}) {
      EditItems(spec, direction, [](Value rule) {
        EditItems(rule, "ports", [](Value port) {
          SetIfAbsent(port, "protocol", "TCP");
          return port;
        });
        return rule;
      });
    }
    if (!spec["policyTypes"].empty()) return spec;
    json::Array types = {"Ingress"};
    if (!spec["egress"].empty()) types.push_back("Egress");
    return std::move(spec).Set("policyTypes", Value(std::move(types)));
  });
  return policy;
}

namespace {

Value ScalingPolicy(std::string_view type, int64_t value) {
  return json::Obj({{"type", type}, {"value", value}, {"periodSeconds", 15}});
}

// The rules of one direction: what was said, and upstream's for the rest.
Value CompleteScaling(Value rules, json::Array policies) {
  SetDefault(rules, "selectPolicy", "Max");
  if (rules["policies"].IsNull())
    rules = std::move(rules).Set("policies", Value(std::move(policies)));
  return rules;
}

Value DefaultBehavior(Value behavior) {
  Value up = CompleteScaling(behavior["scaleUp"],
                             {ScalingPolicy("Pods", 4), ScalingPolicy("Percent", 100)});
  if (up["stabilizationWindowSeconds"].IsNull())
    up = std::move(up).Set("stabilizationWindowSeconds", 0);
  Value down = CompleteScaling(behavior["scaleDown"], {ScalingPolicy("Percent", 100)});
  return std::move(behavior).Set("scaleUp", std::move(up)).Set("scaleDown", std::move(down));
}

}  // namespace

Value DefaultHorizontalPodAutoscaler(Value autoscaler) {
  EditMember(autoscaler, "spec", [](Value spec) {
    if (spec["minReplicas"].IsNull()) spec = std::move(spec).Set("minReplicas", 1);
    if (spec["metrics"].empty()) {
      spec = spec.Set(
          "metrics",
          json::List({json::Obj(
              {{"type", "Resource"},
               {"resource", json::Obj({{"name", "cpu"},
                                       {"target", json::Obj({{"type", "Utilization"},
                                                             {"averageUtilization", 80}})}})}})}));
    }
    EditMember(spec, "behavior", DefaultBehavior);
    return spec;
  });
  return autoscaler;
}

// What a container gets who says nothing: the most it may have, and of that what it must have.
Value DefaultLimitRange(Value range) {
  EditMember(range, "spec", [](Value spec) {
    EditItems(spec, "limits", [](Value limit) {
      if (limit["type"].AsString() != "Container") return limit;
      for (const auto& [from, to] :
           {std::pair("max", "default"), std::pair("default", "defaultRequest"),
            std::pair("min", "defaultRequest")}) {
        const Value source = limit[from];
        for (const auto& [name, value] : source.members()) {
          if (!limit[to].Has(name)) limit = std::move(limit).SetPath({to, name}, value);
        }
      }
      return limit;
    });
    return spec;
  });
  return range;
}

}  // namespace muster::schema
