#include "apiserver/kinds/limit_ranger.h"

#include <gtest/gtest.h>

#include <string>

#include "apiserver/apiserver_testing.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kClaims = "/api/v1/namespaces/default/persistentvolumeclaims";

class LimitRangerTest : public testing::Test {
 protected:
  void Range(const std::string& name, const std::string& items) {
    const auto writer =
        test_.Send("POST", "/api/v1/namespaces/default/limitranges",
                   R"({"metadata":{"name":")" + name + R"("},"spec":{"limits":[)" + items + "]}}");
    ASSERT_EQ(writer->status, 201) << writer->body;
    EXPECT_EQ(writer->headers.Get("Warning"), "") << "it is acted on";
  }
  static std::string Container(const std::string& resources, const std::string& name = "c") {
    return R"({"name":")" + name + R"(","image":"i","resources":)" + resources + "}";
  }
  json::Value Pod(const std::string& containers, const std::string& more = "") {
    const auto writer = test_.Send("POST", kPods,
                                   R"({"metadata":{"generateName":"p-"},"spec":{"containers":[)" +
                                       containers + "]" + more + "}}");
    status_ = writer->status;
    return TestServer::Json(*writer);
  }
  // What is said of the pod after "is forbidden: ".
  std::string Refusal(const std::string& containers, const std::string& more = "") {
    const std::string message = Pod(containers, more)["message"].Str();
    EXPECT_EQ(status_, 403) << message;
    const std::string start = "is forbidden: ";
    const size_t at = message.find(start);
    return at == std::string::npos ? message : message.substr(at + start.size());
  }
  std::string Claim(const std::string& size) {
    const auto writer = test_.Send("POST", kClaims,
                                   R"({"metadata":{"name":"v"},"spec":{"accessModes":
        ["ReadWriteOnce"],"resources":{"requests":{"storage":")" +
                                       size + "\"}}}}");
    status_ = writer->status;
    return TestServer::Json(*writer)["message"].Str();
  }

  TestServer test_;
  int status_ = 0;
};

TEST_F(LimitRangerTest, FillsWhatContainersDoNotSay) {
  Range("l", R"({"type":"Container","default":{"cpu":"2","memory":"1Gi"},
                 "defaultRequest":{"cpu":"500m","memory":"512Mi"}})");
  const json::Value pod =
      Pod(Container(R"({"requests":{"memory":"1Gi"}})"),
          R"(,"initContainers":[{"name":"i","image":"i","resources":{"limits":{"cpu":"1"}}}])");
  ASSERT_EQ(status_, 201);
  const json::Value& resources = pod["spec"]["containers"].At(0)["resources"];
  EXPECT_EQ(resources["requests"]["cpu"].AsString(), "500m");
  EXPECT_EQ(resources["requests"]["memory"].AsString(), "1Gi");
  EXPECT_EQ(resources["limits"]["cpu"].AsString(), "2");
  EXPECT_EQ(resources["limits"]["memory"].AsString(), "1Gi");
  // Its request is its limit, as without the range.
  const json::Value& init = pod["spec"]["initContainers"].At(0)["resources"];
  EXPECT_EQ(init["requests"]["cpu"].AsString(), "1");
  EXPECT_EQ(init["requests"]["memory"].AsString(), "512Mi");
  EXPECT_EQ(pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"].AsString(),
            "LimitRanger plugin set: cpu request for container c; cpu, memory limit for container "
            "c; memory request for init container i; memory limit for init container i");
  EXPECT_EQ(pod["status"]["qosClass"].AsString(), "Burstable");
}

TEST_F(LimitRangerTest, RefusesContainersOutsideTheBounds) {
  Range("l", R"({"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"2"},
                 "default":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"4"}})");
  EXPECT_EQ(Refusal(Container(R"({"requests":{"cpu":"50m"},"limits":{"cpu":"100m"}})")),
            "minimum cpu usage per Container is 100m, but request is 50m");
  EXPECT_EQ(Refusal(Container(R"({"requests":{"cpu":"1"},"limits":{"cpu":"3"}})")),
            "maximum cpu usage per Container is 2, but limit is 3");
  EXPECT_EQ(Refusal(Container(R"({"requests":{"cpu":"200m"},"limits":{"cpu":"1"}})")),
            "cpu max limit to request ratio per Container is 4, but provided ratio is 5.000000");
  EXPECT_EQ(Refusal(Container(R"({"requests":{"cpu":"20m"},"limits":{"cpu":"5"}})")),
            "[minimum cpu usage per Container is 100m, but request is 20m, maximum cpu usage per "
            "Container is 2, but limit is 5, cpu max limit to request ratio per Container is 4, "
            "but provided ratio is 250.000000]");
  Pod(Container(R"({"requests":{"cpu":"500m"},"limits":{"cpu":"2"}})"));
  EXPECT_EQ(status_, 201);
}

TEST_F(LimitRangerTest, RefusesPodsOutsideTheBounds) {
  Range("l", R"({"type":"Pod","min":{"memory":"10Mi"},"max":{"cpu":"2"}})");
  EXPECT_EQ(Refusal(Container("{}")),
            "[minimum memory usage per Pod is 10Mi.  No request is specified, maximum cpu usage "
            "per Pod is 2.  No limit is specified]");
  const std::string one = R"({"limits":{"cpu":"1","memory":"6Mi"}})";
  EXPECT_EQ(Refusal(Container(one)), "minimum memory usage per Pod is 10Mi, but request is 6Mi");
  Pod(Container(one) + "," + Container(one, "d"));
  EXPECT_EQ(status_, 201);
  // A sidecar counts beside the containers, an init container beside sidecars before it.
  const std::string sidecar =
      R"({"name":"s","image":"i","restartPolicy":"Always","resources":)" + one + "}";
  EXPECT_EQ(
      Refusal(Container(one) + "," + Container(one, "d"), ",\"initContainers\":[" + sidecar + "]"),
      "maximum cpu usage per Pod is 2, but limit is 3");
  const std::string init =
      R"({"name":"i","image":"i","resources":{"limits":{"cpu":"2","memory":"6Mi"}}})";
  Pod(Container(one) + "," + Container(one, "d"), ",\"initContainers\":[" + init + "]");
  EXPECT_EQ(status_, 201);
  EXPECT_EQ(Refusal(Container(one), ",\"initContainers\":[" + sidecar + "," + init + "]"),
            "maximum cpu usage per Pod is 2, but limit is 3");
}

TEST_F(LimitRangerTest, RefusesClaimsOutsideTheBounds) {
  Range("l", R"({"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},
                 "max":{"storage":"10Gi"}})");
  EXPECT_EQ(Claim("1Mi"),
            "persistentvolumeclaims \"v\" is forbidden: minimum storage usage per "
            "PersistentVolumeClaim is 1Gi, but request is 1Mi");
  EXPECT_EQ(Claim("11Gi"),
            "persistentvolumeclaims \"v\" is forbidden: maximum storage usage per "
            "PersistentVolumeClaim is 10Gi, but request is 11Gi");
  Claim("5Gi");
  EXPECT_EQ(status_, 201);
}

TEST_F(LimitRangerTest, LooksAtNewObjectsOfItsNamespaceOnly) {
  const json::Value old = Pod(Container(R"({"limits":{"cpu":"9"}})"));
  Range("l", R"({"type":"Container","max":{"cpu":"2"}})");
  const std::string name = old["metadata"]["name"].Str();
  const auto labelled =
      test_.Send("PUT", std::string(kPods) + "/" + name,
                 json::Write(old.SetPath({"metadata", "labels"}, json::Obj({{"a", "b"}}))));
  EXPECT_EQ(labelled->status, 200) << labelled->body;
  test_.Send("POST", "/api/v1/namespaces", R"({"metadata":{"name":"other"}})");
  test_.Send("POST", "/api/v1/namespaces/other/serviceaccounts",
             R"({"metadata":{"name":"default"}})");
  const auto elsewhere = test_.Send("POST", "/api/v1/namespaces/other/pods",
                                    R"({"metadata":{"name":"p"},"spec":{"containers":[)" +
                                        Container(R"({"limits":{"cpu":"9"}})") + "]}}");
  EXPECT_EQ(elsewhere->status, 201);
  EXPECT_FALSE(TestServer::Json(*elsewhere)["metadata"].Has("annotations"));
}

}  // namespace
}  // namespace muster::apiserver
