// Tables of roles and bindings. Logic: k8s.io/kubernetes pkg/printers/internalversion.

#include "apiserver/table/printers.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

// The subjects of that kind: "a, b"; accounts with their namespaces.
std::string Subjects(const json::Value& binding, std::string_view kind) {
  std::vector<std::string> names;
  for (const json::Value& subject : binding["subjects"].items()) {
    if (subject["kind"].AsString() != kind) continue;
    const std::string name = subject["name"].Str();
    names.push_back(kind == "ServiceAccount" ? subject["namespace"].Str() + "/" + name : name);
  }
  return Join(names, ", ");
}

}  // namespace

json::Array RoleCells(const json::Value& role, Time) {
  return {NameCell(role), role["metadata"]["creationTimestamp"].Str()};
}

json::Array RoleBindingCells(const json::Value& binding, Time now) {
  const json::Value& role = binding["roleRef"];
  return {NameCell(binding),          role["kind"].Str() + "/" + role["name"].Str(),
          AgeOf(binding, now),        Subjects(binding, "User"),
          Subjects(binding, "Group"), Subjects(binding, "ServiceAccount")};
}

}  // namespace muster::apiserver
