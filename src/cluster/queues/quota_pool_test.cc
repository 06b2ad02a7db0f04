#include "cluster/queues/quota_pool.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "json/parse.h"

namespace muster::cluster {
namespace {

json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// Eight CPUs on demand, and four on spot nodes, which are tainted; four GPUs.
QuotaPool Pool() {
  return ToQuotaPool(Yaml(R"(
metadata: {name: gpus}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: on-demand, resources: [{name: cpu, nominalQuota: 8}]}
    - {name: spot, resources: [{name: cpu, nominalQuota: 4}]}
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}
)"));
}

Flavors AllFlavors() {
  Flavors flavors;
  for (const char* yaml : {
           "{metadata: {name: on-demand}, spec: {nodeLabels: {type: on-demand}}}",
           "{metadata: {name: spot}, spec: {nodeLabels: {type: spot}, nodeTaints: "
           "[{key: spot, value: 'yes', effect: NoSchedule}]}}",
           "{metadata: {name: a100}, spec: {nodeLabels: {gpu: a100}}}",
       }) {
    Flavor flavor = ToFlavor(Yaml(yaml));
    flavors.emplace(flavor.name, flavor);
  }
  return flavors;
}

// "main 2 {cpu: 1}" with more of the pod's spec.
std::vector<PodSet> Pods(const char* requests, int64_t count = 1, const char* more = "{}") {
  json::Value spec = Yaml(more).Set(
      "containers",
      json::List(
          {json::Obj({{"name", "c"}, {"resources", json::Obj({{"requests", Yaml(requests)}})}})}));
  return ToPodSets(json::Obj(
      {{"spec", json::Obj({{"podSets", json::List({json::Obj(
                                           {{"name", "main"},
                                            {"count", count},
                                            {"template", json::Obj({{"spec", spec}})}})})}})}}));
}

std::string WhyNot(const std::vector<PodSet>& pods, const QuotaUsage& used = {}) {
  const auto assigned = AssignFlavors(Pool(), AllFlavors(), used, pods);
  return assigned.has_value() ? "" : assigned.error().message;
}

TEST(QuotaPool, GivesEachResourceAFlavor) {
  const auto assigned =
      AssignFlavors(Pool(), AllFlavors(), {}, Pods("{cpu: 1, nvidia.com/gpu: 1}", 2));
  ASSERT_TRUE(assigned.has_value());
  const PodSetAssignment& pods = (*assigned)[0];
  EXPECT_EQ(pods.flavors.at("cpu"), "on-demand");
  EXPECT_EQ(pods.flavors.at("nvidia.com/gpu"), "a100");
  EXPECT_EQ(AmountOf(pods.usage, "cpu"), 2000);
  EXPECT_EQ(AmountOf(pods.usage, "nvidia.com/gpu"), 2);
  EXPECT_EQ(AmountOf(pods.usage, "pods"), 0) << "the pool does not count pods";
}

TEST(QuotaPool, AnAdmissionSaysAgainWhatIsReserved) {
  const auto assigned =
      AssignFlavors(Pool(), AllFlavors(), {}, Pods("{cpu: 1500m, nvidia.com/gpu: 1}", 2));
  ASSERT_TRUE(assigned.has_value());
  const json::Value admission = AdmissionOf(Pool(), *assigned);
  EXPECT_EQ(admission["clusterQueue"].AsString(), "gpus");
  EXPECT_EQ(admission["podSetAssignments"].At(0)["resourceUsage"]["cpu"].AsString(), "3");
  const json::Value workload = json::Obj({{"status", json::Obj({{"admission", admission}})}});
  EXPECT_EQ(ReservedBy(workload), UsageOf(*assigned));
  EXPECT_TRUE(ReservedBy(json::Obj({})).empty());
}

TEST(QuotaPool, SaysWhyInUpstreamsWords) {
  EXPECT_EQ(WhyNot(Pods("{nvidia.com/gpu: 1}", 3), {{{"a100", "nvidia.com/gpu"}, 2}}),
            "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu "
            "in flavor a100, 1 more needed");
  EXPECT_EQ(WhyNot(Pods("{nvidia.com/gpu: 1}", 5)),
            "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in "
            "flavor a100, previously considered podsets requests (0) + current podset request (5) "
            "> maximum capacity (4)");
  EXPECT_EQ(WhyNot(Pods("{memory: 1Gi}")),
            "couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue");
  EXPECT_EQ(WhyNot(Pods("{cpu: 3}"), {{{"on-demand", "cpu"}, 6000}}),
            "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor "
            "on-demand, 1 more needed, untolerated taint {spot yes NoSchedule <nil>} in flavor "
            "spot");
}

TEST(QuotaPool, TriesTheNextFlavorWhereThePodsMayGo) {
  const char* tolerant = "{tolerations: [{key: spot, operator: Exists}]}";
  const QuotaUsage used = {{{"on-demand", "cpu"}, 6000}};
  const auto assigned = AssignFlavors(Pool(), AllFlavors(), used, Pods("{cpu: 3}", 1, tolerant));
  ASSERT_TRUE(assigned.has_value());
  EXPECT_EQ((*assigned)[0].flavors.at("cpu"), "spot");
  // A selector of a label that flavors have picks among them; of any other it does not count.
  const char* on_spot =
      "{nodeSelector: {type: spot, zone: z}, tolerations: [{key: spot, operator: Exists}]}";
  const auto chosen = AssignFlavors(Pool(), AllFlavors(), {}, Pods("{cpu: 3}", 1, on_spot));
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ((*chosen)[0].flavors.at("cpu"), "spot");
  EXPECT_NE(WhyNot(Pods("{cpu: 3}", 1, "{nodeSelector: {type: other}}"))
                .find("flavor on-demand doesn't match node affinity"),
            std::string::npos);
  const char* by_affinity = R"({affinity: {nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
      {matchExpressions: [{key: type, operator: In, values: [none]}]}]}}}})";
  EXPECT_NE(WhyNot(Pods("{cpu: 3}", 1, by_affinity)), "");
}

TEST(QuotaPool, AMissingFlavorIsNoFlavor) {
  Flavors flavors = AllFlavors();
  flavors.erase("a100");
  const auto assigned = AssignFlavors(Pool(), flavors, {}, Pods("{nvidia.com/gpu: 1}"));
  ASSERT_FALSE(assigned.has_value());
  EXPECT_EQ(assigned.error().message,
            "couldn't assign flavors to pod set main: flavor a100 not found");
}

TEST(QuotaPool, SetsOfOneWorkloadShareTheQuota) {
  std::vector<PodSet> pods = Pods("{nvidia.com/gpu: 1}", 3);
  pods.push_back(Pods("{nvidia.com/gpu: 2}")[0]);
  pods[1].name = "second";
  EXPECT_EQ(WhyNot(pods),
            "couldn't assign flavors to pod set second: insufficient quota for nvidia.com/gpu in "
            "flavor a100, previously considered podsets requests (3) + current podset request (2) "
            "> maximum capacity (4)");
}

TEST(QuotaPool, TellsWhatNeverFits) {
  const QuotaUsage used = {{{"a100", "nvidia.com/gpu"}, 4}};
  EXPECT_FALSE(
      AssignFlavors(Pool(), AllFlavors(), used, Pods("{nvidia.com/gpu: 4}")).error().never_fits);
  EXPECT_TRUE(
      AssignFlavors(Pool(), AllFlavors(), used, Pods("{nvidia.com/gpu: 5}")).error().never_fits);
}

TEST(QuotaPool, NamesThoseWhoseEndWouldAdmit) {
  const std::pair<std::string, std::string> gpu{"a100", "nvidia.com/gpu"};
  const std::pair<std::string, std::string> cpu{"on-demand", "cpu"};
  // Only the first and the third make room; the second has none of it.
  const std::vector<QuotaUsage> holders = {{{gpu, 1}}, {{cpu, 1000}}, {{gpu, 2}}, {{gpu, 1}}};
  const auto whose = WhoseEndWouldAdmit(Pool(), AllFlavors(), holders, Pods("{nvidia.com/gpu: 3}"));
  ASSERT_TRUE(whose.has_value());
  EXPECT_EQ(*whose, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(WhoseEndWouldAdmit(Pool(), AllFlavors(), holders, Pods("{nvidia.com/gpu: 2}")),
            (std::vector<size_t>{2}))
      << "the first need not end";
  EXPECT_FALSE(WhoseEndWouldAdmit(Pool(), AllFlavors(), holders, Pods("{nvidia.com/gpu: 5}")));
}

TEST(QuotaPool, PriorityAndAgeAreTheTurn) {
  const auto workload = [](const char* name, int priority, const char* created) {
    return Yaml(
        fmt::format("{{metadata: {{name: {}, creationTimestamp: '{}'}}, spec: {{priority: {}}}}}",
                    name, created, priority));
  };
  const json::Value old = workload("old", 0, "2026-01-01T00:00:00Z");
  const json::Value young = workload("young", 0, "2026-01-02T00:00:00Z");
  const json::Value high = workload("high", 5, "2026-01-03T00:00:00Z");
  const json::Value twin = workload("a-twin", 0, "2026-01-02T00:00:00Z");
  std::vector<const json::Value*> turn = {&young, &high, &twin, &old};
  SortByTurn(turn);
  EXPECT_EQ(turn, (std::vector<const json::Value*>{&high, &old, &twin, &young}));
}

}  // namespace
}  // namespace muster::cluster
