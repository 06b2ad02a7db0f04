// src/net/client_connection.h
//
// Internal to net. ClientConnection: the client's half of HTTP/1.1 on one connection. ClientCall:
// one request and its answer, shared by the connection (I/O thread) and HttpClient (loop thread).
// ClientSlot: how the loop's pool names a connection.
//
// Life cycle: a connection lives until it closed; calls and slots as long as either side holds
// them. Thread:     as marked.

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "loop/loop.h"
#include "net/client.h"
#include "net/connection.h"
#include "net/http1_parser.h"

namespace muster::net {

class ClientConnection;
struct ClientCall;
struct ClientSlot;

struct CallOutcome {
  Status status;                  // not Ok: there is no (whole) answer
  bool nothing_sent = false;      // certainly not seen by the server
  bool stale_connection = false;  // a kept-alive connection that died before any byte of an answer
  bool reusable = false;          // the connection may serve the next call
  Response response;              // of Send, and of Upgrade unless 101
  std::unique_ptr<ByteStream> stream;
};

// Implemented by HttpClient, on the loop.
class ClientPool {
 public:
  virtual ~ClientPool() = default;
  virtual void OnOutcome(const std::shared_ptr<ClientCall>& call,
                         const std::shared_ptr<ClientSlot>& slot, CallOutcome outcome) = 0;
  virtual void OnIdleClosed(const std::shared_ptr<ClientSlot>& slot) = 0;
};

struct ClientCore {
  ClientCore(Loop& l, ClientOptions o) : loop(l), options(std::move(o)) {}
  Loop& loop;
  const ClientOptions options;
  std::shared_ptr<TlsContext> tls;
  std::vector<std::unordered_set<ClientConnection*>>
      by_thread;  // each entry belongs to one I/O thread
  std::atomic<bool> stopping{
      false};  // set before the client is destroyed: the loop may not be touched any more
  ClientPool* pool = nullptr;  // loop side; null once the client is gone
};

struct ClientCall {
  enum class Kind : uint8_t { kSend, kStream, kUpgrade, kConnect };

  std::shared_ptr<ClientCore> core;
  Kind kind = Kind::kSend;
  Endpoint endpoint;
  Request request;  // without its body, which is
  std::shared_ptr<const std::string> body;

  // I/O side.
  bool cancelled = false;

  std::atomic<size_t> undelivered{0};

  // Loop side.
  bool abandoned = false;
  bool retried = false;
  bool counted = false;  // in kMaxRequestsPerEndpoint
  TimerId timer = 0;
  std::shared_ptr<ClientSlot> slot;
  Function<void(Result<Response>)> on_response;
  Function<void(Result<UpgradeAnswer>)> on_upgrade;
  ClientStreamCallbacks callbacks;
  bool paused = false;
  size_t held = 0;  // given to on_data while paused; still counted in `undelivered`

  // Posted by the connection.
  void DeliverHead(int status, const Headers& headers);
  void DeliverData(std::string_view bytes);

  void PauseReading(bool pause);
  void Delivered(size_t bytes);
};

struct ClientSlot {
  Endpoint endpoint;
  std::shared_ptr<IoThread> thread;
  size_t thread_index = 0;
  std::weak_ptr<ClientConnection> connection;  // I/O side
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(std::shared_ptr<ClientCore> core, std::shared_ptr<ClientSlot> slot, int fd,
                   Function<void(Status)> on_dial_failed);

  // REQUIRES: on the I/O thread, like all below.
  void Begin(std::shared_ptr<ClientCall> call, Duration connect_timeout);
  // REQUIRES: idle.
  void Serve(std::shared_ptr<ClientCall> call);
  void Abandon(const std::shared_ptr<ClientCall>& call);
  bool usable() const { return opened_ && !call_ && !closed() && !closing() && !raw(); }
  void Resume() { ResumeReading(); }
  void Cut();

 private:
  void OnOpen() override;
  void OnData(std::string_view bytes) override;
  void OnEof() override;
  void OnDeadline() override;
  void OnClosed(const Status& why) override;

  void SendRequest();
  void HandOver(CallOutcome outcome, std::string_view rest);
  void OnHead(std::string_view rest);
  void OnBody(std::string_view bytes);
  void Complete();
  void Finish(CallOutcome outcome);

  std::shared_ptr<ClientCore> core_;
  std::shared_ptr<ClientSlot> slot_;
  Function<void(Status)> on_dial_failed_;
  Http1Parser parser_;
  std::shared_ptr<ClientCall> call_;
  bool opened_ = false;
  bool reused_ = false;
  bool got_bytes_ = false;
  Response response_;
};

// Finds the address, connects and serves `call`; the outcome goes to the pool. On slot->thread.
void Dial(std::shared_ptr<ClientCore> core, std::shared_ptr<ClientSlot> slot,
          std::shared_ptr<ClientCall> call);
// To the pool, on the loop. From an I/O thread.
void PostOutcome(const std::shared_ptr<ClientCall>& call, const std::shared_ptr<ClientSlot>& slot,
                 CallOutcome outcome);

}  // namespace muster::net
