// src/client/event_recorder.h
//
// Writes v1 Events about an object, as `kubectl describe` shows them. Equal events (same object,
// reason, message, reporter) within ten minutes become one with a count.
//
// Life cycle: one per part; the ApiClient outlives it.
// Thread:     the loop thread. Losing an event loses nothing else: failures are logged and
//             forgotten.
// Invariants: at most kMaxEventsInFlight writes at a time; at most kMaxKnownEvents are remembered,
//             the oldest go first.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "client/api_client.h"
#include "json/value.h"

namespace muster::client {

inline constexpr size_t kMaxEventMessageBytes =
    1024;  // longer messages are cut, as upstream refuses them
inline constexpr size_t kMaxKnownEvents = 4096;
inline constexpr size_t kMaxEventsInFlight = 32;  // writes without an answer; the rest waits
inline constexpr Duration kEventAggregationWindow = minutes(10);

enum class EventType : uint8_t { kNormal, kWarning };

class EventRecorder {
 public:
  // `component` is the reporter, e.g. "default-scheduler", "kubelet". `host` may be "".
  EventRecorder(ApiClient& client, std::string component, std::string host);
  ~EventRecorder();
  // `object` needs apiVersion, kind and metadata.
  void Record(const json::Value& object, EventType type, std::string_view reason,
              std::string_view message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client
