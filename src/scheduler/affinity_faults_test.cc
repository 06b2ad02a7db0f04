#include "scheduler/affinity_faults.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

cluster::NodeAffinity AffinityOf(const std::string& selector, const std::string& terms) {
  return cluster::ToNodeAffinity(
      json::ParseYaml("{nodeSelector: {" + selector +
                      "}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
                      " {nodeSelectorTerms: [" +
                      terms + "]}}}}")
          ->front());
}

struct Row {
  const char* selector;
  const char* terms;
  const char* contradiction;  // behind "no node can ever match: it requires "
};

TEST(ContradictionIn, NamesRequirementsThatExcludeEachOther) {
  const Row rows[] = {
      {"",
       "{matchExpressions: [{key: a, operator: In, values: [x]}, {key: a, operator: In, values: "
       "[w]}]}",
       "a In [x] and a In [w]"},
      {"a: x", "{matchExpressions: [{key: a, operator: In, values: [w, z]}]}",
       "a In [x] and a In [w, z]"},
      {"",
       "{matchExpressions: [{key: a, operator: In, values: [x, w]}, {key: a, operator: NotIn, "
       "values: [x]}, {key: a, operator: NotIn, values: [w]}]}",
       "a In [x, w], a NotIn [x] and a NotIn [w]"},
      {"", "{matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}",
       "a Exists and a DoesNotExist"},
      {"",
       "{matchExpressions: [{key: a, operator: Gt, values: ['4']}, {key: a, operator: Lt, "
       "values: ['5']}]}",
       "a Gt [4] and a Lt [5]"},
      {"",
       "{matchExpressions: [{key: a, operator: In, values: ['3', '4']}, {key: a, operator: Gt, "
       "values: ['4']}]}",
       "a In [3, 4] and a Gt [4]"},
      {"",
       "{matchFields: [{key: metadata.name, operator: In, values: [n0]}, {key: metadata.name, "
       "operator: In, values: [n1]}]}",
       "metadata.name In [n0] and metadata.name In [n1]"},
      // Any term will do.
      {"",
       "{matchExpressions: [{key: a, operator: In, values: [x]}, {key: a, operator: In, values: "
       "[w]}]}, {matchExpressions: [{key: a, operator: Exists}]}",
       ""},
      {"a: x", "{matchExpressions: [{key: a, operator: In, values: [w, x]}]}", ""},
      {"a: x", "{matchExpressions: [{key: b, operator: In, values: [w]}]}", ""},
      {"",
       "{matchExpressions: [{key: a, operator: NotIn, values: [x]}, {key: a, operator: "
       "DoesNotExist}]}",
       ""},
      {"",
       "{matchExpressions: [{key: a, operator: Gt, values: ['4']}, {key: a, operator: Lt, "
       "values: ['6']}]}",
       ""},
      {"", "", ""},
  };
  for (const Row& row : rows) {
    const std::string expected =
        *row.contradiction == '\0'
            ? ""
            : std::string("no node can ever match: it requires ") + row.contradiction;
    EXPECT_EQ(ContradictionIn(AffinityOf(row.selector, row.terms)), expected) << row.terms;
  }
}

TEST(ContradictionIn, ShowsAFewValues) {
  std::string values;
  for (int i = 0; i < 1'000; ++i) values += (i == 0 ? "v" : ", v") + std::to_string(i);
  EXPECT_EQ(ContradictionIn(AffinityOf(
                "a: x", "{matchExpressions: [{key: a, operator: In, values: [" + values + "]}]}")),
            "no node can ever match: it requires a In [x] and a In [v0, v1, v2, v3 and 996 more]");
}

TEST(UnmetRequirement, NamesTheFirstThatNoNodeMeets) {
  TestCluster c;
  cluster::NodeInfo node = c.MakeNode("n0", {{"cpu", 1000}});
  node.labels = {{"zone", "a"}};
  c.cache.UpsertNode(node);
  const cluster::ClusterSnapshot& snapshot = c.cache.snapshot();
  EXPECT_EQ(UnmetRequirement(AffinityOf("zone: a", ""), snapshot), "");
  EXPECT_EQ(UnmetRequirement(AffinityOf("'zone': a, gpu: h100", ""), snapshot),
            "no node has gpu In [h100]");
  EXPECT_EQ(UnmetRequirement(
                AffinityOf("", "{matchFields: [{key: metadata.name, operator: In, values: [n7]}]}"),
                snapshot),
            "no node has metadata.name In [n7]");
}

// As the whole sentence.
TEST(AffinityFault, IsToldAtOnce) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 4000}});
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  pod.constraints.affinity =
      AffinityOf("a: x", "{matchExpressions: [{key: a, operator: In, values: [w]}]}");
  c.AddPod(pod);
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. It does "
            "not fit even an empty cluster: no node can ever match: it requires a In [x] and a In "
            "[w].");
}

}  // namespace
}  // namespace muster::scheduler
