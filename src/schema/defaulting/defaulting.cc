#include "schema/defaulting.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {
namespace {

struct KindDefaults {
  std::string_view group, kind;
  json::Value (*apply)(json::Value);
};

constexpr KindDefaults kKindDefaults[] = {
    {"", "Pod", DefaultPod},
    {"", "Service", DefaultService},
    {"", "Secret", DefaultSecret},
    {"", "PersistentVolumeClaim", DefaultPersistentVolumeClaim},
    {"", "Namespace", DefaultNamespace},
    {"", "Node", DefaultNode},
    {"scheduling.k8s.io", "PriorityClass", DefaultPriorityClass},
    {"discovery.k8s.io", "EndpointSlice", DefaultEndpointSlice},
    {"", "Endpoints", DefaultEndpoints},
    {"apiextensions.k8s.io", "CustomResourceDefinition", DefaultCustomResourceDefinition},
    {"kubeflow.org", "PyTorchJob", DefaultPyTorchJob},
    {"kubeflow.org", "TFJob", DefaultTFJob},
    {"kubeflow.org", "JAXJob", DefaultJAXJob},
    {"kubeflow.org", "MPIJob", DefaultMPIJob},
    {"serving.kserve.io", "InferenceService", DefaultInferenceService},
    {"ray.io", "RayCluster", DefaultRayCluster},
    {"apps", "Deployment", DefaultDeployment},
    {"apps", "ReplicaSet", DefaultReplicaSet},
    {"apps", "StatefulSet", DefaultStatefulSet},
    {"apps", "DaemonSet", DefaultDaemonSet},
    {"batch", "Job", DefaultJob},
    {"batch", "CronJob", DefaultCronJob},
    {"jobset.x-k8s.io", "JobSet", DefaultJobSet},
    {"policy", "PodDisruptionBudget", DefaultPodDisruptionBudget},
    {"", "PersistentVolume", DefaultPersistentVolume},
    {"storage.k8s.io", "StorageClass", DefaultStorageClass},
    {"storage.k8s.io", "CSIDriver", DefaultCsiDriver},
    {"", "LimitRange", DefaultLimitRange},
    {"autoscaling", "HorizontalPodAutoscaler", DefaultHorizontalPodAutoscaler},
    {"rbac.authorization.k8s.io", "RoleBinding", DefaultRoleBinding},
    {"rbac.authorization.k8s.io", "ClusterRoleBinding", DefaultRoleBinding},
    {"networking.k8s.io", "IngressClass", DefaultIngressClass},
    {"apiregistration.k8s.io", "APIService", DefaultApiService},
    {"admissionregistration.k8s.io", "MutatingWebhookConfiguration",
     DefaultMutatingWebhookConfiguration},
    {"admissionregistration.k8s.io", "ValidatingWebhookConfiguration",
     DefaultValidatingWebhookConfiguration},
    {"networking.k8s.io", "NetworkPolicy", DefaultNetworkPolicy},
};

std::optional<json::Value> Walk(const Schema& schema, const json::Value& value);

std::optional<json::Value> WalkFields(const Schema& schema, const json::Value& value) {
  json::Value result = value;
  bool differs = false;
  const auto set = [&](std::string_view key, json::Value member) {
    differs = true;
    result = std::move(result).Set(key, std::move(member));
  };
  for (const Field& field : schema.fields) {
    const json::Value* member = value.Find(field.name);
    const bool absent = member == nullptr || (member->IsNull() && !field.schema->nullable);
    if (absent) {
      if (field.default_value.IsNull()) continue;
      std::optional<json::Value> deeper = Walk(*field.schema, field.default_value);
      set(field.name, deeper ? std::move(*deeper) : field.default_value);
    } else if (std::optional<json::Value> deeper = Walk(*field.schema, *member)) {
      set(field.name, std::move(*deeper));
    }
  }
  if (!differs) return std::nullopt;
  return result;
}

// The value with its defaults, or nullopt when it has them all.
std::optional<json::Value> Walk(const Schema& schema, const json::Value& value) {
  if (schema.type == Type::kObject)
    return value.IsObject() ? WalkFields(schema, value) : std::nullopt;
  if (schema.items == nullptr ||
      (schema.items->type != Type::kObject && schema.items->items == nullptr))
    return std::nullopt;
  bool differs = false;
  if (schema.type == Type::kArray) {
    json::Array items;
    for (size_t i = 0; i < value.size(); ++i) {
      std::optional<json::Value> item = Walk(*schema.items, value.At(i));
      if (!item) continue;
      if (!std::exchange(differs, true)) items = value.items();
      items[i] = std::move(*item);
    }
    if (!differs) return std::nullopt;
    return json::Value(std::move(items));
  }
  json::Value result = value;
  for (const auto& [key, member] : value.members()) {
    if (std::optional<json::Value> changed = Walk(*schema.items, member)) {
      result = std::move(result).Set(key, std::move(*changed));
      differs = true;
    }
  }
  if (!differs) return std::nullopt;
  return result;
}

// Goes where Walk goes, and counts instead of building.
class CostCounter {
 public:
  explicit CostCounter(size_t limit) : limit_(limit) {}
  size_t cost() const { return cost_; }

  void Any(const Schema& schema, const json::Value& value, bool added) {
    if (cost_ > limit_) return;
    if (schema.type == Type::kObject && value.IsObject()) return Fields(schema, value, added);
    const bool walked = schema.items != nullptr && (value.IsArray() || value.IsObject());
    if (!walked && added) AddText(value);
    if (!walked) return;
    if (added) cost_ += value.size();
    for (const json::Value& item : value.items()) Any(*schema.items, item, added);
    for (const auto& [key, member] : value.members()) Any(*schema.items, member, added);
  }

 private:
  void Fields(const Schema& schema, const json::Value& value, bool added) {
    cost_ += schema.fields.size();
    for (const Field& field : schema.fields) {
      const json::Value* member = value.Find(field.name);
      const bool absent = member == nullptr || (member->IsNull() && !field.schema->nullable);
      if (!absent) {
        Any(*field.schema, *member, added);
      } else if (!field.default_value.IsNull()) {
        cost_ += field.name.size();
        Any(*field.schema, field.default_value, true);
      }
      if (cost_ > limit_) return;
    }
  }

  void AddText(const json::Value& value) {
    if (cost_ > limit_) return;
    cost_ += 1 + value.AsString().size();
    for (const json::Value& item : value.items()) AddText(item);
    for (const auto& [key, member] : value.members()) {
      cost_ += key.size();
      AddText(member);
    }
  }

  const size_t limit_;
  size_t cost_ = 0;
};

}  // namespace

Status CheckCostOfDefaults(const Schema& schema, const json::Value& value) {
  CostCounter counter(kMaxDefaultsCost);
  counter.Any(schema, value, false);
  if (counter.cost() <= kMaxDefaultsCost) return Status::Ok();
  return Error(Reason::kRequestEntityTooLarge,
               "its items times the fields and defaults of their schema are more than {}: make the "
               "object smaller, or the schema in the CustomResourceDefinition simpler",
               kMaxDefaultsCost);
}

json::Value ApplySchemaDefaults(const Schema& schema, json::Value value) {
  std::optional<json::Value> changed = Walk(schema, value);
  return changed ? std::move(*changed) : value;
}

json::Value ApplyDefaults(const Kind& kind, json::Value object) {
  // A version that is converted has those of the stored one.
  if (!object.IsObject() || kind.conversion != nullptr) return object;
  for (const KindDefaults& row : kKindDefaults) {
    if (row.kind == kind.kind && row.group == kind.group) object = row.apply(std::move(object));
  }
  // The compiled API states its defaults in the functions above; only custom kinds carry them in
  // their schema.
  return kind.custom ? ApplySchemaDefaults(*kind.schema, std::move(object)) : object;
}

}  // namespace muster::schema
