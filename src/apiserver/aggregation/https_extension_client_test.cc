#include "apiserver/aggregation/https_extension_client.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "net/pki.h"
#include "net/server.h"

namespace muster::apiserver {
namespace {

// A server behind an APIService that believes the front proxy's authority, with real TLS.
class HttpsExtensionClientTest : public testing::Test, public net::Handler {
 protected:
  HttpsExtensionClientTest() {
    const net::KeyPair pair = *pki_.IssueServer("s", {{"s.ns.svc"}, {"127.0.0.1"}}, now_);
    net::ServerOptions options;
    options.tls = net::TlsServerOptions{pair.certificate_pem, pair.key_pem, proxies_.ca_pem()};
    server_ = *net::HttpServer::Start(loop_, io_, *this, options);
  }

  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    if (request.target == "/silent") return silent_.push_back(std::move(writer));
    writer->StartStream(200, {});
    writer->Write(std::make_shared<const std::string>(request.peer.user + "|"));
    writer->Write(std::make_shared<const std::string>(request.headers.Get("X-Remote-User")));
    writer->End();
  }

  ExtensionTarget Target(const std::string& name = "s.ns.svc") {
    ExtensionTarget target;
    target.endpoint = {true, "127.0.0.1", server_->port(), name};
    target.ca_pem = pki_.ca_pem();
    return target;
  }

  struct Answer {
    std::string body;
    std::optional<Status> end;
    std::unique_ptr<net::ClientStream> stream;
  };
  std::shared_ptr<Answer> Ask(const ExtensionTarget& target, const std::string& path = "/") {
    auto answer = std::make_shared<Answer>();
    net::Request request;
    request.method = "GET";
    request.target = path;
    request.headers.Set("X-Remote-User", "jane");
    net::ClientStreamCallbacks callbacks;
    callbacks.on_head = [](int, const net::Headers&) {};
    callbacks.on_data = [answer](std::string_view bytes) { answer->body += bytes; };
    callbacks.on_end = [answer](Status status) { answer->end = std::move(status); };
    answer->stream = client_.Stream(target, std::move(request), std::move(callbacks));
    return answer;
  }
  bool RunUntil(const std::function<bool()>& done) { return muster::RunUntil(loop_, done); }
  // What came, or why nothing did.
  std::string Said(const ExtensionTarget& target) {
    const std::shared_ptr<Answer> answer = Ask(target);
    EXPECT_TRUE(RunUntil([&] { return answer->end.has_value(); }));
    answer->stream.reset();
    if (!answer->end.has_value()) return "no callback";
    return answer->end->ok() ? answer->body : answer->end->message();
  }
  bool Refused(const ExtensionTarget& target) {
    return Said(target).find("certificate") != std::string::npos;
  }

  const Time now_ = RealClock().Wall();
  AsioLoop loop_;
  net::IoThreads io_{1};
  net::Pki pki_ = *net::Pki::Create(now_);
  net::Pki proxies_ = *net::Pki::Create(now_);
  std::vector<net::ResponseWriterPtr> silent_;
  std::unique_ptr<net::HttpServer> server_;
  HttpsExtensionClient client_{loop_, io_, *proxies_.IssueClient("front-proxy-client", {}, now_)};
};

TEST_F(HttpsExtensionClientTest, ShowsTheFrontProxysCertificate) {
  EXPECT_EQ(Said(Target()), "front-proxy-client|jane");
}

TEST_F(HttpsExtensionClientTest, TheCertificateMustCarryTheServicesName) {
  EXPECT_TRUE(Refused(Target("other.ns.svc")));
}

TEST_F(HttpsExtensionClientTest, TheAuthorityMustBeTheServices) {
  ExtensionTarget target = Target();
  target.ca_pem = proxies_.ca_pem();
  EXPECT_TRUE(Refused(target));
  target.ca_pem = "";  // the system's authorities have not signed it
  EXPECT_TRUE(Refused(target));
  target.ca_pem = "\n";
  EXPECT_TRUE(Said(target).starts_with("unable to load root certificates: "));
}

TEST_F(HttpsExtensionClientTest, BelievesAllOnlyWhenItIsAskedTo) {
  ExtensionTarget target = Target("other.ns.svc");
  target.ca_pem = "";
  EXPECT_TRUE(Refused(target));
  target.believes_all = true;
  EXPECT_EQ(Said(target), "front-proxy-client|jane");
  // Connections are not shared with who believes less.
  target.believes_all = false;
  EXPECT_TRUE(Refused(target));
}

TEST_F(HttpsExtensionClientTest, NothingIsToldToWhoLetGo) {
  const std::shared_ptr<Answer> silent = Ask(Target(), "/silent");
  ASSERT_TRUE(RunUntil([&] { return silent_.size() == 1; }));
  silent->stream.reset();
  ExtensionTarget target = Target();
  target.ca_pem = "\n";
  const std::shared_ptr<Answer> refused = Ask(target);
  refused->stream.reset();
  EXPECT_EQ(Said(Target()), "front-proxy-client|jane");
  EXPECT_FALSE(silent->end.has_value());
  EXPECT_FALSE(refused->end.has_value());
}

}  // namespace
}  // namespace muster::apiserver
