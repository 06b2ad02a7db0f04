#include "controllers/resourcequota/resource_quota_controller.h"

#include "base/rng.h"
#include "controllers/controller_test_base.h"
#include "json/write.h"

namespace muster::controllers {
namespace {

constexpr char kQuotaCollection[] = "/api/v1/resourcequotas";

class ResourceQuotaTest : public ControllerTest {
 protected:
  void Quota(const std::string& spec, const std::string& name = "q") {
    Put(kQuotaCollection, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: " + name +
                              ", namespace: d}, spec: " + spec + "}");
  }
  void Pod(const std::string& name, const std::string& cpu, const std::string& phase = "Running",
           const std::string& metadata = "") {
    Put(kPods, "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: d, uid: u-" +
                   name + metadata + "}, spec: {containers: [{name: c, resources: {requests: " +
                   "{cpu: " + cpu + "}}}]}, status: {phase: " + phase + "}}");
  }
  void StartIt() { Start(std::make_unique<ResourceQuotaController>(discovery_)); }
  std::string Status(const std::string& name = "q") {
    const json::Value& status = Get(kQuotaCollection, "d", name)["status"];
    return schema::ToText(schema::AmountsOf(status["used"])) + " of " +
           schema::ToText(schema::AmountsOf(status["hard"]));
  }
};

TEST_F(ResourceQuotaTest, SaysWhatIsTaken) {
  Quota("{hard: {pods: 5, cpu: 4, nvidia.com/gpu: 1, count/configmaps: 2}}");
  Pod("a", "1");
  Pod("b", "500m", "Succeeded");
  Put(kConfigMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: d}}");
  Put(kConfigMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}");
  StartIt();
  EXPECT_EQ(Status(),
            "count/configmaps=1,cpu=1,pods=1 of count/configmaps=2,cpu=4,nvidia.com/gpu=1,pods=5");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(ResourceQuotaTest, FollowsWhatHappens) {
  Quota("{hard: {pods: 5, cpu: 4}}");
  StartIt();
  EXPECT_EQ(Status(), "cpu=0,pods=0 of cpu=4,pods=5");
  Pod("a", "1");
  Pod("b", "2");
  Settle();
  EXPECT_EQ(Status(), "cpu=3,pods=2 of cpu=4,pods=5");
  Pod("a", "1", "Failed");
  Settle();
  EXPECT_EQ(Status(), "cpu=2,pods=1 of cpu=4,pods=5");
  api_.Remove(kPods, "d", "a");
  api_.Remove(kPods, "d", "b");
  Settle();
  EXPECT_EQ(Status(), "cpu=0,pods=0 of cpu=4,pods=5");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(ResourceQuotaTest, AChangedQuotaCountsAnewAndAStrangersStatusIsPutRight) {
  Pod("a", "1");
  Quota("{hard: {pods: 5}}");
  StartIt();
  EXPECT_EQ(Status(), "pods=1 of pods=5");
  Quota("{hard: {cpu: 3}}");
  Settle();
  EXPECT_EQ(Status(), "cpu=1 of cpu=3");
  Put(kQuotaCollection,
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: d}, spec: {hard: {cpu: "
      "3}}, status: {hard: {cpu: 3}, used: {cpu: 2, pods: 7}}}");
  Settle();
  EXPECT_EQ(Status(), "cpu=1 of cpu=3");
}

TEST_F(ResourceQuotaTest, APodThatIsStuckLapses) {
  Quota("{hard: {pods: 5}}");
  Pod("a", "1", "Running",
      fmt::format(", deletionTimestamp: '{}', deletionGracePeriodSeconds: 30",
                  FormatTime(loop_.Now() + seconds(30))));
  StartIt();
  EXPECT_EQ(Status(), "pods=1 of pods=5");
  loop_.RunFor(seconds(70));
  EXPECT_EQ(Status(), "pods=0 of pods=5");
}

TEST_F(ResourceQuotaTest, AKindThatComesLaterCountsAsWell) {
  Quota("{hard: {count/widgets.example.com: 5}}");
  StartIt();
  EXPECT_EQ(Status(), "count/widgets.example.com=0 of count/widgets.example.com=5");
  constexpr char kWidgets[] = "/apis/example.com/v1/widgets";
  Put(kWidgets, "{kind: Widget, metadata: {name: w, namespace: d}}");
  api_.static_answers["/apis/example.com/v1"] = Yaml(
      "{groupVersion: example.com/v1, resources: [{name: widgets, kind: Widget, namespaced: true, "
      "verbs: [list, watch, delete]}]}");
  Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      "{metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, "
      "names: "
      "{plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true}]}, "
      "status: {conditions: [{type: Established, status: 'True'}]}}");
  Settle();
  EXPECT_EQ(Status(), "count/widgets.example.com=1 of count/widgets.example.com=5");
  api_.Remove(kWidgets, "d", "w");
  Settle();
  EXPECT_EQ(Status(), "count/widgets.example.com=0 of count/widgets.example.com=5");
}

// Against a count from nothing.
TEST_F(ResourceQuotaTest, StaysTrueThroughAnything) {
  Quota("{hard: {pods: 100, cpu: 100, count/pods: 100}}");
  Quota("{hard: {pods: 100}, scopes: [BestEffort]}", "idle");
  StartIt();
  Rng rng(7);
  for (int step = 0; step < 300; ++step) {
    const std::string name = "p" + std::to_string(rng.Below(12));
    switch (rng.Below(4)) {
      case 0:
        api_.Remove(kPods, "d", name);
        break;
      case 1:
        Pod(name, std::to_string(rng.Below(4)), "Failed");
        break;
      default:
        Pod(name, std::to_string(rng.Below(4)));
        break;
    }
    if (!rng.Chance(0.2)) continue;
    Settle();
    for (const char* quota : {"q", "idle"}) {
      schema::QuotaTally tally(schema::Quota(Get(kQuotaCollection, "d", quota)), loop_.Now());
      for (const json::Value& pod : All(kPods)) tally.Change({"", "pods"}, {}, pod);
      ASSERT_TRUE(Status(quota).starts_with(schema::ToText(tally.used()) + " of "))
          << "step " << step << ": " << Status(quota) << " instead of "
          << schema::ToText(tally.used());
    }
  }
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

}  // namespace
}  // namespace muster::controllers
