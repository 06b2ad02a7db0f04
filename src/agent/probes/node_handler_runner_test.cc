// What is asked over the network, against real servers on loopback.

#include "agent/probes/node_handler_runner.h"

#include <gtest/gtest.h>

#include "agent/probes/grpc_run.h"
#include "agent/probes/http_run.h"
#include "agent/probes/socket_run.h"
#include "json/parse.h"
#include "loop/run_until_test_support.h"
#include "net/net_testing.h"
#include "net/pki.h"
#include "net/server.h"

namespace muster::agent {
namespace {

using Is = HandlerResult::Is;

json::Value Json(const std::string& text) { return *json::Parse(text); }

struct Asker {
  Asker() {
    net::ClientOptions options;
    options.insecure_skip_verify = true;
    client = *net::HttpClient::Make(loop, io, std::move(options));
  }

  bool RunUntil(const std::function<bool()>& done) { return muster::RunUntil(loop, done); }

  std::unique_ptr<net::HttpServer> Serve(net::LambdaHandler::Function handle, bool tls = false) {
    handlers.push_back(std::make_unique<net::LambdaHandler>(std::move(handle)));
    net::ServerOptions options;
    if (tls) {
      const net::Pki pki = *net::Pki::Create(RealClock().Wall());
      const net::KeyPair pair =
          *pki.IssueServer("server", net::DefaultServerNames("", {}), RealClock().Wall());
      options.tls = net::TlsServerOptions{pair.certificate_pem, pair.key_pem, pki.ca_pem()};
    }
    return *net::HttpServer::Start(loop, io, *handlers.back(), std::move(options));
  }

  HandlerResult Ask(const HandlerAction& action, Duration timeout = seconds(8)) {
    std::optional<HandlerResult> result;
    std::unique_ptr<HandlerRun> run;
    auto done = [&](HandlerResult answer) { result = std::move(answer); };
    if (action.kind == HandlerAction::Kind::kHttp)
      run = RunHttp(loop, *client, action, timeout, done);
    else if (action.kind == HandlerAction::Kind::kTcp)
      run = RunTcp(loop, *client, action, timeout, done);
    else
      run = RunGrpc(loop, *client, action, timeout, done);
    RunUntil([&] { return result.has_value(); });
    return result.value_or(HandlerResult{Is::kUnknown, "no answer"});
  }
  static HandlerAction Http(const net::HttpServer& server, const std::string& path = "/",
                            bool tls = false) {
    HandlerAction action;
    action.kind = HandlerAction::Kind::kHttp;
    action.host = "127.0.0.1";
    action.port = server.port();
    action.path = path;
    action.tls = tls;
    return action;
  }

  AsioLoop loop;
  net::IoThreads io{1};
  std::vector<std::unique_ptr<net::LambdaHandler>> handlers;
  std::unique_ptr<net::HttpClient> client;
};

net::Response Answer(int status, const std::string& body = "", const std::string& location = "") {
  net::Response response;
  response.status = status;
  response.body = body;
  if (!location.empty()) response.headers.Add("Location", location);
  return response;
}

TEST(HandlerAction, FindsHostsAndPorts) {
  const json::Value container = Json(R"({"ports":[{"name":"web","containerPort":8080}]})");
  const auto http =
      ProbeActionOf(Json(R"({"httpGet":{"port":"web","path":"a b\r\nX: y","scheme":"HTTPS"}})"),
                    container, "10.42.0.2");
  ASSERT_TRUE(http.has_value());
  EXPECT_EQ(UrlOf(*http), "https://10.42.0.2:8080/a%20b%0D%0AX:%20y");
  const auto tcp =
      ProbeActionOf(Json(R"({"tcpSocket":{"port":"99","host":"h"}})"), container, "10.42.0.2");
  EXPECT_EQ(fmt::format("{}:{}", tcp->host, tcp->port), "h:99");
  EXPECT_FALSE(ProbeActionOf(Json(R"({"tcpSocket":{"port":"no"}})"), container, "").has_value());
  EXPECT_FALSE(ProbeActionOf(Json(R"({"httpGet":{"port":65536}})"), container, "").has_value());
  EXPECT_FALSE(HookActionOf(Json(R"({"tcpSocket":{"port":80}})"), container, "").has_value())
      << "as upstream";
  EXPECT_EQ(HookActionOf(Json(R"({"sleep":{"seconds":3}})"), container, "")->sleep, seconds(3));
}

TEST(HttpProbe, JudgesTheStatusAndSendsItsHeaders) {
  Asker asker;
  net::Request seen;
  auto server = asker.Serve([&](net::Request request, const net::ResponseWriterPtr& writer) {
    seen = request;
    writer->Send(Answer(request.target == "/bad" ? 500 : 204));
  });
  HandlerAction action = Asker::Http(*server, "/good?x=1");
  action.headers = {{"Host", "example.org"}, {"X-Probe", "yes"}};
  EXPECT_EQ(asker.Ask(action).is, Is::kSuccess);
  EXPECT_EQ(seen.target, "/good?x=1");
  EXPECT_EQ(seen.headers.Get("Host"), "example.org");
  EXPECT_EQ(seen.headers.Get("X-Probe"), "yes");
  EXPECT_EQ(seen.headers.Get("User-Agent"), kProbeUserAgent);
  EXPECT_EQ(seen.headers.Get("Accept"), "*/*");
  const HandlerResult bad = asker.Ask(Asker::Http(*server, "/bad"));
  EXPECT_EQ(bad.is, Is::kFailure);
  EXPECT_EQ(bad.output, "HTTP probe failed with statuscode: 500");
  HandlerAction hook = Asker::Http(*server, "/bad");
  hook.any_status = true;
  EXPECT_EQ(asker.Ask(hook).is, Is::kSuccess);
}

TEST(HttpProbe, TakesAnyCertificate) {
  Asker asker;
  auto server = asker.Serve(
      [](const net::Request&, const net::ResponseWriterPtr& writer) { writer->Send(Answer(200)); },
      /*tls=*/true);
  EXPECT_EQ(asker.Ask(Asker::Http(*server, "/", /*tls=*/true)).is, Is::kSuccess);
}

TEST(HttpProbe, FollowsRedirectsOnItsHostOnly) {
  Asker asker;
  int asked = 0;
  auto server = asker.Serve([&](net::Request request, const net::ResponseWriterPtr& writer) {
    ++asked;
    if (request.target == "/a/there") return writer->Send(Answer(302, "", "here?x"));
    if (request.target == "/a/here?x") return writer->Send(Answer(200, "found"));
    if (request.target == "/away")
      return writer->Send(Answer(302, "elsewhere", "http://example.org/"));
    writer->Send(Answer(307, "", "/round"));
  });
  const HandlerResult there = asker.Ask(Asker::Http(*server, "/a/there"));
  EXPECT_EQ(there.is, Is::kSuccess);
  EXPECT_EQ(there.output, "found");
  const HandlerResult away = asker.Ask(Asker::Http(*server, "/away"));
  EXPECT_EQ(away.is, Is::kWarning);
  EXPECT_EQ(away.output, "Probe terminated redirects, Response body: elsewhere");
  asked = 0;
  const HandlerResult round = asker.Ask(Asker::Http(*server, "/round"));
  EXPECT_EQ(round.is, Is::kFailure);
  EXPECT_NE(round.output.find("stopped after 10 redirects"), std::string::npos) << round.output;
  EXPECT_EQ(asked, kMaxProbeRedirects);
}

TEST(HttpProbe, KeepsNoMoreOfAnAnswerThanItsLimit) {
  Asker asker;
  auto server = asker.Serve([](const net::Request&, const net::ResponseWriterPtr& writer) {
    writer->Send(Answer(200, std::string(4 * kMaxProbeOutputBytes, 'x')));
  });
  const HandlerResult result = asker.Ask(Asker::Http(*server));
  EXPECT_EQ(result.is, Is::kSuccess);
  EXPECT_EQ(result.output.size(), kMaxProbeOutputBytes);
}

TEST(HttpProbe, SaysWhyThereIsNoAnswer) {
  Asker asker;
  std::vector<net::ResponseWriterPtr> held;
  auto server = asker.Serve(
      [&](const net::Request&, const net::ResponseWriterPtr& writer) { held.push_back(writer); });
  const HandlerAction action = Asker::Http(*server, "/x");
  EXPECT_EQ(asker.Ask(action, milliseconds(100)).output,
            fmt::format("Get \"http://127.0.0.1:{}/x\": context deadline exceeded "
                        "(Client.Timeout exceeded while awaiting headers)",
                        action.port));
  held.clear();
  server.reset();
  EXPECT_EQ(asker.Ask(action).output,
            fmt::format("Get \"http://127.0.0.1:{0}/x\": dial tcp 127.0.0.1:{0}: connect: "
                        "connection refused",
                        action.port));
}

TEST(TcpProbe, AsksWhetherAPortIsOpen) {
  Asker asker;
  auto server = asker.Serve([](const net::Request&, const net::ResponseWriterPtr&) {});
  HandlerAction action = Asker::Http(*server);
  action.kind = HandlerAction::Kind::kTcp;
  EXPECT_EQ(asker.Ask(action).is, Is::kSuccess);
  server.reset();
  const HandlerResult refused = asker.Ask(action);
  EXPECT_EQ(refused.is, Is::kFailure);
  EXPECT_EQ(refused.output,
            fmt::format("dial tcp 127.0.0.1:{}: connect: connection refused", action.port));
}

TEST(GrpcProbe, ReadsAndWritesTheMessages) {
  EXPECT_EQ(HealthRequest(""), std::string(5, '\0'));
  EXPECT_EQ(HealthRequest("ab"), std::string("\0\0\0\0\4\x0a\2ab", 9));
  EXPECT_EQ(HealthStatus(std::string("\0\0\0\0\2\x08\1", 7)), "SERVING");
  EXPECT_EQ(HealthStatus(std::string("\0\0\0\0\2\x08\2", 7)), "NOT_SERVING");
  EXPECT_EQ(HealthStatus(std::string(5, '\0')), "UNKNOWN") << "a zero is not written";
  EXPECT_EQ(HealthStatus(std::string("\0\0\0\0\5\x12\1x\x08\1", 10)), "SERVING") << "more fields";
  for (const std::string& bad :
       {std::string(), std::string("\1\0\0\0\0", 5), std::string("\0\0\0\0\3\x08", 6),
        std::string("\0\0\0\0\1\x08", 6), std::string("\0\0\0\0\2\x12\7", 7),
        std::string("\0\0\0\0\2\x0b\1", 7)}) {
    EXPECT_EQ(HealthStatus(bad), std::nullopt);
  }
}

TEST(GrpcProbe, WhatIsNoHttp2IsNoService) {
  Asker asker;
  auto server = asker.Serve([](const net::Request&, const net::ResponseWriterPtr&) {});
  HandlerAction action = Asker::Http(*server);
  action.kind = HandlerAction::Kind::kGrpc;
  const std::string expected = fmt::format(
      "timeout: failed to connect service \"127.0.0.1:{}\" within 8s: context deadline exceeded",
      action.port);
  const HandlerResult http1 = asker.Ask(action);
  EXPECT_EQ(http1.is, Is::kFailure);
  EXPECT_EQ(http1.output, expected);
  server.reset();
  EXPECT_EQ(asker.Ask(action).output, expected);
}

}  // namespace
}  // namespace muster::agent
