// src/apiserver/resource_registry.h
//
// ResourceRegistry: what is served under which group, version and plural. Built-in kinds are there
// from the start, custom ones come and go with their CustomResourceDefinitions.
//
// Life cycle: made by the ApiServer. A handler holds a ResourcePtr for as long as it works: it
//             stays valid when its CRD goes.
// Thread:     the loop thread.
// Invariants: revision() grows with every change (discovery and OpenAPI documents are cached by
//             it).

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "apiserver/strategy.h"
#include "schema/kind.h"

namespace muster::apiserver {

struct Resource {
  schema::KindPtr kind;
  Strategy* strategy = nullptr;
  std::string crd;           // name of the CustomResourceDefinition; "" for built-in kinds
  bool terminating = false;  // its CRD is being deleted: no more creations
};
using ResourcePtr = std::shared_ptr<const Resource>;

class ResourceRegistry {
 public:
  // `strategies` by "plural.group" ("pods", "customresourcedefinitions.apiextensions.k8s.io"); the
  // rest gets a default.
  explicit ResourceRegistry(std::map<std::string, std::unique_ptr<Strategy>> strategies);
  ~ResourceRegistry();

  ResourcePtr Find(std::string_view group, std::string_view version, std::string_view plural) const;
  // The version in which objects of this group and plural are stored; nullptr if it is not served.
  ResourcePtr FindStored(std::string_view group, std::string_view plural) const;
  // All versions that are served.
  std::vector<ResourcePtr> VersionsOf(std::string_view group, std::string_view plural) const;
  ResourcePtr FindKind(std::string_view group, std::string_view version,
                       std::string_view kind) const;
  // All resources, ordered by group, version and plural.
  std::vector<ResourcePtr> All() const;
  bool HasGroupVersion(std::string_view group, std::string_view version) const;

  // Replaces what the CRD of this name serves.
  void SetCustom(const std::string& crd, std::vector<schema::KindPtr> kinds, bool terminating);
  void RemoveCustom(const std::string& crd);

  uint64_t revision() const { return revision_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  void Add(const schema::KindPtr& kind, const std::string& crd, bool terminating);

  std::map<std::string, std::unique_ptr<Strategy>> strategies_;
  std::unique_ptr<Strategy> default_strategy_;
  std::unique_ptr<Strategy> custom_strategy_;
  std::map<Key, ResourcePtr> resources_;
  uint64_t revision_ = 1;
};

}  // namespace muster::apiserver
