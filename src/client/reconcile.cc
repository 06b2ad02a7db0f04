#include "client/reconcile.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "client/lifetime.h"

namespace muster::client {
namespace {

constexpr char kControllerIndex[] = "controller-uid";

std::string_view VerbName(Write::Verb verb) {
  switch (verb) {
    case Write::Verb::kCreate:
      return "create";
    case Write::Verb::kUpdate:
      return "update";
    case Write::Verb::kPatchMerge:
    case Write::Verb::kPatchJson:
    case Write::Verb::kPatchStrategic:
      return "patch";
    case Write::Verb::kDelete:
      return "delete";
  }
  return "";
}

bool RunsTogether(Write::Verb a, Write::Verb b) {
  return a == b && (a == Write::Verb::kCreate || a == Write::Verb::kDelete);
}

// What an informer must show before the key that wrote may run again.
struct Expectation {
  enum class Kind : uint8_t { kRevision, kPresent, kGone };
  Kind kind = Kind::kRevision;
  uint64_t revision = 0;
  std::string uid;  // kGone: of the object that was deleted; "" for any

  bool Holds(const Informer& informer, const ObjectKey& key) const {
    const json::Value* object = informer.Find(key);
    switch (kind) {
      case Kind::kRevision:
        return informer.SeenRevision() >= revision ||
               (object != nullptr && RevisionOf(*object) >= revision);
      case Kind::kPresent:
        return object != nullptr;
      case Kind::kGone:
        return object == nullptr ||
               (!uid.empty() && (*object)["metadata"]["uid"].AsString() != uid) ||
               (*object)["metadata"].Has("deletionTimestamp");
    }
    return true;
  }
};

}  // namespace

void Reconciled::Create(Target target, json::Value object) {
  writes.push_back({Write::Verb::kCreate, std::move(target), std::move(object), {}});
}

void Reconciled::Update(Target target, json::Value object) {
  writes.push_back({Write::Verb::kUpdate, std::move(target), std::move(object), {}});
}

void Reconciled::UpdateStatus(Target target, json::Value object) {
  target.subresource = "status";
  writes.push_back({Write::Verb::kUpdate, std::move(target), std::move(object), {}});
}

void Reconciled::PatchMerge(Target target, json::Value patch) {
  writes.push_back({Write::Verb::kPatchMerge, std::move(target), std::move(patch), {}});
}

void Reconciled::PatchStrategic(Target target, json::Value patch) {
  writes.push_back({Write::Verb::kPatchStrategic, std::move(target), std::move(patch), {}});
}

void Reconciled::Delete(Target target, DeleteOptions options) {
  writes.push_back({Write::Verb::kDelete, std::move(target), json::Value(), std::move(options)});
}

void Reconciled::Event(json::Value object, EventType type, std::string reason,
                       std::string message) {
  events.push_back({std::move(object), type, std::move(reason), std::move(message)});
}

void Reconciled::Ask(std::string name, Target target) {
  Probe probe;
  probe.name = std::move(name);
  probe.target = std::move(target);
  Ask(std::move(probe));
}

void Reconciled::Ask(Probe probe) { probes.push_back(std::move(probe)); }

json::Value FailureOf(const Status& error) {
  return json::Obj({{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"status", "Failure"},
                    {"message", error.message()},
                    {"reason", ReasonName(error.reason())},
                    {"code", error.code()}});
}

bool IsFailure(const json::Value& observation) {
  return observation["kind"].AsString() == "Status" &&
         observation["status"].AsString() == "Failure";
}

void Reconciled::LookAgainAt(Time time) {
  if (!look_again_at || time < *look_again_at) look_again_at = time;
}

uint64_t SeedOf(std::string_view uid, std::string_view purpose) {
  return Hash64(purpose, Hash64(uid));
}

const json::Value& ControllerOf(const json::Value& object) {
  static const json::Value kNone;
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].AsBool()) return owner;
  }
  return kNone;
}

void IndexByController(Informer& informer) {
  informer.AddIndex(kControllerIndex, [](const json::Value& object) {
    const json::Value& owner = ControllerOf(object);
    return owner.IsNull() ? std::vector<std::string>()
                          : std::vector<std::string>{owner["uid"].Str()};
  });
}

std::vector<ObjectKey> ControlledBy(const Informer& informer, std::string_view owner_uid) {
  return informer.Lookup(kControllerIndex, std::string(owner_uid));
}

Trigger OnSelf(const Resource& resource) {
  return {resource, [](const ObjectKey& key, const json::Value&, const json::Value&) {
            return std::vector<ObjectKey>{key};
          }};
}

Trigger OnControlledBy(const Resource& resource, std::string owner_kind,
                       std::string owner_api_version_group) {
  return {resource, [kind = std::move(owner_kind), group = std::move(owner_api_version_group)](
                        const ObjectKey& key, const json::Value& before, const json::Value& after) {
            std::vector<ObjectKey> keys;
            for (const json::Value* object : {&before, &after}) {
              const json::Value& owner = ControllerOf(*object);
              const std::string_view version = owner["apiVersion"].AsString();
              const size_t slash = version.find('/');
              const std::string_view owner_group =
                  slash == version.npos ? "" : version.substr(0, slash);
              if (owner["kind"].AsString() != kind || owner_group != group) continue;
              ObjectKey owner_key{key.ns, owner["name"].Str()};
              if (keys.empty() || keys.front() != owner_key) keys.push_back(std::move(owner_key));
            }
            return keys;
          }};
}

// After a create without an answer: how often it is looked for, and how long after each other.
constexpr int kMaxLooks = 5;
constexpr Duration kLookAgainPause = milliseconds(500);

struct Runtime::Impl {
  struct KeyState;

  struct ControllerState {
    std::unique_ptr<Controller> controller;
    std::vector<Trigger> triggers;
    std::unique_ptr<EventRecorder> recorder;
    std::map<ObjectKey, std::unique_ptr<KeyState>> keys;
    std::deque<KeyState*> queue;
    size_t position = 0;  // in `controllers`
  };

  // All there is to one key of one controller. It exists only while something is going on with the
  // key.
  struct KeyState {
    ControllerState* owner = nullptr;
    ObjectKey key;
    bool queued = false;
    bool running = false;      // its writes or probes are in flight
    bool wants_run = false;    // woken while it ran or waited
    size_t unseen_writes = 0;  // expectations that do not hold yet
    TimerId cache_wait = 0;
    TimerId retry = 0;
    TimerId look_again = 0;
    int failures = 0;
    Observations observations;
    json::Value refused;  // kRefusedWrite, until a pass succeeds
    // The pass in flight.
    Reconciled pass;
    size_t next_write = 0;
    size_t writes_in_flight = 0;
    size_t probes_in_flight = 0;
    Status error;
  };

  using WatchedObject = std::pair<Resource, ObjectKey>;
  struct Awaited {
    KeyState* key_state;
    Expectation expectation;
  };

  Impl(ApiClient& api_client, InformerSet& informer_set, Rng seeded)
      : client(api_client), informers(informer_set), view(informer_set), rng(seeded) {}

  ~Impl() {
    for (auto& state : controllers) {
      for (auto& [key, key_state] : state->keys) CancelTimers(*key_state);
    }
  }

  void CancelTimers(KeyState& key_state) {
    for (TimerId* timer : {&key_state.cache_wait, &key_state.retry, &key_state.look_again}) {
      client.loop().Cancel(*timer);
      *timer = 0;
    }
  }

  void Add(std::unique_ptr<Controller> controller) {
    CHECK(!started);
    auto state = std::make_unique<ControllerState>();
    state->controller = std::move(controller);
    state->triggers = state->controller->Setup(informers);
    state->recorder =
        std::make_unique<EventRecorder>(client, std::string(state->controller->name()), "");
    state->position = controllers.size();
    controllers.push_back(std::move(state));
  }

  void Start() {
    CHECK(!started);
    started = true;
    for (const auto& state : controllers) {
      for (const Trigger& trigger : state->triggers) Subscribe(*state, trigger);
      ControllerState* target = state.get();
      state->controller->Attach(
          lifetime.Guard([this, target](const ObjectKey& key) { Wake(*target, key); }));
    }
    sources_known = SourcesKnown();
  }

  void Subscribe(ControllerState& state, const Trigger& trigger) {
    ControllerState* target = &state;
    const Trigger* source = &trigger;
    Watch(trigger.resource);
    Informer& informer = informers.Get(trigger.resource);
    informer.Subscribe({.on_change = lifetime.Guard(
                            [this, target, source](const ObjectKey& key, const json::Value& before,
                                                   const json::Value& after) {
                              for (const ObjectKey& woken : source->keys(key, before, after))
                                Wake(*target, woken);
                            }),
                        .on_synced = {}});
  }

  // Follows an informer for the sake of awaited writes, once per resource.
  void Watch(const Resource& resource) {
    if (!followed.insert(resource).second) return;
    informers.Get(resource).Subscribe(
        {.on_change =
             lifetime.Guard([this, resource](const ObjectKey& key, const json::Value&,
                                             const json::Value&) { Check({resource, key}); }),
         .on_synced = lifetime.Guard([this, resource] {
           CheckAllOf(resource);
           LookAtSources();
         }),
         .on_unserved = lifetime.Guard([this] { LookAtSources(); })});
  }

  void LookAtSources() {
    if (sources_known || !SourcesKnown()) return;
    sources_known = true;
    Pump();
  }

  // A kind that this server does not have keeps nobody waiting.
  bool SourcesKnown() const {
    return std::all_of(followed.begin(), followed.end(), [this](const Resource& resource) {
      const Informer* informer = informers.Find(resource);
      return informer != nullptr && informer->Known();
    });
  }

  KeyState& StateOf(ControllerState& owner, const ObjectKey& key) {
    std::unique_ptr<KeyState>& slot = owner.keys[key];
    if (slot == nullptr) {
      slot = std::make_unique<KeyState>();
      slot->owner = &owner;
      slot->key = key;
    }
    return *slot;
  }

  void Wake(ControllerState& owner, const ObjectKey& key) {
    KeyState& state = StateOf(owner, key);
    client.loop().Cancel(std::exchange(state.retry, 0));
    if (state.running || state.unseen_writes > 0) {
      state.wants_run = true;
      return;
    }
    Enqueue(state);
  }

  void Enqueue(KeyState& state) {
    state.wants_run = false;
    if (state.queued) return;
    state.queued = true;
    state.owner->queue.push_back(&state);
    ++queued;
    Pump();
  }

  // One pass per task of the loop, the controllers in turn: a long queue of one holds up nobody.
  void Pump() {
    if (pump_posted || queued == 0 || !sources_known || running >= kMaxPassesInFlight) return;
    pump_posted = true;
    client.loop().Post(lifetime.Guard([this] {
      pump_posted = false;
      RunNext();
      Pump();
    }));
  }

  void RunNext() {
    for (size_t i = 0; i < controllers.size(); ++i) {
      next_controller = (next_controller + 1) % controllers.size();
      ControllerState& owner = *controllers[next_controller];
      if (owner.queue.empty()) continue;
      KeyState& state = *owner.queue.front();
      owner.queue.pop_front();
      --queued;
      state.queued = false;
      Run(state);
      return;
    }
  }

  uint64_t SeedOfKey(const ControllerState& owner, const ObjectKey& key) const {
    std::string uid;
    if (!owner.triggers.empty()) {
      const json::Value* object = informers.Get(owner.triggers.front().resource).Find(key);
      if (object != nullptr) uid = (*object)["metadata"]["uid"].Str();
    }
    return SeedOf(uid.empty() ? key.ToString() : uid, owner.controller->name());
  }

  Reconciled Pass(ControllerState& owner, const ObjectKey& key, const Observations& observations) {
    return owner.controller->Reconcile(view, observations, key, client.loop().Now(),
                                       SeedOfKey(owner, key));
  }

  void Run(KeyState& state) {
    client.loop().Cancel(std::exchange(state.look_again, 0));
    state.running = true;
    ++running;
    Observations observations = std::exchange(state.observations, {});
    if (!state.refused.IsNull()) observations[kRefusedWrite] = state.refused;
    state.pass = Pass(*state.owner, state.key, observations);
    state.next_write = 0;
    state.error = Status::Ok();
    SendWrites(state);
  }

  void SendWrites(KeyState& state) {
    const std::vector<Write>& writes = state.pass.writes;
    while (state.error.ok() && state.next_write < writes.size() &&
           state.writes_in_flight < kMaxParallelWrites) {
      const Write& write = writes[state.next_write];
      if (state.writes_in_flight > 0 &&
          !RunsTogether(writes[state.next_write - 1].verb, write.verb))
        break;
      ++state.next_write;
      ++state.writes_in_flight;
      Send(state, write);
    }
    if (state.writes_in_flight > 0) return;
    if (!state.error.ok()) return Finish(state);
    for (EventToRecord& event : state.pass.events) {
      state.owner->recorder->Record(event.object, event.type, event.reason, event.message);
    }
    AskProbes(state);
  }

  void Send(KeyState& state, const Write& write) {
    KeyState* target = &state;
    const Write* sent = &write;
    ApiClient::Done done = lifetime.Guard([this, target, sent](Result<json::Value> reply) {
      if (!reply && MayHaveCreated(*sent, reply.error()))
        return LookFor(*target, *sent, reply.error(), kMaxLooks);
      --target->writes_in_flight;
      OnReply(*target, *sent, std::move(reply));
      SendWrites(*target);
    });
    switch (write.verb) {
      case Write::Verb::kCreate:
        return client.Create(write.target, write.body, std::move(done));
      case Write::Verb::kUpdate:
        return client.Update(write.target, write.body, std::move(done));
      case Write::Verb::kPatchMerge:
        return client.Patch(write.target, PatchType::kMerge, write.body, std::move(done));
      case Write::Verb::kPatchJson:
        return client.Patch(write.target, PatchType::kJson, write.body, std::move(done));
      case Write::Verb::kPatchStrategic:
        return client.Patch(write.target, PatchType::kStrategic, write.body, std::move(done));
      case Write::Verb::kDelete:
        return client.Delete(write.target, write.delete_options, std::move(done));
    }
  }

  // Nobody knows what became of the request.
  static bool IsUnanswered(const Status& error) {
    switch (error.reason()) {
      case Reason::kTimeout:
      case Reason::kServerTimeout:
      case Reason::kServiceUnavailable:
      case Reason::kInternalError:
      case Reason::kUnknown:
        return true;
      default:
        return false;
    }
  }

  static bool MayHaveCreated(const Write& write, const Status& error) {
    return write.verb == Write::Verb::kCreate && write.target.subresource.empty() &&
           IsUnanswered(error) && !ControllerOf(write.body).IsNull();
  }

  // What is there is waited for as if it had been answered: a pass that does not know of it might
  // make another one by another name.
  void LookFor(KeyState& state, const Write& write, const Status& error, int looks) {
    Target created = write.target;
    if (created.name.empty()) created.name = write.body["metadata"]["name"].Str();
    client.Get(
        created,
        lifetime.Guard([this, target = &state, sent = &write, error, looks,
                        key = ObjectKey{created.ns, created.name}](Result<json::Value> there) {
          if (!there && IsUnanswered(there.error()) && looks > 1) {
            client.loop().After(kLookAgainPause, lifetime.Guard([this, target, sent, error, looks] {
              LookFor(*target, *sent, error, looks - 1);
            }));
            return;
          }
          --target->writes_in_flight;
          OnReply(*target, *sent, std::unexpected(error));
          if (there && ControllerOf(*there)["uid"] == ControllerOf(sent->body)["uid"]) {
            Await(*target, {sent->target.resource, key},
                  {Expectation::Kind::kRevision, RevisionOf(*there), ""});
          }
          SendWrites(*target);
        }));
  }

  void OnReply(KeyState& state, const Write& write, Result<json::Value> reply) {
    const bool creates = write.verb == Write::Verb::kCreate;
    const bool deletes = write.verb == Write::Verb::kDelete;
    ObjectKey key{write.target.ns, write.target.name};
    if (key.name.empty()) key.name = (reply ? *reply : write.body)["metadata"]["name"].Str();
    const Informer* informer = informers.Find(write.target.resource);
    if (!reply) {
      const Reason reason = reply.error().reason();
      if (creates && reason == Reason::kAlreadyExists && write.target.subresource.empty() &&
          MayBeOurs(informer, key, write.body)) {
        return Await(state, {write.target.resource, key}, {Expectation::Kind::kPresent, 0, ""});
      }
      if (deletes && reason == Reason::kNotFound) {
        return Await(state, {write.target.resource, key}, {Expectation::Kind::kGone, 0, ""});
      }
      if (state.error.ok()) {
        state.error = reply.error();
        state.refused = json::Obj({{"verb", VerbName(write.verb)},
                                   {"kind", write.body["kind"].AsString()},
                                   {"reason", ReasonName(reason)},
                                   {"message", reply.error().message()}});
      }
      if (hooks.on_error)
        hooks.on_error(state.owner->controller->name(), state.key, write, reply.error());
      LogFailure(state, write, reply.error());
      TellSubject(state, write, reply.error());
      return;
    }
    if (informer == nullptr) return;
    if (deletes) {
      const std::string uid = write.delete_options.precondition_uid;
      return Await(state, {write.target.resource, key}, {Expectation::Kind::kGone, 0, uid});
    }
    const uint64_t revision = RevisionOf(*reply);
    if (revision == 0 || (*reply)["metadata"]["name"].AsString() != key.name) return;
    Await(state, {write.target.resource, key}, {Expectation::Kind::kRevision, revision, ""});
  }

  // The object that a create found in its place: the cache does not know it yet, or knows it as
  // what this write wanted, which an earlier one did whose answer was lost.
  static bool MayBeOurs(const Informer* informer, const ObjectKey& key, const json::Value& wanted) {
    if (informer == nullptr) return false;
    const json::Value* known = informer->Find(key);
    if (known == nullptr) return true;
    const json::Value& owner = ControllerOf(wanted);
    return !owner.IsNull() && !(*known)["metadata"].Has("deletionTimestamp") &&
           ControllerOf(*known)["uid"] == owner["uid"];
  }

  static void LogFailure(const KeyState& state, const Write& write, const Status& error) {
    const LogLevel level = error.reason() == Reason::kConflict ? LogLevel::kDebug : LogLevel::kWarn;
    Log(level, "{}: {} {} failed key={} error={}", state.owner->controller->name(),
        VerbName(write.verb), ApiClient::PathOf(write.target), state.key.ToString(),
        error.ToString());
  }

  // A refusal that trying again does not cure is the user's business.
  static bool IsUsersBusiness(const Status& error) {
    switch (error.reason()) {
      case Reason::kInvalid:
      case Reason::kForbidden:
      case Reason::kBadRequest:
      case Reason::kAlreadyExists:
      case Reason::kRequestEntityTooLarge:
        return true;
      default:
        return false;
    }
  }

  void TellSubject(KeyState& state, const Write& write, const Status& error) {
    if (state.pass.subject.IsNull() || !IsUsersBusiness(error)) return;
    const std::string_view verb = write.verb == Write::Verb::kCreate   ? "Create"
                                  : write.verb == Write::Verb::kDelete ? "Delete"
                                                                       : "Update";
    std::string reason = fmt::format("Failed{}", verb);
    std::string message;
    if (state.pass.brief_refusals) {
      message =
          fmt::format("Error {}ing: {}", ToLower(verb.substr(0, verb.size() - 1)), error.message());
    } else {
      reason += write.body["kind"].AsString();
      message = fmt::format("{} {}: {}", VerbName(write.verb), ApiClient::PathOf(write.target),
                            error.message());
    }
    state.owner->recorder->Record(state.pass.subject, EventType::kWarning, std::move(reason),
                                  std::move(message));
  }

  void Await(KeyState& state, WatchedObject object, Expectation expectation) {
    const Informer* informer = informers.Find(object.first);
    if (informer == nullptr || expectation.Holds(*informer, object.second)) return;
    Watch(object.first);
    ++state.unseen_writes;
    awaited[std::move(object)].push_back({&state, std::move(expectation)});
  }

  // An event of `object` arrived: which of the awaited writes are visible now?
  void Check(const WatchedObject& object) {
    const auto found = awaited.find(object);
    if (found == awaited.end()) return;
    const Informer& informer = informers.Get(object.first);
    std::vector<Awaited> still;
    std::vector<KeyState*> seen;
    for (Awaited& entry : found->second) {
      if (entry.expectation.Holds(informer, object.second)) {
        seen.push_back(entry.key_state);
      } else {
        still.push_back(std::move(entry));
      }
    }
    if (still.empty()) {
      awaited.erase(found);
    } else {
      found->second = std::move(still);
    }
    for (KeyState* state : seen) {
      --state->unseen_writes;
      OnProgress(*state);
    }
  }

  void CheckAllOf(const Resource& resource) {
    std::vector<WatchedObject> objects;
    for (auto it = awaited.lower_bound({resource, {}});
         it != awaited.end() && it->first.first == resource; ++it) {
      objects.push_back(it->first);
    }
    for (const WatchedObject& object : objects) Check(object);
  }

  void AskProbes(KeyState& state) {
    state.probes_in_flight = state.pass.probes.size();
    if (state.probes_in_flight == 0) return Finish(state);
    KeyState* target = &state;
    for (const Probe& probe : state.pass.probes) {
      ApiClient::Done done =
          lifetime.Guard([this, target, asked = &probe](Result<json::Value> reply) {
            const std::string& name = asked->name;
            --target->probes_in_flight;
            if (reply) {
              target->observations[name] = std::move(*reply);
            } else if (asked->failures_too) {
              target->observations[name] = FailureOf(reply.error());
            } else if (reply.error().reason() == Reason::kNotFound) {
              target->observations[name] = json::Value();
            } else if (target->error.ok()) {
              target->error = reply.error();
            }
            if (target->probes_in_flight == 0) Finish(*target);
          });
      if (!probe.path.empty()) {
        client.GetPath(probe.path, std::move(done));
      } else if (probe.target.name.empty()) {
        client.List(probe.target.resource, probe.target.ns, probe.list, std::move(done));
      } else {
        client.Get(probe.target, std::move(done));
      }
    }
  }

  void Finish(KeyState& state) {
    const bool conflict = !state.error.ok() && state.error.reason() == Reason::kConflict;
    if (hooks.on_pass) {
      hooks.on_pass(state.owner->controller->name(),
                    state.error.ok() ? "success"
                    : conflict       ? "requeue"
                                     : "error",
                    state.pass.writes.size());
    }
    state.running = false;
    --running;
    if (!state.error.ok()) {
      state.observations.clear();
      Retry(state);
    } else {
      state.failures = 0;
      state.refused = {};
      // The answers are good for one pass, which follows at once.
      if (!state.pass.probes.empty()) state.wants_run = true;
      if (state.pass.look_again_at) LookAgain(state, *state.pass.look_again_at);
    }
    state.pass = {};
    if (state.unseen_writes > 0 && state.cache_wait == 0) {
      state.cache_wait = client.loop().After(kMaxCacheWait, lifetime.Guard([this, target = &state] {
        LOG_WARN("{}: gave up waiting for its own writes key={}", target->owner->controller->name(),
                 target->key.ToString());
        target->cache_wait = 0;
        ForgetAwaited(*target);
        OnProgress(*target);
      }));
    }
    OnProgress(state);
    Pump();
  }

  // Call when `state` may have become free to run, or to be forgotten.
  void OnProgress(KeyState& state) {
    if (state.running || state.unseen_writes > 0) return;
    client.loop().Cancel(std::exchange(state.cache_wait, 0));
    if (state.wants_run) return Enqueue(state);
    if (!state.queued && state.retry == 0 && state.look_again == 0)
      state.owner->keys.erase(state.key);
  }

  void ForgetAwaited(KeyState& state) {
    for (auto it = awaited.begin(); it != awaited.end();) {
      std::erase_if(it->second,
                    [&state](const Awaited& entry) { return entry.key_state == &state; });
      it = it->second.empty() ? awaited.erase(it) : std::next(it);
    }
    state.unseen_writes = 0;
  }

  void Retry(KeyState& state) {
    if (state.wants_run) return;  // something changed meanwhile: the next pass comes at once
    Duration delay = kMinRetryBackoff * (int64_t{1} << std::min(state.failures, 30));
    delay = std::min<Duration>(delay, kMaxRetryBackoff);
    ++state.failures;
    const Duration jittered = delay / 2 + Duration(rng.Between(0, delay.count() / 2));
    state.retry = client.loop().After(jittered, lifetime.Guard([this, target = &state] {
      target->retry = 0;
      Wake(*target->owner, target->key);
    }));
  }

  void LookAgain(KeyState& state, Time at) {
    const Duration delay = std::max<Duration>(at - client.loop().Now(), Duration::zero());
    client.loop().Cancel(state.look_again);
    state.look_again = client.loop().After(delay, lifetime.Guard([this, target = &state] {
      target->look_again = 0;
      Wake(*target->owner, target->key);
    }));
  }

  std::set<ObjectKey> KnownKeys(const ControllerState& owner) {
    std::set<ObjectKey> keys;
    for (const Trigger& trigger : owner.triggers) {
      for (const auto& [key, object] : informers.Get(trigger.resource).objects()) {
        for (ObjectKey& woken : trigger.keys(key, json::Value(), object))
          keys.insert(std::move(woken));
      }
    }
    for (ObjectKey& key : owner.controller->ExtraKeys()) keys.insert(std::move(key));
    return keys;
  }

  std::vector<std::string> WritesOfExtraPass() {
    std::vector<std::string> lines;
    for (const auto& owner : controllers) {
      for (const ObjectKey& key : KnownKeys(*owner)) {
        for (const Write& write : Pass(*owner, key, {}).writes) {
          lines.push_back(fmt::format("{} {} {} {}", owner->controller->name(), key.ToString(),
                                      VerbName(write.verb), ApiClient::PathOf(write.target)));
        }
      }
    }
    return lines;
  }

  bool Idle() const {
    if (queued > 0 || running > 0 || !awaited.empty() || !sources_known) return false;
    for (const auto& owner : controllers) {
      for (const auto& [key, state] : owner->keys) {
        if (state->retry != 0) return false;
      }
    }
    return true;
  }

  ApiClient& client;
  InformerSet& informers;
  View view;
  Rng rng;
  RuntimeHooks hooks;
  std::vector<std::unique_ptr<ControllerState>> controllers;
  std::set<Resource> followed;
  std::map<WatchedObject, std::vector<Awaited>> awaited;
  size_t next_controller = 0;
  size_t queued = 0;
  size_t running = 0;
  bool pump_posted = false;
  bool sources_known = false;
  bool started = false;
  Lifetime lifetime;
};

Runtime::Runtime(ApiClient& client, InformerSet& informers, Rng rng)
    : impl_(std::make_unique<Impl>(client, informers, rng)) {}
Runtime::~Runtime() = default;

void Runtime::Add(std::unique_ptr<Controller> controller) { impl_->Add(std::move(controller)); }
void Runtime::SetHooks(RuntimeHooks hooks) { impl_->hooks = std::move(hooks); }
void Runtime::Start() { impl_->Start(); }
bool Runtime::Idle() const { return impl_->Idle(); }
size_t Runtime::QueueLength() const { return impl_->queued; }
size_t Runtime::CountWritesOfExtraPass() { return impl_->WritesOfExtraPass().size(); }
std::vector<std::string> Runtime::WritesOfExtraPass() { return impl_->WritesOfExtraPass(); }

}  // namespace muster::client
