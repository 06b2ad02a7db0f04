#include "apiserver/kinds/service_account_admission.h"

#include <gtest/gtest.h>

#include <string>

#include "apiserver/apiserver_testing.h"
#include "apiserver/core.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr const char* kOneContainer = R"("containers":[{"name":"c","image":"i"}])";

class ServiceAccountAdmissionTest : public testing::Test {
 protected:
  static std::string Path(const std::string& plural, const std::string& ns = "default") {
    return "/api/v1/namespaces/" + ns + "/" + plural;
  }
  void Account(const std::string& name, const std::string& more = "",
               const std::string& ns = "default", const std::string& metadata = "") {
    const auto writer =
        test_.Send("POST", Path("serviceaccounts", ns),
                   R"({"metadata":{"name":")" + name + "\"" + metadata + "}" + more + "}");
    ASSERT_EQ(writer->status, 201) << writer->body;
    EXPECT_EQ(writer->headers.Get("Warning"), "") << "it is acted on";
  }
  void Namespace(const std::string& name) {
    const auto writer =
        test_.Send("POST", "/api/v1/namespaces", R"({"metadata":{"name":")" + name + "\"}}");
    ASSERT_EQ(writer->status, 201) << writer->body;
  }
  static std::string PodBody(const std::string& spec, const std::string& annotations = "{}") {
    return R"({"metadata":{"name":"p","annotations":)" + annotations + R"(},"spec":{)" + spec +
           "}}";
  }
  json::Value Pod(const std::string& spec, const std::string& annotations = "{}") {
    const auto writer =
        test_.Send("POST", Path("pods") + "?dryRun=All", PodBody(spec, annotations));
    status_ = writer->status;
    return TestServer::Json(*writer);
  }
  std::string Refusal(const std::string& spec, const std::string& annotations = "{}") {
    const std::string message = Pod(spec, annotations)["message"].Str();
    EXPECT_EQ(status_, 403) << message;
    return message;
  }
  static const json::Value& Container(const json::Value& pod) {
    return pod["spec"]["containers"].At(0);
  }

  TestServer test_;
  int status_ = 0;
};

TEST_F(ServiceAccountAdmissionTest, EveryPodGetsItsNamespacesAccountAndItsToken) {
  const json::Value pod = Pod(kOneContainer);
  ASSERT_EQ(status_, 201) << json::Write(pod);
  EXPECT_EQ(pod["spec"]["serviceAccountName"].AsString(), "default");
  EXPECT_EQ(pod["spec"]["serviceAccount"].AsString(), "default");
  const json::Value& volumes = pod["spec"]["volumes"];
  ASSERT_EQ(volumes.size(), 1u);
  const std::string name = volumes.At(0)["name"].Str();
  EXPECT_TRUE(name.starts_with("kube-api-access-")) << name;
  EXPECT_EQ(name.size(), std::string("kube-api-access-").size() + 5) << name;
  EXPECT_EQ(
      json::Write(volumes.At(0)["projected"]),
      R"({"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},)"
      R"({"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},)"
      R"({"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1",)"
      R"("fieldPath":"metadata.namespace"}}]}}],"defaultMode":420})");
  EXPECT_EQ(
      json::Write(Container(pod)["volumeMounts"]),
      R"([{"name":")" + name +
          R"(","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}])");
  EXPECT_NE(Pod(kOneContainer)["spec"]["volumes"].At(0)["name"].AsString(), name);
}

TEST_F(ServiceAccountAdmissionTest, TheDeprecatedNameCountsWhereTheOtherIsNotSaid) {
  Account("robot");
  Account("other");
  EXPECT_EQ(
      Pod(std::string(R"("serviceAccount":"robot",)") + kOneContainer)["spec"]["serviceAccountName"]
          .AsString(),
      "robot");
  const json::Value both =
      Pod(std::string(R"("serviceAccount":"robot","serviceAccountName":"other",)") + kOneContainer);
  EXPECT_EQ(both["spec"]["serviceAccountName"].AsString(), "other");
  EXPECT_EQ(both["spec"]["serviceAccount"].AsString(), "other");
}

TEST_F(ServiceAccountAdmissionTest, WithoutTheAccountThereIsNoPod) {
  EXPECT_EQ(Refusal(std::string(R"("serviceAccountName":"nobody",)") + kOneContainer),
            "pods \"p\" is forbidden: error looking up service account default/nobody: "
            "serviceaccount \"nobody\" not found");
}

TEST_F(ServiceAccountAdmissionTest, ThePodThenTheAccountSayWhetherThereIsAToken) {
  Account("quiet", R"(,"automountServiceAccountToken":false)");
  Account("loud", R"(,"automountServiceAccountToken":true)");
  const auto has_token = [&](const std::string& spec) {
    const json::Value pod = Pod(spec + "," + kOneContainer);
    EXPECT_EQ(status_, 201) << json::Write(pod);
    EXPECT_EQ(pod["spec"].Has("volumes"), Container(pod).Has("volumeMounts"));
    return pod["spec"].Has("volumes");
  };
  EXPECT_FALSE(has_token(R"("automountServiceAccountToken":false)"));
  EXPECT_FALSE(has_token(R"("serviceAccountName":"quiet")"));
  EXPECT_TRUE(has_token(R"("serviceAccountName":"quiet","automountServiceAccountToken":true)"));
  EXPECT_TRUE(has_token(R"("serviceAccountName":"loud")"));
  EXPECT_FALSE(has_token(R"("serviceAccountName":"loud","automountServiceAccountToken":false)"));
}

TEST_F(ServiceAccountAdmissionTest, WhatIsMountedThereAlreadyStays) {
  const std::string own = R"({"name":"own","image":"i","volumeMounts":[{"name":"v","mountPath":)"
                          R"("/var/run/secrets/kubernetes.io/serviceaccount"}]})";
  const std::string volume = R"("volumes":[{"name":"v","emptyDir":{}}])";
  const json::Value some = Pod(R"("initContainers":[{"name":"init","image":"i"}],"containers":[)" +
                               own + R"(,{"name":"c","image":"i"}],)" + volume);
  ASSERT_EQ(status_, 201) << json::Write(some);
  EXPECT_EQ(some["spec"]["volumes"].size(), 2u);
  EXPECT_EQ(some["spec"]["volumes"].At(0)["name"].AsString(), "v");
  EXPECT_EQ(Container(some)["volumeMounts"].size(), 1u);
  EXPECT_EQ(some["spec"]["containers"].At(1)["volumeMounts"].size(), 1u);
  EXPECT_EQ(some["spec"]["initContainers"].At(0)["volumeMounts"].size(), 1u);
  const json::Value none = Pod(R"("containers":[)" + own + "]," + volume);
  EXPECT_EQ(none["spec"]["volumes"].size(), 1u) << "nobody needs the token";
}

// A pod that was copied from another one, with what the server added to that.
TEST_F(ServiceAccountAdmissionTest, AVolumeOfAnEarlierPodIsUsed) {
  const json::Value pod =
      Pod(std::string(R"("volumes":[{"name":"kube-api-access-old42","emptyDir":{}}],)") +
          kOneContainer);
  ASSERT_EQ(status_, 201) << json::Write(pod);
  EXPECT_EQ(pod["spec"]["volumes"].size(), 1u);
  EXPECT_EQ(Container(pod)["volumeMounts"].At(0)["name"].AsString(), "kube-api-access-old42");
}

TEST_F(ServiceAccountAdmissionTest, TheAccountsPullSecretsAreForPodsWithoutAny) {
  Account("robot", R"(,"imagePullSecrets":[{"name":"a"},{"name":"b"}])");
  const std::string robot = R"("serviceAccountName":"robot",)";
  EXPECT_EQ(json::Write(Pod(robot + kOneContainer)["spec"]["imagePullSecrets"]),
            R"([{"name":"a"},{"name":"b"}])");
  EXPECT_EQ(json::Write(Pod(robot + R"("imagePullSecrets":[{"name":"own"}],)" +
                            kOneContainer)["spec"]["imagePullSecrets"]),
            R"([{"name":"own"}])");
}

TEST_F(ServiceAccountAdmissionTest, AnAccountMayLimitPodsToItsSecrets) {
  Account("tight", R"(,"secrets":[{"name":"mine"}],"imagePullSecrets":[{"name":"pull"}])",
          "default", R"(,"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"})");
  const std::string tight = R"("serviceAccountName":"tight",)";
  const std::string forbidden = "pods \"p\" is forbidden: ";
  const std::string end = " is not allowed because service account tight does not reference that ";
  const std::string volume = R"("volumes":[{"name":"v","secret":{"secretName":)";
  EXPECT_EQ(Pod(tight + volume + R"("mine"}}],)" + kOneContainer)["kind"].AsString(), "Pod");
  EXPECT_EQ(Refusal(tight + volume + R"("other"}}],)" + kOneContainer),
            forbidden + "volume with secret.secretName=\"other\"" + end + "secret");
  const std::string env = R"([{"name":"c","image":"i","env":[{"name":"E","valueFrom":)"
                          R"({"secretKeyRef":{"name":"other","key":"k"}}}]}])";
  EXPECT_EQ(Refusal(tight + R"("containers":)" + env),
            forbidden + "container c with envVar E referencing secret.secretName=\"other\"" + end +
                "secret");
  EXPECT_EQ(Refusal(tight + R"("initContainers":)" + env + "," + kOneContainer),
            forbidden + "init container c with envVar E referencing secret.secretName=\"other\"" +
                end + "secret");
  EXPECT_EQ(
      Refusal(
          tight +
          R"("containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"other"}}]}])"),
      forbidden + "container c with envFrom referencing secret.secretName=\"other\"" + end +
          "secret");
  EXPECT_EQ(Refusal(tight + R"("imagePullSecrets":[{"name":"else"}],)" + kOneContainer),
            forbidden + "imagePullSecrets[0].name=\"else\"" + end + "imagePullSecret");
}

TEST_F(ServiceAccountAdmissionTest, AMirrorPodHasNoAccountAndNoSecrets) {
  const std::string mirror = R"({"kubernetes.io/config.mirror":"x"})";
  const json::Value pod = Pod(std::string(R"("nodeName":"n",)") + kOneContainer, mirror);
  ASSERT_EQ(status_, 201) << json::Write(pod);
  EXPECT_FALSE(pod["spec"].Has("serviceAccountName"));
  EXPECT_FALSE(pod["spec"].Has("volumes"));
  const std::string forbidden = "pods \"p\" is forbidden: a mirror pod may not ";
  EXPECT_EQ(Refusal(std::string(R"("serviceAccountName":"default",)") + kOneContainer, mirror),
            forbidden + "reference service accounts");
  const std::string container = kOneContainer;
  for (const std::string& secret :
       {R"("imagePullSecrets":[{"name":"s"}],)" + container,
        R"("volumes":[{"name":"v","secret":{"secretName":"s"}}],)" + container,
        R"("volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s"}}]}}],)" +
            container,
        std::string(
            R"("containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"s"}}]}])")}) {
    EXPECT_EQ(Refusal(secret, mirror), forbidden + "reference secrets") << secret;
  }
  EXPECT_EQ(Refusal(std::string(R"("volumes":[{"name":"v","projected":{"sources":)"
                                R"([{"serviceAccountToken":{"path":"t"}}]}}],)") +
                        kOneContainer,
                    mirror),
            forbidden + "use ServiceAccountToken volume projections");
}

// The account comes a moment after its namespace: the POST waits for it, and nothing else does.
TEST_F(ServiceAccountAdmissionTest, WaitsForTheAccountOfANewNamespace) {
  Namespace("new");
  const auto writer = test_.Begin("POST", Path("pods", "new"), PodBody(kOneContainer));
  test_.loop.RunFor(milliseconds(300));
  EXPECT_EQ(writer->status, 0) << writer->body;
  EXPECT_EQ(test_.Send("GET", Path("pods", "new"))->status, 200);
  Account("default", "", "new");
  test_.loop.RunFor(milliseconds(50));
  EXPECT_EQ(writer->status, 201) << writer->body;
}

TEST_F(ServiceAccountAdmissionTest, WaitsForASecondAndNoLonger) {
  Namespace("new");
  const auto writer = test_.Begin("POST", Path("pods", "new"), PodBody(kOneContainer));
  test_.loop.RunFor(milliseconds(900));
  EXPECT_EQ(writer->status, 0) << writer->body;
  test_.loop.RunFor(milliseconds(300));
  EXPECT_EQ(writer->status, 403) << writer->body;
  EXPECT_EQ(TestServer::Json(*writer)["message"].AsString(),
            "pods \"p\" is forbidden: error looking up service account new/default: "
            "serviceaccount \"default\" not found");
}

TEST_F(ServiceAccountAdmissionTest, DoesNotWaitForOtherAccounts) {
  Namespace("new");
  const auto writer =
      test_.Send("POST", Path("pods", "new"),
                 PodBody(std::string(R"("serviceAccountName":"robot",)") + kOneContainer));
  EXPECT_EQ(writer->status, 403) << writer->body;
}

TEST_F(ServiceAccountAdmissionTest, ANamespaceThatGoesMeanwhileEndsTheWait) {
  Namespace("new");
  const auto writer = test_.Begin("POST", Path("pods", "new"), PodBody(kOneContainer));
  test_.loop.RunFor(milliseconds(100));
  EXPECT_EQ(test_.Send("DELETE", "/api/v1/namespaces/new")->status, 200);
  test_.loop.RunFor(milliseconds(100));
  EXPECT_EQ(writer->status, 403) << writer->body;
  EXPECT_NE(writer->body.find("being terminated"), std::string::npos) << writer->body;
}

TEST_F(ServiceAccountAdmissionTest, ManyMayWaitAndTheRestIsRefused) {
  Namespace("new");
  size_t refused = 0, waiting = 0;
  for (size_t i = 0; i < kMaxWaitingCreates + 10; ++i) {
    const auto writer = test_.Begin(
        "POST", Path("pods", "new"),
        R"({"metadata":{"generateName":"p-"},"spec":{)" + std::string(kOneContainer) + "}}");
    test_.loop.RunReady();
    ++(writer->status == 403 ? refused : waiting);
  }
  EXPECT_EQ(waiting, kMaxWaitingCreates);
  EXPECT_EQ(refused, 10u);
}

}  // namespace
}  // namespace muster::apiserver
