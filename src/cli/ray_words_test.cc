#include "cli/ray_words.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::cli {
namespace {

json::Value Yaml(std::string_view text) { return json::ParseYaml(text)->at(0); }

TEST(RayWords, OfAClusterSayWhetherItsHeadAndWorkersAreReady) {
  json::Value cluster = Yaml(R"(
kind: RayCluster
metadata: {name: c}
status:
  desiredWorkerReplicas: 2
  readyWorkerReplicas: 1
  conditions: [{type: HeadPodReady, status: "False", reason: Unschedulable, message: no node}]
)");
  EXPECT_EQ(SentenceForRay(cluster), "waits for its head, 1 of 2 workers are ready: no node");
  EXPECT_EQ(RayStateOf(cluster), "Starting");
  EXPECT_EQ(RayClusterOf(cluster), "c");
  cluster =
      cluster.SetPath({"status", "conditions"}, Yaml("[{type: HeadPodReady, status: 'True'}]"));
  EXPECT_EQ(SentenceForRay(cluster), "has its head, 1 of 2 workers are ready");
  cluster = cluster.SetPath({"status", "state"}, "ready");
  EXPECT_EQ(SentenceForRay(cluster), "is ready: 1 of 2 workers are ready");
  EXPECT_EQ(RayStateOf(Yaml("{kind: RayCluster}")), "New");
}

TEST(RayWords, OfAJobSayWhatRaySaysAndWhyItFailed) {
  const json::Value job = Yaml(R"(
kind: RayJob
status: {rayClusterName: c, jobDeploymentStatus: Failed, jobStatus: FAILED, message: exit code 3}
)");
  EXPECT_EQ(SentenceForRay(job), "is Failed, Ray says FAILED: exit code 3");
  EXPECT_TRUE(IsRayOver(job));
  EXPECT_EQ(RayClusterOf(job), "c");
}

TEST(RayWords, OfAServiceSayHowItsApplicationsAre) {
  const json::Value service = Yaml(R"(
kind: RayService
status:
  numServeEndpoints: 1
  serviceStatus: Running
  activeServiceStatus:
    rayClusterName: a
    applicationStatuses: {x: {status: UNHEALTHY, message: gone}}
  pendingServiceStatus: {rayClusterName: b}
)");
  EXPECT_EQ(SentenceForRay(service), "serves from 1 pod; x is UNHEALTHY: gone");
  EXPECT_EQ(RayClusterOf(service), "a");
  EXPECT_EQ(SentenceForRay(Yaml("{kind: RayService}")), "does not serve yet");
}

}  // namespace
}  // namespace muster::cli
