#include "apiserver/discovery/subresources.h"

#include <map>

namespace muster::apiserver {
namespace {

std::map<std::string, std::vector<schema::Subresource>> MakeTable() {
  std::map<std::string, std::vector<schema::Subresource>> table;
  table["pods"] = {{"binding", {"post"}, "", "v1", "Binding"},
                   {"eviction", {"post"}, "policy", "v1", "Eviction"},
                   {"exec", {"get", "post"}, "", "v1", "PodExecOptions"},
                   {"log", {"get"}, "", "v1", "Pod"}};
  table["nodes"] = {
      {"proxy", {"delete", "get", "patch", "post", "put"}, "", "v1", "NodeProxyOptions"}};
  table["services"] = {
      {"proxy", {"delete", "get", "patch", "post", "put"}, "", "v1", "ServiceProxyOptions"}};
  table["serviceaccounts"] = {{"token", {"post"}, "authentication.k8s.io", "v1", "TokenRequest"}};
  table["namespaces"] = {{"finalize", {"put"}, "", "v1", "Namespace"}};
  return table;
}

}  // namespace

const std::vector<schema::Subresource>& SubresourcesOf(const schema::Kind& kind) {
  static const auto& table =
      *new std::map<std::string, std::vector<schema::Subresource>>(MakeTable());
  static const auto& scale = *new std::vector<schema::Subresource>{
      {"scale", {"get", "patch", "put"}, "autoscaling", "v1", "Scale"}};
  static const auto& none = *new std::vector<schema::Subresource>();
  if (kind.scale != nullptr) return scale;
  const auto found = table.find(kind.QualifiedResource());
  return found == table.end() || kind.custom ? none : found->second;
}

std::vector<std::string> ResourceVerbs(const schema::Kind& kind) {
  if (kind.create_only) return {"create"};
  if (kind.computed) return {"get", "list"};
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

std::vector<std::string> VerbsOfMethods(const std::vector<std::string>& methods) {
  std::vector<std::string> verbs;
  for (const std::string& method : methods) {
    if (method == "post") {
      verbs.emplace_back("create");
    } else if (method == "put") {
      verbs.emplace_back("update");
    } else {
      verbs.push_back(method);
    }
  }
  return verbs;
}

}  // namespace muster::apiserver
