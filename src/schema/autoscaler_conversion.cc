#include "schema/autoscaler_conversion.h"

#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "json/parse.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/quantity_syntax.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";

// What a metric shall be and what it is have the same members but for this word, which begins
// v1's names and is v2's member.
constexpr std::string_view kWanted = "target", kPresent = "current";

// A member of a metric's source: its name in v1, after the word where it begins with a capital, and
// its place in v2, one or two names deep; "" is the word.
struct Place {
  std::string_view source, v1, v2, below;
  bool is_amount() const { return v2.empty(); }
  std::string NameInV1(std::string_view word) const {
    const bool after_word = std::isupper(static_cast<unsigned char>(v1[0])) != 0;
    return (after_word ? std::string(word) : "") + std::string(v1);
  }
};
constexpr std::array<Place, 19> kPlaces = {{
    {"object", "target", "describedObject", ""},
    {"object", "metricName", "metric", "name"},
    {"object", "selector", "metric", "selector"},
    {"object", "Value", "", "value"},
    {"object", "averageValue", "", "averageValue"},
    {"pods", "metricName", "metric", "name"},
    {"pods", "selector", "metric", "selector"},
    {"pods", "AverageValue", "", "averageValue"},
    {"resource", "name", "name", ""},
    {"resource", "AverageUtilization", "", "averageUtilization"},
    {"resource", "AverageValue", "", "averageValue"},
    {"external", "metricName", "metric", "name"},
    {"external", "metricSelector", "metric", "selector"},
    {"external", "Value", "", "value"},
    {"external", "AverageValue", "", "averageValue"},
    {"containerResource", "name", "name", ""},
    {"containerResource", "container", "container", ""},
    {"containerResource", "AverageUtilization", "", "averageUtilization"},
    {"containerResource", "AverageValue", "", "averageValue"},
}};
constexpr std::array<std::string_view, 5> kSources = {"object", "pods", "resource", "external",
                                                      "containerResource"};

bool IsZero(const Value& quantity) {
  const Result<Amount> amount = AmountFromJson(quantity);
  return amount && amount->nano == 0;
}

// v1 cannot leave out the whole of an object's metric: beside an average, 0 means that it is not
// meant.
bool IsFiller(const Place& place, const Value& source) {
  return place.source == "object" && place.v1 == "Value" && source.Has("averageValue");
}

std::string_view TargetType(std::string_view source, const Value& target) {
  if (target.Has("averageUtilization")) return "Utilization";
  if (source == "object") return target.Has("averageValue") ? "AverageValue" : "Value";
  return target.Has("value") ? "Value" : "AverageValue";
}

// The metric with each of its sources converted: `convert(place, from, to)` moves what is
// at one place.
template <typename Convert>
Value EachSource(const Value& metric, const Convert& convert) {
  Value made = json::Obj({{"type", metric["type"]}});
  for (const std::string_view source : kSources) {
    const Value* from = metric.Find(source);
    if (from == nullptr) continue;
    Value to = json::Obj();
    for (const Place& place : kPlaces) {
      if (place.source == source) to = convert(place, *from, std::move(to));
    }
    made = std::move(made).Set(source, std::move(to));
  }
  return made;
}

Value MetricToStored(const Value& metric, std::string_view word) {
  Value made = EachSource(metric, [&](const Place& place, const Value& from, Value to) {
    const Value* value = from.Find(place.NameInV1(word));
    if (value == nullptr || (IsFiller(place, from) && IsZero(*value))) return to;
    const std::string_view outer = place.is_amount() ? word : place.v2;
    return place.below.empty() ? std::move(to).Set(outer, *value)
                               : std::move(to).SetPath({outer, place.below}, *value);
  });
  if (word != kWanted) return made;
  for (const std::string_view source : kSources) {
    if (made.Has(source))
      made = made.SetPath({source, kWanted, "type"}, TargetType(source, made[source][kWanted]));
  }
  return made;
}

Value MetricFromStored(const Value& metric, std::string_view word) {
  return EachSource(metric, [&](const Place& place, const Value& from, Value to) {
    const Value& outer = from[place.is_amount() ? word : place.v2];
    const Value& value = place.below.empty() ? outer : outer[place.below];
    return value.IsNull() ? to : std::move(to).Set(place.NameInV1(word), value);
  });
}

// The share of CPU, which v1 has a field for; nullptr if the metric is another one.
const Value* CpuShare(const Value& metric, std::string_view word) {
  const Value& resource = metric["resource"];
  if (metric["type"].AsString() != "Resource" || resource["name"].AsString() != "cpu")
    return nullptr;
  return resource[word].Find("averageUtilization");
}

Value CpuMetric(const Value& share, std::string_view word) {
  Value amount = json::Obj({{"averageUtilization", share}});
  if (word == kWanted) amount = json::Obj({{"type", "Utilization"}, {"averageUtilization", share}});
  return json::Obj({{"type", "Resource"},
                    {"resource", json::Obj({{"name", "cpu"}, {std::string(word), amount}})}});
}

// The keys of all objects inside with their first letter changed. A behavior is written as Go
// writes a struct that has no names for JSON.
template <class Change>
Value WithKeys(const Value& value, Change change) {
  if (value.IsArray()) {
    json::Array items;
    for (const Value& item : value.items()) items.push_back(WithKeys(item, change));
    return Value(std::move(items));
  }
  if (!value.IsObject()) return value;
  Value changed = json::Obj();
  for (const auto& [key, member] : value.members()) {
    std::string name = key;
    if (!name.empty()) name[0] = static_cast<char>(change(static_cast<unsigned char>(name[0])));
    changed = std::move(changed).Set(name, WithKeys(member, change));
  }
  return changed;
}

const Schema& MessageSchema(std::string_view version, std::string_view message) {
  return *Registry::BuiltIn().FindSchema("io.k8s.api.autoscaling." + std::string(version) + "." +
                                         std::string(message));
}

// What an annotation holds; null if there is none that can be read.
Value ReadAnnotation(const Value& annotations, std::string_view name) {
  const Value* text = annotations.Find(name);
  if (text == nullptr) return nullptr;
  const Result<Value> value = json::Parse(text->AsString());
  return value ? *value : Value();
}

// A list of such messages; empty if one of them is none.
Value ReadList(const Value& annotations, std::string_view name, std::string_view message) {
  const Value list = ReadAnnotation(annotations, name);
  json::Array items;
  for (const Value& item : list.items()) {
    Result<Value> conforming = Conform(MessageSchema("v1", message), item, {}, nullptr);
    if (!conforming || !conforming->IsObject()) return json::List();
    items.push_back(*std::move(conforming));
  }
  return Value(std::move(items));
}

Value ReadBehavior(const Value& annotations) {
  const Value written = ReadAnnotation(annotations, kBehavior);
  if (!written.IsObject()) return nullptr;
  const Result<Value> conforming =
      Conform(MessageSchema("v2", "HorizontalPodAutoscalerBehavior"),
              WithKeys(written, [](int letter) { return std::tolower(letter); }), {}, nullptr);
  return conforming ? *conforming : Value();
}

Value WithoutOurs(const Value& annotations) {
  Value rest = annotations;
  for (const std::string_view name : {kMetrics, kBehavior, kCurrentMetrics, kConditions}) {
    if (rest.Has(name)) rest = rest.Remove(name);
  }
  return rest;
}

Value WithAnnotations(const Value& object, const Value& annotations) {
  if (!annotations.empty()) return object.SetPath({"metadata", "annotations"}, annotations);
  return object["metadata"].Has("annotations") ? object.RemovePath({"metadata", "annotations"})
                                               : object;
}

Value ConvertAll(const Value& metrics, std::string_view word,
                 Value (*convert)(const Value&, std::string_view)) {
  json::Array converted;
  for (const Value& metric : metrics.items()) converted.push_back(convert(metric, word));
  return Value(std::move(converted));
}

std::string PathIn(std::string_view annotation) {
  return "metadata.annotations[" + std::string(annotation) + "]";
}

Value SpecToStored(const Value& spec, const Value& annotations, std::vector<MovedField>& moved) {
  Value stored = spec.Remove("targetCPUUtilizationPercentage");
  Value metrics =
      ConvertAll(ReadList(annotations, kMetrics, "MetricSpec"), kWanted, MetricToStored);
  if (const Value* share = spec.Find("targetCPUUtilizationPercentage")) {
    moved.push_back(
        {"spec.metrics[" + std::to_string(metrics.size()) + "].resource.target.averageUtilization",
         "spec.targetCPUUtilizationPercentage"});
    metrics = std::move(metrics).Append(CpuMetric(*share, kWanted));
  }
  moved.push_back({"spec.metrics", PathIn(kMetrics)});
  if (!metrics.empty()) stored = std::move(stored).Set("metrics", std::move(metrics));
  if (Value behavior = ReadBehavior(annotations); !behavior.IsNull()) {
    moved.push_back({"spec.behavior", PathIn(kBehavior)});
    stored = std::move(stored).Set("behavior", std::move(behavior));
  }
  return stored;
}

Value StatusToStored(const Value& status, const Value& annotations) {
  Value stored = status.Remove("currentCPUUtilizationPercentage");
  if (stored["currentReplicas"].Int() == 0) stored = stored.Remove("currentReplicas");
  Value metrics =
      ConvertAll(ReadList(annotations, kCurrentMetrics, "MetricStatus"), kPresent, MetricToStored);
  const Value* share = status.Find("currentCPUUtilizationPercentage");
  // The annotation says the same, and more.
  if (metrics.empty() && share != nullptr) metrics = json::List({CpuMetric(*share, kPresent)});
  if (!metrics.empty()) stored = std::move(stored).Set("currentMetrics", std::move(metrics));
  Value conditions = ReadList(annotations, kConditions, "HorizontalPodAutoscalerCondition");
  if (!conditions.empty()) stored = std::move(stored).Set("conditions", std::move(conditions));
  return stored;
}

Value SpecFromStored(const Value& spec, Value& annotations) {
  Value spoken = spec.Remove("metrics").Remove("behavior");
  // The last one, which is where it comes back: reading and writing changes the order once at most.
  const json::Array& metrics = spec["metrics"].items();
  size_t cpu = metrics.size();
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (CpuShare(metrics[i], kWanted) != nullptr) cpu = i;
  }
  json::Array others;
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (i != cpu) others.push_back(MetricFromStored(metrics[i], kWanted));
  }
  if (cpu < metrics.size()) {
    spoken =
        std::move(spoken).Set("targetCPUUtilizationPercentage", *CpuShare(metrics[cpu], kWanted));
  }
  if (!others.empty())
    annotations = std::move(annotations).Set(kMetrics, json::Write(Value(std::move(others))));
  if (const Value* behavior = spec.Find("behavior")) {
    const Value written = WithKeys(*behavior, [](int letter) { return std::toupper(letter); });
    annotations = std::move(annotations).Set(kBehavior, json::Write(written));
  }
  return spoken;
}

Value StatusFromStored(const Value& status, Value& annotations) {
  Value spoken = status.Remove("currentMetrics").Remove("conditions");
  if (!spoken.Has("currentReplicas")) spoken = std::move(spoken).Set("currentReplicas", 0);
  for (const Value& metric : status["currentMetrics"].items()) {
    const Value* share = CpuShare(metric, kPresent);
    if (share == nullptr) continue;
    spoken = std::move(spoken).Set("currentCPUUtilizationPercentage", *share);
    break;
  }
  if (!status["currentMetrics"].empty()) {
    annotations =
        std::move(annotations)
            .Set(kCurrentMetrics,
                 json::Write(ConvertAll(status["currentMetrics"], kPresent, MetricFromStored)));
  }
  if (!status["conditions"].empty())
    annotations = std::move(annotations).Set(kConditions, json::Write(status["conditions"]));
  return spoken;
}

}  // namespace

Converted AutoscalerToStored(const Value& object) {
  Converted made;
  const Value& annotations = object["metadata"]["annotations"];
  made.object = WithAnnotations(object, WithoutOurs(annotations));
  const Value spec = SpecToStored(object["spec"], annotations, made.moved);
  if (!spec.empty()) made.object = std::move(made.object).Set("spec", spec);
  const Value status = StatusToStored(object["status"], annotations);
  if (!status.empty()) made.object = std::move(made.object).Set("status", status);
  return made;
}

Value AutoscalerFromStored(const Value& object) {
  Value annotations = WithoutOurs(object["metadata"]["annotations"]);
  Value made = object;
  if (const Value* spec = object.Find("spec"))
    made = std::move(made).Set("spec", SpecFromStored(*spec, annotations));
  if (const Value* status = object.Find("status"))
    made = std::move(made).Set("status", StatusFromStored(*status, annotations));
  return WithAnnotations(made, annotations);
}

}  // namespace muster::schema
