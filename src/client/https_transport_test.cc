#include "client/https_transport.h"

#include <gtest/gtest.h>

#include "client/api_client.h"
#include "client/fake_api.h"
#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "net/pki.h"
#include "net/server.h"

namespace muster::client {
namespace {

// A FakeApi behind a real TLS server, and a client with a kubeconfig for it.
class HttpsTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    Time now = RealClock().Wall();
    net::Pki pki = *net::Pki::Create(now);
    net::KeyPair pair = *pki.IssueServer("server", net::DefaultServerNames("", {}), now);
    net::ServerOptions options;
    options.tls = net::TlsServerOptions{pair.certificate_pem, pair.key_pem, pki.ca_pem()};
    server_ = *net::HttpServer::Start(loop_, io_, api_, options);
    net::KeyPair admin = *pki.IssueClient("admin", {"system:masters"}, now);
    json::Value made = MakeKubeconfig("test", "https://" + server_->address(), pki.ca_pem(),
                                      admin.certificate_pem, admin.key_pem);
    config_ = *Kubeconfig::Parse(json::Write(made), ".")->Connect();
    transport_ = *HttpsTransport::Make(loop_, io_, config_);
    client_ = std::make_unique<ApiClient>(loop_, *transport_, "test");
  }

  bool RunUntil(const std::function<bool()>& done) { return muster::RunUntil(loop_, done); }

  AsioLoop loop_;
  net::IoThreads io_{1};
  FakeApi api_{loop_};
  std::unique_ptr<net::HttpServer> server_;
  ConnectionConfig config_;
  std::unique_ptr<HttpsTransport> transport_;
  std::unique_ptr<ApiClient> client_;
};

TEST_F(HttpsTransportTest, CarriesCallsAndWatches) {
  std::vector<std::string> events;
  auto watch = client_->Watch(
      resources::kConfigMaps, "default", {},
      {.on_event =
           [&](std::string_view type, json::Value object) {
             events.push_back(std::string(type) + " " + object["metadata"]["name"].Str());
           },
       .on_end = [](Status) {}});
  std::string created;
  client_->Create({resources::kConfigMaps, "default", "", ""},
                  json::Obj({{"metadata", json::Obj({{"name", "a"}})}}),
                  [&](Result<json::Value> answer) {
                    ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
                    created = (*answer)["metadata"]["uid"].Str();
                  });
  EXPECT_TRUE(RunUntil([&] { return !created.empty() && events.size() == 1; }));
  EXPECT_EQ(events[0], "ADDED a");
}

TEST_F(HttpsTransportTest, SaysWhereNobodyListens) {
  server_.reset();
  Status status;
  client_->Get({resources::kPods, "default", "x", ""},
               [&](Result<json::Value> answer) { status = answer.error(); });
  ASSERT_TRUE(RunUntil([&] { return !status.ok(); }));
  EXPECT_EQ(status.reason(), Reason::kServiceUnavailable);
  EXPECT_NE(status.message().find("Connection refused"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace muster::client
