#include "cli/describe_text.h"

#include <gtest/gtest.h>

#include "cli/cli_testing.h"

namespace muster::cli {
namespace {

std::string Described(const std::string& yaml) { return DescribeObject(Yaml(yaml), Time()); }

TEST(DescribeText, NamesOfResourcesAndKeysOfDataStayAsTheyAre) {
  const std::string node = Described(
      "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: '4', "
      "nvidia.com/gpu: '2'}}}");
  for (const char* part : {"Capacity:", "\n  cpu:  ", "\n  nvidia.com/gpu: 2\n"}) {
    EXPECT_NE(node.find(part), std::string::npos) << part << " in\n" << node;
  }
  const std::string map =
      Described("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {app.conf: x}}");
  EXPECT_NE(map.find("\nData:"), std::string::npos) << map;
  EXPECT_NE(map.find("\n  app.conf: "), std::string::npos) << map;
}

TEST(DescribeText, FieldsBecomeWords) {
  const std::string job = Described(
      "{apiVersion: v1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 3, minResources: "
      "{nvidia.com/gpu: '3'}, selector: {matchLabels: {runOnce: 'yes'}}}}");
  EXPECT_NE(job.find("\n  Min Member: "), std::string::npos) << job;
  EXPECT_NE(job.find("\n      runOnce: "), std::string::npos) << job;
}

}  // namespace
}  // namespace muster::cli
