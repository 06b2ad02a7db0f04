#include "apiserver/admission/https_webhook_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "net/pki.h"
#include "net/server.h"

namespace muster::apiserver {
namespace {

// A webhook behind a real TLS server.
class HttpsWebhookClientTest : public testing::Test, public net::Handler {
 protected:
  HttpsWebhookClientTest() {
    const Time now = RealClock().Wall();
    const net::KeyPair pair = *pki_.IssueServer("hook", {{"hook.ns.svc"}, {"127.0.0.1"}}, now);
    net::ServerOptions options;
    options.tls = net::TlsServerOptions{pair.certificate_pem, pair.key_pem, ""};
    server_ = *net::HttpServer::Start(loop_, io_, *this, options);
  }

  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    if (request.target == "/silent") return silent_.push_back(std::move(writer));
    net::Response response;
    response.body = request.target == "/big"
                        ? std::string(kMaxReviewAnswerBytes + 1, 'x')
                        : std::string(request.headers.Get("Host")) + " " + request.body;
    writer->Send(std::move(response));
  }

  WebhookTarget Target(const std::string& path = "/", const std::string& name = "hook.ns.svc") {
    WebhookTarget target;
    target.endpoint = {true, "127.0.0.1", server_->port(), name};
    target.host = name + ":443";
    target.path = path;
    target.ca_pem = pki_.ca_pem();
    return target;
  }

  using Answer = std::optional<Result<net::Response>>;
  std::shared_ptr<Answer> Post(const WebhookTarget& target, Duration timeout = seconds(5)) {
    auto answer = std::make_shared<Answer>();
    client_.Post(target, "hello", timeout, [answer](Result<net::Response> response) {
      answer->emplace(std::move(response));
    });
    return answer;
  }
  bool RunUntil(const std::function<bool()>& done) { return muster::RunUntil(loop_, done); }
  Result<net::Response> Fetch(const WebhookTarget& target, Duration timeout = seconds(5)) {
    const std::shared_ptr<Answer> answer = Post(target, timeout);
    EXPECT_TRUE(RunUntil([&] { return answer->has_value(); }));
    return answer->has_value() ? std::move(**answer) : Error(Reason::kTimeout, "no callback");
  }
  std::string Refusal(const WebhookTarget& target, Duration timeout = seconds(5)) {
    const Result<net::Response> answer = Fetch(target, timeout);
    return answer ? "" : answer.error().message();
  }

  AsioLoop loop_;
  net::IoThreads io_{1};
  net::Pki pki_ = *net::Pki::Create(RealClock().Wall());
  std::vector<net::ResponseWriterPtr> silent_;
  std::unique_ptr<net::HttpServer> server_;
  HttpsWebhookClient client_{loop_, io_};
};

TEST_F(HttpsWebhookClientTest, TheCertificateMustCarryTheServicesName) {
  const auto answer = Fetch(Target());
  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(answer->body, "hook.ns.svc:443 hello");
  EXPECT_NE(Refusal(Target("/", "other.ns.svc")).find("certificate"), std::string::npos);
}

TEST_F(HttpsWebhookClientTest, TheAuthorityMustBeTheWebhooks) {
  WebhookTarget target = Target();
  target.ca_pem = net::Pki::Create(RealClock().Wall())->ca_pem();
  EXPECT_NE(Refusal(target).find("certificate"), std::string::npos);
  target.ca_pem = "";  // the system's authorities have not signed it
  EXPECT_NE(Refusal(target).find("certificate"), std::string::npos);
  target.ca_pem = "\n";  // what a configuration has before somebody fills it in
  EXPECT_TRUE(Refusal(target).starts_with("unable to load root certificates: "));
}

TEST_F(HttpsWebhookClientTest, WaitsNoLongerThanItMay) {
  const Result<net::Response> answer = Fetch(Target("/silent"), milliseconds(50));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().reason(), Reason::kTimeout);
}

TEST_F(HttpsWebhookClientTest, ALargeAnswerIsAnError) { EXPECT_NE(Refusal(Target("/big")), ""); }

TEST_F(HttpsWebhookClientTest, PoolsThatNobodyWaitsForMakePlace) {
  const auto with_comment = [this](size_t i) {
    WebhookTarget target = Target("/silent");
    target.ca_pem = fmt::format("# {}\n{}", i, pki_.ca_pem());
    return target;
  };
  std::vector<std::shared_ptr<Answer>> answers;
  for (size_t i = 0; i < kMaxHttpsPools; ++i) answers.push_back(Post(with_comment(i)));
  EXPECT_EQ(Refusal(Target()), "webhooks with 64 different caBundles are being asked already");
  ASSERT_TRUE(RunUntil([&] { return silent_.size() == kMaxHttpsPools; }));
  for (const net::ResponseWriterPtr& writer : silent_) writer->Send({});
  ASSERT_TRUE(RunUntil([&] {
    return std::ranges::all_of(answers, [](const auto& answer) { return answer->has_value(); });
  }));
  EXPECT_EQ(Refusal(Target()), "");
}

}  // namespace
}  // namespace muster::apiserver
