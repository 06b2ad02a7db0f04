// src/agent/pod_workers/status_writer.h
//
// StatusWriter: gets the newest status of one pod to the API server, one write at a time, until it
// is acknowledged.
//
// Thread:     the loop thread.
// Invariants: the last status given is written in the end, unless the pod is gone; equal ones are
// not written again; what somebody else wrote meanwhile is never written over: the status has to
// be made again from the newer pod (NeedsNewStatus).

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "client/api_client.h"
#include "client/lifetime.h"
#include "json/value.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kStatusRetryDelay = seconds(1);

class StatusWriter {
 public:
  // `on_acknowledged` runs after each successful write, and when the pod turned out to be gone or
  // to have been changed by somebody else.
  StatusWriter(Loop& loop, client::ApiClient& client, const json::Value& pod,
               std::function<void()> on_acknowledged);
  ~StatusWriter();

  // `status` was made from a pod of `revision`.
  void Write(json::Value status, uint64_t revision);
  // Somebody else changed the pod after the revision that the status was made from, so it was not
  // written, and `pod` is that newer one or a later one.
  bool NeedsNewStatus(const json::Value& pod) const;
  // The newest status given has reached the server (or there is no pod to write to).
  bool Acknowledged() const { return object_gone_ || (!in_flight_ && wanted_ == acknowledged_); }
  bool NothingWrittenYet() const { return wanted_.IsNull(); }
  bool object_gone() const { return object_gone_; }
  // What the server shows by now says otherwise whether the pod is Ready than what was written: the
  // node lifecycle did, when the node seemed dead. The next status is written even if it is the
  // same.
  bool IsContradictedBy(const json::Value& pod);

 private:
  void Send();
  // What the next write is made for: our own writes do not count as somebody else's.
  uint64_t Revision() const { return std::max(base_revision_, acknowledged_revision_); }
  bool Outdated() const { return refused_revision_ > 0 && Revision() <= refused_revision_; }

  Loop& loop_;
  client::ApiClient& client_;
  client::Target target_;
  std::string uid_;
  std::function<void()> on_acknowledged_;
  json::Value wanted_, acknowledged_;
  uint64_t acknowledged_revision_ = 0;
  uint64_t base_revision_ = 0;     // of the pod that wanted_ was made from
  uint64_t refused_revision_ = 0;  // there was a newer one
  bool in_flight_ = false;
  bool object_gone_ = false;
  TimerId retry_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
