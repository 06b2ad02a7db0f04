#include "controllers/tainteviction/taint_eviction_controller.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

class TaintEvictionTest : public ControllerTest {
 protected:
  TaintEvictionTest() { PutNode("[]"); }
  void PutNode(std::string_view taints) {
    Put(kNodes, fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, spec: {{taints: "
                            "{}}}}}",
                            taints));
  }
  void PutPod(const std::string& name, std::string_view tolerations = "[]",
              std::string_view metadata = "") {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d{}}}, "
                           "spec: {{nodeName: n1, tolerations: {}}}}}",
                           name, metadata, tolerations));
  }
  void StartIt() { Start(std::make_unique<TaintEvictionController>()); }
  bool IsThere(const std::string& name) { return !Get(kPods, "d", name).IsNull(); }
  size_t Told(const std::string& event) const {
    const std::vector<std::string> events = Events();
    return static_cast<size_t>(std::count(events.begin(), events.end(), event));
  }
};

constexpr char kMaintenance[] = "[{key: maintenance, value: soon, effect: NoExecute}]";

TEST_F(TaintEvictionTest, AUsersTaintEvictsWhoDoesNotTolerateIt) {
  PutPod("none");
  PutPod("other", "[{key: maintenance, value: now, effect: NoExecute}]");
  PutPod("schedule-only", "[{key: maintenance, operator: Exists, effect: NoSchedule}]");
  PutPod("equal", "[{key: maintenance, value: soon, effect: NoExecute}]");
  PutPod("all", "[{operator: Exists}]");
  StartIt();
  PutNode("[{key: maintenance, value: soon, effect: NoSchedule}]");
  Settle();
  EXPECT_EQ(api_.Count(kPods), 5u);
  PutNode(kMaintenance);
  Settle();
  EXPECT_FALSE(IsThere("none"));
  EXPECT_FALSE(IsThere("other"));
  EXPECT_FALSE(IsThere("schedule-only"));
  EXPECT_TRUE(IsThere("equal"));
  EXPECT_TRUE(IsThere("all"));
  EXPECT_EQ(Told("TaintManagerEviction Marking for deletion Pod d/none"), 1u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(TaintEvictionTest, APodThatComesToATaintedNodeGoes) {
  PutNode(kMaintenance);
  StartIt();
  PutPod("late");
  Settle();
  EXPECT_FALSE(IsThere("late"));
}

TEST_F(TaintEvictionTest, ItIsSaidWhyBeforeThePodGoes) {
  PutPod("p", "[]", ", finalizers: [example.com/wait]");
  PutNode(kMaintenance);
  StartIt();
  const json::Value pod = Get(kPods, "d", "p");
  EXPECT_TRUE(pod["metadata"].Has("deletionTimestamp"));
  const json::Value& condition = pod["status"]["conditions"].At(0);
  EXPECT_EQ(condition["type"].AsString(), "DisruptionTarget");
  EXPECT_EQ(condition["status"].AsString(), "True");
  EXPECT_EQ(condition["reason"].AsString(), "DeletionByTaintManager");
  EXPECT_EQ(condition["message"].AsString(), "Taint manager: deleting due to NoExecute taint");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// Of the taints' tolerations the shortest counts; of several for one taint the first.
TEST_F(TaintEvictionTest, TheShortestTolerationCounts) {
  PutPod("p",
         "[{key: maintenance, operator: Exists, tolerationSeconds: 100}, "
         "{key: maintenance, operator: Exists, tolerationSeconds: 5}, "
         "{key: disk, operator: Exists, tolerationSeconds: 60}]");
  PutPod("zero", "[{operator: Exists, effect: NoExecute, tolerationSeconds: -3}]");
  PutPod("ages", "[{operator: Exists, tolerationSeconds: 9223372037}]");
  StartIt();
  PutNode(kMaintenance);
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(IsThere("p"));
  EXPECT_FALSE(IsThere("zero"));
  PutNode("[{key: maintenance, value: soon, effect: NoExecute}, {key: disk, effect: NoExecute}]");
  loop_.RunFor(seconds(58));
  EXPECT_TRUE(IsThere("p"));
  loop_.RunFor(seconds(3));
  EXPECT_FALSE(IsThere("p"));
  EXPECT_TRUE(IsThere("ages"));
}

TEST_F(TaintEvictionTest, WhoseTaintGoesInTimeStays) {
  PutPod("p", "[{key: maintenance, operator: Exists, tolerationSeconds: 30}]");
  StartIt();
  PutNode(kMaintenance);
  loop_.RunFor(seconds(20));
  PutNode("[]");
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(IsThere("p"));
  EXPECT_EQ(Told("TaintManagerEviction Cancelling deletion of Pod d/p"), 1u);
  PutNode(kMaintenance);  // the time begins anew
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(IsThere("p"));
  loop_.RunFor(seconds(15));
  EXPECT_FALSE(IsThere("p"));
}

// What is written down outlives the controller; what the clock says is not believed backwards.
TEST_F(TaintEvictionTest, TheTimeCountsFromTheTaint) {
  PutPod("p", "[{key: a, operator: Exists, tolerationSeconds: 300}]");
  PutNode(fmt::format("[{{key: a, effect: NoExecute, timeAdded: '{}'}}]",
                      FormatTime(loop_.Now() - seconds(290))));
  StartIt();
  EXPECT_TRUE(IsThere("p"));
  loop_.RunFor(seconds(10));
  EXPECT_FALSE(IsThere("p"));
}

TEST_F(TaintEvictionTest, AClockThatIsSetBackKeepsNobody) {
  PutPod("p", "[{key: maintenance, operator: Exists, tolerationSeconds: 30}]");
  StartIt();
  PutNode(kMaintenance);
  Settle();
  loop_.JumpClock(-hours(1));
  loop_.RunFor(seconds(70));
  EXPECT_FALSE(IsThere("p"));
}

}  // namespace
}  // namespace muster::controllers
