#include "agent/pod_workers/inputs_fetcher.h"

#include <gtest/gtest.h>

#include <string>

#include "base/check.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

constexpr char kTokenPath[] = "/api/v1/namespaces/d/serviceaccounts/builder/token";

class InputsFetcherTest : public testing::Test {
 protected:
  InputsFetcherTest() {
    informers_.Get(client::resources::kServices, json::Fields::Whole());
    informers_.Start();
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      if (!request.target.starts_with(kTokenPath)) return true;
      Answer(client::FakeApi::BodyOf(request), *writer);
      return false;
    };
    loop_.RunFor(seconds(1));
  }

  // Each token has a number.
  void Answer(json::Value body, net::ResponseWriter& writer) {
    asked_.push_back(body);
    if (refuses_) {
      return client::FakeApi::SendError(writer, 404, "NotFound",
                                        "serviceaccounts \"builder\" not found");
    }
    const Time expires = loop_.Now() + seconds(body["spec"]["expirationSeconds"].AsInt());
    net::Response response;
    response.status = 201;
    response.body =
        json::Write(body.Set("status", json::Obj({{"token", fmt::format("token-{}", asked_.size())},
                                                  {"expirationTimestamp", FormatTime(expires)}})));
    writer.Send(std::move(response));
  }

  PodInputs Fetch() {
    std::optional<Result<PodInputs>> answer;
    FetchPodInputs(client_, informers_.Get(client::resources::kServices), pod_, known_,
                   [&](Result<PodInputs> inputs) { answer = std::move(inputs); });
    loop_.RunReady();
    CHECK(answer.has_value() && answer->has_value());
    known_ = **answer;
    return known_;
  }
  std::string Token(const std::string& audience = "", int64_t life = 3600) {
    const auto inputs = Fetch();
    const Result<ServiceAccountToken>& token = inputs.tokens.at({audience, life});
    return token ? token->token : token.error().message();
  }
  void SetSources(const std::string& sources) {
    pod_ = *json::Parse(
        R"({"metadata":{"name":"p","namespace":"d","uid":"u1"},"spec":{)"
        R"("serviceAccountName":"builder","volumes":[{"name":"v","projected":{"sources":[)" +
        sources + "]}}]}}");
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {}};
  client::ApiClient client_{loop_, transport_, "kubelet"};
  client::InformerSet informers_{client_};
  json::Value pod_;
  PodInputs known_;
  std::vector<json::Value> asked_;
  bool refuses_ = false;
};

TEST_F(InputsFetcherTest, AsksForATokenThatIsBoundToThePod) {
  SetSources(R"({"serviceAccountToken":{"path":"t","expirationSeconds":600,"audience":"vault"}},
                {"serviceAccountToken":{"path":"u","expirationSeconds":600,"audience":"vault"}},
                {"serviceAccountToken":{"path":"v"}})");
  const PodInputs inputs = Fetch();
  ASSERT_EQ(asked_.size(), 2u) << "equal ones share a token";
  EXPECT_EQ(inputs.tokens.size(), 2u);
  EXPECT_EQ(asked_[1]["kind"].AsString(), "TokenRequest");
  EXPECT_EQ(asked_[1]["apiVersion"].AsString(), "authentication.k8s.io/v1");
  EXPECT_EQ(asked_[1]["spec"],
            *json::Parse(R"({"expirationSeconds":600,"boundObjectRef":{"apiVersion":"v1",)"
                         R"("kind":"Pod","name":"p","uid":"u1"},"audiences":["vault"]})"));
  EXPECT_EQ(asked_[0]["spec"]["expirationSeconds"].AsInt(), 3600);
  EXPECT_FALSE(asked_[0]["spec"].Has("audiences"));
}

TEST_F(InputsFetcherTest, KeepsATokenUntilFourFifthsOfItsLife) {
  SetSources(R"({"serviceAccountToken":{"path":"t","expirationSeconds":3600}})");
  EXPECT_EQ(Token(), "token-1");
  loop_.RunFor(seconds(2879));
  EXPECT_EQ(Token(), "token-1");
  loop_.RunFor(seconds(1));
  EXPECT_EQ(Token(), "token-2");
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(InputsFetcherTest, KeepsATokenForADayAtMost) {
  constexpr int64_t kYear = 365 * 24 * 3600;
  SetSources(
      fmt::format(R"({{"serviceAccountToken":{{"path":"t","expirationSeconds":{}}}}})", kYear));
  EXPECT_EQ(Token("", kYear), "token-1");
  loop_.RunFor(kMaxTokenAge - seconds(2));
  EXPECT_EQ(Token("", kYear), "token-1");
  loop_.RunFor(seconds(2));
  EXPECT_EQ(Token("", kYear), "token-2");
}

TEST_F(InputsFetcherTest, KeepsAValidTokenWhileTheServerGivesNone) {
  SetSources(R"({"serviceAccountToken":{"path":"t"}})");
  EXPECT_EQ(Token(), "token-1");
  refuses_ = true;
  loop_.RunFor(seconds(3000));
  EXPECT_EQ(Token(), "token-1");
  loop_.RunFor(seconds(600));
  EXPECT_EQ(Token(), "serviceaccounts \"builder\" not found");
  refuses_ = false;
  EXPECT_EQ(Token(), "token-4") << "asked again as soon as there is one";
}

TEST_F(InputsFetcherTest, AnAnswerWithoutATokenIsAnError) {
  api_.before_handle = nullptr;  // a server that takes it for an object
  SetSources(R"({"serviceAccountToken":{"path":"t"}})");
  EXPECT_EQ(Token(), "the server's answer has no token or no end");
}

TEST_F(InputsFetcherTest, FollowsAClaimToItsVolume) {
  pod_ = *json::Parse(
      R"({"metadata":{"name":"p","namespace":"d","uid":"u1"},"spec":{"nodeName":"n1","volumes":[)"
      R"({"name":"v","persistentVolumeClaim":{"claimName":"data"}},{"name":"e","emptyDir":{}}]}})");
  const auto fault = [&] {
    const PodInputs inputs = Fetch();
    CHECK(inputs.claims.size() == 1);
    const Result<ClaimVolume>& claim = inputs.claims.at("v");
    return claim ? claim->fault : claim.error().message();
  };
  EXPECT_EQ(fault(),
            "error processing PVC d/data: failed to fetch PVC from API server: data not found");
  const json::Value claim = *json::Parse(
      R"({"metadata":{"name":"data","namespace":"d","uid":"c1"},"spec":{"volumeName":"pv1"},)"
      R"("status":{"phase":"Pending"}})");
  api_.Put("/api/v1/persistentvolumeclaims", claim);
  EXPECT_EQ(fault(), "error processing PVC d/data: PVC is not bound");
  api_.Put("/api/v1/persistentvolumeclaims", claim.SetPath({"status", "phase"}, "Bound"));
  EXPECT_EQ(fault(),
            "error processing PVC d/data: failed to fetch PV pv1 from API server: pv1 not found");
  api_.Put("/api/v1/persistentvolumes",
           *json::Parse(R"({"metadata":{"name":"pv1"},"spec":{"hostPath":{"path":"/srv"},)"
                        R"("claimRef":{"namespace":"d","name":"data","uid":"c1"},)"
                        R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":)"
                        R"([{"key":"disk","operator":"Exists"}]}]}}}})"));
  EXPECT_EQ(fault(), "error processing PVC d/data: failed to read the node: n1 not found");
  api_.Put("/api/v1/nodes", *json::Parse(R"({"metadata":{"name":"n1","labels":{"disk":"ssd"}}})"));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(known_.claims.at("v")->path, "/srv");
  // What was found is kept, whatever becomes of the claim.
  api_.Remove("/api/v1/persistentvolumeclaims", "d", "data");
  api_.requests.clear();
  EXPECT_EQ(fault(), "");
  EXPECT_TRUE(api_.requests.empty());
}

}  // namespace
}  // namespace muster::agent
