#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apiserver/aggregation/availability_checker.h"
#include "apiserver/aggregation/fake_extensions.h"
#include "apiserver/aggregation/service_proxy.h"
#include "apiserver/apiserver_testing.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

constexpr const char* kServices = "/apis/apiregistration.k8s.io/v1/apiservices";
constexpr const char* kName = "/apis/apiregistration.k8s.io/v1/apiservices/v1.a.example.com";
constexpr const char* kBase = "/apis/a.example.com/v1";
constexpr const char* kThings = "/apis/a.example.com/v1/namespaces/default/things";
constexpr const char* kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
constexpr const char* kList =
    R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"a.example.com/v1","resources":[)"
    R"({"name":"things","singularName":"thing","namespaced":true,"kind":"Thing",)"
    R"("verbs":["get"],"shortNames":["th"]},)"
    R"({"name":"things/size","namespaced":true,"kind":"Size","verbs":["get"]},)"
    R"({"name":"pods/load","namespaced":true,"kind":"MetricValueList","verbs":["get"]}]})";
constexpr const char* kAuthentication =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
constexpr const char* kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

class AggregationTest : public testing::Test {
 protected:
  AggregationTest() : test_(Options()) {}

  ServerOptions Options() {
    ServerOptions options;
    options.extension_client = &extensions_;
    options.client_ca_pem = "clients";
    options.front_proxy_ca_pem = "proxies";
    return options;
  }

  void Create(const std::string& target, const std::string& body) {
    EXPECT_EQ(test_.Send("POST", target, body)->status, 201) << body;
  }
  void Register(const std::string& more = "") {
    Create(kServices, R"({"metadata":{"name":"v1.a.example.com"},"spec":{"group":"a.example.com",)"
                      R"("version":"v1","groupPriorityMinimum":10,"versionPriority":10,)"
                      R"("service":{"namespace":"default","name":"s"})" +
                          more + "}}");
  }
  void AddService() {
    Create("/api/v1/namespaces/default/services",
           R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"https","port":443}]}})");
  }
  void AddSlice(const std::string& name, const std::string& address) {
    Create(
        kSlices,
        fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"kubernetes.io/service-name":"s"}}}},)"
                    R"("addressType":"IPv4","endpoints":[{{"addresses":["{}"]}}],)"
                    R"("ports":[{{"name":"https","port":6443}}]}})",
                    name, address));
  }
  // An APIService that has passed its checks.
  void Serve() {
    AddService();
    AddSlice("s", "10.1.2.3");
    Register();
    Pass();
  }
  void Pass() {
    const FakeExtensions::QuestionPtr look = extensions_.Take();
    ASSERT_NE(look, nullptr);
    look->Answer(200, kList);
    test_.loop.RunReady();
    EXPECT_EQ(Available(), "True Passed all checks passed");
  }
  void Refuse(const std::string& why) {
    const FakeExtensions::QuestionPtr look = extensions_.Take();
    ASSERT_NE(look, nullptr);
    look->End(Status(Reason::kServiceUnavailable, why));
    test_.loop.RunReady();
  }
  void Wait(Duration time) { test_.loop.RunFor(time); }
  // The server behind it answers what it is asked about itself meanwhile.
  void WaitServed(Duration time) {
    for (; time > Duration(0); time -= seconds(1)) {
      test_.loop.RunFor(seconds(1));
      std::erase_if(extensions_.questions, [](const FakeExtensions::QuestionPtr& question) {
        if (question->request.target != kBase) return false;
        question->Answer(200, kList);
        return true;
      });
    }
    test_.loop.RunReady();
  }

  std::string Available(const char* path = kName) {
    const json::Value object = TestServer::Json(*test_.Send("GET", path));
    const json::Value condition = object["status"]["conditions"].At(0);
    return fmt::format("{} {} {}", condition["status"].AsString(), condition["reason"].AsString(),
                       condition["message"].AsString());
  }
  json::Value Discover(const std::string& path, const char* accept = "application/json") {
    net::Headers headers;
    headers.Add("Accept", accept);
    return TestServer::Json(*test_.Send("GET", path, "", headers));
  }
  std::string Metric(const std::string& line) {
    const std::string text = test_.Send("GET", "/metrics")->body;
    const size_t at = text.find(line);
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  }

  FakeExtensions extensions_;
  TestServer test_;
};

TEST_F(AggregationTest, ChecksServicePortEndpointsAndDiscoveryInTurn) {
  Register();
  test_.loop.RunReady();
  EXPECT_EQ(Available(), R"(False ServiceNotFound service/s in "default" is not present)");
  Create("/api/v1/namespaces/default/services",
         R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"https","port":80}]}})");
  test_.loop.RunReady();
  EXPECT_EQ(Available(),
            R"(False ServicePortError service/s in "default" is not listening on port 443)");
  net::Headers merge;
  merge.Add("Content-Type", "application/merge-patch+json");
  test_.Send("PATCH", "/api/v1/namespaces/default/services/s",
             R"({"spec":{"ports":[{"name":"https","port":443}]}})", merge);
  test_.loop.RunReady();
  EXPECT_EQ(Available(),
            R"(False EndpointsNotFound cannot find endpoints for service/s in "default")");
  AddSlice("s", "10.1.2.3");
  test_.Send("PATCH", std::string(kSlices) + "/s",
             R"({"endpoints":[{"addresses":["10.1.2.3"],"conditions":{"ready":false}}]})", merge);
  test_.loop.RunReady();
  for (FakeExtensions::QuestionPtr early = extensions_.Take(); early != nullptr;
       early = extensions_.Take()) {
    if (early->open) early->End(Status(Reason::kServiceUnavailable, "not yet"));
    test_.loop.RunReady();
  }
  EXPECT_EQ(Available(),
            R"(False MissingEndpoints endpoints for service/s in "default" have no addresses with )"
            R"(port name "https")");
  test_.Send("PATCH", std::string(kSlices) + "/s",
             R"({"endpoints":[{"addresses":["10.1.2.3"],"conditions":{"ready":true}}]})", merge);
  test_.loop.RunReady();
  Pass();
}

TEST_F(AggregationTest, AsksInTheServicesNameAsTheAggregator) {
  AddService();
  AddSlice("s", "10.1.2.3");
  Register(R"(,"caBundle":"Y2E=")");
  const FakeExtensions::QuestionPtr look = extensions_.Take();
  ASSERT_NE(look, nullptr);
  EXPECT_EQ(look->target.endpoint, (net::Endpoint{true, "10.1.2.3", 6443, "s.default.svc"}));
  EXPECT_EQ(look->target.ca_pem, "ca");
  EXPECT_FALSE(look->target.believes_all);
  EXPECT_TRUE(look->target.in_cluster);
  EXPECT_EQ(look->request.target, kBase);
  EXPECT_EQ(look->request.headers.Get("X-Remote-User"), "system:kube-aggregator");
  EXPECT_EQ(look->request.headers.Get("X-Remote-Group"), "system:masters");
}

TEST_F(AggregationTest, OneFailureIsNoneAndThreeAre) {
  AddService();
  AddSlice("s", "10.1.2.3");
  Register();
  Refuse("refused");
  Refuse("refused");
  Pass();
  Wait(kAvailabilityPeriod);
  for (int i = 0; i < kDiscoveryAttempts; ++i) Refuse("refused");
  EXPECT_EQ(Available(),
            "False FailedDiscoveryCheck failing or missing response from "
            "https://10.1.2.3:6443/apis/a.example.com/v1: refused");
  EXPECT_EQ(Metric(R"(aggregator_unavailable_apiservice{name="v1.a.example.com"})"),
            R"(aggregator_unavailable_apiservice{name="v1.a.example.com"} 1)");
  Wait(kAvailabilityPeriod);
  Pass();
  EXPECT_EQ(Metric(R"(aggregator_unavailable_apiservice{name="v1.a.example.com"})"),
            R"(aggregator_unavailable_apiservice{name="v1.a.example.com"} 0)");
}

TEST_F(AggregationTest, SilenceAndBadStatusesAreRefusals) {
  Serve();
  Wait(kAvailabilityPeriod);
  const FakeExtensions::QuestionPtr silent = extensions_.Take();
  ASSERT_NE(silent, nullptr);
  Wait(kDiscoveryPatience);
  EXPECT_FALSE(silent->open);
  EXPECT_EQ(Available(),
            "False FailedDiscoveryCheck failing or missing response from "
            "https://10.1.2.3:6443/apis/a.example.com/v1: timed out waiting for "
            "https://10.1.2.3:6443/apis/a.example.com/v1");
  Wait(kAvailabilityPeriod - kDiscoveryPatience);
  for (int i = 0; i < kDiscoveryAttempts; ++i) {
    const FakeExtensions::QuestionPtr look = extensions_.Take();
    ASSERT_NE(look, nullptr);
    look->Answer(403, "no");
    test_.loop.RunReady();
  }
  EXPECT_EQ(Available(),
            "False FailedDiscoveryCheck failing or missing response from "
            "https://10.1.2.3:6443/apis/a.example.com/v1: bad status from "
            "https://10.1.2.3:6443/apis/a.example.com/v1: 403");
}

TEST_F(AggregationTest, WhatIsSaidOfAFormerSpecDoesNotCount) {
  AddService();
  AddSlice("s", "10.1.2.3");
  Register();
  const FakeExtensions::QuestionPtr look = extensions_.Take();
  net::Headers merge;
  merge.Add("Content-Type", "application/merge-patch+json");
  test_.Send("PATCH", kName, R"({"spec":{"service":{"name":"other"}}})", merge);
  const TestServer::WriterPtr watch = test_.Send("GET", std::string(kServices) + "?watch=true");
  look->Answer(200, kList);
  test_.loop.RunReady();
  EXPECT_EQ(Available(), R"(False ServiceNotFound service/other in "default" is not present)");
  EXPECT_EQ(watch->body.find("Passed"), std::string::npos);
}

TEST_F(AggregationTest, PassesRequestsOnAndAnswersBack) {
  Serve();
  net::Headers headers;
  headers.Add("Content-Type", "application/json");
  headers.Add("Authorization", "Bearer secret");
  headers.Add("X-Remote-User", "root");
  headers.Add("x-remote-group", "system:masters");
  headers.Add("X-Remote-Extra-Scopes", "all");
  headers.Add("X-Remote-Uid", "7");
  headers.Add("X_Remote_User", "root");
  headers.Add("Connection", "close, X-Secret");
  headers.Add("X-Secret", "of this connection");
  headers.Add("X-Mine", "kept");
  const TestServer::WriterPtr writer =
      test_.Begin("POST", std::string(kThings) + "?dryRun=All", R"({"a":1})", headers);
  const FakeExtensions::QuestionPtr question = extensions_.Take();
  ASSERT_NE(question, nullptr);
  const net::Request& request = question->request;
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, std::string(kThings) + "?dryRun=All");
  EXPECT_EQ(request.body, R"({"a":1})");
  EXPECT_EQ(request.headers.Get("Host"), "s.default.svc");
  EXPECT_EQ(request.headers.Get("X-Mine"), "kept");
  std::vector<std::string> said;
  for (const auto& [name, value] : request.headers.list())
    if (ToLower(name).starts_with("x-remote") || ToLower(name).starts_with("x_remote"))
      said.push_back(name + "=" + value);
  EXPECT_EQ(said, (std::vector<std::string>{"X-Remote-User=admin", "X-Remote-Group=system:masters",
                                            "X-Remote-Group=system:authenticated"}));
  for (const char* gone : {"Authorization", "Connection", "X-Secret"})
    EXPECT_FALSE(request.headers.Has(gone)) << gone;

  net::Headers answered;
  answered.Add("Content-Type", "application/json");
  answered.Add("Content-Length", "7");
  answered.Add("Connection", "close");
  answered.Add("Warning", "299 - \"beware\"");
  question->Answer(418, R"({"b":2})", answered);
  EXPECT_EQ(writer->status, 418);
  EXPECT_EQ(writer->body, R"({"b":2})");
  EXPECT_TRUE(writer->ended);
  EXPECT_EQ(writer->headers.Get("Warning"), "299 - \"beware\"");
  EXPECT_FALSE(writer->headers.Has("Content-Length"));
  EXPECT_FALSE(writer->headers.Has("Connection"));
}

TEST_F(AggregationTest, TellsOfWhomItWasImpersonated) {
  Serve();
  net::Headers headers;
  headers.Add("Impersonate-User", "jane");
  headers.Add("Impersonate-Group", "system:masters");
  headers.Add("Impersonate-Extra-Example.com%2fId", "a");
  headers.Add("Impersonate-Extra-Example.com%2fId", "b");
  const TestServer::WriterPtr writer = test_.Begin("GET", kThings, "", headers);
  const FakeExtensions::QuestionPtr question = extensions_.Take();
  ASSERT_NE(question, nullptr) << writer->body;
  std::vector<std::string> said;
  for (const auto& [name, value] : question->request.headers.list())
    if (name != "Host") said.push_back(name + "=" + value);
  EXPECT_EQ(said, (std::vector<std::string>{"X-Remote-User=jane", "X-Remote-Group=system:masters",
                                            "X-Remote-Group=system:authenticated",
                                            "X-Remote-Extra-example.com%2Fid=a",
                                            "X-Remote-Extra-example.com%2Fid=b"}));
}

TEST_F(AggregationTest, AWatchPassesPieceByPieceForAsLongAsItsReaderStays) {
  Serve();
  const TestServer::WriterPtr writer = test_.Begin("GET", std::string(kThings) + "?watch=true");
  const FakeExtensions::QuestionPtr question = extensions_.Take();
  ASSERT_NE(question, nullptr);
  question->Head(200);
  question->Data("one\n");
  EXPECT_EQ(writer->body, "one\n");
  Wait(kExtensionPatience * 2);
  question->Data("two\n");
  EXPECT_EQ(writer->body, "one\ntwo\n");
  EXPECT_FALSE(writer->ended);
  writer->LosePeer();
  test_.loop.RunReady();
  EXPECT_FALSE(question->open);
}

TEST_F(AggregationTest, AReaderThatFallsBehindIsCut) {
  Serve();
  const TestServer::WriterPtr writer = test_.Begin("GET", std::string(kThings) + "?watch=true");
  const FakeExtensions::QuestionPtr question = extensions_.Take();
  question->Head(200);
  writer->buffered_bytes = kMaxExtensionBacklogBytes + 1;
  question->Data("one\n");
  test_.loop.RunReady();
  EXPECT_FALSE(question->open);
  EXPECT_FALSE(writer->ended);
}

TEST_F(AggregationTest, ReadersThatFallBehindShareABound) {
  Serve();
  std::vector<TestServer::WriterPtr> writers;
  std::vector<FakeExtensions::QuestionPtr> questions;
  const auto begin = [&](size_t behind) {
    writers.push_back(test_.Begin("GET", std::string(kThings) + "?watch=true"));
    questions.push_back(extensions_.Take());
    questions.back()->Head(200);
    writers.back()->buffered_bytes = behind;
    questions.back()->Data("one\n");
    test_.loop.RunReady();
    return questions.back()->open;
  };
  for (size_t all = 0; all < kMaxExtensionBacklogOfAllBytes; all += kMaxExtensionBacklogBytes)
    EXPECT_TRUE(begin(kMaxExtensionBacklogBytes));
  EXPECT_TRUE(begin(kFairExtensionBacklogBytes));
  EXPECT_FALSE(begin(kFairExtensionBacklogBytes + 1));
  writers[0]->buffered_bytes = 0;
  EXPECT_TRUE(begin(kFairExtensionBacklogBytes + 1));
}

TEST_F(AggregationTest, AnAnswerToAPartOfThisProcessHasABound) {
  Serve();
  const TestServer::WriterPtr writer = test_.Begin("GET", kThings);  // from no address
  const FakeExtensions::QuestionPtr question = extensions_.Take();
  question->Head(200);
  const std::string piece(kMaxExtensionAnswerBytes / 2 + 1, 'x');
  question->Data(piece);
  EXPECT_TRUE(question->open);
  question->Data(piece);
  test_.loop.RunReady();
  EXPECT_FALSE(question->open);
  EXPECT_EQ(writer->status, 503);
}

TEST_F(AggregationTest, AnAnswerThatBreaksOffIsNone) {
  Serve();
  const TestServer::WriterPtr here = test_.Begin("GET", kThings);
  FakeExtensions::QuestionPtr question = extensions_.Take();
  question->Head(200);
  question->Data("{");
  question->End(Status(Reason::kServiceUnavailable, "reset"));
  EXPECT_EQ(here->status, 503);
  EXPECT_NE(here->body.find("error trying to reach service: reset"), std::string::npos);

  // A client has had its beginning: it sees no end.
  const TestServer::WriterPtr there = test_.Begin("GET", std::string(kThings) + "?watch=true");
  question = extensions_.Take();
  question->Head(200);
  question->Data("{");
  question->End(Status(Reason::kServiceUnavailable, "reset"));
  test_.loop.RunReady();
  EXPECT_EQ(there->status, 200);
  EXPECT_FALSE(there->ended);
}

TEST_F(AggregationTest, NoMoreRequestsThanAreAllowed) {
  Serve();
  std::vector<TestServer::WriterPtr> writers;
  for (size_t i = 0; i < kMaxExtensionRequests; ++i) writers.push_back(test_.Begin("GET", kThings));
  EXPECT_EQ(test_.Send("GET", kThings)->status, 429);
  writers.front()->LosePeer();
  extensions_.Take();
  test_.loop.RunReady();
  writers.front() = nullptr;
  EXPECT_EQ(test_.Send("GET", kThings)->status, 0);
}

TEST_F(AggregationTest, RequestsEndThoughNobodyAnswers) {
  Serve();
  const TestServer::WriterPtr silent = test_.Begin("GET", kThings);
  const FakeExtensions::QuestionPtr question = extensions_.Take();
  WaitServed(kExtensionPatience);
  EXPECT_EQ(silent->status, 504);
  EXPECT_FALSE(question->open);

  const TestServer::WriterPtr refused = test_.Begin("GET", kThings);
  extensions_.Take()->End(Status(Reason::kServiceUnavailable, "refused"));
  EXPECT_EQ(refused->status, 503);
  EXPECT_NE(refused->body.find("error trying to reach service: refused"), std::string::npos);
}

TEST_F(AggregationTest, WhatIsNotAvailableIsNotAsked) {
  Register();
  test_.loop.RunReady();
  const TestServer::WriterPtr writer = test_.Send("GET", kThings);
  EXPECT_EQ(writer->status, 503);
  EXPECT_EQ(TestServer::Json(*writer)["message"].AsString(),
            "the server is currently unable to handle the request");
  EXPECT_EQ(extensions_.Take(), nullptr);
}

TEST_F(AggregationTest, WhoMayNotIsRefusedHere) {
  Serve();
  net::Request request;
  request.method = "GET";
  request.target = kThings;
  request.peer.user = "jane";
  auto writer = std::make_shared<FakeWriter>();
  test_.server->Handle(std::move(request), writer);
  EXPECT_EQ(writer->status, 403);
  EXPECT_EQ(extensions_.Take(), nullptr);
}

TEST_F(AggregationTest, RedirectsAreRefused) {
  Serve();
  net::Headers elsewhere;
  elsewhere.Add("Location", "https://elsewhere.example.com/");
  for (const int status : {300, 302, 307, 399}) {
    const TestServer::WriterPtr writer = test_.Begin("GET", kThings);
    const FakeExtensions::QuestionPtr question = extensions_.Take();
    question->Head(status, elsewhere);
    test_.loop.RunReady();
    EXPECT_FALSE(question->open);
    EXPECT_EQ(writer->status, 502) << status;
    EXPECT_EQ(writer->body,
              "the backend attempted to redirect this request, which is not permitted");
    EXPECT_FALSE(writer->headers.Has("Location"));
  }
  // Of something new, and of what has not changed.
  for (const int status : {201, 304}) {
    const TestServer::WriterPtr writer = test_.Begin("GET", kThings);
    extensions_.Take()->Answer(status, "", status == 304 ? net::Headers() : elsewhere);
    EXPECT_EQ(writer->status, status);
  }
}

TEST_F(AggregationTest, AnswersWithoutABody) {
  Serve();
  const TestServer::WriterPtr head = test_.Begin("HEAD", kThings);
  extensions_.Take()->Head(200);
  EXPECT_EQ(head->status, 200);
  EXPECT_TRUE(head->ended);
  const TestServer::WriterPtr unchanged = test_.Begin("GET", kThings);
  extensions_.Take()->Head(304);
  EXPECT_EQ(unchanged->status, 304);
  EXPECT_TRUE(unchanged->ended);
}

TEST_F(AggregationTest, DiscoveryHasTheGroupAndWhatItsServerSaid) {
  Serve();
  EXPECT_EQ(Discover("/apis/a.example.com")["preferredVersion"]["groupVersion"].AsString(),
            "a.example.com/v1");
  const json::Value groups = Discover("/apis")["groups"];
  EXPECT_EQ(groups.At(groups.size() - 1)["name"].AsString(), "a.example.com");
  json::Value items = Discover("/apis", kAggregated)["items"];
  json::Value version = items.At(items.size() - 1)["versions"].At(0);
  EXPECT_EQ(version["freshness"].AsString(), "Current");
  const json::Value things = version["resources"].At(0), pods = version["resources"].At(1);
  EXPECT_EQ(things["resource"].AsString(), "things");
  EXPECT_EQ(things["responseKind"]["kind"].AsString(), "Thing");
  EXPECT_EQ(things["shortNames"].At(0).AsString(), "th");
  EXPECT_EQ(things["subresources"].At(0)["subresource"].AsString(), "size");
  // Only its subresources are served.
  EXPECT_EQ(pods["resource"].AsString(), "pods");
  EXPECT_EQ(pods["responseKind"]["kind"].AsString(), "");
  EXPECT_EQ(pods["subresources"].At(0)["responseKind"]["kind"].AsString(), "MetricValueList");

  test_.Send("DELETE", std::string(kSlices) + "/s");
  test_.loop.RunReady();
  items = Discover("/apis", kAggregated)["items"];
  version = items.At(items.size() - 1)["versions"].At(0);
  EXPECT_EQ(version["freshness"].AsString(), "Stale");
  test_.Send("DELETE", kName);
  EXPECT_EQ(test_.Send("GET", "/apis/a.example.com")->status, 404);
  EXPECT_EQ(test_.Send("GET", kBase)->status, 404);
}

TEST_F(AggregationTest, WhatAServerSaysOfItselfSpoilsNothing) {
  AddService();
  AddSlice("s", "10.1.2.3");
  Register();
  extensions_.Take()->Answer(
      200,
      R"({"kind":"APIResourceList","resources":[{"name":7},5,null,{"name":"/x"},)"
      R"({"name":"things","kind":[],"verbs":"get","shortNames":[1,"th",{}],"categories":{}}]})");
  test_.loop.RunReady();
  json::Value items = Discover("/apis", kAggregated)["items"];
  const json::Value resources = items.At(items.size() - 1)["versions"].At(0)["resources"];
  for (const json::Value& resource : resources.items()) {
    EXPECT_TRUE(resource["resource"].IsString());
    EXPECT_TRUE(resource["verbs"].IsArray());
    EXPECT_TRUE(resource["responseKind"]["kind"].IsString());
  }
  const json::Value things = resources.At(resources.size() - 1);
  EXPECT_EQ(things["shortNames"].size(), 1u);
  EXPECT_EQ(things["verbs"].size(), 0u);

  // Neither does too much, or what is no document: what was known stays.
  for (const std::string& answer :
       {std::string(kMaxDiscoveryBytes + 1, ' ') + kList, std::string("<html>"), std::string()}) {
    Wait(kAvailabilityPeriod);
    extensions_.Take()->Answer(200, answer);
    test_.loop.RunReady();
    EXPECT_EQ(Available(), "True Passed all checks passed");
    items = Discover("/apis", kAggregated)["items"];
    EXPECT_EQ(items.At(items.size() - 1)["versions"].At(0)["resources"], resources);
  }
}

TEST_F(AggregationTest, VersionsAreInTheOrderThatTheyAskFor) {
  const auto add = [this](const char* version, int priority) {
    Create(kServices,
           fmt::format(
               R"({{"metadata":{{"name":"{0}.a.example.com"}},"spec":{{"group":"a.example.com",)"
               R"("version":"{0}","groupPriorityMinimum":10,"versionPriority":{1},)"
               R"("service":{{"namespace":"default","name":"s"}}}}}})",
               version, priority));
  };
  add("v1beta1", 20);
  add("v1", 10);
  add("v2", 10);
  std::string order;
  const json::Value group = Discover("/apis/a.example.com");
  for (const json::Value& version : group["versions"].items())
    order += version["version"].Str() + " ";
  EXPECT_EQ(order, "v1beta1 v2 v1 ");
}

TEST_F(AggregationTest, MetricsMayBeTakenOverAndComeBack) {
  AddService();
  AddSlice("s", "10.1.2.3");
  constexpr const char* kMetrics = "/apis/metrics.k8s.io/v1beta1/nodes";
  EXPECT_EQ(test_.Send("GET", kMetrics)->status, 200);
  Create(kServices,
         R"({"metadata":{"name":"v1beta1.metrics.k8s.io"},"spec":{"group":"metrics.k8s.io",)"
         R"("version":"v1beta1","groupPriorityMinimum":100,"versionPriority":100,)"
         R"("insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"s"}}})");
  const FakeExtensions::QuestionPtr look = extensions_.Take();
  ASSERT_NE(look, nullptr);
  EXPECT_TRUE(look->target.believes_all);
  look->Answer(200, kList);
  test_.loop.RunReady();
  const TestServer::WriterPtr writer = test_.Begin("GET", kMetrics);
  extensions_.Take()->Answer(200, "theirs");
  EXPECT_EQ(writer->body, "theirs");
  test_.Send("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io");
  EXPECT_EQ(test_.Send("GET", kMetrics)->status, 200);
}

TEST_F(AggregationTest, NothingHappensWithoutApiServices) {
  AddService();
  AddSlice("s", "10.1.2.3");
  Wait(minutes(10));
  EXPECT_EQ(extensions_.Take(), nullptr);
}

TEST_F(AggregationTest, TellsWhomToBelieve) {
  const json::Value data = Discover(kAuthentication)["data"];
  EXPECT_EQ(data["client-ca-file"].AsString(), "clients");
  EXPECT_EQ(data["requestheader-client-ca-file"].AsString(), "proxies");
  EXPECT_EQ(data["requestheader-allowed-names"].AsString(), R"(["front-proxy-client"])");
  EXPECT_EQ(data["requestheader-username-headers"].AsString(), R"(["X-Remote-User"])");
  EXPECT_EQ(data["requestheader-group-headers"].AsString(), R"(["X-Remote-Group"])");
  EXPECT_EQ(data["requestheader-extra-headers-prefix"].AsString(), R"(["X-Remote-Extra-"])");
  // It comes back.
  EXPECT_EQ(test_.Send("DELETE", kAuthentication)->status, 200);
  test_.loop.RunReady();
  EXPECT_EQ(test_.Send("GET", kAuthentication)->status, 200);
  EXPECT_EQ(test_
                .Send("GET",
                      "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/"
                      "extension-apiserver-authentication-reader")
                ->status,
            200);
}

}  // namespace
}  // namespace muster::apiserver
