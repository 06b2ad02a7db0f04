#include "client/event_recorder.h"

#include <deque>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "client/lifetime.h"

namespace muster::client {
namespace {

constexpr size_t kMaxNamePrefixBytes =
    253 - 17;  // a name has at most 253 bytes, the hash takes 16 and a dot

std::string_view TypeName(EventType type) {
  return type == EventType::kWarning ? "Warning" : "Normal";
}

// Cuts at a character boundary of UTF-8.
std::string Cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit));
}

}  // namespace

struct EventRecorder::Impl {
  struct Known {
    Target target;
    json::Value event;
    Time last_seen{};
    Time queued{};  // its place in by_age
    int64_t count = 1;
    bool created = false;
    bool waiting = false;  // in to_send
    bool sending = false;  // one write of this event at a time
    bool changed = false;  // counted further while it was sent
  };

  Impl(ApiClient& api_client, std::string reporting_component, std::string reporting_host)
      : client(api_client),
        component(std::move(reporting_component)),
        host(std::move(reporting_host)) {}

  json::Value InvolvedObject(const json::Value& object) const {
    const json::Value& metadata = object["metadata"];
    json::Object reference{{"kind", object["kind"]}};
    if (metadata.Has("namespace")) reference.emplace_back("namespace", metadata["namespace"]);
    reference.emplace_back("name", metadata["name"]);
    if (metadata.Has("uid")) reference.emplace_back("uid", metadata["uid"]);
    reference.emplace_back("apiVersion", object["apiVersion"]);
    if (metadata.Has("resourceVersion"))
      reference.emplace_back("resourceVersion", metadata["resourceVersion"]);
    return json::Value(std::move(reference));
  }

  json::Value MakeEvent(const json::Value& object, EventType type, std::string_view reason,
                        std::string_view message, const std::string& name,
                        const std::string& ns) const {
    const std::string now = FormatTime(client.loop().Now());
    json::Object source{{"component", component}};
    if (!host.empty()) source.emplace_back("host", host);
    return json::Obj({{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", json::Obj({{"name", name}, {"namespace", ns}})},
                      {"involvedObject", InvolvedObject(object)},
                      {"reason", reason},
                      {"message", Cut(message, kMaxEventMessageBytes)},
                      {"source", json::Value(std::move(source))},
                      {"firstTimestamp", now},
                      {"lastTimestamp", now},
                      {"count", 1},
                      {"type", TypeName(type)},
                      {"reportingComponent", component},
                      {"reportingInstance", host}});
  }

  // Drops what was not seen for the length of the window, and the oldest when there are too many.
  void Forget(Time now) {
    while (!by_age.empty()) {
      const auto [queued, key] = by_age.front();
      const bool too_many = known.size() >= kMaxKnownEvents;
      if (!too_many && now - queued < kEventAggregationWindow) return;
      by_age.pop_front();
      const auto found = known.find(key);
      if (found == known.end() || found->second.queued != queued) continue;
      if (!too_many && now - found->second.last_seen < kEventAggregationWindow) {
        Queue(key, found->second, found->second.last_seen);
        continue;
      }
      known.erase(found);
    }
  }

  void Queue(const std::string& key, Known& entry, Time time) {
    entry.queued = time;
    by_age.emplace_back(time, key);
  }

  void Submit(const std::string& key, Known& entry) {
    if (entry.waiting || entry.sending) return;
    entry.waiting = true;
    to_send.push_back(key);
    Pump();
  }

  void Pump() {
    while (in_flight < kMaxEventsInFlight && !to_send.empty()) {
      const std::string key = std::move(to_send.front());
      to_send.pop_front();
      if (const auto found = known.find(key); found != known.end()) Send(key, found->second);
    }
  }

  void Send(const std::string& key, Known& entry) {
    entry.waiting = false;
    entry.sending = true;
    entry.changed = false;
    ++in_flight;
    auto done =
        lifetime.Guard([this, key](Result<json::Value> reply) { OnSent(key, std::move(reply)); });
    if (!entry.created) {
      // Counted further while it waited.
      return client.Create(entry.target, entry.event.Set("count", entry.count), std::move(done));
    }
    const json::Value patch =
        json::Obj({{"count", entry.count}, {"lastTimestamp", FormatTime(client.loop().Now())}});
    client.Patch(entry.target, PatchType::kMerge, patch, std::move(done));
  }

  void OnSent(const std::string& key, Result<json::Value> reply) {
    --in_flight;
    const auto found = known.find(key);
    if (found != known.end()) {
      Known& entry = found->second;
      entry.sending = false;
      entry.created = true;
      if (!reply && reply.error().reason() != Reason::kAlreadyExists) {
        LOG_DEBUG("events: lost event {} error={}", entry.target.name, reply.error().ToString());
        known.erase(found);
      } else if (entry.changed) {
        Submit(key, entry);
      }
    }
    Pump();
  }

  ApiClient& client;
  std::string component, host;
  std::map<std::string, Known> known;
  std::deque<std::pair<Time, std::string>> by_age;
  std::deque<std::string> to_send;
  size_t in_flight = 0;
  Lifetime lifetime;
};

EventRecorder::EventRecorder(ApiClient& client, std::string component, std::string host)
    : impl_(std::make_unique<Impl>(client, std::move(component), std::move(host))) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(const json::Value& object, EventType type, std::string_view reason,
                           std::string_view message) {
  const json::Value& metadata = object["metadata"];
  const Time now = impl_->client.loop().Now();
  impl_->Forget(now);
  const std::string key =
      Join({object["kind"].Str(), metadata["namespace"].Str(), metadata["name"].Str(),
            metadata["uid"].Str(), std::string(TypeName(type)), std::string(reason),
            std::string(message)},
           "\x1f");
  if (const auto found = impl_->known.find(key);
      found != impl_->known.end() && now - found->second.last_seen < kEventAggregationWindow) {
    Impl::Known& entry = found->second;
    entry.last_seen = now;
    ++entry.count;
    entry.changed = true;
    impl_->Submit(key, entry);
    return;
  }
  // As upstream: the object's name and the time in hexadecimal; here with the text's hash, so that
  // two events of one instant differ.
  const auto since_epoch = static_cast<uint64_t>(now.time_since_epoch().count());
  const std::string name = fmt::format(
      "{}.{:x}", Cut(metadata["name"].AsString(), kMaxNamePrefixBytes), Hash64(key, since_epoch));
  const std::string ns = metadata["namespace"].Str("default");
  Impl::Known entry;
  entry.target = {resources::kEvents, ns, name, ""};
  entry.event = impl_->MakeEvent(object, type, reason, message, name, ns);
  entry.last_seen = now;
  Impl::Known& made = impl_->known.insert_or_assign(key, std::move(entry)).first->second;
  impl_->Queue(key, made, now);
  impl_->Submit(key, made);
}

}  // namespace muster::client
