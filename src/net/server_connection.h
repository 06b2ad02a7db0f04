// src/net/server_connection.h
//
// Internal to net. ServerConnection: the server's half of HTTP/1.1 on one connection. Exchange: one
// request and its answer, shared by the connection (I/O thread) and the ResponseWriter (loop
// thread).
//
// Life cycle: a connection lives until it closed; an Exchange as long as either side holds it.
// Thread:     as marked. Commands of a writer are posted to the I/O thread and carry their
// Exchange: one that is not
//             current any more is ignored.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "loop/loop.h"
#include "net/connection.h"
#include "net/http.h"
#include "net/http1_parser.h"
#include "net/server.h"

namespace muster::net {

class ServerConnection;

// What one request has of the bytes that a server's bodies may have; gives it back at its end.
class BodyShare {
 public:
  BodyShare() = default;
  BodyShare(BodyShare&& other) noexcept
      : total_(other.total_), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyShare& operator=(BodyShare&& other) noexcept {
    std::swap(total_, other.total_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BodyShare() {
    if (total_ != nullptr) *total_ -= bytes_;
  }

  // Makes it `bytes`, which is not less than before; false if all together would have more than
  // `most`. REQUIRES: `total` outlives this.
  bool Grow(std::atomic<size_t>& total, size_t bytes, size_t most) {
    total_ = &total;
    const size_t more = bytes - bytes_;
    if (total.fetch_add(more) + more > most) {
      total -= more;
      return false;
    }
    bytes_ = bytes;
    return true;
  }

 private:
  std::atomic<size_t>* total_ = nullptr;
  size_t bytes_ = 0;
};

struct ServerCore {
  ServerCore(Loop& l, Handler& h, ServerOptions o) : loop(l), handler(h), options(std::move(o)) {}

  Loop& loop;
  Handler& handler;
  const ServerOptions options;
  std::shared_ptr<TlsContext> tls;  // null for plain HTTP
  std::vector<std::unordered_set<ServerConnection*>>
      by_thread;  // each entry belongs to one I/O thread

  std::atomic<size_t> connections{0};
  std::atomic<size_t> body_bytes{0};
  std::atomic<size_t> queued_bytes{0};
  std::atomic<bool> stopping{false};

  // Loop side.
  bool alive = true;  // false once the HttpServer is gone: nothing may be called any more
  Task stop_done;
  TimerId stop_timer = 0;
  void CheckStopped();
};

struct Exchange {
  std::shared_ptr<ServerCore> core;
  std::shared_ptr<IoThread> thread;
  std::weak_ptr<ServerConnection> connection;  // locked on the I/O thread only
  std::atomic<size_t> buffered{0};
  BodyShare body;  // after `core`, in which it counts

  // Loop side.
  Task on_gone;
  bool gone = false;
};
using ExchangePtr = std::shared_ptr<Exchange>;

class ServerConnection final : public Connection {
 public:
  ServerConnection(std::shared_ptr<ServerCore> core, std::shared_ptr<IoThread> thread,
                   size_t thread_index, int fd, std::string peer_address);

  // REQUIRES: on the I/O thread, like all below.
  void Begin();

  // What a writer wants.
  void Answer(const ExchangePtr& exchange, Response response);
  void StartStream(const ExchangePtr& exchange, int status, const Headers& headers);
  void StreamWrite(const ExchangePtr& exchange, std::shared_ptr<const std::string> bytes);
  void EndStream(const ExchangePtr& exchange);
  void CutStream(const ExchangePtr& exchange);
  void CutStreamWith(const ExchangePtr& exchange, std::string_view last);
  void Upgrade(const ExchangePtr& exchange, const Headers& headers,
               std::shared_ptr<RawStreamState> raw);

  void BeginStop();
  void Cut();

 private:
  enum class State : uint8_t { kReading, kAnswering, kSource, kStreaming };

  void OnOpen() override;
  void OnData(std::string_view bytes) override;
  void OnEof() override;
  void OnDrained() override;
  void OnCountedSent(size_t bytes) override;
  void OnBlocked() override;
  void OnDeadline() override;
  void OnClosed(const Status& why) override;

  void Parse(std::string_view bytes);
  void OnHead();
  void Dispatch();
  void Refuse(int code, const std::string& message);
  void AppendBodyHeaders(std::string& head, const Response& response);
  void PullSource();
  void FinishAnswer();
  void NotifyGone();
  bool IsCurrent(const ExchangePtr& exchange) const { return exchange == current_ && !closed(); }

  std::shared_ptr<ServerCore> core_;
  const size_t thread_index_;
  Peer peer_;
  Http1Parser parser_;
  State state_ = State::kReading;
  Request request_;
  BodyShare body_;
  std::string ahead_;     // pipelined bytes that wait for the current answer
  bool in_head_ = false;  // a head has begun to arrive, and its deadline runs
  bool peer_eof_ = false;

  ExchangePtr current_;
  bool head_request_ = false;
  bool http10_ = false;
  bool keep_alive_ = true;
  bool chunked_ = false;
  bool finish_when_drained_ = false;
  std::unique_ptr<BodySource> source_;
  uint64_t source_left_ = 0;  // of a declared Content-Length
  bool source_sized_ = false;
};

// The ResponseWriter of an exchange.
ResponseWriterPtr MakeServerWriter(ExchangePtr exchange);

}  // namespace muster::net
