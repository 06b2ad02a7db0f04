#include "net/server_connection.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "net/http1_write.h"

namespace muster::net {
namespace {

constexpr size_t kSourcePieceBytes = 64 * 1024;

}  // namespace

void ServerCore::CheckStopped() {
  if (!alive || connections != 0 || !stop_done) return;
  loop.Cancel(stop_timer);
  Task done = std::exchange(stop_done, nullptr);
  done();
}

ServerConnection::ServerConnection(std::shared_ptr<ServerCore> core,
                                   std::shared_ptr<IoThread> thread, size_t thread_index, int fd,
                                   std::string peer_address)
    : Connection(std::move(thread), fd),
      core_(std::move(core)),
      thread_index_(thread_index),
      parser_(Http1Parser::Role::kRequest, kMaxHeadBytes, kMaxHeaderCount,
              core_->options.max_body_bytes) {
  peer_.address = std::move(peer_address);
  set_write_stall_timeout(core_->options.write_stall_timeout);
  count_queued_in(core_->queued_bytes);
}

void ServerConnection::Begin() {
  core_->by_thread[thread_index_].insert(this);
  SetDeadline(core_->options.head_timeout);
  std::unique_ptr<TlsSession> session;
  if (core_->tls) session = MakeServerSession(core_->tls, fd());
  Start(std::move(session));
}

void ServerConnection::OnOpen() {
  if (tls() == nullptr) return;
  TlsIdentity identity = tls()->Identity();
  peer_.user = std::move(identity.user);
  peer_.groups = std::move(identity.groups);
  peer_.refused = std::move(identity.refused);
  if (!peer_.refused.empty())
    LOG_DEBUG("net: refused the client certificate peer={} why={:?}", peer_.address, peer_.refused);
}

void ServerConnection::OnData(std::string_view bytes) {
  if (state_ == State::kReading) return Parse(bytes);
  ahead_ += bytes;
  if (ahead_.size() >= kMaxPipelinedBytes) PauseReading();
}

void ServerConnection::Parse(std::string_view bytes) {
  while (true) {
    Result<Http1Parser::Step> step = parser_.Next(bytes);
    if (!step) return Refuse(parser_.error_code(), step.error().message());
    switch (*step) {
      case Http1Parser::Step::kNeedMore:
        // Once for each head: bytes that trickle in buy no more time.
        if (request_.method.empty() && !parser_.between_messages() &&
            !std::exchange(in_head_, true))
          SetDeadline(core_->options.head_timeout);
        return;
      case Http1Parser::Step::kHead:
        OnHead();
        break;
      case Http1Parser::Step::kData:
        request_.body += parser_.data();
        if (request_.body.size() > kFreeBodyBytes &&
            !body_.Grow(core_->body_bytes, request_.body.size() - kFreeBodyBytes,
                        core_->options.max_all_body_bytes))
          return Refuse(429, "too many large requests at once, try again later");
        break;
      case Http1Parser::Step::kEnd:
        ahead_ = std::string(bytes);
        return Dispatch();
    }
  }
}

void ServerConnection::OnHead() {
  in_head_ = false;
  MessageHead& head = parser_.head();
  request_.method = std::move(head.method);
  request_.target = std::move(head.target);
  request_.headers = std::move(head.headers);
  head_request_ = request_.method == "HEAD";
  http10_ = head.minor_version == 0;
  keep_alive_ = head.keep_alive;
  bool has_body = head.chunked || head.content_length.value_or(0) > 0;
  if (!has_body) return;
  if (head.content_length) request_.body.reserve(static_cast<size_t>(*head.content_length));
  if (head.expects_continue) Queue("HTTP/1.1 100 Continue\r\n\r\n");
  SetDeadline(core_->options.body_timeout);
}

void ServerConnection::Dispatch() {
  ClearDeadline();
  state_ = State::kAnswering;
  current_ = std::make_shared<Exchange>();
  current_->core = core_;
  current_->thread = thread_ptr();
  current_->connection = std::static_pointer_cast<ServerConnection>(shared_from_this());
  current_->body = std::move(body_);
  request_.peer = peer_;
  core_->loop.Post([exchange = current_, request = std::exchange(request_, {})]() mutable {
    ServerCore& core = *exchange->core;
    if (!core.alive) return;
    core.handler.Handle(std::move(request), MakeServerWriter(std::move(exchange)));
  });
}

void ServerConnection::Refuse(int code, const std::string& message) {
  std::string body = fmt::format("{} {}: {}\n", code, StatusText(code), message);
  Headers headers;
  headers.Add("Content-Type", "text/plain; charset=utf-8");
  if (code == 429) headers.Add("Retry-After", "1");
  request_ = Request();
  body_ = BodyShare();
  std::string out;
  AppendResponseHead(out, code, headers, false);
  out += fmt::format("Content-Length: {}\r\nConnection: close\r\n\r\n", body.size());
  Queue(out + body);
  ClearDeadline();
  CloseAfterFlush(/*linger=*/true);
}

void ServerConnection::AppendBodyHeaders(std::string& head, const Response& response) {
  bool bodyless = response.status == 204 || response.status == 304;
  source_sized_ = false;
  chunked_ = false;
  if (response.source) {
    source_sized_ = response.headers.Has("Content-Length");
    source_left_ =
        static_cast<uint64_t>(ParseInt(response.headers.Get("Content-Length")).value_or(0));
    chunked_ = !source_sized_ && !http10_;
    if (chunked_) head += "Transfer-Encoding: chunked\r\n";
    if (!chunked_ && !source_sized_) keep_alive_ = false;
  } else if (!bodyless && !response.headers.Has("Content-Length")) {
    head += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  if (core_->stopping || peer_eof_) keep_alive_ = false;
  if (!keep_alive_) {
    head += "Connection: close\r\n";
  } else if (http10_) {
    head += "Connection: keep-alive\r\n";
  }
  head += "\r\n";
}

void ServerConnection::Answer(const ExchangePtr& exchange, Response response) {
  if (!IsCurrent(exchange) || state_ != State::kAnswering) return;
  std::string head;
  head.reserve(256);
  AppendResponseHead(head, response.status, response.headers, false);
  AppendBodyHeaders(head, response);
  Queue(std::move(head));
  bool bodyless = head_request_ || response.status == 204 || response.status == 304;
  if (bodyless || !response.source) {
    if (!bodyless) Queue(std::move(response.body));
    return FinishAnswer();
  }
  state_ = State::kSource;
  source_ = std::move(response.source);
  PullSource();
}

void ServerConnection::PullSource() {
  std::string piece;
  piece.reserve(kSourcePieceBytes);
  bool more = source_->Next(kSourcePieceBytes, piece);
  if (source_sized_) {
    bool wrong_length = piece.size() > source_left_ || (!more && piece.size() != source_left_);
    if (wrong_length)
      return CloseNow(Status(Reason::kInternalError, "a body does not have its declared length"));
    source_left_ -= piece.size();
  }
  if (!piece.empty()) {
    std::string frame;
    if (chunked_) AppendChunkHead(frame, piece.size());
    Queue(std::move(frame));
    Queue(std::move(piece));
    if (chunked_) Queue("\r\n");
  }
  if (more) return;
  if (chunked_) Queue("0\r\n\r\n");
  source_.reset();
  FinishAnswer();
}

void ServerConnection::StartStream(const ExchangePtr& exchange, int status,
                                   const Headers& headers) {
  if (!IsCurrent(exchange) || state_ != State::kAnswering) return;
  if (peer_eof_) return CloseNow(Status::Ok());
  std::string head;
  AppendResponseHead(head, status, headers, false);
  chunked_ = !http10_ && !head_request_;
  if (!http10_) head += "Transfer-Encoding: chunked\r\n";
  if (http10_ || core_->stopping) keep_alive_ = false;
  if (!keep_alive_) head += "Connection: close\r\n";
  head += "\r\n";
  Queue(std::move(head));
  state_ = State::kStreaming;
}

void ServerConnection::StreamWrite(const ExchangePtr& exchange,
                                   std::shared_ptr<const std::string> bytes) {
  if (!IsCurrent(exchange) || state_ != State::kStreaming || finish_when_drained_) return;
  if (head_request_) {
    exchange->buffered -= bytes->size();
    return;
  }
  if (!chunked_) return QueueShared(std::move(bytes), true);
  std::string frame;
  AppendChunkHead(frame, bytes->size());
  QueueUnit(std::move(frame));
  QueueShared(std::move(bytes), true);
  Queue("\r\n");
}

void ServerConnection::EndStream(const ExchangePtr& exchange) {
  if (!IsCurrent(exchange) || state_ != State::kStreaming || finish_when_drained_) return;
  if (chunked_) Queue("0\r\n\r\n");
  // The next exchange begins when this one's counted bytes are gone.
  if (queued_bytes() == 0) return FinishAnswer();
  finish_when_drained_ = true;
}

void ServerConnection::CutStream(const ExchangePtr& exchange) {
  if (IsCurrent(exchange))
    CloseNow(Status(Reason::kInternalError, "the handler left its stream unfinished"));
}

void ServerConnection::CutStreamWith(const ExchangePtr& exchange, std::string_view last) {
  if (!IsCurrent(exchange) || state_ != State::kStreaming || finish_when_drained_) return;
  if (!chunked_) return CutStream(exchange);  // without chunks its end cannot be told from a fault
  DropUnits();
  std::string end;
  AppendChunkHead(end, last.size());
  end.append(last).append("\r\n0\r\n\r\n");
  Queue(std::move(end));
  finish_when_drained_ = true;
  keep_alive_ = false;
  set_write_stall_timeout(std::min(core_->options.write_stall_timeout, kCutPatience));
  CloseAfterFlush(/*linger=*/true);
}

void ServerConnection::Upgrade(const ExchangePtr& exchange, const Headers& headers,
                               std::shared_ptr<RawStreamState> raw_state) {
  if (!IsCurrent(exchange) || state_ != State::kAnswering) return raw_state->PostClosed();
  std::string head;
  AppendResponseHead(head, 101, headers, true);
  head += "\r\n";
  Queue(std::move(head));
  current_.reset();
  BecomeRaw(std::move(raw_state), std::exchange(ahead_, {}));
}

void ServerConnection::FinishAnswer() {
  current_.reset();
  finish_when_drained_ = false;
  request_ = Request();
  parser_.Reset();
  if (!keep_alive_ || core_->stopping || peer_eof_) return CloseAfterFlush(/*linger=*/!peer_eof_);
  state_ = State::kReading;
  SetDeadline(core_->options.idle_timeout);
  std::string ahead = std::exchange(ahead_, {});
  if (!ahead.empty()) Parse(ahead);
  ResumeReading();
}

void ServerConnection::OnDrained() {
  if (state_ == State::kSource) return PullSource();
  if (finish_when_drained_) FinishAnswer();
}

void ServerConnection::OnCountedSent(size_t bytes) {
  if (current_) current_->buffered -= bytes;
}

void ServerConnection::OnEof() {
  peer_eof_ = true;
  if (state_ == State::kReading || state_ == State::kStreaming) return CloseNow(Status::Ok());
  NotifyGone();  // a handler may stop; if it answers all the same, a half-closed peer reads it
}

void ServerConnection::OnDeadline() {
  if (state_ != State::kReading) return;
  bool idle = request_.method.empty() && parser_.between_messages();
  if (idle) return CloseNow(Status::Ok());
  Refuse(408, "the request did not arrive in time");
}

void ServerConnection::NotifyGone() {
  if (!current_) return;
  core_->loop.Post([exchange = current_] {
    if (!exchange->core->alive || std::exchange(exchange->gone, true)) return;
    if (!exchange->on_gone) return;
    Task task = std::exchange(exchange->on_gone, nullptr);
    task();
  });
}

// Each thread sees to its own: whoever blocks while there is too much makes room.
void ServerConnection::OnBlocked() {
  ServerCore& core = *core_;
  const std::unordered_set<ServerConnection*>& all = core.by_thread[thread_index_];
  while (core.queued_bytes > core.options.max_all_queued_bytes) {
    ServerConnection* slowest = nullptr;
    for (ServerConnection* connection : all) {
      if (!connection->stalled()) continue;
      if (slowest == nullptr || connection->last_progress() < slowest->last_progress())
        slowest = connection;
    }
    if (slowest == nullptr) return;
    LOG_WARN("net: cut a slow reader peer={} queued={}", slowest->peer_.address,
             slowest->queued_bytes());
    slowest->CloseNow(Status(Reason::kTimeout, "too much waits for slow readers"));
    if (slowest == this) return;
  }
}

void ServerConnection::OnClosed(const Status&) {
  NotifyGone();
  request_ = Request();
  body_ = BodyShare();
  current_.reset();
  source_.reset();
  core_->by_thread[thread_index_].erase(this);
  if (--core_->connections == 0 && core_->stopping) {
    core_->loop.Post([core = core_] { core->CheckStopped(); });
  }
}

void ServerConnection::BeginStop() {
  if (raw()) return RawClose();
  switch (state_) {
    case State::kReading:
      return CloseNow(Status::Ok());
    case State::kStreaming:
      NotifyGone();
      if (chunked_ && !finish_when_drained_) Queue("0\r\n\r\n");
      return CloseAfterFlush(/*linger=*/false);
    case State::kAnswering:
    case State::kSource:
      keep_alive_ = false;
  }
}

void ServerConnection::Cut() { CloseNow(Status(Reason::kServiceUnavailable, "the server stops")); }

}  // namespace muster::net
