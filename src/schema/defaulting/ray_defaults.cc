// RayCluster. Contract: Ray 2.9 ray/autoscaler/_private/kuberay/autoscaling_config.py.

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {

using json::Value;

// Ray's autoscaler takes every group's rayStartParams for granted and ends when they are missing.
// Without it nobody looks, and the spec stays as it was given.
Value DefaultRayCluster(Value cluster) {
  Value spec = cluster["spec"];
  if (!spec["enableInTreeAutoscaling"].AsBool()) return cluster;
  const auto with_params = [](const Value& group) {
    Value filled = group;
    if (filled.IsObject()) SetIfAbsent(filled, "rayStartParams", json::Obj({}));
    return filled;
  };
  EditMember(spec, "headGroupSpec", with_params);
  EditItems(spec, "workerGroupSpecs", with_params);
  if (!spec.SameAs(cluster["spec"])) cluster = std::move(cluster).Set("spec", std::move(spec));
  return cluster;
}

}  // namespace muster::schema
