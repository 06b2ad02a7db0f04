// src/client/reconcile.h
//
// The reconcile runtime: controllers are pure functions from what the informers hold to a list of
// writes; this file does the rest (keys, order, retries, stale caches).
//
//   Reconcile(view, observations, key, now, seed) -> {writes, events, probes, look_again_at}
//
// Life cycle: a Runtime is made with an ApiClient and an InformerSet; Add() controllers, Start(),
//             destroy to stop.
// Thread:     the loop thread.
// Invariants: one pass per key at a time; a key is not run again until the informers have seen that
//             key's last writes (or kMaxCacheWait passed: a missing event must not stop a key for
//             ever); writes of a pass go out in order, but neighbouring creates (or deletes) go out
//             together, at most kMaxParallelWrites; the first failure ends the pass and the key is
//             tried again with exponential back-off (5 ms to 1,000 s, jitter from the seeded Rng),
//             or at once when something wakes it; AlreadyExists of a child that the cache does not
//             know yet, or knows as the owner's, and NotFound of a delete count as done.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"

namespace muster::client {

inline constexpr size_t kMaxParallelWrites = 64;   // of one pass
inline constexpr size_t kMaxPassesInFlight = 256;  // keys whose writes wait for an answer
inline constexpr Duration kMinRetryBackoff = milliseconds(5);
inline constexpr Duration kMaxRetryBackoff = seconds(1000);
inline constexpr Duration kMaxCacheWait = seconds(30);

struct Write {
  enum class Verb : uint8_t { kCreate, kUpdate, kPatchMerge, kPatchJson, kPatchStrategic, kDelete };
  Verb verb = Verb::kCreate;
  Target target;
  json::Value body;  // object or patch; null for a delete
  DeleteOptions delete_options;
};

struct EventToRecord {
  json::Value object;
  EventType type = EventType::kNormal;
  std::string reason, message;
};

// A declared question whose answer is not in the informers: a live GET of an object (or, without a
// name, a LIST) past the caches. The runtime asks it after the writes, then runs the key once more
// with the answers.
struct Probe {
  std::string name;  // key into Observations
  Target target;
  ListOptions list = {.limit = 1};  // of a collection
  std::string path;                 // asked instead of the target: a path with its query
  // A failure is an answer, too (FailureOf); otherwise it ends the pass, which is tried again.
  bool failures_too = false;
};
// A metav1.Status as a server sends it, NotFound included.
json::Value FailureOf(const Status& error);
bool IsFailure(const json::Value& observation);
// The answer; a null for NotFound. Only the answers to the previous pass of this key are there. And
// under kRefusedWrite, if a write of the last pass was refused, what the server said of the first:
// {"verb": "create", "kind": "Pod", "reason": "Forbidden", "message": "..."}.
using Observations = std::map<std::string, json::Value>;
inline constexpr char kRefusedWrite[] = "";

struct Reconciled {
  std::vector<Write> writes;
  std::vector<EventToRecord> events;  // recorded after the writes succeeded
  std::vector<Probe> probes;
  std::optional<Time> look_again_at;
  // Whom a refused write concerns: a Warning event on it says what the server said, e.g.
  // FailedCreatePod. Null: nobody is told.
  json::Value subject;
  // The event as upstream's controllers of pods word it: FailedCreate, "Error creating: ...".
  bool brief_refusals = false;

  void Create(Target target, json::Value object);
  void Update(Target target, json::Value object);
  void UpdateStatus(Target target, json::Value object);
  void PatchMerge(Target target, json::Value patch);
  void PatchStrategic(Target target, json::Value patch);
  // A target without a name is all of its collection.
  void Delete(Target target, DeleteOptions options = {});
  void Event(json::Value object, EventType type, std::string reason, std::string message);
  void Ask(std::string name, Target target);
  void Ask(Probe probe);
  void LookAgainAt(Time time);  // the earliest of all calls counts
};

// What a controller may read: informers only.
class View {
 public:
  explicit View(InformerSet& informers) : informers_(informers) {}
  const Informer& Of(const Resource& resource) const { return informers_.Get(resource); }

 private:
  InformerSet& informers_;
};

// Which keys a change concerns.
struct Trigger {
  Resource resource;
  // Both states are given (null when absent), so that a pod that changed owner wakes both.
  std::function<std::vector<ObjectKey>(const ObjectKey& key, const json::Value& before,
                                       const json::Value& after)>
      keys;
};

class Controller {
 public:
  virtual ~Controller() = default;
  virtual std::string_view name() const = 0;
  // Called once before the informers start: AddIndex() here, and return what wakes which key.
  virtual std::vector<Trigger> Setup(InformerSet& informers) = 0;
  // Pure: the same arguments give the same answer; no clock, no randomness but `seed`, no I/O.
  virtual Reconciled Reconcile(const View& view, const Observations& observations,
                               const ObjectKey& key, Time now, uint64_t seed) = 0;
  // For controllers whose sources are not known beforehand (every kind that is served). Called
  // once, at Start(); `wake` may be called until the controller is destroyed.
  virtual void Attach(std::function<void(const ObjectKey&)> /*wake*/) {}
  // Keys that no Trigger names, for the extra pass.
  virtual std::vector<ObjectKey> ExtraKeys() const { return {}; }
};

// seed = hash(uid, purpose), the one source of randomness in a pass.
uint64_t SeedOf(std::string_view uid, std::string_view purpose);

// Triggers that most controllers need.
Trigger OnSelf(const Resource& resource);
// Wakes the controlling owner (ownerReferences with controller: true) of the given kind.
Trigger OnControlledBy(const Resource& resource, std::string owner_kind,
                       std::string owner_api_version_group);
// The ownerReference with controller: true; null if there is none.
const json::Value& ControllerOf(const json::Value& object);
// Index of an informer's objects by the UID of their controller. Call IndexByController in Setup().
void IndexByController(Informer& informer);
std::vector<ObjectKey> ControlledBy(const Informer& informer, std::string_view owner_uid);

// What metrics want to know; each may be empty.
struct RuntimeHooks {
  // result: "success", "error", "requeue" (the writes were refused as conflicts).
  std::function<void(std::string_view controller, std::string_view result, size_t writes)> on_pass;
  std::function<void(std::string_view controller, const ObjectKey& key, const Write& write,
                     const Status& error)>
      on_error;
};

class Runtime {
 public:
  Runtime(ApiClient& client, InformerSet& informers, Rng rng);
  ~Runtime();
  void Add(std::unique_ptr<Controller> controller);
  void SetHooks(RuntimeHooks hooks);
  // Passes begin once every informer that a trigger names has synced, or knows that the server has
  // no such resource.
  void Start();
  // Nothing queued, in flight, waiting for its writes to be seen or for a retry (look_again_at does
  // not count).
  bool Idle() const;
  size_t QueueLength() const;
  // One extra pass of every known key; returns how many writes it wanted to make. A fixpoint makes
  // none.
  size_t CountWritesOfExtraPass();
  // The same, as text: "controller key verb path", one line each.
  std::vector<std::string> WritesOfExtraPass();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client
