#include "net/client_connection.h"

#include <utility>

#include <arpa/inet.h>

#include "base/strings.h"
#include "net/http1_write.h"
#include "net/server.h"
#include "net/sockets.h"

namespace muster::net {

void PostOutcome(const std::shared_ptr<ClientCall>& call, const std::shared_ptr<ClientSlot>& slot,
                 CallOutcome outcome) {
  if (call->core->stopping) return;
  call->core->loop.Post([call, slot, outcome = std::move(outcome)]() mutable {
    if (call->core->pool != nullptr) call->core->pool->OnOutcome(call, slot, std::move(outcome));
  });
}

void ClientCall::DeliverHead(int status, const Headers& headers) {
  if (abandoned || !callbacks.on_head) return;
  auto on_head = std::exchange(callbacks.on_head, nullptr);
  on_head(status, headers);
}

void ClientCall::DeliverData(std::string_view bytes) {
  if (abandoned || !callbacks.on_data) return;
  // The callback may destroy the handle, and with it on_data: so it runs from a local.
  auto on_data = std::exchange(callbacks.on_data, nullptr);
  on_data(bytes);
  if (abandoned) return;
  callbacks.on_data = std::move(on_data);
  if (paused) {
    held += bytes.size();
  } else {
    Delivered(bytes.size());
  }
}

void ClientCall::PauseReading(bool pause) {
  paused = pause;
  if (!paused && held > 0 && slot != nullptr) Delivered(std::exchange(held, 0));
}

void ClientCall::Delivered(size_t bytes) {
  const size_t before = undelivered.fetch_sub(bytes);
  const size_t most = core->options.max_undelivered_bytes;
  if (before > most && before - bytes <= most) {
    slot->thread->Post([target = slot] {
      if (auto connection = target->connection.lock()) connection->Resume();
    });
  }
}

ClientConnection::ClientConnection(std::shared_ptr<ClientCore> core,
                                   std::shared_ptr<ClientSlot> slot, int fd,
                                   Function<void(Status)> on_dial_failed)
    : Connection(slot->thread, fd),
      core_(std::move(core)),
      slot_(std::move(slot)),
      on_dial_failed_(std::move(on_dial_failed)),
      parser_(Http1Parser::Role::kResponse, kMaxHeadBytes, kMaxHeaderCount, UINT64_MAX) {}

void ClientConnection::Begin(std::shared_ptr<ClientCall> call, Duration connect_timeout) {
  call_ = std::move(call);
  slot_->connection = std::static_pointer_cast<ClientConnection>(shared_from_this());
  core_->by_thread[slot_->thread_index].insert(this);
  SetDeadline(connect_timeout);
  set_connecting();
  std::unique_ptr<TlsSession> session;
  const Endpoint& endpoint = slot_->endpoint;
  if (endpoint.tls) {
    session = MakeClientSession(
        core_->tls, fd(), endpoint.server_name.empty() ? endpoint.host : endpoint.server_name);
  }
  Start(std::move(session));
}

void ClientConnection::OnOpen() {
  opened_ = true;
  on_dial_failed_ = nullptr;
  ClearDeadline();
  if (call_->kind == ClientCall::Kind::kConnect) return HandOver({}, "");
  SendRequest();
}

// From now on the bytes are the caller's, beginning with `rest`.
void ClientConnection::HandOver(CallOutcome outcome, std::string_view rest) {
  auto raw_state = std::make_shared<RawStreamState>(core_->loop, thread_ptr());
  outcome.stream = MakeRawStream(raw_state);
  BecomeRaw(std::move(raw_state), rest);
  Finish(std::move(outcome));
}

void ClientConnection::Serve(std::shared_ptr<ClientCall> call) {
  call_ = std::move(call);
  reused_ = true;
  ClearDeadline();
  SendRequest();
}

void ClientConnection::SendRequest() {
  got_bytes_ = false;
  response_ = Response();
  parser_.Reset();
  parser_.set_answers_head(call_->request.method == "HEAD");
  std::string head;
  head.reserve(512);
  AppendRequestHead(head, call_->request);
  head += "\r\n";
  Queue(std::move(head));
  QueueShared(call_->body, false);
}

void ClientConnection::OnData(std::string_view bytes) {
  if (!call_) return CloseNow(Status(Reason::kServiceUnavailable, "bytes without a request"));
  got_bytes_ = true;
  while (call_ && !closed() && !raw()) {
    Result<Http1Parser::Step> step = parser_.Next(bytes);
    if (!step)
      return CloseNow(
          Status(Reason::kServiceUnavailable, "malformed answer: " + step.error().message()));
    switch (*step) {
      case Http1Parser::Step::kNeedMore:
        return;
      case Http1Parser::Step::kHead:
        OnHead(bytes);
        break;
      case Http1Parser::Step::kData:
        OnBody(parser_.data());
        break;
      case Http1Parser::Step::kEnd:
        if (parser_.head().status <
            200) {  // 100 Continue and its like: the answer is still to come
          parser_.Reset();
          parser_.set_answers_head(call_->request.method == "HEAD");
          break;
        }
        return Complete();
    }
  }
}

void ClientConnection::OnHead(std::string_view rest) {
  MessageHead& head = parser_.head();
  if (head.status == 101 && call_->kind == ClientCall::Kind::kUpgrade) {
    CallOutcome outcome;
    outcome.response.status = 101;
    outcome.response.headers = std::move(head.headers);
    return HandOver(std::move(outcome), rest);
  }
  if (head.status < 200) return;
  response_.status = head.status;
  response_.headers = std::move(head.headers);
  if (call_->kind == ClientCall::Kind::kStream) {
    core_->loop.Post([call = call_, status = response_.status, headers = response_.headers] {
      call->DeliverHead(status, headers);
    });
  }
}

void ClientConnection::OnBody(std::string_view bytes) {
  if (call_->kind == ClientCall::Kind::kStream) {
    call_->undelivered += bytes.size();
    core_->loop.Post([call = call_, data = std::string(bytes)] { call->DeliverData(data); });
    if (call_->undelivered > core_->options.max_undelivered_bytes) PauseReading();
    return;
  }
  if (response_.body.size() + bytes.size() > core_->options.max_response_bytes) {
    return CloseNow(Status(
        Reason::kServiceUnavailable,
        fmt::format("the answer is longer than {} bytes", core_->options.max_response_bytes)));
  }
  if (response_.body.empty() && parser_.head().content_length) {
    response_.body.reserve(static_cast<size_t>(*parser_.head().content_length));
  }
  response_.body += bytes;
}

void ClientConnection::Complete() {
  CallOutcome outcome;
  outcome.response = std::move(response_);
  const bool asked_to_close = EqualsIgnoreCase(call_->request.headers.Get("Connection"), "close");
  outcome.reusable = parser_.head().keep_alive && !asked_to_close && queued_bytes() == 0;
  bool reusable = outcome.reusable;
  Finish(std::move(outcome));
  if (reusable) {
    SetDeadline(kClientIdleTimeout);
    ResumeReading();
  } else {
    CloseAfterFlush(/*linger=*/false);
  }
}

void ClientConnection::Finish(CallOutcome outcome) {
  PostOutcome(std::exchange(call_, nullptr), slot_, std::move(outcome));
}

void ClientConnection::OnEof() {
  if (call_ && got_bytes_ && parser_.AtEof().ok() && !parser_.between_messages()) return Complete();
  CloseNow(Status(Reason::kServiceUnavailable, "the server closed the connection"));
}

void ClientConnection::OnDeadline() {
  if (!opened_) return CloseNow(Status(Reason::kTimeout, "no connection in time"));
  if (!call_) CloseNow(Status::Ok());
}

void ClientConnection::Abandon(const std::shared_ptr<ClientCall>& call) {
  if (call_ == call) CloseNow(Status(Reason::kTimeout, "abandoned"));
}

void ClientConnection::Cut() { CloseNow(Status(Reason::kServiceUnavailable, "the client stops")); }

void ClientConnection::OnClosed(const Status& why) {
  core_->by_thread[slot_->thread_index].erase(this);
  if (!opened_ && on_dial_failed_) {
    call_.reset();
    auto failed = std::exchange(on_dial_failed_, nullptr);
    return failed(why);
  }
  if (!call_) {
    if (core_->stopping || raw()) return;
    core_->loop.Post([core = core_, slot = slot_] {
      if (core->pool != nullptr) core->pool->OnIdleClosed(slot);
    });
    return;
  }
  CallOutcome outcome;
  outcome.status =
      why.ok() ? Status(Reason::kServiceUnavailable, "the connection was closed") : why;
  outcome.stale_connection = reused_ && !got_bytes_;
  Finish(std::move(outcome));
}

namespace {

// One attempt after the other until an address answers.
struct Dialing : std::enable_shared_from_this<Dialing> {
  std::shared_ptr<ClientCore> core;
  std::shared_ptr<ClientSlot> slot;
  std::shared_ptr<ClientCall> call;
  std::vector<SocketAddress> addresses;
  size_t next = 0;
  Duration deadline{};

  void Fail(Status why) {
    CallOutcome outcome;
    outcome.status = std::move(why);
    outcome.nothing_sent = true;
    PostOutcome(call, slot, std::move(outcome));
  }

  void TryNext(Status last) {
    if (core->stopping || call->cancelled) return;
    if (next >= addresses.size()) return Fail(std::move(last));
    const SocketAddress& address = addresses[next++];
    Result<UniqueFd> fd = BeginConnect(address);
    if (!fd) return TryNext(fd.error());
    auto failed = [self = shared_from_this()](Status why) { self->TryNext(std::move(why)); };
    auto connection =
        std::make_shared<ClientConnection>(core, slot, fd->Release(), std::move(failed));
    connection->Begin(call, deadline - slot->thread->Now());
  }
};

}  // namespace

void Dial(std::shared_ptr<ClientCore> core, std::shared_ptr<ClientSlot> slot,
          std::shared_ptr<ClientCall> call) {
  if (core->stopping || call->cancelled) return;
  auto dialing = std::make_shared<Dialing>();
  dialing->core = core;
  dialing->slot = slot;
  dialing->call = std::move(call);
  dialing->deadline = slot->thread->Now() + core->options.connect_timeout;
  const Endpoint& endpoint = slot->endpoint;
  unsigned char bytes[16];
  bool ipv4 = inet_pton(AF_INET, endpoint.host.c_str(), bytes) == 1;
  bool ipv6 = inet_pton(AF_INET6, endpoint.host.c_str(), bytes) == 1;
  if (ipv4 || ipv6) {
    dialing->addresses.push_back({ipv6, endpoint.host, endpoint.port});
    return dialing->TryNext(Status::Ok());
  }
  slot->thread->Resolve(
      endpoint.host, endpoint.port, [dialing](Result<std::vector<SocketAddress>> addresses) {
        if (!addresses) return dialing->Fail(addresses.error());
        dialing->addresses = *std::move(addresses);
        dialing->TryNext(Status(Reason::kServiceUnavailable, "the host has no address"));
      });
}

}  // namespace muster::net
