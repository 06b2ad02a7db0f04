#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "cluster/interruption.h"

namespace muster::cli {
namespace {

struct Nodes : FakeCluster {
  Nodes() {
    api.Put("/api/v1/nodes",
            Yaml("{metadata: {name: a, labels: {karpenter.sh/capacity-type: spot, "
                 "node.kubernetes.io/instance-type: g5.xlarge}}, spec: {}, status: {capacity: "
                 "{nvidia.com/gpu: '1'}, conditions: [{type: Ready, status: 'True'}]}}"));
    api.Put("/api/v1/nodes", Yaml("{metadata: {name: b}, spec: {unschedulable: true}, status: "
                                  "{conditions: [{type: Ready, status: 'True'}]}}"));
  }
  std::string Deadline(const char* node) {
    return (*api.Find("/api/v1/nodes", "",
                      node))["metadata"]["annotations"][cluster::kInterruptionDeadline]
        .Str();
  }
};

TEST(NodeCommand, ANoticeIsAnAnnotationAndIsTakenBack) {
  Nodes nodes;
  const Outcome given = nodes.Run("node", {"interrupt", "a", "--after", "2m"});
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_EQ(given.err, "");
  const auto deadline = ParseTime(nodes.Deadline("a"));
  ASSERT_TRUE(deadline.has_value());
  EXPECT_GE(*deadline, nodes.loop.Now() + seconds(119));
  EXPECT_LE(*deadline, nodes.loop.Now() + seconds(121));
  EXPECT_TRUE(nodes.Run("node", {"list"}).out.contains("taken back in"));
  EXPECT_EQ(nodes.Run("node", {"restore", "a"}).code, 0);
  EXPECT_EQ(nodes.Deadline("a"), "");
  EXPECT_TRUE(nodes.Run("node", {"restore", "a"}).err.contains("node a has no notice"));
}

TEST(NodeCommand, SaysWhatIsWrong) {
  Nodes nodes;
  EXPECT_TRUE(nodes.Run("node", {"interrupt", "c"})
                  .err.contains("there is no node \"c\"; the nodes are a, b"));
  EXPECT_TRUE(
      nodes.Run("node", {"interrupt", "a", "--after", "soon"}).err.contains("--after \"soon\""));
  EXPECT_TRUE(nodes.Run("node", {"interrupt", "a", "--after=-5s"}).err.contains("--after \"-5s\""));
  EXPECT_EQ(nodes.Deadline("a"), "");
  EXPECT_EQ(nodes.Run("node", {"interrupt"}).code, 2);
  EXPECT_EQ(nodes.Run("node", {"restore", "a", "--after", "5s"}).code, 2);
  // Allowed, and told.
  EXPECT_TRUE(nodes.Run("node", {"interrupt", "b"}).err.contains("no label says that b is a spot"));
  nodes.loop.RunFor(minutes(1));
  EXPECT_TRUE(nodes.Run("node", {"interrupt", "b"}).err.contains("muster node restore b"));
}

TEST(NodeCommand, ListsWhatMayBeTakenBack) {
  Nodes nodes;
  const std::string out = nodes.Run("node", {"list"}).out;
  EXPECT_TRUE(out.contains("karpenter.sh/capacity-type=spot"));
  EXPECT_TRUE(out.contains("g5.xlarge"));
  EXPECT_TRUE(out.contains("cordoned"));
}

}  // namespace
}  // namespace muster::cli
