// src/client/informer.h
//
// Informer: a local, always-current copy of one collection (list, then watch; on 410 list again), shared by every part
// of a process that needs it. What is kept is a projection made once per event: a pass of a controller costs what
// changed, never a parse of everything.
//
// Life cycle: made by an InformerSet, Start()ed with it, lives as long as it.
// Thread:     one loop thread. Handlers run there, in the order of the server's events.
// Invariants: objects() equals some state that the server had; a relist gives the same handlers the difference.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/api_client.h"
#include "json/value.h"

namespace muster::client {

struct ObjectKey {
  std::string ns, name;
  auto operator<=>(const ObjectKey&) const = default;
  bool operator==(const ObjectKey&) const = default;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
};

struct InformerEvents {
  // `before` is null for an addition, `after` is null for a deletion.
  std::function<void(const ObjectKey& key, const json::Value& before, const json::Value& after)> on_change;
  std::function<void()> on_synced;
};

class Informer {
 public:
  virtual ~Informer() = default;
  virtual const Resource& resource() const = 0;
  virtual bool Synced() const = 0;
  // nullptr if absent. The full object as last seen (trees share structure; strings are interned where that pays).
  virtual const json::Value* Find(const ObjectKey& key) const = 0;
  virtual const std::map<ObjectKey, json::Value>& objects() const = 0;
  // A subscriber that comes late first gets an addition for every object.
  virtual void Subscribe(InformerEvents events) = 0;
  // Additional index: `keys_of` gives an object's index keys; Lookup() lists object keys, sorted.
  virtual void AddIndex(const std::string& index,
                        std::function<std::vector<std::string>(const json::Value&)> keys_of) = 0;
  virtual std::vector<ObjectKey> Lookup(const std::string& index, const std::string& index_key) const = 0;
};

// All informers of one process (or of one part under simulation).
class InformerSet {
 public:
  explicit InformerSet(ApiClient& client);
  ~InformerSet();
  // The one informer of this resource; made at the first call. `field_selector` e.g. "spec.nodeName=n1".
  Informer& Get(const Resource& resource, const std::string& field_selector = "");
  void Start();
  bool AllSynced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client
