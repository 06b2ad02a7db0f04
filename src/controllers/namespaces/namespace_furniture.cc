#include "controllers/namespaces/namespace_furniture.h"

#include <utility>

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kServiceAccount[] = "default";
constexpr char kRootCa[] = "kube-root-ca.crt";
constexpr char kRootCaKey[] = "ca.crt";

// Wakes the namespace when its object of this name changes.
client::Trigger OnNamed(const client::Resource& resource, std::string name) {
  return {resource, [name = std::move(name)](const client::ObjectKey& key, const json::Value&,
                                             const json::Value&) {
            std::vector<client::ObjectKey> keys;
            if (key.name == name) keys.push_back({"", key.ns});
            return keys;
          }};
}

json::Value Object(const char* kind, const char* name, const std::string& ns) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", kind},
                    {"metadata", json::Obj({{"name", name}, {"namespace", ns}})}});
}

}  // namespace

NamespaceFurnitureController::NamespaceFurnitureController(std::string root_ca_pem)
    : root_ca_pem_(std::move(root_ca_pem)) {}

std::vector<client::Trigger> NamespaceFurnitureController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kConfigMaps, {{"data", kRootCaKey}});
  return {client::OnSelf(resources::kNamespaces),
          OnNamed(resources::kServiceAccounts, kServiceAccount),
          OnNamed(resources::kConfigMaps, kRootCa)};
}

client::Reconciled NamespaceFurnitureController::Reconcile(const client::View& view,
                                                           const client::Observations&,
                                                           const client::ObjectKey& key, Time,
                                                           uint64_t) {
  client::Reconciled out;
  const json::Value* ns = view.Of(resources::kNamespaces).Find(key);
  if (ns == nullptr || (*ns)["metadata"].Has("deletionTimestamp")) return out;
  if (view.Of(resources::kServiceAccounts).Find({key.name, kServiceAccount}) == nullptr) {
    out.Create({resources::kServiceAccounts, key.name, kServiceAccount, ""},
               Object("ServiceAccount", kServiceAccount, key.name));
  }
  if (root_ca_pem_.empty()) return out;
  const client::Target target{resources::kConfigMaps, key.name, kRootCa, ""};
  const json::Value* config_map = view.Of(resources::kConfigMaps).Find({key.name, kRootCa});
  const json::Value data = json::Obj({{kRootCaKey, root_ca_pem_}});
  if (config_map == nullptr) {
    out.Create(target, Object("ConfigMap", kRootCa, key.name).Set("data", data));
  } else if ((*config_map)["data"][kRootCaKey].AsString() != root_ca_pem_) {
    out.PatchMerge(target, json::Obj({{"data", data}}));
  }
  return out;
}

}  // namespace muster::controllers
