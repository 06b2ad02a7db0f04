// src/net/http.h
//
// One handler API for every transport: the HTTP codecs call it, the in-process client calls it,
// tests call it with a fake writer, simulation calls it through a faulty link.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/task.h"
#include "json/value.h"

namespace muster::net {

// In the order received; names compare without case.
class Headers {
 public:
  void Add(std::string name, std::string value) {
    list_.emplace_back(std::move(name), std::move(value));
  }
  void Set(std::string_view name, std::string value);
  std::string_view Get(std::string_view name) const;  // first; "" if absent
  bool Has(std::string_view name) const;
  void Remove(std::string_view name);
  const std::vector<std::pair<std::string, std::string>>& list() const { return list_; }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

// Who is at the other end of the connection, proved by TLS or by being in this process.
struct Peer {
  std::string address;              // "127.0.0.1:51234"; "" in process
  std::string user;                 // verified client certificate: CN; "" if none
  std::vector<std::string> groups;  // ... O
  // Why the certificate that was presented does not count; "" if it does, or none was.
  std::string refused = {};
};

struct Request {
  std::string method;  // "GET"
  std::string target;  // path and query as received: "/api/v1/pods?limit=5"
  Headers headers;
  std::string body;
  Peer peer;
  // Between parts of one process a body may travel as its tree; then `body` is empty.
  json::Value value;
  bool takes_values = false;  // the answer may, too
};

// A body that is produced piece by piece on an I/O thread (a LIST of 30 MB never exists as one
// string).
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Appends the next piece (about `want` bytes) to `out`; false when nothing is left. Any one
  // thread at a time.
  virtual bool Next(size_t want, std::string& out) = 0;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  std::unique_ptr<BodySource> source;  // instead of body
  json::Value value;                   // instead of body, for a writer that TakesValues()
};

// Whoever paused for a slow stream goes on at this much.
inline constexpr size_t kStreamDrainedBytes = 256 * 1024;

// A connection that stopped being HTTP (WebSocket, SPDY, a spliced exec stream). Loop thread.
class ByteStream {
 public:
  virtual ~ByteStream() = default;  // closes
  virtual void OnData(Function<void(std::string_view)> on_data) = 0;
  virtual void OnClose(Task on_close) = 0;
  virtual void Write(std::string bytes) = 0;
  virtual void Close() = 0;  // after what was written
  // Bytes accepted by Write but not yet by the kernel: a writer slows down, or gives up, when they
  // grow.
  virtual size_t BufferedBytes() const { return 0; }
  // A paused stream stops reading from its peer. What was read before still comes to OnData, so
  // there is a bound on it, but it is not nothing.
  virtual void PauseReading(bool paused) { (void)paused; }
  // Runs each time that BufferedBytes() has sunk to kStreamDrainedBytes or less.
  virtual void OnDrained(Function<void()> on_drained) { (void)on_drained; }
};

// Exactly one of Send, StartStream, Upgrade per request. All calls on the handler's loop thread.
// After the peer is gone every call is harmless. Destroying a writer that answered nothing sends
// 500.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  virtual void Send(Response response) = 0;

  // A stream of unknown length (watch, log -f): chunked in HTTP/1.1.
  virtual void StartStream(int status, Headers headers) = 0;
  // Shared: a watch event is encoded once and sent to every watcher.
  virtual void Write(std::shared_ptr<const std::string> bytes) = 0;
  // For who TakesValues(): a piece of the stream as a tree, which counts as `bytes`.
  virtual void WriteValue(json::Value value, size_t bytes) {
    (void)value;
    (void)bytes;
  }
  virtual bool TakesValues() const { return false; }
  virtual void End() = 0;
  // End() for a stream whose reader has fallen behind: what was written and is not on its way yet
  // is dropped, `last` is the last piece. The connection does not outlive it.
  virtual void CutWith(std::shared_ptr<const std::string> last) {
    Write(std::move(last));
    End();
  }
  // Bytes accepted by Write but not yet by the kernel. A handler closes a stream whose reader is
  // too slow.
  virtual size_t BufferedBytes() const = 0;

  virtual std::unique_ptr<ByteStream> Upgrade(Headers headers) = 0;

  // Runs once when the peer is gone before the answer was complete.
  virtual void OnPeerGone(Task task) = 0;
};
using ResponseWriterPtr = std::shared_ptr<ResponseWriter>;

class Handler {
 public:
  virtual ~Handler() = default;
  virtual void Handle(Request request, ResponseWriterPtr writer) = 0;
};

// "Not Found" for 404; "Unknown" for a code that has no name.
std::string_view StatusText(int code);

}  // namespace muster::net
