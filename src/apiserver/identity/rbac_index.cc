#include "apiserver/identity/rbac_index.h"

#include <algorithm>

#include "apiserver/identity/token_authenticator.h"
#include "apiserver/stored_object.h"
#include "base/log.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

std::string RoleKey(std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}", ns, name);
}

// Neither namespaces nor kinds have a line break in them.
std::string SubjectKey(std::string_view ns, std::string_view kind, std::string_view name) {
  return fmt::format("{}\n{}\n{}", ns, kind, name);
}

bool IsRole(const schema::Kind& kind) { return kind.kind.ends_with("Role"); }

}  // namespace

std::string Grant::Describe() const {
  const std::string which = ns.empty() ? fmt::format("ClusterRoleBinding \"{}\"", binding)
                                       : fmt::format("RoleBinding \"{}/{}\"", binding, ns);
  return fmt::format("{} of {} \"{}\" to {} \"{}\"", which,
                     of_cluster_role ? "ClusterRole" : "Role", role, subject_kind, subject);
}

RbacIndex::RbacIndex(store::Store& store) : store_(store) {}

void RbacIndex::Start() {
  for (const char* plural : {"roles", "clusterroles", "rolebindings", "clusterrolebindings"})
    Follow(schema::Registry::BuiltIn().Find(kRbacGroup, "v1", plural));
}

RbacIndex::~RbacIndex() {
  for (const store::Store::WatchId watch : watches_) store_.CancelWatch(watch);
}

void RbacIndex::Follow(const schema::KindPtr& kind) {
  const std::string prefix = KeyPrefix(*kind);
  const Result<store::RangeResult> range = store_.Range(prefix, "", 0, 0);
  if (!range) return LOG_ERROR("apiserver: cannot read roles error={:?}", range.error().message());
  for (const store::EntryPtr& entry : range->entries) Set(*kind, *entry);
  const auto watch = store_.Watch(prefix, range->revision,
                                  [this, kind](const std::vector<store::WatchEvent>& events) {
                                    for (const store::WatchEvent& event : events) {
                                      Remove(*kind, *event.entry);
                                      if (event.type == store::WatchEvent::Type::kPut)
                                        Set(*kind, *event.entry);
                                    }
                                  });
  if (watch) watches_.push_back(*watch);
}

void RbacIndex::Set(const schema::Kind& kind, const store::Entry& entry) {
  const json::Value object = DecodeStored(kind, *entry.value);
  const KeyParts parts = ParseKey(entry.key);
  if (IsRole(kind)) {
    roles_[RoleKey(parts.ns, parts.name)] = ReadRules(object["rules"]);
  } else {
    AddBinding(entry.key, parts.ns, object);
  }
}

void RbacIndex::Remove(const schema::Kind& kind, const store::Entry& entry) {
  if (!IsRole(kind)) return RemoveBinding(entry.key);
  const KeyParts parts = ParseKey(entry.key);
  roles_.erase(RoleKey(parts.ns, parts.name));
}

void RbacIndex::AddBinding(const std::string& key, std::string_view ns,
                           const json::Value& binding) {
  for (const json::Value& subject : binding["subjects"].items()) {
    Grant grant;
    grant.ns = ns;
    grant.binding = binding["metadata"]["name"].Str();
    grant.of_cluster_role = binding["roleRef"]["kind"].AsString() == "ClusterRole";
    grant.role = binding["roleRef"]["name"].Str();
    grant.subject_kind = subject["kind"].Str();
    grant.subject = subject["name"].Str();
    std::string subject_key = SubjectKey(ns, grant.subject_kind, grant.subject);
    if (grant.subject_kind == "ServiceAccount") {
      const std::string_view home = subject["namespace"].AsString(ns);
      subject_key = SubjectKey(ns, "User", ServiceAccountUser(home, grant.subject));
      grant.subject += fmt::format("/{}", home);
    }
    grants_[subject_key].push_back(std::move(grant));
    subjects_of_[key].push_back(std::move(subject_key));
  }
}

void RbacIndex::RemoveBinding(const std::string& key) {
  const auto subjects = subjects_of_.find(key);
  if (subjects == subjects_of_.end()) return;
  const std::string_view name = ParseKey(key).name;
  for (const std::string& subject : subjects->second) {
    const auto grants = grants_.find(subject);
    if (grants == grants_.end()) continue;  // the binding names it twice
    std::erase_if(grants->second, [&](const Grant& grant) { return grant.binding == name; });
    if (grants->second.empty()) grants_.erase(grants);
  }
  subjects_of_.erase(subjects);
}

const std::vector<PolicyRule>* RbacIndex::Role(std::string_view ns, std::string_view name) const {
  const auto found = roles_.find(RoleKey(ns, name));
  return found == roles_.end() ? nullptr : &found->second;
}

void RbacIndex::ForEachGrant(const User& user, std::string_view ns, const Visit& visit) const {
  const auto visit_all = [&](std::string_view scope, std::string_view kind, std::string_view name) {
    const auto found = grants_.find(SubjectKey(scope, kind, name));
    if (found == grants_.end()) return true;
    return std::ranges::all_of(found->second, [&](const Grant& grant) {
      return visit(grant, Role(grant.of_cluster_role ? "" : grant.ns, grant.role));
    });
  };
  for (const std::string_view scope : {std::string_view(), ns}) {
    if (!visit_all(scope, "User", user.name)) return;
    for (const std::string& group : user.groups)
      if (!visit_all(scope, "Group", group)) return;
    if (ns.empty()) return;
  }
}

std::vector<PolicyRule> RbacIndex::RulesOf(const User& user, std::string_view ns) const {
  std::vector<PolicyRule> all;
  ForEachGrant(user, ns, [&all](const Grant&, const std::vector<PolicyRule>* rules) {
    if (rules != nullptr) all.insert(all.end(), rules->begin(), rules->end());
    return true;
  });
  return all;
}

}  // namespace muster::apiserver
