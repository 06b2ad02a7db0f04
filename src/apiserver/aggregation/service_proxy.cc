#include "apiserver/aggregation/service_proxy.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/aggregation/aggregator.h"
#include "apiserver/aggregation/extension_request.h"

namespace muster::apiserver {
namespace {

bool HasNoBody(std::string_view method, int status) {
  return method == "HEAD" || status == 204 || status == 304;
}

// A client would follow it with the credentials that it has for this server (CVE-2022-3172).
bool IsRedirect(int status, const net::Headers& headers) {
  return status >= 300 && status < 400 && !headers.Get("Location").empty();
}

// One answer on its way. The aggregator holds it until it has come.
class AnswerRelay : public PassedOn, public std::enable_shared_from_this<AnswerRelay> {
 public:
  AnswerRelay(Core& core, CallPtr call, std::string host)
      : core_(core),
        call_(std::move(call)),
        host_(std::move(host)),
        watches_(call_->info().verb == "watch"),
        collects_(!watches_ && call_->request().peer.address.empty()) {}

  void Start(const ExtensionTarget& target, net::Request request);
  size_t Backlog() const override {
    return state_ == State::kStreaming ? call_->writer()->BufferedBytes() : answer_.body.size();
  }

 private:
  // `what` of this relay, while it is there.
  template <class What>
  auto IfThere(What what) {
    return [weak = weak_from_this(), what](auto&&... arguments) {
      const std::shared_ptr<AnswerRelay> self = weak.lock();
      if (self != nullptr) what(*self, arguments...);
    };
  }

  void OnHead(int status, const net::Headers& headers) {
    if (state_ != State::kWaiting) return;
    if (IsRedirect(status, headers)) return RefuseRedirect();
    if (collects_ && !HasNoBody(call_->info().method, status)) {
      state_ = State::kCollecting;
      answer_.status = status;
      answer_.headers = PassBack(headers);
      return;
    }
    net::Headers all = call_->StreamHeaders(status, "");
    const net::Headers back = PassBack(headers);
    for (const auto& [name, value] : back.list()) all.Add(name, value);
    if (HasNoBody(call_->info().method, status)) {
      net::Response response;
      response.status = status;
      response.headers = std::move(all);
      call_->writer()->Send(std::move(response));
      return Finish();
    }
    state_ = State::kStreaming;
    call_->writer()->StartStream(status, std::move(all));
  }

  // In upstream's words.
  void RefuseRedirect() {
    call_->ReplyText(502, "the backend attempted to redirect this request, which is not permitted");
    Finish();
  }

  void OnData(std::string_view bytes) {
    if (state_ == State::kCollecting) return Collect(bytes);
    if (state_ != State::kStreaming) return;
    call_->writer()->Write(std::make_shared<const std::string>(bytes));
    if (IsFarBehind()) Finish();
  }

  bool IsFarBehind() const {
    const size_t own = Backlog();
    if (own <= kFairExtensionBacklogBytes) return false;
    size_t all = 0;
    for (const auto& each : core_.aggregator->under_way) all += each->Backlog();
    return own > kMaxExtensionBacklogBytes || all > kMaxExtensionBacklogOfAllBytes;
  }

  void Collect(std::string_view bytes) {
    if (answer_.body.size() + bytes.size() <= kMaxExtensionAnswerBytes) {
      answer_.body += bytes;
      return;
    }
    Fail(fmt::format("its answer has more than {} bytes", kMaxExtensionAnswerBytes));
    Finish();
  }

  void Fail(std::string_view why) {
    call_->Fail(Error(Reason::kServiceUnavailable, "error trying to reach service: {}", why));
  }

  void OnEnd(const Status& status) {
    if (state_ == State::kStreaming && status.ok()) call_->writer()->End();
    if (state_ == State::kCollecting && status.ok()) call_->Send(std::move(answer_));
    if (!status.ok() && IsUnanswered()) Fail(status.message());
    if (status.ok() && state_ == State::kWaiting) Fail("it ended without an answer");
    Finish();
  }

  void OnTimeout() {
    timer_ = 0;
    if (IsUnanswered()) {
      call_->Fail(Error(Reason::kTimeout, "Timeout: no answer of {} within {} s", host_,
                        std::chrono::duration_cast<seconds>(kExtensionPatience).count()));
    }
    Finish();
  }

  // Lets go of the writer, too: an answer that did not come to its end is cut, and the client
  // knows. Later: this may run inside a callback of the stream that it destroys.
  void Finish() {
    if (std::exchange(state_, State::kDone) == State::kDone) return;
    core_.loop.Cancel(std::exchange(timer_, 0));
    core_.loop.Post(core_.Guarded(
        [self = shared_from_this()] { self->core_.aggregator->under_way.erase(self); }));
  }

  enum class State : uint8_t { kWaiting, kCollecting, kStreaming, kDone };
  bool IsUnanswered() const { return state_ == State::kWaiting || state_ == State::kCollecting; }

  Core& core_;
  CallPtr call_;
  const std::string host_;
  const bool watches_;
  const bool collects_;  // for a part of this process, which takes an answer whole
  State state_ = State::kWaiting;
  TimerId timer_ = 0;
  net::Response answer_;
  std::unique_ptr<net::ClientStream> stream_;
};

void AnswerRelay::Start(const ExtensionTarget& target, net::Request request) {
  core_.aggregator->under_way.insert(shared_from_this());
  call_->writer()->OnPeerGone(IfThere([](AnswerRelay& self) { self.Finish(); }));
  net::ClientStreamCallbacks callbacks;
  callbacks.on_head = IfThere([](AnswerRelay& self, int status, const net::Headers& headers) {
    self.OnHead(status, headers);
  });
  callbacks.on_data =
      IfThere([](AnswerRelay& self, std::string_view bytes) { self.OnData(bytes); });
  callbacks.on_end = IfThere([](AnswerRelay& self, const Status& status) { self.OnEnd(status); });
  if (!watches_) {
    timer_ =
        core_.loop.After(kExtensionPatience, IfThere([](AnswerRelay& self) { self.OnTimeout(); }));
  }
  stream_ =
      core_.options.extension_client->Stream(target, std::move(request), std::move(callbacks));
}

}  // namespace

void ProxyToApiService(Core& core, const CallPtr& call, const ApiServicePtr& service) {
  // In the words that clients have for upstream's "service unavailable".
  if (!service->available || core.options.extension_client == nullptr) {
    return call->Fail(Status(Reason::kServiceUnavailable,
                             "the server is currently unable to handle the request"));
  }
  const Result<ExtensionTarget> target = TargetOf(core, *service);
  if (!target) {
    return call->Fail(Error(Reason::kServiceUnavailable, "error trying to reach service: {}",
                            target.error().message()));
  }
  RelayAnswer(core, call, *target, PassOn(*call, *service), service->Host());
}

void RelayAnswer(Core& core, const CallPtr& call, const ExtensionTarget& target,
                 net::Request request, std::string host) {
  if (core.aggregator->under_way.size() >= kMaxExtensionRequests) {
    return call->Fail(Error(Reason::kTooManyRequests,
                            "{} requests are under way to API services already",
                            kMaxExtensionRequests));
  }
  std::make_shared<AnswerRelay>(core, call, std::move(host))->Start(target, std::move(request));
}

}  // namespace muster::apiserver
