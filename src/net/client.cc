#include "net/client.h"

#include <deque>
#include <latch>
#include <map>
#include <utility>

#include "base/strings.h"
#include "net/client_connection.h"

namespace muster::net {
namespace {

bool IsIdempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

using CallPtr = std::shared_ptr<ClientCall>;

}  // namespace

struct HttpClient::Impl final : ClientPool {
  explicit Impl(IoThreads& threads) : io(threads) {}

  struct PerEndpoint {
    std::vector<std::shared_ptr<ClientSlot>> idle;  // the newest last
    size_t in_flight = 0;                           // counted calls
    std::deque<CallPtr> waiting;
  };

  IoThreads& io;
  std::shared_ptr<ClientCore> core;
  std::map<Endpoint, PerEndpoint> endpoints;
  size_t next_thread = 0;

  CallPtr MakeCall(ClientCall::Kind kind, const Endpoint& endpoint, Request request,
                   std::shared_ptr<const std::string> body = nullptr);
  void Start(const CallPtr& call, bool fresh_connection);
  void Admit(const CallPtr& call);
  void Abandon(const CallPtr& call);
  void LeaveQueue(const CallPtr& call);
  void Report(const CallPtr& call, CallOutcome outcome);

  void OnOutcome(const CallPtr& call, const std::shared_ptr<ClientSlot>& slot,
                 CallOutcome outcome) override;
  void OnIdleClosed(const std::shared_ptr<ClientSlot>& slot) override;
};

CallPtr HttpClient::Impl::MakeCall(ClientCall::Kind kind, const Endpoint& endpoint, Request request,
                                   std::shared_ptr<const std::string> body) {
  auto call = std::make_shared<ClientCall>();
  call->core = core;
  call->kind = kind;
  call->endpoint = endpoint;
  if (body == nullptr) body = std::make_shared<const std::string>(std::move(request.body));
  request.body.clear();
  call->body = std::move(body);
  if (!request.headers.Has("Host")) {
    std::string url = endpoint.ToString();
    request.headers.Add("Host", url.substr(url.find("//") + 2));
  }
  bool carries_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (!call->body->empty() || (carries_body && kind != ClientCall::Kind::kUpgrade)) {
    request.headers.Set("Content-Length", std::to_string(call->body->size()));
  }
  call->request = std::move(request);
  return call;
}

void HttpClient::Impl::Start(const CallPtr& call, bool fresh_connection) {
  PerEndpoint& pool = endpoints[call->endpoint];
  if (!fresh_connection && !pool.idle.empty()) {
    call->slot = std::move(pool.idle.back());
    pool.idle.pop_back();
    call->slot->thread->Post([call, slot = call->slot] {
      if (call->cancelled) return;
      if (auto connection = slot->connection.lock(); connection && connection->usable()) {
        return connection->Serve(call);
      }
      CallOutcome outcome;
      outcome.status = Status(Reason::kServiceUnavailable, "the connection was closed");
      outcome.nothing_sent = true;
      outcome.stale_connection = true;
      PostOutcome(call, slot, std::move(outcome));
    });
    return;
  }
  call->slot = std::make_shared<ClientSlot>();
  call->slot->endpoint = call->endpoint;
  call->slot->thread_index = next_thread++ % io.size();
  call->slot->thread = io.At(call->slot->thread_index);
  call->slot->thread->Post([core = core, slot = call->slot, call] { Dial(core, slot, call); });
}

void HttpClient::Impl::Admit(const CallPtr& call) {
  PerEndpoint& pool = endpoints[call->endpoint];
  if (pool.in_flight >= kMaxRequestsPerEndpoint) {
    pool.waiting.push_back(call);
    return;
  }
  ++pool.in_flight;
  call->counted = true;
  Start(call, false);
}

// Gives up the place in kMaxRequestsPerEndpoint to the next that waits.
void HttpClient::Impl::LeaveQueue(const CallPtr& call) {
  PerEndpoint& pool = endpoints[call->endpoint];
  if (!std::exchange(call->counted, false)) {
    std::erase(pool.waiting, call);
    return;
  }
  --pool.in_flight;
  while (!pool.waiting.empty() && pool.in_flight < kMaxRequestsPerEndpoint) {
    CallPtr next = std::move(pool.waiting.front());
    pool.waiting.pop_front();
    Admit(next);
  }
}

void HttpClient::Impl::Abandon(const CallPtr& call) {
  if (std::exchange(call->abandoned, true)) return;
  core->loop.Cancel(call->timer);
  call->on_response = nullptr;
  call->on_upgrade = nullptr;
  call->callbacks = {};
  if (call->slot) {
    call->slot->thread->Post([call, slot = call->slot] {
      call->cancelled = true;
      if (auto connection = slot->connection.lock()) connection->Abandon(call);
    });
  }
  if (call->kind == ClientCall::Kind::kSend) LeaveQueue(call);
}

void HttpClient::Impl::OnOutcome(const CallPtr& call, const std::shared_ptr<ClientSlot>& slot,
                                 CallOutcome outcome) {
  if (outcome.reusable) {
    PerEndpoint& pool = endpoints[slot->endpoint];
    if (pool.idle.size() < kMaxIdleConnectionsPerEndpoint) {
      pool.idle.push_back(slot);
    } else {
      slot->thread->Post([slot] {
        if (auto connection = slot->connection.lock()) connection->Cut();
      });
    }
  }
  if (call->abandoned) return;
  bool may_repeat = outcome.nothing_sent || IsIdempotent(call->request.method);
  if (!outcome.status.ok() && outcome.stale_connection && may_repeat &&
      !std::exchange(call->retried, true)) {
    return Start(call, /*fresh_connection=*/true);
  }
  core->loop.Cancel(call->timer);
  if (call->kind == ClientCall::Kind::kSend) LeaveQueue(call);
  Report(call, std::move(outcome));
}

void HttpClient::Impl::Report(const CallPtr& call, CallOutcome outcome) {
  call->abandoned = true;  // nothing further
  Status status = outcome.status.ok() ? Status::Ok()
                                      : outcome.status.WithPrefix(call->endpoint.ToString() + ": ");
  switch (call->kind) {
    case ClientCall::Kind::kSend: {
      auto done = std::exchange(call->on_response, nullptr);
      if (status.ok()) {
        done(std::move(outcome.response));
      } else {
        done(Error(std::move(status)));
      }
      return;
    }
    case ClientCall::Kind::kStream: {
      auto done = std::exchange(call->callbacks.on_end, nullptr);
      call->callbacks = {};
      if (done) done(std::move(status));
      return;
    }
    case ClientCall::Kind::kConnect:
    case ClientCall::Kind::kUpgrade: {
      auto done = std::exchange(call->on_upgrade, nullptr);
      if (status.ok()) {
        done(UpgradeAnswer{std::move(outcome.response), std::move(outcome.stream)});
      } else {
        done(Error(std::move(status)));
      }
      return;
    }
  }
}

void HttpClient::Impl::OnIdleClosed(const std::shared_ptr<ClientSlot>& slot) {
  std::erase(endpoints[slot->endpoint].idle, slot);
}

namespace {

class CallHandle final : public ClientStream {
 public:
  CallHandle(CallPtr call, Function<void(const CallPtr&)> abandon)
      : call_(std::move(call)), abandon_(std::move(abandon)) {}
  ~CallHandle() override {
    if (call_->core->pool != nullptr) abandon_(call_);
  }
  void PauseReading(bool paused) override { call_->PauseReading(paused); }

 private:
  CallPtr call_;
  Function<void(const CallPtr&)> abandon_;
};

}  // namespace

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpClient>> HttpClient::Make(Loop& loop, IoThreads& io,
                                                     ClientOptions options) {
  auto impl = std::make_unique<Impl>(io);
  impl->core = std::make_shared<ClientCore>(loop, std::move(options));
  impl->core->by_thread.resize(io.size());
  impl->core->pool = impl.get();
  ASSIGN_OR_RETURN(impl->core->tls, MakeClientTls(impl->core->options));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(impl)));
}

HttpClient::~HttpClient() {
  impl_->core->pool = nullptr;
  impl_->core->stopping = true;
  for (auto& [endpoint, pool] : impl_->endpoints) {
    for (const CallPtr& call : pool.waiting) impl_->core->loop.Cancel(call->timer);
  }
  // Waits, so that no connection refers to the loop any more; I/O threads never wait for the loop.
  std::latch done(static_cast<ptrdiff_t>(impl_->io.size()));
  for (size_t i = 0; i < impl_->io.size(); ++i) {
    impl_->io.At(i)->Post([core = impl_->core, i, &done] {
      std::vector<ClientConnection*> all(core->by_thread[i].begin(), core->by_thread[i].end());
      for (ClientConnection* connection : all) connection->Cut();
      done.count_down();
    });
  }
  done.wait();
}

void HttpClient::Send(const Endpoint& endpoint, Request request, Duration timeout,
                      Function<void(Result<Response>)> done) {
  CallPtr call = impl_->MakeCall(ClientCall::Kind::kSend, endpoint, std::move(request));
  call->on_response = std::move(done);
  call->timer =
      impl_->core->loop.After(timeout, [impl = impl_.get(), core = impl_->core, call, timeout] {
        if (core->pool == nullptr || call->abandoned) return;
        auto on_response = std::exchange(call->on_response, nullptr);
        impl->Abandon(call);
        on_response(Error(Reason::kTimeout, "{}: no answer to {} {} within {} ms",
                          call->endpoint.ToString(), call->request.method, call->request.target,
                          std::chrono::duration_cast<milliseconds>(timeout).count()));
      });
  impl_->Admit(call);
}

std::unique_ptr<ClientStream> HttpClient::Stream(const Endpoint& endpoint, Request request,
                                                 ClientStreamCallbacks callbacks) {
  return Stream(endpoint, std::move(request), nullptr, std::move(callbacks));
}

std::unique_ptr<ClientStream> HttpClient::Stream(const Endpoint& endpoint, Request request,
                                                 std::shared_ptr<const std::string> body,
                                                 ClientStreamCallbacks callbacks) {
  CallPtr call =
      impl_->MakeCall(ClientCall::Kind::kStream, endpoint, std::move(request), std::move(body));
  call->callbacks = std::move(callbacks);
  impl_->Start(call, false);
  return std::make_unique<CallHandle>(
      call, [impl = impl_.get()](const CallPtr& gone) { impl->Abandon(gone); });
}

std::unique_ptr<ClientStream> HttpClient::Upgrade(const Endpoint& endpoint, Request request,
                                                  Function<void(Result<UpgradeAnswer>)> done) {
  if (!request.headers.Has("Connection")) request.headers.Add("Connection", "Upgrade");
  CallPtr call = impl_->MakeCall(ClientCall::Kind::kUpgrade, endpoint, std::move(request));
  call->on_upgrade = std::move(done);
  impl_->Start(call, false);
  return std::make_unique<CallHandle>(
      call, [impl = impl_.get()](const CallPtr& gone) { impl->Abandon(gone); });
}

std::unique_ptr<ClientStream> HttpClient::Connect(
    const Endpoint& endpoint, Function<void(Result<std::unique_ptr<ByteStream>>)> done) {
  CallPtr call = impl_->MakeCall(ClientCall::Kind::kConnect, endpoint, {});
  call->on_upgrade = [done = std::move(done)](Result<UpgradeAnswer> answer) mutable {
    if (!answer) return done(Error(std::move(answer.error())));
    done(std::move(answer->stream));
  };
  impl_->Start(call, /*fresh_connection=*/true);
  return std::make_unique<CallHandle>(
      call, [impl = impl_.get()](const CallPtr& gone) { impl->Abandon(gone); });
}

}  // namespace muster::net
