// src/client/transport.h
//
// Transport: how requests reach an API server. InProcessTransport calls its Handler; HttpsTransport
// goes over TLS with a kubeconfig; simulation wraps either in a faulty link.
//
// Thread:     one loop thread; callbacks run there, never from inside the call.

#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "base/task.h"
#include "net/http.h"

namespace muster::client {

// Destroying it abandons the stream; no callback runs afterwards.
class StreamHandle {
 public:
  virtual ~StreamHandle() = default;
};

struct StreamCallbacks {
  Function<void(int status, const net::Headers& headers)> on_head;
  Function<void(std::string_view bytes)> on_data;
  // A piece that came as a tree; only if the request takes values.
  Function<void(json::Value value)> on_value;
  // Ok: the server ended the stream. Otherwise how it broke.
  Function<void(Status)> on_end;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // A Status only when there is no answer at all (refused, reset, timed out): ServiceUnavailable or
  // Timeout.
  virtual void Send(net::Request request, Function<void(Result<net::Response>)> done) = 0;
  virtual std::unique_ptr<StreamHandle> Stream(net::Request request, StreamCallbacks callbacks) = 0;
  // The other end is in this process: bodies need not become text (net::Request::value).
  virtual bool CarriesValues() const { return false; }
};

}  // namespace muster::client
