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

// One answer on its way. Owns itself through the callbacks of the stream.
class AnswerRelay : public std::enable_shared_from_this<AnswerRelay> {
 public:
  AnswerRelay(Core& core, CallPtr call, std::string host)
      : core_(core),
        call_(std::move(call)),
        host_(std::move(host)),
        watches_(call_->info().verb == "watch"),
        in_process_(call_->request().peer.address.empty()) {
    ++core_.aggregator->requests_under_way;
  }
  ~AnswerRelay() {
    if (server_.lock() != nullptr) --core_.aggregator->requests_under_way;
  }
  AnswerRelay(const AnswerRelay&) = delete;
  AnswerRelay& operator=(const AnswerRelay&) = delete;

  void Start(const ExtensionTarget& target, net::Request request);

 private:
  // `what` of this relay, while both it and the server are there.
  template <class What>
  auto IfThere(What what) {
    return [weak = weak_from_this(), server = server_, what](auto&&... arguments) {
      const std::shared_ptr<AnswerRelay> self = weak.lock();
      if (self != nullptr && !server.expired()) what(*self, arguments...);
    };
  }

  void OnHead(int status, const net::Headers& headers) {
    if (state_ != State::kWaiting) return;
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

  void OnData(std::string_view bytes) {
    if (state_ != State::kStreaming) return;
    bytes_ += bytes.size();
    call_->writer()->Write(std::make_shared<const std::string>(bytes));
    const bool too_much = in_process_ && !watches_ && bytes_ > kMaxExtensionAnswerBytes;
    if (too_much || call_->writer()->BufferedBytes() > kMaxExtensionBacklogBytes) Finish();
  }

  void OnEnd(const Status& status) {
    if (state_ == State::kStreaming) {
      if (status.ok()) call_->writer()->End();
    } else if (state_ == State::kWaiting) {
      call_->Fail(Error(Reason::kServiceUnavailable, "error trying to reach service: {}",
                        status.ok() ? "it ended without an answer" : status.message()));
    }
    Finish();
  }

  void OnTimeout() {
    timer_ = 0;
    if (state_ == State::kWaiting) {
      call_->Fail(Error(Reason::kTimeout, "Timeout: no answer of {} within {} s", host_,
                        std::chrono::duration_cast<seconds>(kExtensionPatience).count()));
    }
    Finish();
  }

  // Lets go of the writer, too: an answer that did not come to its end is cut, and the client
  // knows. Later: this may run inside a callback of the stream that it destroys.
  void Finish() {
    state_ = State::kDone;
    core_.loop.Cancel(std::exchange(timer_, 0));
    core_.loop.Post([keep = std::move(keep_)] {
      if (keep != nullptr) keep->stream_.reset();
    });
  }

  enum class State : uint8_t { kWaiting, kStreaming, kDone };

  Core& core_;
  const std::weak_ptr<int> server_ = core_.alive;
  CallPtr call_;
  const std::string host_;
  const bool watches_, in_process_;
  State state_ = State::kWaiting;
  TimerId timer_ = 0;
  size_t bytes_ = 0;
  std::unique_ptr<net::ClientStream> stream_;
  std::shared_ptr<AnswerRelay> keep_;
};

void AnswerRelay::Start(const ExtensionTarget& target, net::Request request) {
  keep_ = shared_from_this();
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
  if (core.aggregator->requests_under_way >= kMaxExtensionRequests) {
    return call->Fail(Error(Reason::kTooManyRequests,
                            "{} requests are under way to API services already",
                            kMaxExtensionRequests));
  }
  const Result<ExtensionTarget> target = TargetOf(core, *service);
  if (!target) {
    return call->Fail(Error(Reason::kServiceUnavailable, "error trying to reach service: {}",
                            target.error().message()));
  }
  std::make_shared<AnswerRelay>(core, call, service->Host())
      ->Start(*target, PassOn(*call, *service));
}

}  // namespace muster::apiserver
