// src/agent/pod_workers/status_writer.h
//
// StatusWriter: gets the newest status of one pod to the API server, one write at a time, until it
// is acknowledged.
//
// Thread:     the loop thread.
// Invariants: the last status given is written in the end, unless the pod is gone; equal ones are
// not written again.

#pragma once

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
  // `on_acknowledged` runs after each successful write, and when the pod turned out to be gone.
  StatusWriter(Loop& loop, client::ApiClient& client, const json::Value& pod,
               std::function<void()> on_acknowledged);
  ~StatusWriter();

  void Write(json::Value status);
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

  Loop& loop_;
  client::ApiClient& client_;
  client::Target target_;
  std::string uid_;
  std::function<void()> on_acknowledged_;
  json::Value wanted_, acknowledged_;
  uint64_t acknowledged_revision_ = 0;
  bool in_flight_ = false;
  bool object_gone_ = false;
  TimerId retry_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
