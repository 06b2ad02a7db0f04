#include "agent/pod_workers/plain_pod.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::agent {
namespace {

Status Check(const std::string& container, const std::string& volumes = "[]") {
  return CheckPlainPod(*json::Parse(R"({"spec":{"volumes":)" + volumes +
                                    R"(,"containers":[{"image":"none","name":"c",)" + container +
                                    "}]}}"));
}

TEST(PlainPod, MayHaveWhatItFindsOnTheMachine) {
  EXPECT_TRUE(Check(R"("tty":true)").ok());
  EXPECT_TRUE(Check(R"("volumeMounts":[{"name":"v","mountPath":"/home/me"}])",
                    R"([{"name":"v","hostPath":{"path":"/home/me"}}])")
                  .ok());
}

TEST(PlainPod, DoesWithoutTheTokenThatEveryPodGets) {
  const std::string volumes =
      R"([{"name":"kube-api-access-x2z4b","projected":{"sources":[]}},
          {"name":"mine","projected":{"sources":[]}}])";
  const auto check = [&](const std::string& name, const std::string& path) {
    return Check(R"("volumeMounts":[{"name":")" + name + R"(","readOnly":true,"mountPath":")" +
                     path + "\"}]",
                 volumes);
  };
  const std::string place = "/var/run/secrets/kubernetes.io/serviceaccount";
  EXPECT_TRUE(check("kube-api-access-x2z4b", place).ok());
  EXPECT_FALSE(check("mine", place).ok());
  EXPECT_FALSE(check("kube-api-access-x2z4b", "/tokens").ok());
}

TEST(PlainPod, FailsWhereSomethingWouldBeMissingOrOpen) {
  const std::string home = R"([{"name":"v","hostPath":{"path":"/home/me"}}])";
  for (const char* mount : {R"({"name":"v","mountPath":"/data"})",
                            R"({"name":"v","mountPath":"/home/me","readOnly":true})",
                            R"({"name":"v","mountPath":"/home/me","subPath":"x"})",
                            R"({"name":"w","mountPath":"/home/me"})"}) {
    EXPECT_EQ(Check(R"("volumeMounts":[)" + std::string(mount) + "]", home).reason(),
              Reason::kInvalid)
        << mount;
  }
  const Status config = Check(R"("volumeMounts":[{"name":"v","mountPath":"/script"}])",
                              R"([{"name":"v","configMap":{"name":"s"}}])");
  EXPECT_NE(config.message().find("volume v cannot be mounted at /script"), std::string::npos);
  EXPECT_NE(config.message().find("NoNamespaces"), std::string::npos);
  EXPECT_FALSE(Check(R"("securityContext":{"readOnlyRootFilesystem":true})").ok());
}

TEST(PlainPod, AHostPortIsTheContainersOwn) {
  EXPECT_TRUE(Check(R"("ports":[{"containerPort":80,"hostPort":80},{"containerPort":81}])").ok());
  const Status other = Check(R"("ports":[{"containerPort":80,"hostPort":8080}])");
  EXPECT_TRUE(other.message().starts_with(
      "container c: hostPort 8080 cannot lead to containerPort 80: this node has no namespaces"))
      << other.message();
}

TEST(PlainPod, AnImageWaitsForNamespaces) {
  EXPECT_TRUE(CheckPlainImage(*json::Parse(R"({"name":"c","image":"none"})")).ok());
  const Status image = CheckPlainImage(*json::Parse(R"({"name":"c","image":"registry/x:1"})"));
  EXPECT_TRUE(image.message().starts_with(
      "image registry/x:1 cannot be the root folder of container c: this node has no namespaces"))
      << image.message();
  EXPECT_TRUE(CheckPlainPod(
                  *json::Parse(R"({"spec":{"containers":[{"name":"c","image":"registry/x:1"}]}})"))
                  .ok());
}

TEST(PlainPod, FindsItsJobOnTheMachine) {
  const auto service = [](const char* ns, const char* name, const char* ip) {
    return json::Obj({{"metadata", json::Obj({{"namespace", ns}, {"name", name}})},
                      {"spec", json::Obj({{"clusterIP", ip}})}});
  };
  std::vector<std::string> environment = {"MASTER_ADDR=job-master-0",
                                          "PET_RDZV_ENDPOINT=job-master-0:23456",
                                          "OTHER=web",
                                          "X=there",
                                          "JOB=job-master-0-and-more",
                                          "EMPTY="};
  UseMachineForNames(environment, "d",
                     {service("d", "job-master-0", "None"), service("d", "web", "10.43.0.5"),
                      service("e", "there", "None")});
  EXPECT_EQ(environment, (std::vector<std::string>{
                             "MASTER_ADDR=127.0.0.1", "PET_RDZV_ENDPOINT=127.0.0.1:23456",
                             "OTHER=web", "X=there", "JOB=job-master-0-and-more", "EMPTY="}));
}

}  // namespace
}  // namespace muster::agent
