#include "agent/probes/http_run.h"

#include <array>
#include <cstring>

#include "base/strings.h"
#include "net/url.h"

namespace muster::agent {
namespace {

using Is = HandlerResult::Is;

constexpr int kFirstGood = 200, kFirstRedirect = 300, kFirstBad = 400;

// Failures of connect(2).
constexpr std::array<int, 6> kConnectErrors = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH,
                                               ETIMEDOUT,    EHOSTDOWN,    EADDRNOTAVAIL};

bool Redirects(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

net::Endpoint EndpointOf(const HandlerAction& action) {
  return {action.tls, action.host, action.port, ""};
}

net::Request RequestOf(const HandlerAction& action) {
  net::Request request;
  request.method = "GET";
  request.target = action.path;
  const bool default_port = action.port == (action.tls ? 443 : 80);
  request.headers.Add("Host",
                      default_port ? action.host : fmt::format("{}:{}", action.host, action.port));
  request.headers.Add("User-Agent", std::string(kProbeUserAgent));
  request.headers.Add("Accept", "*/*");
  request.headers.Add("Connection", "close");
  for (const auto& [name, value] : action.headers) {
    // As upstream: an empty one takes the default away.
    if (EqualsIgnoreCase(name, "Accept") && value.empty()) {
      request.headers.Remove(name);
    } else {
      request.headers.Set(name, value);
    }
  }
  return request;
}

// Where `location` leads from `from`.
Result<HandlerAction> Follow(const HandlerAction& from, std::string_view location) {
  HandlerAction to = from;
  location = location.substr(0, location.find('#'));
  std::string url(location);
  if (location.starts_with("//")) url = (from.tls ? "https:" : "http:") + url;
  if (url.find("://") != std::string::npos) {
    ASSIGN_OR_RETURN(const net::ParsedUrl parsed, net::ParseUrl(url));
    to.tls = parsed.endpoint.tls;
    to.host = parsed.endpoint.host;
    to.port = parsed.endpoint.port;
    to.path = parsed.path.empty() ? "/" : parsed.path;
  } else if (location.starts_with('/')) {
    to.path = url;
  } else {
    const std::string_view before = std::string_view(from.path).substr(0, from.path.find('?'));
    to.path = fmt::format("{}/{}", before.substr(0, before.rfind('/')), url);
  }
  return to;
}

class HttpRun final : public HandlerRun {
 public:
  HttpRun(Loop& loop, net::HttpClient& client, const HandlerAction& action,
          HandlerRunner::Done done)
      : loop_(loop), client_(client), action_(action), first_(action), done_(std::move(done)) {}
  ~HttpRun() override { loop_.Cancel(timeout_); }

  void Start(std::optional<Duration> timeout) {
    Send();
    if (!timeout) return;
    timeout_ = loop_.After(*timeout, [this] {
      timeout_ = 0;
      Fail("context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
    });
  }

 private:
  void Send() {
    status_ = 0;
    location_.clear();
    body_.clear();
    net::ClientStreamCallbacks callbacks;
    callbacks.on_head = [this](int status, const net::Headers& headers) {
      status_ = status;
      location_ = headers.Get("Location");
    };
    callbacks.on_data = [this](std::string_view bytes) {
      body_ += bytes.substr(0, kMaxProbeOutputBytes - body_.size());
      if (body_.size() == kMaxProbeOutputBytes) Conclude();
    };
    callbacks.on_end = [this](const Status& status) {
      if (status.ok()) return Conclude();
      Fail(DialFailure(action_, status));
    };
    stream_ = client_.Stream(EndpointOf(action_), RequestOf(action_), std::move(callbacks));
  }

  void Conclude() {
    if (Redirects(status_) && !location_.empty()) return Redirect();
    if (action_.any_status) return Finish({Is::kSuccess, std::move(body_)});
    if (status_ >= kFirstRedirect && status_ < kFirstBad) return WarnOfRedirect();
    if (status_ >= kFirstGood && status_ < kFirstBad)
      return Finish({Is::kSuccess, std::move(body_)});
    // Without the answer's text, which is not for everybody to read (upstream's issue 99425).
    Finish({Is::kFailure, fmt::format("HTTP probe failed with statuscode: {}", status_)});
  }

  void Redirect() {
    Result<HandlerAction> next = Follow(action_, location_);
    if (!next) return Fail(fmt::format("failed to parse Location header {:?}", location_));
    if (next->host != first_.host)
      return action_.any_status ? Finish({Is::kSuccess, ""}) : WarnOfRedirect();
    if (++redirects_ >= kMaxProbeRedirects)
      return Fail(fmt::format("stopped after {} redirects", kMaxProbeRedirects));
    action_ = std::move(*next);
    Send();
  }

  void WarnOfRedirect() {
    Finish({Is::kWarning, fmt::format("Probe terminated redirects, Response body: {}", body_)});
  }

  void Fail(const std::string& why) {
    Finish({Is::kFailure, fmt::format("Get \"{}\": {}", UrlOf(action_), why)});
  }

  // The last thing that it does: its owner destroys it.
  void Finish(HandlerResult result) {
    HandlerRunner::Done done = std::move(done_);
    done_ = nullptr;
    if (done) done(std::move(result));
  }

  Loop& loop_;
  net::HttpClient& client_;
  HandlerAction action_;  // where it is now
  const HandlerAction first_;
  HandlerRunner::Done done_;
  std::unique_ptr<net::ClientStream> stream_;
  int status_ = 0;
  std::string location_, body_;
  int redirects_ = 0;
  TimerId timeout_ = 0;
};

}  // namespace

std::string DialFailure(const HandlerAction& action, const Status& status) {
  std::string_view text = status.message();
  const std::string prefix = EndpointOf(action).ToString() + ": ";
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  for (const int number : kConnectErrors) {
    if (text == strerror(number))
      return fmt::format("dial tcp {}:{}: connect: {}", action.host, action.port, ToLower(text));
  }
  if (text == "the server closed the connection") return "EOF";
  return ToLower(text);
}

std::unique_ptr<HandlerRun> RunHttp(Loop& loop, net::HttpClient& client,
                                    const HandlerAction& action, std::optional<Duration> timeout,
                                    HandlerRunner::Done done) {
  auto run = std::make_unique<HttpRun>(loop, client, action, std::move(done));
  run->Start(timeout);
  return run;
}

}  // namespace muster::agent
