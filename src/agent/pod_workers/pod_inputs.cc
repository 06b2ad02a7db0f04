#include "agent/pod_workers/pod_inputs.h"

namespace muster::agent {
namespace {

void Note(std::set<std::string>& names, const json::Value& name) {
  if (!name.AsString().empty()) names.insert(name.Str());
}

void FromContainer(const json::Value& container, NeededObjects& needed) {
  for (const json::Value& source : container["envFrom"].items()) {
    Note(needed.config_maps, source["configMapRef"]["name"]);
    Note(needed.secrets, source["secretRef"]["name"]);
  }
  for (const json::Value& variable : container["env"].items()) {
    Note(needed.config_maps, variable.Path({"valueFrom", "configMapKeyRef", "name"}));
    Note(needed.secrets, variable.Path({"valueFrom", "secretKeyRef", "name"}));
  }
}

void FromVolume(const json::Value& volume, NeededObjects& needed) {
  Note(needed.config_maps, volume["configMap"]["name"]);
  Note(needed.secrets, volume["secret"]["secretName"]);
  for (const json::Value& source : volume["projected"]["sources"].items()) {
    Note(needed.config_maps, source["configMap"]["name"]);
    Note(needed.secrets, source["secret"]["name"]);
    if (const json::Value* token = source.Find("serviceAccountToken"))
      needed.tokens.insert(TokenNeedOf(*token));
  }
}

}  // namespace

std::vector<json::Value> AllContainers(const json::Value& pod) {
  std::vector<json::Value> out = pod["spec"]["initContainers"].items();
  for (const json::Value& container : pod["spec"]["containers"].items()) out.push_back(container);
  return out;
}

TokenNeed TokenNeedOf(const json::Value& source) {
  return {source["audience"].Str(), source["expirationSeconds"].AsInt(3600)};
}

NeededObjects FindNeededObjects(const json::Value& pod) {
  NeededObjects needed;
  for (const json::Value& container : AllContainers(pod)) FromContainer(container, needed);
  for (const json::Value& volume : pod["spec"]["volumes"].items()) FromVolume(volume, needed);
  for (const json::Value& reference : pod["spec"]["imagePullSecrets"].items())
    Note(needed.secrets, reference["name"]);
  return needed;
}

}  // namespace muster::agent
