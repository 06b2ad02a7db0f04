#include "schema/registry.h"

#include "schema/descriptor_set.h"
#include "schema/registry_builder.h"

namespace muster::schema {

Registry::Registry() = default;
Registry::~Registry() = default;

const Registry& Registry::BuiltIn() {
  static const std::unique_ptr<const Registry> built = [] {
    std::unique_ptr<Registry> registry(new Registry());
    RegistryBuilder(*registry).Build(DescriptorSetBytes());
    return registry;
  }();
  return *built;
}

KindPtr Registry::Find(std::string_view group, std::string_view version,
                       std::string_view plural) const {
  for (const KindPtr& kind : kinds_)
    if (kind->plural == plural && kind->group == group && kind->version == version) return kind;
  return nullptr;
}

KindPtr Registry::FindKind(std::string_view group, std::string_view version,
                           std::string_view name) const {
  for (const KindPtr& kind : kinds_)
    if (kind->kind == name && kind->group == group && kind->version == version) return kind;
  return nullptr;
}

const Schema* Registry::FindSchema(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

const Schema* Registry::FindMessage(std::string_view api_version, std::string_view kind) const {
  const std::string suffix = " " + std::string(kind);
  auto found = by_api_version_and_kind_.find(std::string(api_version) + suffix);
  // Metadata messages (Status, DeleteOptions) belong to every group and version.
  if (found == by_api_version_and_kind_.end()) found = by_api_version_and_kind_.find(suffix);
  return found == by_api_version_and_kind_.end() ? nullptr : found->second;
}

}  // namespace muster::schema
