#include "controllers/podgc/pod_gc_controller.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

class PodGcTest : public ControllerTest {
 protected:
  PodGcTest() { Put(kNodes, "{apiVersion: v1, kind: Node, metadata: {name: n1}}"); }
  void PutPod(const std::string& name, std::string_view node, std::string_view phase,
              std::string_view metadata = "") {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d{}}}, "
                           "spec: {{nodeName: '{}'}}, status: {{phase: {}}}}}",
                           name, metadata, node, phase));
  }
  void StartIt(size_t max_terminated = kMaxTerminatedPods) {
    Start(std::make_unique<PodGcController>(max_terminated));
  }
  bool IsThere(const std::string& name) { return !Get(kPods, "d", name).IsNull(); }
};

TEST_F(PodGcTest, FinishedPodsBeyondTheNumberGoTheOldestFirst) {
  const auto created = [](int day) {
    return fmt::format(", creationTimestamp: '2026-01-0{}T00:00:00Z'", day);
  };
  PutPod("old", "n1", "Succeeded", created(1));
  PutPod("middle", "n1", "Failed", created(2));
  PutPod("new", "n1", "Succeeded", created(3));
  PutPod("runs", "n1", "Running", created(1));
  Put(kPods,
      "{metadata: {name: evicted, namespace: d, creationTimestamp: '2026-01-04T00:00:00Z'}, "
      "spec: {nodeName: n1}, status: {phase: Failed, reason: Evicted}}");
  StartIt(2);
  EXPECT_FALSE(IsThere("evicted"));
  EXPECT_FALSE(IsThere("old"));
  EXPECT_TRUE(IsThere("middle"));
  EXPECT_TRUE(IsThere("new"));
  EXPECT_TRUE(IsThere("runs"));
  PutPod("newest", "n1", "Failed", created(5));
  loop_.RunFor(kPodGcPeriod);
  EXPECT_FALSE(IsThere("middle"));
  EXPECT_EQ(api_.Count(kPods), 3u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(PodGcTest, PodsOfARemovedNodeGoAfterTheQuarantine) {
  PutPod("runs", "n1", "Running", ", finalizers: [example.com/wait]");
  PutPod("ended", "n1", "Succeeded");
  StartIt();
  api_.Remove(kNodes, "", "n1");
  loop_.RunFor(kNodeQuarantine - seconds(1));
  EXPECT_EQ(Get(kPods, "d", "runs")["status"]["phase"].AsString(), "Running");
  loop_.RunFor(seconds(2));
  EXPECT_FALSE(IsThere("ended"));
  const json::Value pod = Get(kPods, "d", "runs");
  EXPECT_TRUE(pod["metadata"].Has("deletionTimestamp"));
  EXPECT_EQ(pod["status"]["phase"].AsString(), "Failed");
  const json::Value& condition = pod["status"]["conditions"].At(0);
  EXPECT_EQ(condition["type"].AsString(), "DisruptionTarget");
  EXPECT_EQ(condition["reason"].AsString(), "DeletionByPodGC");
  EXPECT_EQ(condition["message"].AsString(), "PodGC: node no longer exists");
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::count(events.begin(), events.end(),
                       "DeletionByPodGC Removing Pod d/runs: its node n1 does not exist"),
            1);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(PodGcTest, ANodeThatComesBackInTimeKeepsItsPods) {
  PutPod("p", "n1", "Running");
  StartIt();
  api_.Remove(kNodes, "", "n1");
  loop_.RunFor(kNodeQuarantine - seconds(5));
  Put(kNodes, "{apiVersion: v1, kind: Node, metadata: {name: n1}}");
  Settle();
  api_.Remove(kNodes, "", "n1");
  loop_.RunFor(kNodeQuarantine - seconds(5));
  EXPECT_TRUE(IsThere("p"));
  loop_.RunFor(seconds(10));
  EXPECT_FALSE(IsThere("p"));
}

// The cache may be behind.
TEST_F(PodGcTest, TheServerIsAskedWhetherTheNodeIsGone) {
  PutPod("p", "n2", "Running");
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target != "/api/v1/nodes/n2") return true;
    writer->Send({200, {}, R"({"kind":"Node","metadata":{"name":"n2"}})"});
    return false;
  };
  StartIt();
  loop_.RunFor(2 * kNodeQuarantine);
  EXPECT_EQ(Requests("GET /api/v1/nodes/n2"), 1u);
  EXPECT_TRUE(IsThere("p"));
}

TEST_F(PodGcTest, APodThatNeverHadANodeDoesNotStayTerminating) {
  constexpr char kDeleting[] =
      ", deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30";
  PutPod("waits", "", "Pending", kDeleting);
  PutPod("held", "", "Pending",
         ", finalizers: [example.com/wait], deletionTimestamp: '2026-01-01T00:00:00Z', "
         "deletionGracePeriodSeconds: 0");
  PutPod("stays", "", "Pending");
  PutPod("bound", "n1", "Running", kDeleting);
  StartIt();
  EXPECT_FALSE(IsThere("waits"));
  EXPECT_EQ(Get(kPods, "d", "held")["status"]["phase"].AsString(), "Failed");
  EXPECT_TRUE(IsThere("stays"));
  EXPECT_TRUE(IsThere("bound"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(PodGcTest, OfANodeThatIsDeclaredDeadTerminatingPodsGo) {
  const auto put_node = [this](std::string_view ready) {
    Put(kNodes, fmt::format("{{metadata: {{name: n1}}, spec: {{taints: [{{key: "
                            "node.kubernetes.io/out-of-service, effect: NoExecute}}]}}, status: "
                            "{{conditions: [{{type: Ready, status: '{}'}}]}}}}",
                            ready));
  };
  constexpr char kDeleting[] =
      ", deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30";
  PutPod("terminating", "n1", "Running", kDeleting);
  PutPod("stays", "n1", "Running");
  put_node("True");
  StartIt();
  EXPECT_TRUE(IsThere("terminating"));
  put_node("Unknown");
  Settle();
  EXPECT_FALSE(IsThere("terminating"));
  EXPECT_TRUE(IsThere("stays"));
  PutPod("later", "n1", "Running", kDeleting);
  Settle();
  EXPECT_FALSE(IsThere("later"));
}

}  // namespace
}  // namespace muster::controllers
