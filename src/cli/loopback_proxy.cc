#include "cli/loopback_proxy.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "net/splice.h"
#include "net/websocket.h"
#include "net/websocket_writer.h"

namespace muster::cli {
namespace {

net::Response Text(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.headers.Add("X-Content-Type-Options", "nosniff");
  response.body = std::move(text);
  return response;
}

// "127.0.0.1:8088", "localhost:9000" (behind ssh -L), "[::1]:8088".
bool IsOwnName(std::string_view host) {
  constexpr std::array<std::string_view, 3> kOwn = {"127.0.0.1", "localhost", "[::1]"};
  const size_t port = host.rfind(':');
  if (port != std::string_view::npos && host.find(']', port) == std::string_view::npos) {
    if (host.find_first_not_of("0123456789", port + 1) != std::string_view::npos) return false;
    host = host.substr(0, port);
  }
  return std::ranges::any_of(kOwn,
                             [host](std::string_view own) { return EqualsIgnoreCase(host, own); });
}

bool IsPassedOn(std::string_view header, bool upgrade) {
  const std::string lower = ToLower(header);
  if (lower == "accept" || lower == "authorization") return true;
  return upgrade &&
         (lower == "connection" || lower == "upgrade" || lower.starts_with("sec-websocket-"));
}

net::Request ForServer(const net::Request& request, bool upgrade) {
  net::Request out;
  out.method = request.method;
  out.target = request.target;
  for (const auto& [name, value] : request.headers.list())
    if (IsPassedOn(name, upgrade)) out.headers.Add(name, value);
  out.headers.Add("User-Agent", "muster-dashboard");
  return out;
}

net::Headers ForBrowser(const net::Headers& headers) {
  net::Headers out;
  for (const char* name : {"Content-Type", "Warning", "Retry-After"})
    if (headers.Has(name)) out.Add(name, std::string(headers.Get(name)));
  out.Add("X-Content-Type-Options", "nosniff");
  out.Add("Cache-Control", "no-store");
  return out;
}

net::Response Unreachable(const Status& status) {
  return Text(502,
              fmt::format("muster dashboard cannot reach the cluster: {}\n", status.message()));
}

}  // namespace

// An answer that streams until its end. The proxy holds it until then.
class LoopbackProxy::Answer final : public std::enable_shared_from_this<Answer> {
 public:
  Answer(LoopbackProxy& proxy, net::ResponseWriterPtr writer, bool head)
      : proxy_(proxy), writer_(std::move(writer)), head_(head) {}

  // `what` of this answer, while it is under way.
  template <class What>
  auto IfThere(What what) {
    return [weak = weak_from_this(), what](auto&&... arguments) {
      const std::shared_ptr<Answer> self = weak.lock();
      if (self != nullptr && !self->done_) what(*self, arguments...);
    };
  }

  void Start(net::Request request) {
    writer_->OnPeerGone(IfThere([](Answer& self) { self.Finish(); }));
    client::StreamCallbacks callbacks;
    callbacks.on_head = IfThere([](Answer& self, int status, const net::Headers& headers) {
      self.OnHead(status, headers);
    });
    callbacks.on_data = IfThere([](Answer& self, std::string_view bytes) {
      if (!self.started_) return;
      self.writer_->Write(std::make_shared<const std::string>(bytes));
      if (self.writer_->BufferedBytes() > kMaxProxyBacklogBytes) self.Finish();
    });
    callbacks.on_end = IfThere([](Answer& self, const Status& status) { self.OnEnd(status); });
    stream_ = proxy_.server_.Stream(std::move(request), std::move(callbacks));
  }

 private:
  void OnHead(int status, const net::Headers& headers) {
    if (head_ || status == 204 || status == 304) {
      net::Response response;
      response.status = status;
      response.headers = ForBrowser(headers);
      writer_->Send(std::move(response));
      return Finish();
    }
    started_ = true;
    writer_->StartStream(status, ForBrowser(headers));
  }

  // An answer that broke is cut, so that the page knows that there was more.
  void OnEnd(const Status& status) {
    if (!started_) {
      writer_->Send(Unreachable(status));
    } else if (status.ok()) {
      writer_->End();
    }
    Finish();
  }

  // Later: this may run inside a callback of the stream that it destroys.
  void Finish() {
    if (std::exchange(done_, true)) return;
    proxy_.loop_.Post([weak = std::weak_ptr<int>(proxy_.alive_), self = shared_from_this()] {
      if (weak.lock()) self->proxy_.answers_.erase(self);
    });
  }

  LoopbackProxy& proxy_;
  net::ResponseWriterPtr writer_;
  const bool head_;
  bool started_ = false, done_ = false;
  std::unique_ptr<client::StreamHandle> stream_;
};

class LoopbackProxy::Opening {
 public:
  std::unique_ptr<client::StreamHandle> handle;
};

LoopbackProxy::LoopbackProxy(Loop& loop, client::HttpsTransport& server)
    : loop_(loop), server_(server) {}

LoopbackProxy::~LoopbackProxy() = default;

void LoopbackProxy::Handle(net::Request request, net::ResponseWriterPtr writer) {
  if (!IsOwnName(request.headers.Get("Host")) || !net::IsSameOrigin(request)) {
    return writer->Send(
        Text(403, "muster dashboard answers to 127.0.0.1 and localhost, for its own page only\n"));
  }
  if (std::optional<net::Response> page = page_.Answer(request))
    return writer->Send(*std::move(page));
  if (request.method != "GET" && request.method != "HEAD")
    return writer->Send(Text(405, "muster dashboard only looks: GET and HEAD\n"));
  if (request.target == "/") {
    net::Response response = Text(302, "");
    response.headers.Add("Location", fmt::format("{}/", dashboard::kPath));
    return writer->Send(std::move(response));
  }
  if (net::IsWebSocketRequest(request)) return Upgrade(request, std::move(writer));
  PassOn(request, std::move(writer));
}

void LoopbackProxy::PassOn(const net::Request& request, net::ResponseWriterPtr writer) {
  const auto answer = std::make_shared<Answer>(*this, std::move(writer), request.method == "HEAD");
  answers_.insert(answer);
  answer->Start(ForServer(request, false));
}

void LoopbackProxy::Upgrade(const net::Request& request, net::ResponseWriterPtr writer) {
  const auto opening = std::make_shared<Opening>();
  openings_.insert(opening);
  // For the server it is its own page that asks; Kubernetes' refuses who does not say.
  net::Request passed = ForServer(request, true);
  passed.headers.Add("Origin", server_.endpoint().ToString());
  opening->handle = server_.Upgrade(std::move(passed), [this, opening,
                                                        writer](Result<net::UpgradeAnswer> answer) {
    // Later: the handle must not go inside its own callback.
    loop_.Post([weak = std::weak_ptr<int>(alive_), this, opening] {
      if (weak.lock()) openings_.erase(opening);
    });
    if (!answer) return writer->Send(Unreachable(answer.error()));
    if (answer->stream == nullptr) {
      answer->response.headers = ForBrowser(answer->response.headers);
      return writer->Send(std::move(answer->response));
    }
    std::unique_ptr<net::ByteStream> browser = writer->Upgrade(std::move(answer->response.headers));
    if (browser != nullptr) net::JoinStreams(loop_, std::move(browser), std::move(answer->stream));
  });
}

}  // namespace muster::cli
