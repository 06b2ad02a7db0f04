#include "client/informer.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/strings.h"
#include "client/lifetime.h"

namespace muster::client {
namespace {

using IndexFunction = std::function<std::vector<std::string>(const json::Value&)>;

struct ByKey {
  bool operator()(const ObjectKey* a, const ObjectKey* b) const { return *a < *b; }
};

// Keys of one additional index: the informer's own, by address. REQUIRES: `key` lives as long as
// its object.
class Index {
 public:
  explicit Index(IndexFunction keys_of) : keys_of_(std::move(keys_of)) {}

  void Change(const ObjectKey& key, const json::Value& before, const json::Value& after) {
    const std::vector<std::string> from =
        before.IsNull() ? std::vector<std::string>() : keys_of_(before);
    const std::vector<std::string> to =
        after.IsNull() ? std::vector<std::string>() : keys_of_(after);
    if (from == to) return;  // most changes are of something else
    for (const std::string& index_key : from) Remove(index_key, key);
    for (const std::string& index_key : to) objects_[index_key].insert(&key);
  }

  std::vector<ObjectKey> Lookup(const std::string& index_key) const {
    const auto found = objects_.find(index_key);
    if (found == objects_.end()) return {};
    std::vector<ObjectKey> keys;
    keys.reserve(found->second.size());
    for (const ObjectKey* key : found->second) keys.push_back(*key);
    return keys;
  }

  size_t LookupCount(const std::string& index_key) const {
    const auto found = objects_.find(index_key);
    return found == objects_.end() ? 0 : found->second.size();
  }

 private:
  void Remove(const std::string& index_key, const ObjectKey& key) {
    const auto found = objects_.find(index_key);
    if (found == objects_.end()) return;
    found->second.erase(&key);
    if (found->second.empty()) objects_.erase(found);
  }

  IndexFunction keys_of_;
  std::map<std::string, std::set<const ObjectKey*, ByKey>> objects_;
};

class InformerImpl final : public Informer {
 public:
  InformerImpl(ApiClient& client, json::SharedValues& shared, Resource resource,
               std::string field_selector, uint64_t seed)
      : client_(client),
        shared_(shared),
        resource_(std::move(resource)),
        field_selector_(std::move(field_selector)),
        rng_(seed) {}

  void Need(const json::Fields& fields) {
    if (fields_.Covers(fields)) return;
    CHECK_MSG(!started_, resource_.plural);  // what was dropped is not here any more
    fields_.Add(fields);
  }

  const Resource& resource() const override { return resource_; }
  bool Synced() const override { return synced_; }
  bool Served() const override { return served_; }
  uint64_t SeenRevision() const override { return seen_revision_; }
  const std::map<ObjectKey, json::Value>& objects() const override { return objects_; }

  const json::Value* Find(const ObjectKey& key) const override {
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : &found->second;
  }

  void Subscribe(InformerEvents events) override {
    Subscriber& subscriber = subscribers_.emplace_back(Subscriber{std::move(events), true});
    if (!started_) return;
    // Late: it gets the present state first, from a task of its own, and changes from then on.
    subscriber.active = false;
    client_.loop().Post(lifetime_.Guard([this, &subscriber] {
      for (const auto& [key, object] : objects_) {
        if (subscriber.events.on_change) subscriber.events.on_change(key, json::Value(), object);
      }
      subscriber.active = true;
      if (synced_ && subscriber.events.on_synced) subscriber.events.on_synced();
      if (!synced_ && !served_ && subscriber.events.on_unserved) subscriber.events.on_unserved();
    }));
  }

  void AddIndex(const std::string& index, IndexFunction keys_of) override {
    Index& made = indexes_.try_emplace(index, std::move(keys_of)).first->second;
    for (const auto& [key, object] : objects_) made.Change(key, json::Value(), object);
  }

  std::vector<ObjectKey> Lookup(const std::string& index,
                                const std::string& index_key) const override {
    const auto found = indexes_.find(index);
    return found == indexes_.end() ? std::vector<ObjectKey>() : found->second.Lookup(index_key);
  }

  size_t LookupCount(const std::string& index, const std::string& index_key) const override {
    const auto found = indexes_.find(index);
    return found == indexes_.end() ? 0 : found->second.LookupCount(index_key);
  }

  void Start() {
    if (started_) return;
    started_ = true;
    List();
  }

 private:
  struct Subscriber {
    InformerEvents events;
    bool active;
  };

  void List() {
    listed_.clear();
    ListPage("");
  }

  void ListPage(std::string continue_token) {
    ListOptions options;
    options.field_selector = field_selector_;
    options.limit = kListPageSize;
    options.continue_token = std::move(continue_token);
    client_.List(resource_, "", options,
                 lifetime_.Guard([this](Result<json::Value> page) { OnPage(std::move(page)); }));
  }

  void OnPage(Result<json::Value> page) {
    if (!page) {
      LOG_DEBUG("informer: list of {} failed error={}", resource_.plural, page.error().ToString());
      if (page.error().reason() == Reason::kNotFound && std::exchange(served_, false) && !synced_)
        Notify(&InformerEvents::on_unserved);
      Later([this] { List(); });
      return;
    }
    const std::string kind = ItemKind((*page)["kind"].AsString());
    const json::Value& api_version = (*page)["apiVersion"];
    for (const json::Value& item : (*page)["items"].items()) {
      listed_.insert_or_assign(KeyOf(item), Keep(WithType(item, api_version, kind)));
    }
    const json::Value& metadata = (*page)["metadata"];
    if (!metadata["continue"].AsString().empty()) return ListPage(metadata["continue"].Str());
    resource_version_ = metadata["resourceVersion"].Str();
    Replace(std::move(listed_));
    listed_.clear();
    if (const uint64_t revision = RevisionOf(*page); revision > 0) seen_revision_ = revision;
    synced_ = served_ = true;
    Notify(&InformerEvents::on_synced);
    Watch();
  }

  // The handlers get the difference between what was known and what the server now has.
  void Replace(std::map<ObjectKey, json::Value> fresh) {
    std::vector<ObjectKey> gone;
    for (const auto& [key, object] : objects_) {
      const auto found = fresh.find(key);
      // A name that was deleted and made again in between is two changes: nobody may take the new
      // one for the old.
      if (found == fresh.end() || Uid(found->second) != Uid(object)) gone.push_back(key);
    }
    for (const ObjectKey& key : gone) Apply(key, json::Value());
    for (auto& [key, object] : fresh) {
      const json::Value* known = Find(key);
      if (known != nullptr && Version(*known) == Version(object) && !Version(object).empty())
        continue;
      Apply(key, std::move(object));
    }
  }

  void Watch() {
    WatchOptions options;
    options.field_selector = field_selector_;
    options.resource_version = resource_version_;
    options.timeout_seconds = kWatchTimeoutSeconds + rng_.Between(0, kWatchTimeoutSeconds);
    watch_started_ = client_.loop().Now();
    watch_had_event_ = false;
    watch_ = client_.Watch(
        resource_, "", options,
        {.on_event = lifetime_.Guard([this](std::string_view type, json::Value object) {
           OnEvent(type, std::move(object));
         }),
         .on_end = lifetime_.Guard([this](Status status) { OnWatchEnd(std::move(status)); })});
  }

  void OnEvent(std::string_view type, json::Value object) {
    watch_had_event_ = true;
    failures_ = 0;
    const uint64_t revision = RevisionOf(object);
    // The link may deliver an event late or twice: an older state never replaces a newer one.
    if (revision > 0 && revision < seen_revision_) return;
    resource_version_ = Version(object);
    // Seen before it is handled: a handler that asks whether its write has arrived must hear yes.
    seen_revision_ = revision;
    const ObjectKey key = KeyOf(object);
    const json::Value* known = Find(key);
    if (type == "ADDED" || type == "MODIFIED") {
      if (known != nullptr && Uid(*known) != Uid(object)) Apply(key, json::Value());
      Apply(key, Keep(object));
    } else if (type == "DELETED" && known != nullptr) {
      Apply(key, json::Value());
    }
  }

  void OnWatchEnd(Status status) {
    // The handle may be the caller of this function: it dies in a task of its own.
    client_.loop().Post([ended = std::shared_ptr<StreamHandle>(std::move(watch_))] {});
    const bool gone =
        !status.ok() && (status.reason() == Reason::kExpired || status.reason() == Reason::kGone);
    const bool short_lived =
        !watch_had_event_ && client_.loop().Now() - watch_started_ < kMinWatchLife;
    if (!status.ok()) {
      LOG_DEBUG("informer: watch of {} ended error={}", resource_.plural, status.ToString());
    }
    if (gone) {
      // The first list after an Expired goes out at once; a server that keeps saying so is not
      // hammered.
      if (failures_ == 0) {
        failures_ = 1;
        return List();
      }
      return Later([this] { List(); });
    }
    if (status.ok() && !short_lived) return Watch();
    Later([this] { Watch(); });
  }

  template <class Step>
  void Later(Step step) {
    Duration delay = kMinInformerBackoff * (int64_t{1} << std::min(failures_, 20));
    delay = std::min<Duration>(delay, kMaxInformerBackoff);
    ++failures_;
    const Duration jittered = delay / 2 + Duration(rng_.Between(0, delay.count() / 2));
    client_.loop().After(jittered, lifetime_.Guard(std::move(step)));
  }

  json::Value Keep(const json::Value& object) { return shared_.Project(object, fields_); }

  void Apply(const ObjectKey& key, json::Value after) {
    const auto at = objects_.try_emplace(key).first;
    const json::Value before = std::exchange(at->second, after);
    for (auto& [name, index] : indexes_) index.Change(at->first, before, after);
    if (after.IsNull()) objects_.erase(at);
    // By position: a handler may subscribe to this informer.
    for (size_t i = 0; i < subscribers_.size(); ++i) {
      if (subscribers_[i].active && subscribers_[i].events.on_change) {
        subscribers_[i].events.on_change(key, before, after);
      }
    }
  }

  void Notify(std::function<void()> InformerEvents::* handler) {
    for (size_t i = 0; i < subscribers_.size(); ++i) {
      if (subscribers_[i].active && subscribers_[i].events.*handler)
        (subscribers_[i].events.*handler)();
    }
  }

  static std::string ItemKind(std::string_view list_kind) {
    if (list_kind.ends_with("List")) list_kind.remove_suffix(4);
    return std::string(list_kind);
  }

  // Items of a typed list come without apiVersion and kind; watch events have them.
  static json::Value WithType(const json::Value& item, const json::Value& api_version,
                              const std::string& kind) {
    if (item.Has("kind") && item.Has("apiVersion")) return item;
    json::Object members{{"apiVersion", api_version}, {"kind", kind}};
    for (const json::Member& member : item.members()) {
      if (member.first != "apiVersion" && member.first != "kind") members.push_back(member);
    }
    return json::Value(std::move(members));
  }

  static std::string_view Uid(const json::Value& object) {
    return object["metadata"]["uid"].AsString();
  }
  static std::string Version(const json::Value& object) {
    return object["metadata"]["resourceVersion"].Str();
  }

  ApiClient& client_;
  json::SharedValues& shared_;
  const Resource resource_;
  const std::string field_selector_;
  json::Fields fields_ = IdentityFields();
  Rng rng_;
  std::map<ObjectKey, json::Value> objects_;
  std::map<ObjectKey, json::Value> listed_;  // pages of the list in progress
  std::map<std::string, Index> indexes_;
  std::deque<Subscriber> subscribers_;  // a deque keeps addresses
  std::string resource_version_;
  uint64_t seen_revision_ = 0;
  std::unique_ptr<StreamHandle> watch_;
  Time watch_started_{};
  bool watch_had_event_ = false;
  int failures_ = 0;
  bool started_ = false;
  bool served_ = true;
  bool synced_ = false;
  Lifetime lifetime_;
};

}  // namespace

uint64_t RevisionOf(const json::Value& object) {
  const std::optional<int64_t> revision =
      ParseInt(object["metadata"]["resourceVersion"].AsString());
  return revision && *revision > 0 ? static_cast<uint64_t>(*revision) : 0;
}

ObjectKey KeyOf(const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  return {metadata["namespace"].Str(), metadata["name"].Str()};
}

const json::Fields& IdentityFields() {
  static const json::Fields fields{{"apiVersion"},
                                   {"kind"},
                                   {"metadata", "name"},
                                   {"metadata", "namespace"},
                                   {"metadata", "uid"},
                                   {"metadata", "resourceVersion"},
                                   {"metadata", "deletionTimestamp"},
                                   {"metadata", "ownerReferences"},
                                   {"metadata", "finalizers"}};
  return fields;
}

struct InformerSet::Impl {
  Impl(ApiClient& api_client, uint64_t seed_of_set) : client(api_client), seed(seed_of_set) {}

  ApiClient& client;
  uint64_t seed;
  bool started = false;
  json::SharedValues shared;  // of all informers
  std::map<std::pair<Resource, std::string>, std::unique_ptr<InformerImpl>> informers;
};

InformerSet::InformerSet(ApiClient& client, uint64_t seed)
    : impl_(std::make_unique<Impl>(client, seed)) {}
InformerSet::~InformerSet() = default;

Informer& InformerSet::Get(const Resource& resource, const json::Fields& fields,
                           const std::string& field_selector) {
  std::unique_ptr<InformerImpl>& slot = impl_->informers[{resource, field_selector}];
  if (slot == nullptr) {
    const uint64_t seed =
        Hash64(resource.group + "/" + resource.plural + "?" + field_selector, impl_->seed);
    slot = std::make_unique<InformerImpl>(impl_->client, impl_->shared, resource, field_selector,
                                          seed);
  }
  slot->Need(fields);
  if (impl_->started) slot->Start();
  return *slot;
}

const Informer* InformerSet::Find(const Resource& resource) const {
  const auto found = impl_->informers.find({resource, ""});
  return found == impl_->informers.end() ? nullptr : found->second.get();
}

void InformerSet::Start() {
  impl_->started = true;
  for (auto& [key, informer] : impl_->informers) informer->Start();
}

bool InformerSet::AllSynced() const {
  return std::all_of(impl_->informers.begin(), impl_->informers.end(),
                     [](const auto& entry) { return entry.second->Known(); });
}

}  // namespace muster::client
