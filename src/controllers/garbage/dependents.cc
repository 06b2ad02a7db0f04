#include "controllers/garbage/dependents.h"

#include "base/strings.h"

namespace muster::controllers {

client::ObjectKey ToKey(const ObjectRef& ref) {
  const client::Resource& resource = ref.resource;
  return {Join({resource.group, resource.version, resource.plural, ref.key.ns}, "|"), ref.key.name};
}

ObjectRef FromKey(const client::ObjectKey& key) {
  const std::vector<std::string_view> parts = Split(key.ns, '|');
  if (parts.size() != 4) return {};
  return {{std::string(parts[0]), std::string(parts[1]), std::string(parts[2])},
          {std::string(parts[3]), key.name}};
}

void Dependents::Change(const ObjectRef& ref, const json::Value& before, const json::Value& after) {
  for (const json::Value& owner : before["metadata"]["ownerReferences"].items()) {
    const auto found = by_owner_.find(owner["uid"].AsString());
    if (found == by_owner_.end()) continue;
    found->second.erase(ref);
    if (found->second.empty()) by_owner_.erase(found);
  }
  for (const json::Value& owner : after["metadata"]["ownerReferences"].items()) {
    by_owner_[owner["uid"].Str()].insert(ref);
  }
}

std::vector<ObjectRef> Dependents::Of(std::string_view owner_uid) const {
  const auto found = by_owner_.find(owner_uid);
  if (found == by_owner_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::vector<ObjectRef> Dependents::All() const {
  std::set<ObjectRef> all;
  for (const auto& [uid, refs] : by_owner_) all.insert(refs.begin(), refs.end());
  return {all.begin(), all.end()};
}

}  // namespace muster::controllers
