#include "schema/autoscaler_conversion.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/defaulting.h"
#include "schema/registry.h"
#include "schema/validation.h"

namespace muster::schema {
namespace {

using json::List;
using json::Obj;
using json::Value;

const Kind& Spoken() {
  return *Registry::BuiltIn().Find("autoscaling", "v1", "horizontalpodautoscalers");
}
const Kind& Stored() {
  return *Registry::BuiltIn().Find("autoscaling", "v2", "horizontalpodautoscalers");
}

std::string ToV1(std::string_view text) {
  return json::Write(AutoscalerFromStored(*json::Parse(text)));
}
std::string ToV2(std::string_view text) {
  return json::Write(AutoscalerToStored(*json::Parse(text)).object);
}

bool IsCpuShare(const Value& metric) {
  return metric["type"] == "Resource" && metric["resource"]["name"] == "cpu" &&
         metric["resource"]["target"].Has("averageUtilization");
}

// Autoscalers of autoscaling/v2 that are valid.
class Autoscalers {
 public:
  explicit Autoscalers(uint64_t seed) : rng_(seed) {}

  Value Next() {
    Value object = Obj({{"kind", "HorizontalPodAutoscaler"},
                        {"apiVersion", "autoscaling/v2"},
                        {"metadata", Obj({{"name", "h"}})}});
    if (rng_.Chance(0.3)) object = object.SetPath({"metadata", "annotations", "mine"}, "kept");
    object = object.Set("spec", Spec());
    return rng_.Chance(0.6) ? object.Set("status", StatusOf()) : object;
  }

 private:
  Value Amount() { return std::to_string(rng_.Between(1, 999)) + (rng_.Chance(0.5) ? "m" : ""); }
  Value Share() { return rng_.Between(1, 200); }
  Value Metric() {
    Value metric = Obj({{"name", "m" + std::to_string(rng_.Below(9))}});
    if (rng_.Chance(0.5))
      metric = metric.Set("selector", Obj({{"matchLabels", Obj({{"a", "b"}})}}));
    return metric;
  }
  Value Reference() {
    Value reference = Obj({{"kind", "Deployment"}, {"name", "d"}});
    return rng_.Chance(0.5) ? reference.Set("apiVersion", "apps/v1") : reference;
  }

  // What is wanted (with its type), or what there is, of one of these members.
  Value AmountOf(bool wanted, const char* member) {
    const bool share = std::string_view(member) == "averageUtilization";
    Value amount = Obj({{member, share ? Share() : Amount()}});
    if (!wanted) return amount;
    return amount.Set("type", share                                 ? "Utilization"
                              : std::string_view(member) == "value" ? "Value"
                                                                    : "AverageValue");
  }

  Value Source(const std::string& type, bool wanted) {
    const char* word = wanted ? "target" : "current";
    const bool first = rng_.Chance(0.5);
    if (type == "Object") {
      return Obj({{"describedObject", Reference()},
                  {"metric", Metric()},
                  {word, AmountOf(wanted, first ? "value" : "averageValue")}});
    }
    if (type == "Pods")
      return Obj({{"metric", Metric()}, {word, AmountOf(wanted, "averageValue")}});
    if (type == "External") {
      return Obj(
          {{"metric", Metric()}, {word, AmountOf(wanted, first ? "value" : "averageValue")}});
    }
    Value source = Obj({{"name", rng_.Chance(0.7) ? "cpu" : "memory"},
                        {word, AmountOf(wanted, first ? "averageUtilization" : "averageValue")}});
    // The controller says both.
    if (!wanted && first) source = source.SetPath({word, "averageValue"}, Amount());
    return type == "ContainerResource" ? source.Set("container", "c") : source;
  }

  Value Metrics(bool wanted) {
    json::Array metrics;
    for (int64_t i = rng_.Between(1, 5); i > 0; --i) {
      static const std::vector<std::pair<std::string, std::string>> kTypes = {
          {"Object", "object"},
          {"Pods", "pods"},
          {"Resource", "resource"},
          {"External", "external"},
          {"ContainerResource", "containerResource"}};
      const auto& [type, member] = kTypes[rng_.Below(kTypes.size())];
      metrics.push_back(Obj({{"type", type}, {member, Source(type, wanted)}}));
    }
    return Value(std::move(metrics));
  }

  Value Rules() {
    Value rules = Obj({{"selectPolicy", rng_.Chance(0.5) ? "Max" : "Disabled"},
                       {"policies", List({Obj({{"type", rng_.Chance(0.5) ? "Pods" : "Percent"},
                                               {"value", rng_.Between(1, 9)},
                                               {"periodSeconds", rng_.Between(1, 60)}})})}});
    if (rng_.Chance(0.5)) rules = rules.Set("stabilizationWindowSeconds", rng_.Between(0, 60));
    return rng_.Chance(0.3) ? rules.Set("tolerance", "100m") : rules;
  }

  Value Spec() {
    Value spec = Obj({{"scaleTargetRef", Reference()}, {"maxReplicas", rng_.Between(1, 9)}});
    if (rng_.Chance(0.8)) spec = spec.Set("minReplicas", 1);
    if (rng_.Chance(0.9)) spec = spec.Set("metrics", Metrics(true));
    if (rng_.Chance(0.4)) {
      spec = spec.SetPath({"behavior", "scaleUp"}, Rules());
      if (rng_.Chance(0.5)) spec = spec.SetPath({"behavior", "scaleDown"}, Rules());
    }
    return spec;
  }

  Value StatusOf() {
    Value status = Obj({{"desiredReplicas", rng_.Between(0, 3)}});
    if (rng_.Chance(0.5)) status = status.Set("currentReplicas", rng_.Between(1, 3));
    if (rng_.Chance(0.5)) status = status.Set("lastScaleTime", "2026-01-02T03:04:05Z");
    if (rng_.Chance(0.7)) status = status.Set("currentMetrics", Metrics(false));
    if (rng_.Chance(0.7)) {
      status = status.Set("conditions", List({Obj({{"type", "AbleToScale"},
                                                   {"status", "True"},
                                                   {"lastTransitionTime", "2026-01-02T03:04:05Z"},
                                                   {"reason", "ReadyForNewScale"},
                                                   {"message", "\"<why>\""}})}));
    }
    return status;
  }

  Rng rng_;
};

// The one order that v1 cannot tell.
Value WithCpuLast(const Value& object) {
  json::Array metrics = object["spec"]["metrics"].items();
  const auto cpu = std::ranges::find_if(metrics.rbegin(), metrics.rend(), IsCpuShare);
  if (cpu == metrics.rend()) return object;
  std::rotate(metrics.rbegin(), cpu, cpu + 1);
  return object.SetPath({"spec", "metrics"}, Value(std::move(metrics)));
}

TEST(AutoscalerConversion, ThereAndBackIsTheSame) {
  int with_cpu = 0, with_annotations = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Value stored = Autoscalers(seed).Next();
    const Value spoken = FromStored(Spoken(), stored);
    std::vector<std::string> unknown;
    const Result<Value> conforming = Conform(Spoken(), spoken, &unknown);
    ASSERT_TRUE(conforming.has_value()) << conforming.error().message();
    ASSERT_EQ(*conforming, spoken) << json::Write(spoken);
    ASSERT_TRUE(unknown.empty()) << unknown[0];
    EXPECT_EQ(spoken["apiVersion"], "autoscaling/v1");

    const Value back = ToStored(Spoken(), spoken).object;
    ASSERT_EQ(back, WithCpuLast(stored)) << json::Write(stored) << "\n"
                                         << json::Write(spoken) << "\n"
                                         << json::Write(back);
    ASSERT_EQ(*Conform(Stored(), back, &unknown), back);
    ASSERT_TRUE(unknown.empty()) << unknown[0];
    ASSERT_EQ(FromStored(Spoken(), back), spoken);
    with_cpu += spoken["spec"].Has("targetCPUUtilizationPercentage");
    with_annotations += spoken["metadata"]["annotations"].size() > 1;
  }
  EXPECT_GT(with_cpu, 500);
  EXPECT_GT(with_annotations, 500);
}

TEST(AutoscalerConversion, WritesWhatUpstreamWrites) {
  EXPECT_EQ(
      ToV1(R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,"metrics":[)"
           R"({"type":"Pods","pods":{"metric":{"name":"p"},"target":{"type":"AverageValue",)"
           R"("averageValue":"1"}}},)"
           R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization",)"
           R"("averageUtilization":50}}}],)"
           R"("behavior":{"scaleDown":{"stabilizationWindowSeconds":15,"policies":[{"type":"Pods",)"
           R"("value":4,"periodSeconds":60}]}}},)"
           R"("status":{"desiredReplicas":2,"currentMetrics":[{"type":"Resource","resource":{)"
           R"("name":"cpu","current":)"
           R"({"averageUtilization":12,"averageValue":"24m"}}}],"conditions":[{"type":)"
           R"("AbleToScale","status":"True"}]}})"),
      R"({"metadata":{"name":"h","annotations":{)"
      R"("autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Pods\",\"pods\":{\"metricName\":)"
      R"(\"p\",\"targetAverageValue\":\"1\"}}]",)"
      R"("autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleDown\":{)"
      R"(\"StabilizationWindowSeconds\":15,\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,)"
      R"(\"PeriodSeconds\":60}]}}",)"
      R"("autoscaling.alpha.kubernetes.io/current-metrics":"[{\"type\":\"Resource\",\"resource\":{)"
      R"(\"name\":\"cpu\",\"currentAverageUtilization\":12,\"currentAverageValue\":\"24m\"}}]",)"
      R"("autoscaling.alpha.kubernetes.io/conditions":"[{\"type\":\"AbleToScale\",\"status\":)"
      R"(\"True\"}]"}},)"
      R"("spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50},)"
      R"("status":{"desiredReplicas":2,"currentReplicas":0,"currentCPUUtilizationPercentage":)"
      R"(12}})");
}

TEST(AutoscalerConversion, TakesWhatV1Says) {
  EXPECT_EQ(
      ToV2(
          R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":0},)"
          R"("status":{"desiredReplicas":1,"currentReplicas":1,"currentCPUUtilizationPercentage":)"
          R"(7}})"),
      R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,"metrics":[{"type":"Resource",)"
      R"("resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":0}}}]},)"
      R"("status":{"desiredReplicas":1,"currentReplicas":1,"currentMetrics":[{"type":"Resource",)"
      R"("resource":{"name":"cpu","current":{"averageUtilization":7}}}]}})");
  EXPECT_EQ(ToV2(R"({"spec":{"maxReplicas":3}})"), R"({"spec":{"maxReplicas":3}})");
  EXPECT_EQ(ToV2("{}"), "{}");
}

// As upstream writes an object's metric that has an average alone, and absent rules.
TEST(AutoscalerConversion, TakesWhatUpstreamWrote) {
  EXPECT_EQ(ToV2(R"({"metadata":{"annotations":{)"
                 R"("autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Object\",\"object\":{)"
                 R"(\"target\":{\"kind\":\"Service\",\"name\":\"s\"},)"
                 R"(\"metricName\":\"m\",\"targetValue\":\"0\",\"averageValue\":\"5\"}}]",)"
                 R"("autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleUp\":null,\"ScaleDown\":{)"
                 R"(\"StabilizationWindowSeconds\":null,)"
                 R"(\"SelectPolicy\":\"Min\",\"Policies\":null,\"Tolerance\":null}}"}},"spec":{)"
                 R"("maxReplicas":3}})"),
            R"({"metadata":{},"spec":{"maxReplicas":3,"metrics":[{"type":"Object","object":{)"
            R"("describedObject":{"kind":"Service","name":"s"},"metric":{"name":"m"},)"
            R"("target":{"averageValue":"5","type":"AverageValue"}}}],)"
            R"("behavior":{"scaleDown":{"selectPolicy":"Min"}}}})");
}

TEST(AutoscalerConversion, AnnotationsThatCannotBeReadSayNothing) {
  for (const char* text :
       {"", "{", "7", "{}", "[]", "[7]", "[{\"type\":7}]", "[{\"type\":\"a\"},7]", "[null]"}) {
    Value annotations = Obj({{"mine", "kept"}});
    for (const char* name : {"metrics", "behavior", "current-metrics", "conditions"}) {
      annotations =
          annotations.Set(std::string("autoscaling.alpha.kubernetes.io/") + name, Value(text));
    }
    const Value object = Obj(
        {{"metadata", Obj({{"annotations", annotations}})}, {"spec", Obj({{"maxReplicas", 3}})}});
    const Value stored = AutoscalerToStored(object).object;
    EXPECT_EQ(stored["metadata"]["annotations"], Obj({{"mine", "kept"}})) << text;
    EXPECT_FALSE(stored["spec"].Has("metrics")) << text << json::Write(stored);
    EXPECT_FALSE(stored.Has("status")) << text << json::Write(stored);
  }
}

TEST(AutoscalerConversion, ErrorsNameTheFieldsOfTheClient) {
  const Value object =
      *json::Parse(R"({"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":)"
                   R"("[{\"type\":\"Weather\"}]"}},"spec":{"targetCPUUtilizationPercentage":0}})");
  const std::vector<MovedField> moved = AutoscalerToStored(object).moved;
  const Status said = InSpokenFields(
      Spoken(), moved,
      InvalidError(
          Stored(), "h",
          {{"FieldValueInvalid", "spec.metrics[1].resource.target.averageUtilization", "a"},
           {"FieldValueNotSupported", "spec.metrics[0].type", "b"},
           {"FieldValueInvalid", "spec.maxReplicas", "c"}}));
  EXPECT_EQ(said.message(),
            "HorizontalPodAutoscaler.autoscaling \"h\" is invalid: "
            "[spec.targetCPUUtilizationPercentage: a, "
            "metadata.annotations[autoscaling.alpha.kubernetes.io/metrics][0].type: b, "
            "spec.maxReplicas: c]");
  EXPECT_EQ(said.details().causes[0].field, "spec.targetCPUUtilizationPercentage");

  const Status other(Reason::kNotFound, "gone");
  EXPECT_EQ(InSpokenFields(Spoken(), moved, other).message(), "gone");
}

TEST(Conversion, OneVersionOfAKindIsStored) {
  EXPECT_FALSE(Spoken().storage);
  EXPECT_TRUE(Stored().storage);
  EXPECT_EQ(&StoredKind(Spoken()), &Stored());
  EXPECT_EQ(&StoredKind(Stored()), &Stored());
  // Its defaults have no place in the other.
  const Value minimal = Obj({{"spec", Obj({{"maxReplicas", 3}})}});
  EXPECT_TRUE(ApplyDefaults(Spoken(), minimal).SameAs(minimal));
  EXPECT_EQ(ApplyDefaults(Stored(), minimal)["spec"]["metrics"].size(), 1u);
  // Without a conversion nothing is copied.
  const Value object = Obj({{"spec", Obj()}});
  EXPECT_TRUE(ToStored(Stored(), object).object.SameAs(object));
  EXPECT_TRUE(FromStored(Stored(), object).SameAs(object));
}

}  // namespace
}  // namespace muster::schema
