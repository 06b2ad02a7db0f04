// src/client/reconcile.h
//
// The reconcile runtime: controllers are pure functions from what the informers hold to a list of writes; this file
// does the rest (keys, order, retries, stale caches).
//
//   Reconcile(view, observations, key, now, seed) -> {writes, events, probes, look_again_at}
//
// Life cycle: a Runtime is made with an ApiClient and an InformerSet; Add() controllers, Start(), destroy to stop.
// Thread:     the loop thread.
// Invariants: one pass per key at a time; a key is not run again until the informers have seen that key's last writes;
//             writes of a pass go out in order, the first failure ends the pass and the key is tried again with
//             exponential back-off (5 ms to 1,000 s, jitter from the seeded Rng); AlreadyExists of a child with a
//             deterministic name and NotFound of a delete count as done.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"

namespace muster::client {

struct Write {
  enum class Verb : uint8_t { kCreate, kUpdate, kPatchMerge, kPatchJson, kPatchStrategic, kDelete };
  Verb verb = Verb::kCreate;
  Target target;
  json::Value body;             // object or patch; null for a delete
  DeleteOptions delete_options;
};

struct EventToRecord {
  json::Value object;
  EventType type = EventType::kNormal;
  std::string reason, message;
};

// A declared question to the outside world; the runtime asks it every `period` and puts the last answer into the
// observations. (No controller of the first version asks one: the type is here so that the signature is final.)
struct Probe {
  std::string name;       // key into Observations
  std::string url;
  Duration deadline{};
  Duration period{};
};
using Observations = std::map<std::string, json::Value>;

struct Reconciled {
  std::vector<Write> writes;
  std::vector<EventToRecord> events;  // recorded after the writes succeeded
  std::vector<Probe> probes;
  std::optional<Time> look_again_at;

  void Create(Target target, json::Value object);
  void Update(Target target, json::Value object);
  void UpdateStatus(Target target, json::Value object);
  void PatchMerge(Target target, json::Value patch);
  void Delete(Target target, DeleteOptions options = {});
  void Event(json::Value object, EventType type, std::string reason, std::string message);
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
  std::function<std::vector<ObjectKey>(const ObjectKey& key, const json::Value& before, const json::Value& after)> keys;
};

class Controller {
 public:
  virtual ~Controller() = default;
  virtual std::string_view name() const = 0;
  // Called once before the informers start: AddIndex() here, and return what wakes which key.
  virtual std::vector<Trigger> Setup(InformerSet& informers) = 0;
  // Pure: the same arguments give the same answer; no clock, no randomness but `seed`, no I/O.
  virtual Reconciled Reconcile(const View& view, const Observations& observations, const ObjectKey& key, Time now,
                               uint64_t seed) = 0;
};

// Triggers that most controllers need.
Trigger OnSelf(const Resource& resource);
// Wakes the controlling owner (ownerReferences with controller: true) of the given kind.
Trigger OnControlledBy(const Resource& resource, std::string owner_kind, std::string owner_api_version_group);

class Runtime {
 public:
  Runtime(ApiClient& client, InformerSet& informers, Rng rng);
  ~Runtime();
  void Add(std::unique_ptr<Controller> controller);
  void Start();
  // Nothing queued, in flight or waiting for its writes to be seen (timers do not count). For tests and simulation.
  bool Idle() const;
  // One extra pass of every known key; returns how many writes it wanted to make. A fixpoint makes none.
  size_t CountWritesOfExtraPass();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client
