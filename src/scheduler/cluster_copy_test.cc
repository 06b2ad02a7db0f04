#include "scheduler/cluster_copy.h"

#include <string>

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::scheduler {
namespace {

json::Value ListOf(const std::string& yaml) { return json::ParseYaml("items:" + yaml)->at(0); }

std::string Pod(const std::string& name, const std::string& node, int64_t priority) {
  return R"(
- metadata: {namespace: default, name: )" +
         name + ", uid: uid-" + name + ", labels: {app: " + name + R"(}}
  spec:
    schedulerName: default-scheduler
    nodeName: ')" +
         node + "'\n    priority: " + std::to_string(priority) + R"(
    containers: [{name: main, resources: {requests: {cpu: '1'}}}]
  status: {phase: )" +
         (node.empty() ? "Pending" : "Running") + "}";
}

ClusterLists Lists() {
  ClusterLists lists;
  lists.nodes = ListOf(R"(
- {metadata: {name: n1}, status: {allocatable: {cpu: '1', pods: '9'}}}
- {metadata: {name: n2}, status: {allocatable: {cpu: '1', pods: '9'}}})");
  lists.pods = ListOf(Pod("a", "n1", 0) + Pod("b", "n2", 0) + Pod("high", "", 10));
  return lists;
}

std::vector<std::string> PreemptedBy(const ClusterLists& lists) {
  const UnitAnswer answer =
      ClusterCopy(lists, {"default-scheduler"}).Ask({false, {"default", "high"}});
  EXPECT_TRUE(answer.waits && answer.infeasible.has_value());
  return answer.infeasible->room_is_made ? answer.infeasible->preempts
                                         : std::vector<std::string>{"nobody"};
}

TEST(ClusterCopy, SaysWhomAPodWouldPreemptAndSeesBudgets) {
  ClusterLists lists = Lists();
  EXPECT_EQ(PreemptedBy(lists), std::vector<std::string>{"pod default/a"});
  const std::string budget = R"(
- metadata: {namespace: default, name: keep}
  spec: {selector: {matchLabels: {app: a}}}
  status: {disruptionsAllowed: )";
  lists.disruption_budgets = ListOf(budget + "0}");
  EXPECT_EQ(PreemptedBy(lists), std::vector<std::string>{"pod default/b"});
  lists.disruption_budgets = ListOf(budget + "0, disruptedPods: {a: '2026-01-01T00:00:00Z'}}");
  EXPECT_TRUE(PreemptedBy(lists).empty()) << "a leaves anyway";
}

}  // namespace
}  // namespace muster::scheduler
