#include "schema/pod_qos.h"

#include <string>

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

TEST(PodQos, ClassIsUpstreams) {
  const auto qos = [](const std::string& resources) {
    return QosClassOf(*json::Parse(R"({"spec":{"containers":[{"resources":)" + resources + "}]}}"));
  };
  EXPECT_EQ(qos("{}"), "BestEffort");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"0"}})"), "BestEffort");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":1,"memory":"1Gi"},"requests":{"cpu":"1000m"}})"), "Guaranteed");
  EXPECT_EQ(
      qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m","memory":"1Gi"}})"),
      "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"nvidia.com/gpu":"1"}})"), "BestEffort");
}

TEST(PodQos, CountsInitContainers) {
  const json::Value pod =
      *json::Parse(R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":"1Gi"}}}],)"
                   R"("initContainers":[{}]}})");
  EXPECT_EQ(QosClassOf(pod), "Burstable");
}

}  // namespace
}  // namespace muster::schema
