// src/client/resource_discovery.h
//
// ResourceDiscovery: which kinds the server serves. Asked once (/api, /apis, then each group
// version), and kept current by informers of CustomResourceDefinitions and APIServices. The garbage
// collector and the namespace controller act on every kind there is.
//
// Life cycle: made with an InformerSet that outlives it; Start() once.
// Thread:     the loop thread.
// Invariants: one entry per group and kind, in its preferred version; kinds that cannot be listed,
//             watched and deleted are left out, and so are those of another server (an APIService
//             with a Service) until it answers.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/api_client.h"
#include "client/informer.h"

namespace muster::client {

struct ServedKind {
  Resource resource;
  std::string kind;
  bool namespaced = true;
};

class ResourceDiscovery {
 public:
  ResourceDiscovery(ApiClient& client, InformerSet& informers);
  ~ResourceDiscovery();

  void Start();
  bool Synced() const;
  const std::vector<ServedKind>& kinds() const;
  // By group ("" for core, any version) and kind; nullptr if it is not served.
  const ServedKind* Find(std::string_view group, std::string_view kind) const;
  // Called with every kind, those of the past first; a kind that goes away is not told (its objects
  // are deleted first).
  void Subscribe(std::function<void(const ServedKind&)> on_kind);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client
