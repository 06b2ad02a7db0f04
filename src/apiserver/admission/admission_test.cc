#include "apiserver/admission/admission.h"

#include <gtest/gtest.h>

#include <string>

#include "apiserver/admission/fake_webhooks.h"
#include "apiserver/admitted_write.h"
#include "apiserver/apiserver_testing.h"

namespace muster::apiserver {
namespace {

constexpr const char* kGroup = "/apis/admissionregistration.k8s.io/v1";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kEveryMap =
    R"("rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],)"
    R"("resources":["configmaps"]}])";

constexpr const char* kPods = "/api/v1/namespaces/default/pods";

std::string PodRules(const std::string& resource, const std::string& operation) {
  return R"("rules":[{"operations":[")" + operation +
         R"("],"apiGroups":["*"],"apiVersions":["*"],"resources":[")" + resource + R"("]}])";
}

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { fake_.loop = &test_.loop; }

  ServerOptions Options() {
    ServerOptions options;
    options.webhook_client = &fake_;
    return options;
  }

  // One webhook PATH.x.io at https://hook/PATH.
  static std::string Hook(const std::string& path, const std::string& more = kEveryMap) {
    return R"({"name":")" + path + R"(.x.io","sideEffects":"None",)" +
           R"("admissionReviewVersions":["v1"],"clientConfig":{"url":"https://hook/)" + path +
           "\"}," + more + "}";
  }
  void Configure(const std::string& kind, const std::string& name, const std::string& webhooks) {
    const auto writer =
        test_.Send("POST", fmt::format("{}/{}webhookconfigurations", kGroup, kind),
                   R"({"metadata":{"name":")" + name + R"("},"webhooks":[)" + webhooks + "]}");
    ASSERT_EQ(writer->status, 201) << writer->body;
    EXPECT_EQ(writer->headers.Get("Warning"), "");
  }
  void Answer(const std::string& path, const json::Value& response) {
    fake_.by_path["/" + path].answer = [response](const json::Value&) { return response; };
  }
  TestServer::WriterPtr Post(const std::string& url, const std::string& body) {
    const auto writer = test_.Begin("POST", url, body);
    test_.loop.RunFor(seconds(40));
    return writer;
  }
  TestServer::WriterPtr MakeMap(const std::string& metadata = R"("name":"m")",
                                const std::string& query = "") {
    return Post(kMaps + query, R"({"metadata":{)" + metadata + "}}");
  }
  TestServer::WriterPtr Patch(const std::string& url, const std::string& body) {
    net::Headers headers;
    headers.Set("Content-Type", "application/merge-patch+json");
    const auto writer = test_.Begin("PATCH", url, body, headers);
    test_.loop.RunFor(seconds(40));
    return writer;
  }
  static std::string Message(const TestServer::WriterPtr& writer) {
    return TestServer::Json(*writer)["message"].Str();
  }
  const json::Value& Asked(size_t index = 0) const { return fake_.questions.at(index).request(); }

  FakeWebhooks fake_;
  TestServer test_{Options()};
};

TEST_F(AdmissionTest, NobodyIsAskedWithoutAConfiguration) {
  EXPECT_EQ(MakeMap()->status, 201);
  EXPECT_TRUE(fake_.questions.empty());
}

TEST_F(AdmissionTest, TheQuestionOfACreation) {
  Configure("mutating", "m", Hook("mutate"));
  Configure("validating", "v", Hook("validate"));
  ASSERT_EQ(MakeMap(R"("generateName":"m-","labels":{"a":"b"})", "?fieldManager=me")->status, 201);
  ASSERT_EQ(fake_.Paths(), "/mutate /validate");
  const FakeWebhooks::Question& question = fake_.questions[0];
  EXPECT_EQ(question.target.endpoint.ToString(), "https://hook:443");
  EXPECT_EQ(question.target.path, "/mutate?timeout=10s");
  EXPECT_EQ(question.timeout, seconds(10));
  EXPECT_EQ(question.review["apiVersion"].AsString(), "admission.k8s.io/v1");
  const json::Value& request = Asked();
  EXPECT_EQ(json::Write(request["kind"]), R"({"group":"","version":"v1","kind":"ConfigMap"})");
  EXPECT_EQ(json::Write(request["resource"]),
            R"({"group":"","version":"v1","resource":"configmaps"})");
  EXPECT_EQ(request["requestKind"], request["kind"]);
  EXPECT_EQ(request["requestResource"], request["resource"]);
  EXPECT_FALSE(request.Has("name"));
  EXPECT_FALSE(request.Has("subResource"));
  EXPECT_EQ(request["namespace"].AsString(), "default");
  EXPECT_EQ(request["operation"].AsString(), "CREATE");
  EXPECT_EQ(json::Write(request["userInfo"]),
            R"({"username":"admin","groups":["system:masters","system:authenticated"]})");
  EXPECT_TRUE(request.Has("oldObject") && request["oldObject"].IsNull());
  EXPECT_TRUE(request["dryRun"].IsBool() && !request["dryRun"].AsBool());
  EXPECT_EQ(request["options"]["kind"].AsString(), "CreateOptions");
  EXPECT_EQ(request["options"]["fieldManager"].AsString(), "me");
  const json::Value& object = request["object"];
  EXPECT_EQ(object["kind"].AsString(), "ConfigMap");
  EXPECT_EQ(object["metadata"]["labels"]["a"].AsString(), "b");
  EXPECT_FALSE(object["metadata"].Has("uid") || object["metadata"].Has("name"));
  // Validating webhooks see what will be written.
  const json::Value& last = Asked(1)["object"]["metadata"];
  EXPECT_TRUE(last["name"].AsString().starts_with("m-"));
  EXPECT_TRUE(last.Has("uid") && last.Has("creationTimestamp"));
  EXPECT_NE(Asked(1)["uid"], request["uid"]);
}

TEST_F(AdmissionTest, MutatingOnesInTheOrderOfConfigurationsThenValidatingOnes) {
  Configure("mutating", "b", Hook("third"));
  Configure("mutating", "a", Hook("first") + "," + Hook("second"));
  Configure("validating", "a", Hook("fourth"));
  Answer("first",
         FakeWebhooks::Allow(R"([{"op":"add","path":"/metadata/labels","value":{"x":"1"}}])"));
  Answer("second",
         FakeWebhooks::Allow(R"([{"op":"add","path":"/metadata/labels/y","value":"2"}])"));
  const auto writer = MakeMap();
  ASSERT_EQ(writer->status, 201) << writer->body;
  EXPECT_EQ(fake_.Paths(), "/first /second /third /fourth");
  EXPECT_EQ(json::Write(TestServer::Json(*writer)["metadata"]["labels"]), R"({"x":"1","y":"2"})");
  for (const size_t index : {2, 3}) {
    EXPECT_EQ(json::Write(Asked(index)["object"]["metadata"]["labels"]), R"({"x":"1","y":"2"})");
  }
}

TEST_F(AdmissionTest, IfNeededIsAskedOnceMoreWhenALaterOneChangedTheObject) {
  Configure("mutating", "a",
            Hook("again", std::string(kEveryMap) + R"(,"reinvocationPolicy":"IfNeeded")") + "," +
                Hook("never") + "," + Hook("changes"));
  Answer("changes", FakeWebhooks::Allow(R"([{"op":"add","path":"/data","value":{"k":"v"}}])"));
  ASSERT_EQ(MakeMap()->status, 201);
  EXPECT_EQ(fake_.Paths(), "/again /never /changes /again");
  EXPECT_EQ(Asked(3)["object"]["data"]["k"].AsString(), "v");

  fake_.questions.clear();
  Answer("changes", FakeWebhooks::Allow());
  ASSERT_EQ(MakeMap(R"("name":"n")")->status, 201);
  EXPECT_EQ(fake_.Paths(), "/again /never /changes") << "nothing changed";

  // Its own change is no reason, and the second pass is the last.
  fake_.questions.clear();
  Answer("again", FakeWebhooks::Allow(R"([{"op":"add","path":"/data","value":{"k":"v"}}])"));
  ASSERT_EQ(MakeMap(R"("name":"o")")->status, 201);
  EXPECT_EQ(fake_.Paths(), "/again /never /changes");
}

TEST_F(AdmissionTest, FailurePolicyFailRefusesInUpstreamsWords) {
  Configure("validating", "v", Hook("dead"));
  fake_.by_path["/dead"].failure = Status(Reason::kServiceUnavailable, "connection refused");
  const auto writer = MakeMap();
  EXPECT_EQ(writer->status, 500);
  EXPECT_EQ(Message(writer),
            "Internal error occurred: failed calling webhook \"dead.x.io\": failed to call "
            "webhook: Post \"https://hook/dead?timeout=10s\": connection refused");
  EXPECT_EQ(TestServer::Json(*writer)["reason"].AsString(), "InternalError");
  EXPECT_EQ(test_.Send("GET", std::string(kMaps) + "/m")->status, 404);
}

TEST_F(AdmissionTest, FailurePolicyIgnoreGoesOnWithoutTheWebhook) {
  const std::string ignore = std::string(kEveryMap) + R"(,"failurePolicy":"Ignore")";
  Configure("mutating", "m", Hook("deaf", ignore) + "," + Hook("lives", ignore));
  Configure("validating", "v", Hook("dumb", ignore));
  fake_.by_path["/deaf"].failure = Status(Reason::kServiceUnavailable, "connection refused");
  fake_.by_path["/dumb"].raw = "nonsense";
  Answer("lives", FakeWebhooks::Allow(R"([{"op":"add","path":"/data","value":{"k":"v"}}])"));
  const auto writer = MakeMap();
  EXPECT_EQ(writer->status, 201) << writer->body;
  EXPECT_EQ(TestServer::Json(*writer)["data"]["k"].AsString(), "v");
}

TEST_F(AdmissionTest, IgnoreIsAboutCallsNotAboutDenials) {
  Configure("validating", "v", Hook("no", std::string(kEveryMap) + R"(,"failurePolicy":"Ignore")"));
  Answer("no", FakeWebhooks::Deny());
  EXPECT_EQ(MakeMap()->status, 400);
}

TEST_F(AdmissionTest, EveryWebhookHasItsTimeout) {
  Configure(
      "mutating", "m",
      Hook("slow", std::string(kEveryMap) + R"(,"timeoutSeconds":3,"failurePolicy":"Ignore")"));
  Configure("validating", "v", Hook("slower", std::string(kEveryMap) + R"(,"timeoutSeconds":5)"));
  fake_.by_path["/slow"].delay = seconds(100);
  fake_.by_path["/slower"].delay = seconds(100);
  const auto writer = test_.Begin("POST", kMaps, R"({"metadata":{"name":"m"}})");
  test_.loop.RunFor(milliseconds(2999));
  EXPECT_EQ(fake_.Paths(), "/slow");
  test_.loop.RunFor(milliseconds(2));
  EXPECT_EQ(fake_.Paths(), "/slow /slower");
  EXPECT_EQ(writer->status, 0);
  test_.loop.RunFor(seconds(5));
  EXPECT_EQ(writer->status, 500);
  EXPECT_EQ(Message(writer),
            "Internal error occurred: failed calling webhook \"slower.x.io\": failed to call "
            "webhook: Post \"https://hook/slower?timeout=5s\": context deadline exceeded");
}

TEST_F(AdmissionTest, AnswersWithAnotherCodeAreFailures) {
  Configure("validating", "v", Hook("lost") + "," + Hook("broken"));
  fake_.by_path["/lost"].status = 404;
  fake_.by_path["/broken"].status = 500;
  fake_.by_path["/broken"].raw = "oh\n";
  EXPECT_EQ(Message(MakeMap()),
            "Internal error occurred: failed calling webhook \"lost.x.io\": failed to call "
            "webhook: the server could not find the requested resource");
  fake_.by_path.erase("/lost");
  EXPECT_EQ(Message(MakeMap()),
            "Internal error occurred: failed calling webhook \"broken.x.io\": failed to call "
            "webhook: an error on the server (\"oh\") has prevented the request from succeeding");
}

TEST_F(AdmissionTest, DenialsKeepCodeAndReasonOfTheWebhook) {
  Configure("validating", "v", Hook("fine") + "," + Hook("no"));
  Answer("no", FakeWebhooks::Deny(json::Obj(
                   {{"code", 418}, {"reason", "Teapot"}, {"message", "short and stout"}})));
  const auto writer = MakeMap();
  EXPECT_EQ(writer->status, 418);
  const json::Value status = TestServer::Json(*writer);
  EXPECT_EQ(status["code"].AsInt(), 418);
  EXPECT_EQ(status["reason"].AsString(), "Teapot");
  EXPECT_EQ(status["message"].AsString(),
            "admission webhook \"no.x.io\" denied the request: short and stout");
  // As upstream, where a webhook gives none.
  Answer("no", FakeWebhooks::Deny());
  const json::Value bare = TestServer::Json(*MakeMap());
  EXPECT_EQ(bare["code"].AsInt(), 400);
  EXPECT_FALSE(bare.Has("reason"));
}

TEST_F(AdmissionTest, WarningsReachTheClient) {
  Configure("validating", "v", Hook("warns"));
  Answer("warns", FakeWebhooks::Allow().Set("warnings", json::List({"beware"})));
  EXPECT_EQ(MakeMap()->headers.Get("Warning"), R"(299 - "beware")");
}

TEST_F(AdmissionTest, WhatWebhooksMakeIsValidatedLikeAnyInput) {
  Configure("mutating", "m", Hook("m"));
  Answer("m",
         FakeWebhooks::Allow(R"([{"op":"add","path":"/metadata/labels","value":{"a b":"c"}}])"));
  EXPECT_EQ(MakeMap()->status, 422);
  // A field that ConfigMaps have not is dropped, a wrong type is not.
  Answer("m", FakeWebhooks::Allow(R"([{"op":"add","path":"/nothing","value":1}])"));
  const auto writer = MakeMap();
  EXPECT_EQ(writer->status, 201);
  EXPECT_FALSE(TestServer::Json(*writer).Has("nothing"));
  Answer("m", FakeWebhooks::Allow(R"([{"op":"add","path":"/data","value":7}])"));
  EXPECT_EQ(MakeMap(R"("name":"n")")->status, 500);
  Answer("m", FakeWebhooks::Allow(R"([{"op":"remove","path":"/not/there"}])"));
  EXPECT_EQ(MakeMap(R"("name":"n")")->status, 500);
  // What kind this is is not the webhook's to say.
  Answer("m", FakeWebhooks::Allow(R"([{"op":"replace","path":"/kind","value":"Secret"}])"));
  const json::Value map = TestServer::Json(*MakeMap(R"("name":"n")"));
  EXPECT_EQ(map["kind"].AsString(), "ConfigMap");
}

// As upstream: of a new object a webhook may not choose the namespace nor the resourceVersion, and
// what the server decides is dropped; here that is said.
TEST_F(AdmissionTest, WhatIsNotTheWebhooksToSayIsAnswered) {
  Configure("mutating", "m", Hook("m"));
  const auto set = [&](const std::string& field, const std::string& value) {
    Answer("m", FakeWebhooks::Allow(R"([{"op":"add","path":"/metadata/)" + field +
                                    R"(","value":")" + value + R"("}])"));
    return MakeMap(R"("name":"n")");
  };
  auto writer = set("namespace", "kube-system");
  EXPECT_EQ(writer->status, 400);
  EXPECT_EQ(
      Message(writer),
      "the namespace of the provided object does not match the namespace sent on the request");
  writer = set("resourceVersion", "7");
  EXPECT_EQ(writer->status, 400);
  EXPECT_EQ(Message(writer), "resourceVersion should not be set on objects to be created");
  writer = set("uid", "mine");
  EXPECT_EQ(writer->status, 201);
  EXPECT_NE(TestServer::Json(*writer)["metadata"]["uid"].AsString(), "mine");
  EXPECT_EQ(writer->headers.Get("Warning"),
            R"(299 - "ConfigMap n: metadata.uid: what a mutating webhook wrote there is dropped: )"
            R"(the server decides it")");
}

TEST_F(AdmissionTest, SelectorsOfNamespacesAndObjects) {
  const std::string by_namespace =
      std::string(kEveryMap) + R"(,"namespaceSelector":{"matchLabels":{"team":"a"}})";
  const std::string by_object =
      std::string(kEveryMap) + R"(,"objectSelector":{"matchLabels":{"watch":"me"}})";
  Configure("validating", "v", Hook("space", by_namespace) + "," + Hook("object", by_object));
  ASSERT_EQ(
      Post("/api/v1/namespaces", R"({"metadata":{"name":"a","labels":{"team":"a"}}})")->status,
      201);
  ASSERT_EQ(MakeMap()->status, 201);
  EXPECT_EQ(fake_.Paths(), "");
  ASSERT_EQ(Post("/api/v1/namespaces/a/configmaps", R"({"metadata":{"name":"m"}})")->status, 201);
  EXPECT_EQ(fake_.Paths(), "/space");
  fake_.questions.clear();
  // Before or after the write.
  ASSERT_EQ(Patch(std::string(kMaps) + "/m", R"({"metadata":{"labels":{"watch":"me"}}})")->status,
            200);
  ASSERT_EQ(Patch(std::string(kMaps) + "/m", R"({"metadata":{"labels":null}})")->status, 200);
  ASSERT_EQ(Patch(std::string(kMaps) + "/m", R"({"data":{"a":"b"}})")->status, 200);
  EXPECT_EQ(fake_.Paths(), "/object /object");
}

TEST_F(AdmissionTest, ANamespaceIsJudgedByItsOwnLabels) {
  Configure("validating", "v",
            Hook("space", R"("rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],)"
                          R"("resources":["namespaces"],"scope":"Cluster"}],)"
                          R"("namespaceSelector":{"matchLabels":{"team":"a"}})"));
  ASSERT_EQ(Post("/api/v1/namespaces", R"({"metadata":{"name":"b"}})")->status, 201);
  EXPECT_EQ(fake_.Paths(), "");
  ASSERT_EQ(Patch("/api/v1/namespaces/b", R"({"metadata":{"labels":{"team":"a"}}})")->status, 200);
  ASSERT_EQ(fake_.Paths(), "/space");
  EXPECT_EQ(Asked()["namespace"].AsString(), "b");
}

TEST_F(AdmissionTest, UpdatesShowBothObjectsAndPatchesApply) {
  ASSERT_EQ(MakeMap()->status, 201);
  Configure("mutating", "m", Hook("mutate"));
  Configure("validating", "v", Hook("validate"));
  Answer("mutate", FakeWebhooks::Allow(R"([{"op":"add","path":"/data/by","value":"hook"}])"));
  const auto writer = Patch(std::string(kMaps) + "/m", R"({"data":{"a":"b"}})");
  ASSERT_EQ(writer->status, 200) << writer->body;
  EXPECT_EQ(json::Write(TestServer::Json(*writer)["data"]), R"({"a":"b","by":"hook"})");
  const json::Value& request = Asked();
  EXPECT_EQ(request["operation"].AsString(), "UPDATE");
  EXPECT_EQ(request["name"].AsString(), "m");
  EXPECT_EQ(request["options"]["kind"].AsString(), "UpdateOptions");
  EXPECT_FALSE(request["oldObject"].Has("data"));
  EXPECT_EQ(request["object"]["data"]["a"].AsString(), "b");
  EXPECT_EQ(request["oldObject"]["metadata"]["uid"], request["object"]["metadata"]["uid"]);
  EXPECT_EQ(Asked(1)["object"]["data"]["by"].AsString(), "hook");
}

TEST_F(AdmissionTest, WhoIsOvertakenWhileWebhooksThinkBeginsAnew) {
  ASSERT_EQ(MakeMap()->status, 201);
  Configure("validating", "v", Hook("slow"));
  fake_.by_path["/slow"].delay = seconds(2);
  net::Headers headers;
  headers.Set("Content-Type", "application/merge-patch+json");
  const auto first =
      test_.Begin("PATCH", std::string(kMaps) + "/m", R"({"data":{"a":"1"}})", headers);
  test_.loop.RunFor(seconds(1));
  const auto second =
      test_.Begin("PATCH", std::string(kMaps) + "/m", R"({"data":{"b":"2"}})", headers);
  test_.loop.RunFor(seconds(10));
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(second->status, 200);
  EXPECT_EQ(json::Write(TestServer::Json(*second)["data"]), R"({"a":"1","b":"2"})");
  EXPECT_EQ(fake_.questions.size(), 3u);
  // Who said which revision he means is told of the conflict.
  const std::string stale = TestServer::Json(*first)["metadata"]["resourceVersion"].Str();
  const auto late = test_.Send("PUT", std::string(kMaps) + "/m",
                               R"({"metadata":{"name":"m","resourceVersion":")" + stale + "\"}}");
  EXPECT_EQ(late->status, 409);
  EXPECT_EQ(fake_.questions.size(), 3u);
}

TEST_F(AdmissionTest, WhoIsAlwaysOvertakenGivesUp) {
  ASSERT_EQ(MakeMap()->status, 201);
  Configure("validating", "v", Hook("slow", PodRules("configmaps", "UPDATE")));
  int writes = 0;
  // Whenever the webhook is asked, somebody else writes.
  fake_.by_path["/slow"].answer = [&](const json::Value& request) {
    if (request["object"]["data"].Has("mine")) {
      const std::string url = std::string(kMaps) + "/m";
      test_.Begin("DELETE", url);
      test_.Begin("POST", kMaps, R"({"metadata":{"name":"m"}})");
      ++writes;
    }
    return FakeWebhooks::Allow();
  };
  const auto writer = Patch(std::string(kMaps) + "/m", R"({"data":{"mine":"1"}})");
  EXPECT_EQ(writer->status, 409) << writer->body;
  EXPECT_EQ(writes, kMaxAdmissionAttempts);
}

TEST_F(AdmissionTest, DeletionsOneByOne) {
  for (const char* name : {R"("name":"a")", R"("name":"b")"}) ASSERT_EQ(MakeMap(name)->status, 201);
  Configure("mutating", "m", Hook("mutate"));
  Configure("validating", "v", Hook("keep"));
  fake_.by_path["/keep"].answer = [](const json::Value& request) {
    return request["name"].AsString() == "b"
               ? FakeWebhooks::Deny(json::Obj({{"message", "b stays"}, {"code", 403}}))
               : FakeWebhooks::Allow();
  };
  const auto all = test_.Begin("DELETE", std::string(kMaps) + "?gracePeriodSeconds=7");
  test_.loop.RunFor(seconds(1));
  EXPECT_EQ(all->status, 403);
  EXPECT_EQ(Message(all), "admission webhook \"keep.x.io\" denied the request: b stays");
  EXPECT_EQ(test_.Send("GET", std::string(kMaps) + "/a")->status, 404);
  EXPECT_EQ(test_.Send("GET", std::string(kMaps) + "/b")->status, 200);
  const json::Value& request = Asked();
  EXPECT_EQ(request["operation"].AsString(), "DELETE");
  EXPECT_TRUE(request["object"].IsNull());
  EXPECT_EQ(request["oldObject"]["metadata"]["name"], request["name"]);
  EXPECT_EQ(request["options"]["kind"].AsString(), "DeleteOptions");
  EXPECT_EQ(request["options"]["gracePeriodSeconds"].AsInt(), 7);
  // There is nothing that could be changed.
  Answer("mutate", FakeWebhooks::Allow(R"([{"op":"add","path":"/data","value":{}}])"));
  const auto one = test_.Begin("DELETE", std::string(kMaps) + "/b");
  test_.loop.RunFor(seconds(1));
  EXPECT_EQ(one->status, 500);
  EXPECT_EQ(Message(one),
            "Internal error occurred: admission webhook \"mutate.x.io\" attempted to modify the "
            "object, which is not supported for this operation");
}

TEST_F(AdmissionTest, ConfigurationsThemselvesAreNeverAskedAbout) {
  const std::string everything =
      R"("rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}])";
  Configure("validating", "v", Hook("no", everything));
  Answer("no", FakeWebhooks::Deny());
  EXPECT_EQ(MakeMap()->status, 400);
  const auto gone =
      test_.Send("DELETE", fmt::format("{}/validatingwebhookconfigurations/v", kGroup));
  EXPECT_EQ(gone->status, 200);
  EXPECT_EQ(MakeMap()->status, 201);
}

TEST_F(AdmissionTest, DryRunsAreToldSo) {
  Configure("validating", "v", Hook("v"));
  ASSERT_EQ(MakeMap(R"("name":"m")", "?dryRun=All")->status, 201);
  EXPECT_TRUE(Asked()["dryRun"].AsBool());
  EXPECT_EQ(test_.Send("GET", std::string(kMaps) + "/m")->status, 404);
  Webhook effects;
  effects.name = "e.x.io";
  effects.has_side_effects = true;
  AdmissionRequest request;
  EXPECT_TRUE(Admission::CheckDryRun(effects, request).ok());
  request.dry_run = true;
  EXPECT_EQ(Admission::CheckDryRun(effects, request).message(),
            "admission webhook \"e.x.io\" does not support dry run");
}

TEST_F(AdmissionTest, TooManyQuestionsAtOnceFail) {
  Configure("validating", "v", Hook("slow"));
  fake_.by_path["/slow"].delay = seconds(5);
  for (size_t i = 0; i < kMaxWebhookCalls; ++i)
    test_.Begin("POST", kMaps, fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i));
  test_.loop.RunFor(seconds(1));
  const auto writer = test_.Begin("POST", kMaps, R"({"metadata":{"name":"last"}})");
  test_.loop.RunFor(seconds(1));
  EXPECT_EQ(writer->status, 500);
  EXPECT_NE(Message(writer).find("too many calls of webhooks are under way"), std::string::npos);
  test_.loop.RunFor(seconds(5));
  EXPECT_EQ(MakeMap(R"("name":"later")")->status, 201);
}

TEST_F(AdmissionTest, TooManyBytesOfQuestionsFail) {
  Configure("validating", "v", Hook("slow"));
  fake_.by_path["/slow"].delay = seconds(5);
  const std::string megabyte(1024 * 1024, 'x');
  size_t refused = 0;
  std::vector<TestServer::WriterPtr> writers;
  for (size_t i = 0; i < kMaxWebhookBytes / megabyte.size(); ++i) {
    writers.push_back(
        test_.Begin("POST", kMaps,
                    fmt::format(R"({{"metadata":{{"name":"m{}"}},"data":{{"a":"{}"}}}})", i,
                                megabyte.substr(0, 900 * 1024))));
  }
  for (size_t i = 0; i < 10; ++i) {
    writers.push_back(
        test_.Begin("POST", kMaps,
                    fmt::format(R"({{"metadata":{{"name":"n{}"}},"data":{{"a":"{}"}}}})", i,
                                megabyte.substr(0, 900 * 1024))));
  }
  test_.loop.RunFor(seconds(1));
  for (const auto& writer : writers) refused += writer->status == 500 ? 1 : 0;
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, 10u);
}

// However many there are: a few at a time.
TEST_F(AdmissionTest, ACollectionIsDeletedAFewObjectsAtATime) {
  for (int i = 0; i < 300; ++i)
    test_.Begin("POST", kMaps, fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i));
  test_.loop.RunFor(seconds(1));
  Configure("validating", "v", Hook("slow"));
  fake_.by_path["/slow"].delay = seconds(1);
  const auto writer = test_.Begin("DELETE", kMaps);
  test_.loop.RunFor(milliseconds(500));
  EXPECT_EQ(fake_.questions.size(), 50u);
  test_.loop.RunFor(seconds(10));
  EXPECT_EQ(writer->status, 200);
  EXPECT_EQ(fake_.questions.size(), 300u);
  EXPECT_EQ(TestServer::Json(*test_.Send("GET", kMaps))["items"].size(), 0u);
}

TEST_F(AdmissionTest, SubresourcesAreAskedAboutByTheirName) {
  ASSERT_EQ(
      Post(kPods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})")
          ->status,
      201);
  struct {
    const char *sub, *operation, *method, *target, *body, *kind;
  } const rows[] = {
      {"eviction", "CREATE", "POST", "/p/eviction",
       R"({"metadata":{"name":"p"},"deleteOptions":{"dryRun":["All"]}})", "Eviction"},
      {"binding", "CREATE", "POST", "/p/binding",
       R"({"metadata":{"name":"p"},"target":{"name":"n"}})", "Binding"},
      {"exec", "CONNECT", "POST", "/p/exec?command=true&stdout=true", "", "PodExecOptions"},
      {"status", "UPDATE", "PUT", "/p/status",
       R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{}})",
       "Pod"},
  };
  for (const auto& row : rows) {
    fake_.questions.clear();
    Configure("validating", row.sub,
              Hook(row.sub, PodRules(fmt::format("pods/{}", row.sub), row.operation)));
    Answer(row.sub, FakeWebhooks::Deny());
    net::Headers headers;
    if (std::string_view(row.sub) == "exec") headers.Set("Upgrade", "websocket");
    const auto writer = test_.Begin(row.method, std::string(kPods) + row.target, row.body, headers);
    test_.loop.RunFor(seconds(1));
    EXPECT_EQ(Message(writer), fmt::format("admission webhook \"{}.x.io\" denied the request "
                                           "without explanation",
                                           row.sub));
    ASSERT_EQ(fake_.questions.size(), 1u) << row.sub;
    EXPECT_EQ(Asked()["subResource"].AsString(), row.sub);
    EXPECT_EQ(Asked()["requestSubResource"].AsString(), row.sub);
    EXPECT_EQ(Asked()["resource"]["resource"].AsString(), "pods");
    EXPECT_EQ(Asked()["kind"]["kind"].AsString(), row.kind);
    EXPECT_EQ(Asked()["object"]["kind"].AsString(), row.kind);
    EXPECT_EQ(Asked()["name"].AsString(), "p");
    EXPECT_EQ(Asked()["operation"].AsString(), row.operation);
  }
}

// The body names the pod.
TEST_F(AdmissionTest, ABindingOnTheCollectionIsOneOfThePod) {
  Configure("validating", "v", Hook("bind", PodRules("pods/binding", "CREATE")));
  Configure("validating", "w", Hook("pods", PodRules("pods", "CREATE")));
  Answer("bind", FakeWebhooks::Deny());
  EXPECT_EQ(Post("/api/v1/namespaces/default/bindings",
                 R"({"metadata":{"name":"p"},"target":{"name":"n"}})")
                ->status,
            400);
  ASSERT_EQ(fake_.Paths(), "/bind");
  EXPECT_EQ(Asked()["name"].AsString(), "p");
}

TEST_F(AdmissionTest, ReviewsAreAskedAbout) {
  Configure("validating", "v", Hook("who", PodRules("selfsubjectreviews", "CREATE")));
  const std::string reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const auto writer = Post(reviews, "{}");
  ASSERT_EQ(writer->status, 201) << writer->body;
  EXPECT_EQ(TestServer::Json(*writer)["status"]["userInfo"]["username"].AsString(), "admin");
  ASSERT_EQ(fake_.Paths(), "/who");
  EXPECT_EQ(Asked()["kind"]["kind"].AsString(), "SelfSubjectReview");
  Answer("who", FakeWebhooks::Deny());
  EXPECT_EQ(Post(reviews, "{}")->status, 400);
}

TEST_F(AdmissionTest, WhatHappenedIsCounted) {
  Configure(
      "validating", "v",
      Hook("dead", std::string(kEveryMap) + R"(,"failurePolicy":"Ignore")") + "," + Hook("no"));
  fake_.by_path["/dead"].failure = Status(Reason::kServiceUnavailable, "connection refused");
  Answer("no", FakeWebhooks::Deny());
  EXPECT_EQ(MakeMap()->status, 400);
  const std::string metrics = test_.Send("GET", "/metrics")->body;
  for (const char* line :
       {R"(fail_open_count{name="dead.x.io",type="validating",operation="CREATE"} 1)",
        R"(rejection_count{name="no.x.io",type="validating",operation="CREATE"} 1)",
        R"(duration_seconds_count{name="no.x.io",type="validating",operation="CREATE"} 1)"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

TEST_F(AdmissionTest, AScaleIsChangedByItsWebhook) {
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  ASSERT_EQ(Post(deployments,
                 R"({"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":)"
                 R"({"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":)"
                 R"([{"name":"c","image":"i"}]}}}})")
                ->status,
            201);
  Configure("mutating", "m", Hook("scale", PodRules("*/scale", "UPDATE")));
  Answer("scale", FakeWebhooks::Allow(R"([{"op":"replace","path":"/spec/replicas","value":3}])"));
  const auto writer = Patch(deployments + "/d/scale", R"({"spec":{"replicas":9}})");
  ASSERT_EQ(writer->status, 200) << writer->body;
  EXPECT_EQ(TestServer::Json(*writer)["spec"]["replicas"].AsInt(), 3);
  EXPECT_EQ(Asked()["oldObject"]["spec"]["replicas"].AsInt(), 1);
  EXPECT_EQ(json::Write(Asked()["kind"]),
            R"({"group":"autoscaling","version":"v1","kind":"Scale"})");
}

// autoscaling/v1 and v2 look different; rules name one version, clients speak the other.
TEST_F(AdmissionTest, EquivalentVersionsAreConverted) {
  const std::string rules =
      R"("rules":[{"operations":["*"],"apiGroups":["autoscaling"],"apiVersions":["v1"],)"
      R"("resources":["horizontalpodautoscalers"]}])";
  Configure("mutating", "m",
            Hook("any", rules) + "," + Hook("exact", rules + R"(,"matchPolicy":"Exact")"));
  Answer("any", FakeWebhooks::Allow(
                    R"([{"op":"add","path":"/spec/targetCPUUtilizationPercentage","value":42}])"));
  const auto writer = Post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
                           R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":)"
                           R"({"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})");
  ASSERT_EQ(writer->status, 201) << writer->body;
  EXPECT_EQ(fake_.Paths(), "/any");
  EXPECT_EQ(Asked()["resource"]["version"].AsString(), "v1");
  EXPECT_EQ(Asked()["requestResource"]["version"].AsString(), "v2");
  EXPECT_EQ(Asked()["object"]["apiVersion"].AsString(), "autoscaling/v1");
  const json::Value made = TestServer::Json(*writer);
  EXPECT_EQ(made["apiVersion"].AsString(), "autoscaling/v2");
  EXPECT_EQ(
      made.Path({"spec", "metrics"}).At(0)["resource"]["target"]["averageUtilization"].AsInt(), 42);
}

TEST_F(AdmissionTest, CustomResourcesInTheVersionThatTheRulesName) {
  const std::string version =
      R"({"name":"%","served":true,"storage":$,"schema":{"openAPIV3Schema":{"type":"object",)"
      R"("properties":{"spec":{"type":"object","required":["size"],"properties":)"
      R"({"size":{"type":"integer"}}}}}}})";
  const auto named = [&](const char* name, const char* storage) {
    return ReplaceAll(ReplaceAll(version, "%", name), "$", storage);
  };
  ASSERT_EQ(Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 R"({"metadata":{"name":"tents.x.io"},"spec":{"group":"x.io","scope":"Namespaced",)"
                 R"("names":{"plural":"tents","kind":"Tent"},"versions":[)" +
                     named("v1", "true") + "," + named("v2", "false") + "]}}")
                ->status,
            201);
  Configure("mutating", "m",
            Hook("size", R"("rules":[{"operations":["CREATE"],"apiGroups":["x.io"],)"
                         R"("apiVersions":["v2"],"resources":["tents"]}])"));
  Answer("size", FakeWebhooks::Allow(R"([{"op":"add","path":"/spec/size","value":4}])"));
  // What the webhook fills in is validated, not what came: a required field may be left to it.
  const auto writer =
      Post("/apis/x.io/v1/namespaces/default/tents",
           R"({"apiVersion":"x.io/v1","kind":"Tent","metadata":{"name":"t"},"spec":{}})");
  ASSERT_EQ(writer->status, 201) << writer->body;
  EXPECT_EQ(Asked()["object"]["apiVersion"].AsString(), "x.io/v2");
  EXPECT_EQ(TestServer::Json(*writer)["apiVersion"].AsString(), "x.io/v1");
  EXPECT_EQ(TestServer::Json(*writer)["spec"]["size"].AsInt(), 4);
}

TEST_F(AdmissionTest, AServiceIsAskedAtAReadyEndpointUnderItsName) {
  Configure("validating", "v",
            R"({"name":"s.x.io","sideEffects":"None","admissionReviewVersions":["v1"],)"
            R"("clientConfig":{"caBundle":"cGVt","service":{"namespace":"default","name":"s",)"
            R"("path":"/check"}},)" +
                std::string(kEveryMap) + "}");
  ASSERT_EQ(Post("/api/v1/namespaces/default/services",
                 R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"web","port":443,)"
                 R"("targetPort":"hook"},{"name":"other","port":80}]}})")
                ->status,
            201);
  EXPECT_NE(Message(MakeMap()).find(R"(no endpoints available for service "s")"),
            std::string::npos);
  ASSERT_EQ(Post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
                 R"({"metadata":{"name":"s-1","labels":{"kubernetes.io/service-name":"s"}},)"
                 R"("addressType":"IPv4","ports":[{"name":"other","port":8080},)"
                 R"({"name":"web","port":9443}],)"
                 R"("endpoints":[{"addresses":["10.1.1.1"],"conditions":{"ready":false}},)"
                 R"({"addresses":["10.1.1.2"],"conditions":{"ready":true}}]})")
                ->status,
            201);
  ASSERT_EQ(MakeMap()->status, 201);
  const WebhookTarget& target = fake_.questions.at(0).target;
  EXPECT_EQ(target.endpoint.host, "10.1.1.2");
  EXPECT_EQ(target.endpoint.port, 9443);
  EXPECT_EQ(target.endpoint.server_name, "s.default.svc");
  EXPECT_EQ(target.host, "s.default.svc:443");
  EXPECT_EQ(target.path, "/check?timeout=10s");
  EXPECT_EQ(target.ca_pem, "pem");
  EXPECT_TRUE(target.in_cluster);
}

// The pods that a Deployment's controller makes come through the same door.
TEST_F(AdmissionTest, PodsGetTheirAccountBeforeWebhooksSeeThem) {
  Configure("mutating", "m", Hook("pods", PodRules("pods", "CREATE")));
  Answer("pods",
         FakeWebhooks::Allow(
             R"([{"op":"add","path":"/spec/containers/-","value":{"name":"s","image":"i"}}])"));
  const auto writer =
      Post(kPods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  ASSERT_EQ(writer->status, 201) << writer->body;
  EXPECT_EQ(Asked()["object"]["spec"]["serviceAccountName"].AsString(), "default");
  EXPECT_EQ(Asked()["object"]["spec"]["restartPolicy"].AsString(), "Always");
  const json::Value spec = TestServer::Json(*writer)["spec"];
  // The sidecar has defaults and the token's volume, of which there is still one.
  ASSERT_EQ(spec["containers"].size(), 2u);
  EXPECT_EQ(spec["volumes"].size(), 1u);
  for (const json::Value& container : spec["containers"].items()) {
    EXPECT_EQ(container["terminationMessagePath"].AsString(), "/dev/termination-log");
    EXPECT_EQ(container["volumeMounts"].size(), 1u);
  }
}

}  // namespace
}  // namespace muster::apiserver
