// src/client/informer.h
//
// Informer: a local, always-current copy of one collection (list, then watch; on 410 list again),
// shared by every part of a process that needs it. What is kept is a projection made once per
// event: a pass of a controller costs what changed, never a parse of everything.
//
// Each user says which fields it reads (InformerSet::Get); the informer keeps all of these and its
// identity fields, and drops the rest: 20,000 pods cost what is read of them. An object of an
// informer is therefore not for PUT, unless its user asked for the whole.
//
// Life cycle: made by an InformerSet, Start()ed with it, lives as long as it.
// Thread:     one loop thread. Handlers run there, in the order of the server's events.
// Invariants: objects() equals the projection of some state that the server had; a relist gives the
//             same handlers the difference; every object has its identity fields; every change of
//             an object is told, also one of fields that nobody reads (its resourceVersion is new);
//             a new list is tried after 50 ms to 30 s (with jitter) of failure.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/api_client.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::client {

inline constexpr int64_t kListPageSize = 500;
inline constexpr Duration kMinInformerBackoff = milliseconds(50);
inline constexpr Duration kMaxInformerBackoff = seconds(30);
// A watch that ends sooner than this without an event counts as a failure (it is not opened again
// at once).
inline constexpr Duration kMinWatchLife = seconds(1);
inline constexpr int64_t kWatchTimeoutSeconds =
    300;  // asked of the server; plus up to as much again as jitter

struct ObjectKey {
  std::string ns, name;
  auto operator<=>(const ObjectKey&) const = default;
  bool operator==(const ObjectKey&) const = default;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
};

struct InformerEvents {
  // Projections, as in objects(). `before` is null for an addition, `after` is null for a deletion.
  std::function<void(const ObjectKey& key, const json::Value& before, const json::Value& after)>
      on_change;
  std::function<void()> on_synced;
  // Known() without being synced: the server has no such resource.
  std::function<void()> on_unserved = {};
};

class Informer {
 public:
  virtual ~Informer() = default;
  virtual const Resource& resource() const = 0;
  virtual bool Synced() const = 0;
  // False once the server said that it has no such resource; it is asked again now and then.
  virtual bool Served() const = 0;
  // All objects of the resource are here, if there is such a resource.
  bool Known() const { return Synced() || !Served(); }
  // nullptr if absent.
  virtual const json::Value* Find(const ObjectKey& key) const = 0;
  virtual const std::map<ObjectKey, json::Value>& objects() const = 0;
  // A subscriber that comes late first gets an addition for every object.
  virtual void Subscribe(InformerEvents events) = 0;
  // Additional index: `keys_of` gives an object's index keys; Lookup() lists object keys, sorted.
  virtual void AddIndex(const std::string& index,
                        std::function<std::vector<std::string>(const json::Value&)> keys_of) = 0;
  virtual std::vector<ObjectKey> Lookup(const std::string& index,
                                        const std::string& index_key) const = 0;
  // How many Lookup() would list.
  virtual size_t LookupCount(const std::string& index, const std::string& index_key) const = 0;
  // Every event up to this resourceVersion has been handled; 0 before the first list, or when the
  // server's versions are no numbers.
  virtual uint64_t SeenRevision() const = 0;
};

// The resourceVersion as a number; 0 when it is not one (a server may use any text).
uint64_t RevisionOf(const json::Value& object);
ObjectKey KeyOf(const json::Value& object);

// What every informer keeps: apiVersion, kind and of the metadata name, namespace, uid,
// resourceVersion, deletionTimestamp, ownerReferences and finalizers.
const json::Fields& IdentityFields();

// All informers of one process (or of one part under simulation).
class InformerSet {
 public:
  // `seed` spreads the retries of many processes.
  explicit InformerSet(ApiClient& client, uint64_t seed = 1);
  ~InformerSet();
  // The one informer of this resource; made at the first call. `fields` are those that the caller
  // reads besides the identity fields; all callers' are kept. `field_selector` e.g.
  // "spec.nodeName=n1". After Start() a new one starts at once. REQUIRES: a call after the informer
  // has started asks for no new fields.
  Informer& Get(const Resource& resource, const json::Fields& fields = {},
                const std::string& field_selector = "");
  const Informer* Find(
      const Resource& resource) const;  // without a field selector; nullptr if nobody asked for it
  void Start();
  // All are Known().
  bool AllSynced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client
