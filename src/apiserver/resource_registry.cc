#include "apiserver/resource_registry.h"

#include "schema/registry.h"

namespace muster::apiserver {
namespace {

class CustomStrategy : public Strategy {
 public:
  bool allows_unconditional_update() const override { return false; }
  bool has_generation() const override { return true; }
};

}  // namespace

ResourceRegistry::ResourceRegistry(std::map<std::string, std::unique_ptr<Strategy>> strategies)
    : strategies_(std::move(strategies)),
      default_strategy_(std::make_unique<Strategy>()),
      custom_strategy_(std::make_unique<CustomStrategy>()) {
  for (const schema::KindPtr& kind : schema::Registry::BuiltIn().kinds()) Add(kind, "", false);
}

ResourceRegistry::~ResourceRegistry() = default;

void ResourceRegistry::Add(const schema::KindPtr& kind, const std::string& crd, bool terminating) {
  auto resource = std::make_shared<Resource>();
  resource->kind = kind;
  resource->crd = crd;
  resource->terminating = terminating;
  const auto strategy = strategies_.find(kind->QualifiedResource());
  if (kind->custom) {
    resource->strategy = custom_strategy_.get();
  } else {
    resource->strategy =
        strategy != strategies_.end() ? strategy->second.get() : default_strategy_.get();
  }
  resources_[{kind->group, kind->version, kind->plural}] = std::move(resource);
}

ResourcePtr ResourceRegistry::Find(std::string_view group, std::string_view version,
                                   std::string_view plural) const {
  const auto found =
      resources_.find({std::string(group), std::string(version), std::string(plural)});
  return found == resources_.end() ? nullptr : found->second;
}

ResourcePtr ResourceRegistry::FindStored(std::string_view group, std::string_view plural) const {
  for (auto it = resources_.lower_bound({std::string(group), "", ""}); it != resources_.end();
       ++it) {
    if (std::get<0>(it->first) != group) break;
    if (std::get<2>(it->first) == plural && it->second->kind->storage) return it->second;
  }
  return nullptr;
}

std::vector<ResourcePtr> ResourceRegistry::VersionsOf(std::string_view group,
                                                      std::string_view plural) const {
  std::vector<ResourcePtr> versions;
  for (auto it = resources_.lower_bound({std::string(group), "", ""}); it != resources_.end();
       ++it) {
    if (std::get<0>(it->first) != group) break;
    if (std::get<2>(it->first) == plural) versions.push_back(it->second);
  }
  return versions;
}

ResourcePtr ResourceRegistry::FindKind(std::string_view group, std::string_view version,
                                       std::string_view kind) const {
  for (auto it = resources_.lower_bound({std::string(group), std::string(version), ""});
       it != resources_.end(); ++it) {
    if (std::get<0>(it->first) != group || std::get<1>(it->first) != version) break;
    if (it->second->kind->kind == kind) return it->second;
  }
  return nullptr;
}

std::vector<ResourcePtr> ResourceRegistry::All() const {
  std::vector<ResourcePtr> all;
  for (const auto& [key, resource] : resources_) all.push_back(resource);
  return all;
}

bool ResourceRegistry::HasGroupVersion(std::string_view group, std::string_view version) const {
  const auto at = resources_.lower_bound({std::string(group), std::string(version), ""});
  return at != resources_.end() && std::get<0>(at->first) == group &&
         std::get<1>(at->first) == version;
}

void ResourceRegistry::SetCustom(const std::string& crd, std::vector<schema::KindPtr> kinds,
                                 bool terminating) {
  std::erase_if(resources_, [&](const auto& one) { return one.second->crd == crd; });
  for (const schema::KindPtr& kind : kinds) Add(kind, crd, terminating);
  ++revision_;
}

void ResourceRegistry::RemoveCustom(const std::string& crd) { SetCustom(crd, {}, false); }

}  // namespace muster::apiserver
