// src/apiserver/identity/rbac_index.h
//
// RbacIndex: the roles and bindings in the store, so indexed that a request costs what its user is
// bound to, however many others there are.
//
// Life cycle: a member of the server; Start() loads, then it follows the store.
// Thread:     the loop thread.
// Invariants: equals the committed state: a write of a role or binding counts when it is answered.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/authentication.h"
#include "apiserver/identity/policy_rule.h"
#include "json/value.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

// One subject of a RoleBinding or, with ns "", of a ClusterRoleBinding.
struct Grant {
  std::string ns, binding;
  std::string subject_kind, subject;  // "ServiceAccount", "name/ns"
  bool of_cluster_role = false;
  std::string role;
  std::string Describe() const;  // 'RoleBinding "a/ns" of Role "b" to User "c"'
};

class RbacIndex {
 public:
  // REQUIRES: `store` outlives it.
  explicit RbacIndex(store::Store& store);
  ~RbacIndex();
  // Once, on the loop thread. Before it nothing is granted.
  void Start();
  RbacIndex(const RbacIndex&) = delete;
  RbacIndex& operator=(const RbacIndex&) = delete;

  // nullptr if there is no such role. `ns`: "" for a ClusterRole.
  const std::vector<PolicyRule>* Role(std::string_view ns, std::string_view name) const;

  // What is granted to the user in the whole cluster, then in `ns` ("" for none). `rules` is
  // nullptr where the role does not exist. Ends when visit() gives false.
  using Visit = std::function<bool(const Grant& grant, const std::vector<PolicyRule>* rules)>;
  void ForEachGrant(const User& user, std::string_view ns, const Visit& visit) const;

  // All that the user may do in `ns`, and in the whole cluster.
  std::vector<PolicyRule> RulesOf(const User& user, std::string_view ns) const;

 private:
  void Follow(const schema::KindPtr& kind);
  void Set(const schema::Kind& kind, const store::Entry& entry);
  void Remove(const schema::Kind& kind, const store::Entry& entry);
  void AddBinding(const std::string& key, std::string_view ns, const json::Value& binding);
  void RemoveBinding(const std::string& key);

  store::Store& store_;
  std::vector<store::Store::WatchId> watches_;
  std::map<std::string, std::vector<PolicyRule>, std::less<>> roles_;  // by "ns/name", "/name"
  // By namespace and subject (SubjectKey()), and which of these an object of the store fills.
  std::unordered_map<std::string, std::vector<Grant>> grants_;
  std::unordered_map<std::string, std::vector<std::string>> subjects_of_;  // by key of the binding
};

}  // namespace muster::apiserver
