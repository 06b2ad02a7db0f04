#include "cli/session.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "base/strings.h"
#include "client/kubeconfig.h"
#include "json/parse.h"
#include "net/io_threads.h"

namespace muster::cli {
namespace {

constexpr const char* kUserAgent = "muster-cli";

class AsioPump final : public Pump {
 public:
  explicit AsioPump(AsioLoop& loop) : loop_(loop) {}
  void Run() override {
    loop_.Restart();
    loop_.Run();
  }
  void Quit() override { loop_.Stop(); }

 private:
  AsioLoop& loop_;
};

// Notes the warnings of every answer on its way.
class WarningsTransport final : public client::Transport {
 public:
  WarningsTransport(client::Transport& inner, std::vector<std::string>& warnings)
      : inner_(inner), warnings_(warnings) {}

  void Send(net::Request request, Function<void(Result<net::Response>)> done) override {
    inner_.Send(std::move(request),
                [this, done = std::move(done)](Result<net::Response> answer) mutable {
                  if (answer) Note(answer->headers);
                  done(std::move(answer));
                });
  }
  std::unique_ptr<client::StreamHandle> Stream(net::Request request,
                                               client::StreamCallbacks callbacks) override {
    return inner_.Stream(std::move(request), std::move(callbacks));
  }

 private:
  // 299 - "text", with \" and \\ escaped (RFC 7234 5.5).
  void Note(const net::Headers& headers) {
    for (const auto& [name, value] : headers.list()) {
      if (!EqualsIgnoreCase(name, "Warning")) continue;
      const size_t open = value.find('"');
      const size_t close = value.rfind('"');
      if (open == std::string::npos || close <= open) continue;
      std::string text;
      for (size_t i = open + 1; i < close; ++i) {
        if (value[i] == '\\' && i + 1 < close) ++i;
        text += value[i];
      }
      if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
        warnings_.push_back(text);
    }
  }

  client::Transport& inner_;
  std::vector<std::string>& warnings_;
};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string Home() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

}  // namespace

struct Session::Owned {
  AsioLoop loop;
  AsioPump pump{loop};
  net::IoThreads io{1};
  std::unique_ptr<client::HttpsTransport> transport;
};

std::string DefaultDataDir() {
  if (const char* dir = std::getenv("MUSTER_DATA_DIR"); dir != nullptr && *dir != '\0') return dir;
  if (geteuid() == 0) return "/var/lib/muster";
  return Home().empty() ? "" : Home() + "/.muster";
}

std::vector<std::vector<std::string>> KubeconfigCandidates(const std::string& flag) {
  if (!flag.empty()) return {{flag}};
  std::vector<std::string> listed;
  if (const char* variable = std::getenv("KUBECONFIG"); variable != nullptr) {
    for (std::string_view path : SplitNonEmpty(variable, ':')) listed.emplace_back(path);
  }
  if (!listed.empty()) return {listed};
  std::vector<std::vector<std::string>> out;
  if (const std::string dir = DefaultDataDir(); !dir.empty()) out.push_back({dir + "/kubeconfig"});
  if (!Home().empty()) out.push_back({Home() + "/.kube/config"});
  return out;
}

Result<client::ConnectionConfig> FindConnection(const Arguments& arguments) {
  std::vector<std::string> looked_at;
  const std::string named(arguments.Get("kubeconfig"));
  if (!named.empty() && !Exists(named)) {
    return Error(Reason::kInvalid, "--kubeconfig {}: {}. `muster up` writes DATA_DIR/kubeconfig",
                 named, std::strerror(errno));
  }
  for (const std::vector<std::string>& files : KubeconfigCandidates(named)) {
    if (std::none_of(files.begin(), files.end(), Exists)) {
      looked_at.insert(looked_at.end(), files.begin(), files.end());
      continue;
    }
    ASSIGN_OR_RETURN(client::Kubeconfig config, client::Kubeconfig::LoadFiles(files));
    return config.Connect(arguments.Get("context"));
  }
  if (looked_at.empty())
    return Error(Reason::kInvalid, "no cluster: HOME is not set; name a file with --kubeconfig");
  return Error(Reason::kInvalid, "no cluster: none of {} exists. Start one with: muster up",
               Join(looked_at, ", "));
}

Result<std::unique_ptr<Session>> Session::Open(const Arguments& arguments) {
  ASSIGN_OR_RETURN(client::ConnectionConfig config, FindConnection(arguments));
  auto owned = std::make_unique<Owned>();
  ASSIGN_OR_RETURN(owned->transport, client::HttpsTransport::Make(owned->loop, owned->io, config));
  std::string ns = arguments.Has("namespace") ? arguments.Get("namespace") : config.ns;
  auto session =
      std::make_unique<Session>(owned->loop, owned->pump, *owned->transport, std::move(ns));
  session->asio_loop_ = &owned->loop;
  session->https_ = owned->transport.get();
  session->certificate_pem_ = config.tls.certificate_pem;
  session->owned_ = std::move(owned);
  return session;
}

Session::Session(Loop& loop, Pump& pump, client::Transport& transport, std::string ns)
    : loop_(loop),
      pump_(pump),
      warnings_transport_(std::make_unique<WarningsTransport>(transport, warnings_)),
      client_(std::make_unique<client::ApiClient>(loop, *warnings_transport_, kUserAgent)),
      ns_(std::move(ns)) {}

Session::~Session() {
  client_.reset();
  warnings_transport_.reset();
}

void Session::RunUntilDone(const std::function<void(std::function<void()>)>& start) {
  bool done = false;
  start([this, &done] {
    done = true;
    pump_.Quit();
  });
  if (!done) pump_.Run();
}

Result<json::Value> Session::Await(const std::function<void(client::ApiClient::Done)>& start) {
  Result<json::Value> out = Error(Reason::kTimeout, "no answer");
  RunUntilDone([&](std::function<void()> done) {
    start([&out, done](Result<json::Value> answer) {
      out = std::move(answer);
      done();
    });
  });
  return out;
}

Result<json::Value> Session::Get(const client::Target& target) {
  return Await([&](client::ApiClient::Done done) { client_->Get(target, std::move(done)); });
}

Result<json::Value> Session::List(const client::Resource& resource, std::string_view ns,
                                  const client::ListOptions& options) {
  return Await(
      [&](client::ApiClient::Done done) { client_->List(resource, ns, options, std::move(done)); });
}

Result<json::Value> Session::Create(const client::Target& target, const json::Value& object) {
  return Await(
      [&](client::ApiClient::Done done) { client_->Create(target, object, std::move(done)); });
}

Result<json::Value> Session::Delete(const client::Target& target,
                                    const client::DeleteOptions& options) {
  return Await(
      [&](client::ApiClient::Done done) { client_->Delete(target, options, std::move(done)); });
}

Result<net::Response> Session::Send(net::Request request) {
  Result<net::Response> out = Error(Reason::kTimeout, "no answer");
  RunUntilDone([&](std::function<void()> done) {
    client_->Raw(std::move(request), [&out, done](Result<net::Response> answer) {
      out = std::move(answer);
      done();
    });
  });
  return out;
}

Result<net::Response> Session::Raw(net::Request request) {
  Result<net::Response> out = Send(std::move(request));
  if (!out) return out;
  if (Status status = client::ApiClient::StatusOf(*out); !status.ok())
    return Error(std::move(status));
  return out;
}

Result<json::Value> Session::GetJson(const std::string& path, const std::string& accept) {
  net::Request request{.method = "GET", .target = path};
  request.headers.Add("Accept", accept);
  ASSIGN_OR_RETURN(net::Response answer, Raw(std::move(request)));
  return json::Parse(answer.body, nullptr, json::kMaxAnswerDepth);
}

std::vector<Result<json::Value>> Session::GetJsons(const std::vector<std::string>& paths) {
  std::vector<Result<json::Value>> out(paths.size(), json::Value());
  if (paths.empty()) return out;
  RunUntilDone([&](std::function<void()> done) {
    auto left = std::make_shared<size_t>(paths.size());
    for (size_t i = 0; i < paths.size(); ++i) {
      net::Request request{.method = "GET", .target = paths[i]};
      request.headers.Add("Accept", "application/json");
      client_->Raw(std::move(request), [&out, i, left, done](Result<net::Response> answer) {
        if (!answer) {
          out[i] = Error(answer.error());
        } else if (Status status = client::ApiClient::StatusOf(*answer); !status.ok()) {
          out[i] = Error(std::move(status));
        } else {
          out[i] = json::Parse(answer->body, nullptr, json::kMaxAnswerDepth);
        }
        if (--*left == 0) done();
      });
    }
  });
  return out;
}

void Session::Sleep(Duration duration) {
  RunUntilDone([&](std::function<void()> done) { loop_.After(duration, [done] { done(); }); });
}

std::vector<std::string> Session::TakeWarnings() { return std::exchange(warnings_, {}); }

}  // namespace muster::cli
