#include "controllers/podautoscaler/podautoscaler_controller.h"

#include <algorithm>
#include <map>
#include <optional>

#include "controllers/controller_test_base.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr char kAutoscalers[] = "/apis/autoscaling/v2/horizontalpodautoscalers";
constexpr char kScalePath[] = "/apis/apps/v1/namespaces/d/deployments/web/scale";
constexpr char kExternalPath[] =
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/d/queue?labelSelector=q%3Dx";
constexpr char kByCpu[] =
    "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}";
constexpr char kByQueue[] =
    "{type: External, external: {metric: {name: queue, selector: {matchLabels: {q: x}}}, target: "
    "{type: AverageValue, averageValue: '10'}}}";
constexpr char kByRequests[] =
    "{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "
    "'5'}}}";
constexpr char kDownSoon[] =
    "{scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Percent, "
    "value: 100, periodSeconds: 15}]}, "
    "scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Percent, "
    "value: 100, periodSeconds: 15}]}}";

class PodAutoscalerTest : public ControllerTest {
 protected:
  PodAutoscalerTest() {
    api_.static_answers["/apis"] =
        Yaml("{groups: [{name: apps, preferredVersion: {groupVersion: apps/v1}}]}");
    api_.static_answers["/apis/apps/v1"] = Yaml(R"(
groupVersion: apps/v1
resources:
- {name: deployments, kind: Deployment, namespaced: true, verbs: [list, watch, delete]}
)");
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      return Handle(request, *writer);
    };
  }

  // The scale of the Deployment and the metrics, of which the fake API knows nothing.
  bool Handle(const net::Request& request, net::ResponseWriter& writer) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (path == kScalePath) {
      if (request.method == "PUT") {
        if (!refuse_scale_.empty()) {
          client::FakeApi::SendError(writer, 409, "Conflict", refuse_scale_);
          return false;
        }
        replicas_ = client::FakeApi::BodyOf(request)["spec"]["replicas"].AsInt();
        sizes_.push_back(replicas_);
      }
      Answer(writer, Scale());
      return false;
    }
    if (!path.starts_with("/apis/") || path.find("metrics.k8s.io") == path.npos) return true;
    const auto found = answers_.find(request.target);
    if (found != answers_.end()) {
      Answer(writer, Yaml(found->second));
    } else if (path == "/apis/metrics.k8s.io/v1beta1/namespaces/d/pods" && measured_) {
      Answer(writer, PodMetrics());
    } else {
      client::FakeApi::SendError(writer, 404, "NotFound",
                                 "the server could not find the requested resource");
    }
    return false;
  }

  static void Answer(net::ResponseWriter& writer, const json::Value& body) {
    net::Response response;
    response.body = json::Write(body);
    writer.Send(std::move(response));
  }

  json::Value Scale() const {
    return json::Obj({{"kind", "Scale"},
                      {"apiVersion", "autoscaling/v1"},
                      {"metadata", json::Obj({{"name", "web"}, {"namespace", "d"}})},
                      {"spec", json::Obj({{"replicas", replicas_}})},
                      {"status", json::Obj({{"replicas", replicas_}, {"selector", selector_}})}});
  }

  json::Value PodMetrics() const {
    json::Array items;
    for (const auto& [name, milli] : usage_) {
      items.push_back(json::Obj(
          {{"metadata", json::Obj({{"name", name}, {"namespace", "d"}})},
           {"timestamp", FormatTime(loop_.Now())},
           {"window", "15s"},
           {"containers", json::List({json::Obj(
                              {{"name", "main"},
                               {"usage", json::Obj({{"cpu", fmt::format("{}m", milli)}})}})})}}));
    }
    return json::Obj({{"items", json::Value(std::move(items))}});
  }

  // A pod that has been ready for long, asks for one cpu and uses so much of it.
  void PutPod(const std::string& name, int64_t milli) {
    const std::string started = FormatTime(loop_.Now() - hours(1));
    api_.Put(kPods, Yaml(fmt::format(R"(
metadata: {{name: {0}, namespace: d, labels: {{app: web}}}}
spec: {{containers: [{{name: main, resources: {{requests: {{cpu: 1}}}}}}]}}
status:
  phase: Running
  startTime: "{1}"
  conditions: [{{type: Ready, status: "True", lastTransitionTime: "{1}"}}]
)",
                                     name, started)));
    usage_[name] = milli;
  }

  void PutAutoscaler(std::string_view metrics, const std::string& behavior = "",
                     const std::string& name = "web", int most = 10) {
    api_.Put(kAutoscalers, Yaml(fmt::format(R"(
metadata: {{name: {}, namespace: d}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  minReplicas: 2
  maxReplicas: {}
  metrics: [{}]
  {}
)",
                                            name, most, metrics,
                                            behavior.empty() ? "" : "behavior: " + behavior)));
  }

  void StartController(Duration period = kAutoscalerPeriod) {
    Start(std::make_unique<PodAutoscalerController>(discovery_, period));
  }
  void Tick() { loop_.RunFor(kAutoscalerPeriod); }
  json::Value StatusOf(const std::string& name = "web") {
    return Get(kAutoscalers, "d", name)["status"];
  }
  // "True ReadyForNewScale recommended size matches current size"
  std::string Condition(std::string_view type, const std::string& name = "web") {
    const json::Value status = StatusOf(name);
    const json::Value& condition = schema::FindCondition(status["conditions"], type);
    return fmt::format("{} {} {}", condition["status"].AsString(), condition["reason"].AsString(),
                       condition["message"].AsString());
  }
  bool HasEvent(const std::string& text) const {
    const std::vector<std::string> events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }

  int64_t replicas_ = 2;
  std::string selector_ = "app=web";
  std::string refuse_scale_;
  bool measured_ = true;
  std::map<std::string, int64_t> usage_;
  std::map<std::string, std::string> answers_;
  std::vector<int64_t> sizes_;  // that were written
};

TEST_F(PodAutoscalerTest, GoesUpByCpuAndSaysWhy) {
  PutPod("a", 900);
  PutPod("b", 700);
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{4}));
  EXPECT_TRUE(HasEvent(
      "SuccessfulRescale New size: 4; reason: cpu resource utilization (percentage of request) "
      "above target"));
  const json::Value status = StatusOf();
  EXPECT_EQ(status["desiredReplicas"].AsInt(), 4);
  EXPECT_TRUE(ParseTime(status["lastScaleTime"].AsString()).has_value());
  EXPECT_EQ(status["currentMetrics"].At(0),
            Yaml("{type: Resource, resource: {name: cpu, current: {averageUtilization: 80, "
                 "averageValue: 800m}}}"));
  EXPECT_EQ(Condition("ScalingActive"),
            "True ValidMetricFound the HPA was able to successfully calculate a replica count from "
            "cpu resource utilization (percentage of request)");
  EXPECT_EQ(Condition("ScalingLimited"),
            "False DesiredWithinRange the desired count is within the acceptable range");
}

TEST_F(PodAutoscalerTest, RestsWhenTheTargetIsReached) {
  PutPod("a", 500);
  PutPod("b", 520);
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  EXPECT_EQ(Condition("AbleToScale"),
            "True ReadyForNewScale recommended size matches current size");
  const uint64_t revision = api_.revision();
  for (int i = 0; i < 5; ++i) Tick();
  EXPECT_EQ(api_.revision(), revision) << "nothing changed, nothing is written";
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  EXPECT_TRUE(sizes_.empty());
}

TEST_F(PodAutoscalerTest, AsksEveryFifteenSecondsWhateverItWrites) {
  PutPod("a", 500);
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  const std::string ask = "GET /apis/metrics.k8s.io";
  const size_t before = Requests(ask);
  for (int i = 0; i < 4; ++i) {
    usage_["a"] += 1;  // the status changes each time
    Tick();
  }
  EXPECT_EQ(Requests(ask), before + 4);
  PutAutoscaler(kByCpu, "", "web", 20);
  loop_.RunFor(milliseconds(100));
  EXPECT_GE(Requests(ask), before + 5) << "a new spec is looked at at once";
}

TEST_F(PodAutoscalerTest, AsksOnceAPeriod) {
  PutPod("a", 500);
  PutAutoscaler(kByCpu);
  StartController(seconds(2));
  Tick();
  const std::string ask = "GET /apis/metrics.k8s.io";
  const size_t before = Requests(ask);
  loop_.RunFor(seconds(20));
  EXPECT_EQ(Requests(ask), before + 10);
}

TEST_F(PodAutoscalerTest, ComesDownAfterTheWindow) {
  replicas_ = 6;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) PutPod(name, 100);
  PutAutoscaler(kByCpu);
  StartController();
  loop_.RunFor(minutes(4));
  EXPECT_TRUE(sizes_.empty());
  EXPECT_EQ(Condition("AbleToScale"),
            "True ScaleDownStabilized recent recommendations were higher than current one, "
            "applying the highest recent recommendation");
  loop_.RunFor(seconds(90));
  EXPECT_EQ(sizes_, (std::vector<int64_t>{2}));
  EXPECT_TRUE(HasEvent("SuccessfulRescale New size: 2; reason: All metrics below target"));
}

TEST_F(PodAutoscalerTest, ComesDownAtOnceWithoutAWindow) {
  replicas_ = 6;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) PutPod(name, 250);
  PutAutoscaler(kByCpu, kDownSoon);
  StartController();
  Tick();
  Tick();
  ASSERT_FALSE(sizes_.empty());
  EXPECT_EQ(sizes_[0], 3);
}

TEST_F(PodAutoscalerTest, WithoutTheMetricsApiItSaysSoAndKeepsStill) {
  measured_ = false;
  PutPod("a", 900);
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  EXPECT_TRUE(sizes_.empty());
  const std::string problem =
      "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch "
      "metrics from resource metrics API: the server could not find the requested resource (get "
      "pods.metrics.k8s.io)";
  EXPECT_EQ(
      Condition("ScalingActive"),
      "False FailedGetResourceMetric the HPA was unable to compute the replica count: " + problem);
  EXPECT_EQ(Condition("AbleToScale"),
            "True SucceededGetScale the HPA controller was able to get the target's current scale");
  EXPECT_TRUE(HasEvent("FailedGetResourceMetric " + problem));
  EXPECT_TRUE(
      HasEvent("FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first error is: "
               "failed to get cpu resource metric value: " +
               problem));
}

TEST_F(PodAutoscalerTest, WithoutSamplesItSaysSo) {
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  EXPECT_EQ(Condition("ScalingActive"),
            "False FailedGetResourceMetric the HPA was unable to compute the replica count: failed "
            "to get cpu utilization: unable to get metrics for resource cpu: no metrics returned "
            "from resource metrics API");
}

TEST_F(PodAutoscalerTest, ByOneContainer) {
  PutPod("a", 900);
  PutPod("b", 900);
  PutAutoscaler(
      "{type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: "
      "Utilization, averageUtilization: 60}}}");
  StartController();
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{3}));
  EXPECT_EQ(StatusOf()["currentMetrics"].At(0)["containerResource"]["container"].AsString(),
            "main");
}

TEST_F(PodAutoscalerTest, AContainerThatIsNotThere) {
  PutPod("a", 900);
  PutAutoscaler(
      "{type: ContainerResource, containerResource: {name: cpu, container: other, target: {type: "
      "Utilization, averageUtilization: 60}}}");
  StartController();
  Tick();
  EXPECT_EQ(Condition("ScalingActive"),
            "False FailedGetContainerResourceMetric the HPA was unable to compute the replica "
            "count: failed to get cpu utilization: unable to get metrics for resource cpu: failed "
            "to get container metrics: container other not present in metrics for pod d/a");
}

TEST_F(PodAutoscalerTest, ZeroReplicasSwitchItOff) {
  replicas_ = 0;
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  EXPECT_TRUE(sizes_.empty());
  EXPECT_EQ(Condition("ScalingActive"),
            "False ScalingDisabled scaling is disabled since the replica count of the target is "
            "zero");
}

TEST_F(PodAutoscalerTest, BringsTheNumberBetweenItsLimits) {
  replicas_ = 12;
  PutAutoscaler(kByCpu);
  StartController();
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{10}));
  EXPECT_TRUE(HasEvent(
      "SuccessfulRescale New size: 10; reason: Current number of replicas above Spec.MaxReplicas"));
  replicas_ = 1;
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{10, 2}));
  EXPECT_TRUE(HasEvent(
      "SuccessfulRescale New size: 2; reason: Current number of replicas below Spec.MinReplicas"));
}

TEST_F(PodAutoscalerTest, ATargetOfAnUnknownKind) {
  api_.Put(kAutoscalers, Yaml(R"(
metadata: {name: web, namespace: d}
spec:
  scaleTargetRef: {apiVersion: example.com/v1, kind: Widget, name: web}
  maxReplicas: 3
  metrics: []
)"));
  StartController();
  EXPECT_EQ(Condition("AbleToScale"),
            "False FailedGetScale the HPA controller was unable to get the target's current scale: "
            "no matches for kind \"Widget\" in group \"example.com\"");
  const uint64_t revision = api_.revision();
  Tick();
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  EXPECT_LE(api_.revision(), revision + 1) << "the event counts once more";
}

TEST_F(PodAutoscalerTest, ATargetThatIsNotThere) {
  api_.Put(kAutoscalers, Yaml(R"(
metadata: {name: web, namespace: d}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: gone}
  maxReplicas: 3
  metrics: []
)"));
  StartController();
  EXPECT_EQ(Condition("AbleToScale"),
            "False FailedGetScale the HPA controller was unable to get the target's current scale: "
            "gone not found");
  EXPECT_TRUE(HasEvent("FailedGetScale gone not found"));
}

TEST_F(PodAutoscalerTest, ARefusedScaleIsToldAndTriedAtTheNextTick) {
  PutPod("a", 900);
  PutPod("b", 900);
  refuse_scale_ = "the object has been modified";
  PutAutoscaler(kByCpu);
  StartController();
  EXPECT_EQ(Condition("AbleToScale"),
            "False FailedUpdateScale the HPA controller was unable to update the target scale: the "
            "object has been modified");
  const std::string size =
      "New size: 4; reason: cpu resource utilization (percentage of request) above target";
  EXPECT_TRUE(HasEvent("FailedRescale " + size + "; error: the object has been modified"));
  EXPECT_FALSE(HasEvent("SuccessfulRescale " + size));
  const std::string put = std::string("PUT ") + kScalePath;
  const size_t tries = Requests(put);
  EXPECT_LE(tries, 2u);
  Tick();
  EXPECT_EQ(Requests(put), tries + 1);
  refuse_scale_.clear();
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{4}));
  EXPECT_TRUE(HasEvent("SuccessfulRescale " + size));
}

TEST_F(PodAutoscalerTest, TwoOfTheSamePodsStandStill) {
  PutPod("a", 900);
  PutAutoscaler(kByCpu, "", "one");
  PutAutoscaler(kByCpu, "", "two");
  StartController();
  Tick();
  sizes_.clear();
  Tick();
  EXPECT_TRUE(sizes_.empty());
  for (const char* name : {"one", "two"}) {
    EXPECT_EQ(Condition("ScalingActive", name),
              "False AmbiguousSelector pods by selector app=web are controlled by multiple HPAs: "
              "[d/one d/two]");
  }
  api_.Remove(kAutoscalers, "d", "two");
  Tick();
  EXPECT_TRUE(Condition("ScalingActive", "one").starts_with("True ValidMetricFound"));
}

TEST_F(PodAutoscalerTest, ATargetWithoutASelector) {
  selector_ = "";
  PutAutoscaler(kByCpu);
  StartController();
  EXPECT_EQ(Condition("ScalingActive"),
            "False InvalidSelector the HPA target's scale is missing a selector");
  EXPECT_TRUE(HasEvent("SelectorRequired selector is required"));
}

// One metric is missing: what the other wants counts only if it is more.
TEST_F(PodAutoscalerTest, AMissingMetricForbidsGoingDownOnly) {
  replicas_ = 4;
  for (const char* name : {"a", "b", "c", "d"}) PutPod(name, 100);
  PutAutoscaler(std::string(kByQueue) + ", " + kByCpu, kDownSoon);
  StartController();
  for (int i = 0; i < 3; ++i) Tick();
  EXPECT_TRUE(sizes_.empty());
  EXPECT_EQ(Condition("ScalingActive"),
            "False FailedGetExternalMetric the HPA was unable to compute the replica count: unable "
            "to get external metric d/queue/&LabelSelector{MatchLabels:map[string]string{q: x,},"
            "MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch metrics from "
            "external metrics API: the server could not find the requested resource (get "
            "queue.external.metrics.k8s.io)");
  for (auto& [name, milli] : usage_) milli = 1000;
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{8}));
  EXPECT_EQ(StatusOf()["currentMetrics"].At(0)["type"].AsString(), "");
  EXPECT_EQ(StatusOf()["currentMetrics"].At(1)["type"].AsString(), "Resource");
}

TEST_F(PodAutoscalerTest, TheMetricThatWantsMostDecides) {
  for (const char* name : {"a", "b"}) PutPod(name, 600);
  answers_[kExternalPath] =
      "{items: [{metricName: queue, value: '4000'}, {metricName: queue, value: '1k'}]}";
  PutAutoscaler(std::string(kByCpu) + ", " + kByQueue, "", "web", 1000);
  StartController();
  Tick();
  ASSERT_FALSE(sizes_.empty());
  EXPECT_EQ(sizes_[0], 4) << "twice as many";
  EXPECT_TRUE(HasEvent(
      "SuccessfulRescale New size: 4; reason: external metric queue(&LabelSelector{MatchLabels:"
      "map[string]string{q: x,},MatchExpressions:[]LabelSelectorRequirement{},}) above target"));
  EXPECT_EQ(Condition("ScalingLimited"),
            "True ScaleUpLimit the desired replica count is increasing faster than the maximum "
            "scale rate");
}

TEST_F(PodAutoscalerTest, CustomMetricsOfPods) {
  PutPod("a", 0);
  PutPod("b", 0);
  PutAutoscaler(kByRequests);
  StartController();
  EXPECT_EQ(Condition("ScalingActive"),
            "False FailedGetPodsMetric the HPA was unable to compute the replica count: unable to "
            "get metric requests: unable to fetch metrics from custom metrics API: no custom "
            "metrics API (custom.metrics.k8s.io) registered");
  answers_["/apis/custom.metrics.k8s.io"] =
      "{kind: APIGroup, versions: [{version: v1beta1}, {version: v1beta2}]}";
  answers_
      ["/apis/custom.metrics.k8s.io/v1beta2/namespaces/d/pods/*/requests?labelSelector=app%3D"
       "web"] =
          "{items: [{describedObject: {name: a}, value: '8'}, {describedObject: {name: b}, value: "
          "7500m}]}";
  Tick();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{4}));
  EXPECT_EQ(StatusOf()["currentMetrics"].At(0)["pods"]["current"]["averageValue"].AsString(),
            "7750m");
}

TEST_F(PodAutoscalerTest, CustomMetricsOfAnObject) {
  for (const char* name : {"a", "b"}) PutPod(name, 0);
  answers_["/apis/custom.metrics.k8s.io"] = "{kind: APIGroup, versions: [{version: v1beta1}]}";
  const std::string path =
      "/apis/custom.metrics.k8s.io/v1beta1/namespaces/d/deployments.apps/front/hits";
  answers_[path] = "{items: [{describedObject: {name: front}, value: '30'}]}";
  const std::string metric =
      "{type: Object, object: {metric: {name: hits}, describedObject: {apiVersion: apps/v1, kind: "
      "Deployment, name: front}, target: {type: Value, value: '20'}}}";
  PutAutoscaler(metric);
  StartController();
  EXPECT_EQ(sizes_, (std::vector<int64_t>{3}));
  EXPECT_TRUE(
      HasEvent("SuccessfulRescale New size: 3; reason: Deployment metric hits above target"));
  answers_.erase(path);
  Tick();
  EXPECT_TRUE(Condition("ScalingActive").starts_with("False FailedGetObjectMetric"))
      << Condition("ScalingActive");
}

TEST(NextTick, IsWithinAPeriodAndSpreadOut) {
  const Time now(hours(500'000));
  std::map<Time, int> ticks;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const uint64_t place = seed * 7'919'000'000'001;
    const Time tick = NextTick(now, kAutoscalerPeriod, place);
    EXPECT_GT(tick, now);
    EXPECT_LE(tick, now + kAutoscalerPeriod);
    EXPECT_EQ(NextTick(tick, kAutoscalerPeriod, place), tick + kAutoscalerPeriod);
    ++ticks[tick];
  }
  EXPECT_GT(ticks.size(), 90u);
}

}  // namespace
}  // namespace muster::controllers
