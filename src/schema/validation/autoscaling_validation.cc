// HorizontalPodAutoscaler: k8s.io/kubernetes pkg/apis/autoscaling/validation.

#include <algorithm>
#include <array>

#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr int64_t kMaxPeriodSeconds = 1800;
constexpr int64_t kMaxStabilizationSeconds = 3600;

// What a metric may be of, its member and the type that names it, in upstream's order.
struct Metric {
  std::string_view key, type;
};
constexpr std::array<Metric, 5> kMetrics = {{{"object", "Object"},
                                             {"external", "External"},
                                             {"pods", "Pods"},
                                             {"resource", "Resource"},
                                             {"containerResource", "ContainerResource"}}};

void ValidateReference(const Value& reference, const Path& path, FieldErrors& errors) {
  for (const char* key : {"kind", "name"}) {
    if (reference[key].AsString().empty()) {
      errors.Required(path.Child(key));
    } else {
      errors.Check(CheckPathSegment, path.Child(key), reference[key]);
    }
  }
}

void ValidateIdentifier(const Value& metric, const Path& path, FieldErrors& errors) {
  if (metric["name"].AsString().empty()) {
    errors.Required(path.Child("name"), "must specify a metric name");
  } else {
    errors.Check(CheckPathSegment, path.Child("name"), metric["name"]);
  }
}

void ValidateTarget(const Value& target, const Path& path, FieldErrors& errors) {
  const Value type(target["type"].AsString());
  if (type.AsString().empty())
    errors.Required(path.Child("type"), "must specify a metric target type");
  constexpr std::array<std::string_view, 3> kTypes = {"Utilization", "Value", "AverageValue"};
  if (std::ranges::find(kTypes, type.AsString()) == kTypes.end()) {
    errors.Invalid(path.Child("type"), type, "must be either Utilization, Value, or AverageValue");
  }
  for (const char* key : {"value", "averageValue"}) {
    const Result<Amount> amount = AmountFromJson(target[key]);
    if (!target[key].IsNull() && amount && amount->nano <= 0)
      errors.Invalid(path.Child(key), target[key], "must be positive");
  }
  const Value& share = target["averageUtilization"];
  if (!share.IsNull() && share.AsInt() < 1)
    errors.Invalid(path.Child("averageUtilization"), share, "must be greater than 0");
}

// A share of what was asked for, or an amount.
void ValidateShareOrAmount(const Value& target, const Path& path, FieldErrors& errors) {
  const bool share = !target["averageUtilization"].IsNull();
  const bool amount = !target["averageValue"].IsNull();
  if (!share && !amount) {
    errors.Required(path.Child("averageUtilization"),
                    "must set either a target raw value or a target utilization");
  }
  if (share && amount) {
    errors.Forbidden(path.Child("averageValue"),
                     "may not set both a target raw value and a target utilization");
  }
}

void ValidateSource(std::string_view key, const Value& source, const Path& path,
                    FieldErrors& errors) {
  const Value& target = source["target"];
  const Path target_path = path.Child("target");
  const bool total = !target["value"].IsNull(), average = !target["averageValue"].IsNull();
  if (key == "object")
    ValidateReference(source["describedObject"], path.Child("describedObject"), errors);
  if (key == "resource" || key == "containerResource") {
    if (source["name"].AsString().empty())
      errors.Required(path.Child("name"), "must specify a resource name");
  } else {
    ValidateIdentifier(source["metric"], path.Child("metric"), errors);
  }
  if (key == "containerResource") {
    if (source["container"].AsString().empty()) {
      errors.Required(path.Child("container"), "must specify a container");
    } else {
      errors.Check(CheckDns1123Label, path.Child("container"), source["container"]);
    }
  }
  ValidateTarget(target, target_path, errors);
  const Path average_path = target_path.Child("averageValue");
  if (key == "object" && !total && !average)
    errors.Required(average_path, "must set either a target value or averageValue");
  if (key == "external" && !total && !average)
    errors.Required(average_path, "must set either a target value for metric or a per-pod target");
  if (key == "external" && total && average) {
    errors.Forbidden(target_path.Child("value"),
                     "may not set both a target value for metric and a per-pod target");
  }
  if (key == "pods" && !average)
    errors.Required(average_path, "must specify a positive target averageValue");
  if (key == "resource" || key == "containerResource")
    ValidateShareOrAmount(target, target_path, errors);
}

void ValidateMetric(const Value& metric, const Path& path, FieldErrors& errors) {
  const std::string_view type = metric["type"].AsString();
  if (type.empty()) errors.Required(path.Child("type"), "must specify a metric source type");
  errors.OneOf(path.Child("type"), metric["type"],
               {"ContainerResource", "External", "Object", "Pods", "Resource"});
  std::vector<std::string_view> present;
  for (const Metric& one : kMetrics) {
    const Value& source = metric[one.key];
    if (source.IsNull() && one.type == type)
      errors.Required(path.Child(one.key), "must populate information for the given metric source");
    if (source.IsNull()) continue;
    if (present.empty()) ValidateSource(one.key, source, path.Child(one.key), errors);
    present.push_back(one.key);
  }
  if (present.size() == 1) return;
  for (const Metric& one : kMetrics) {
    if (one.type != type && !metric[one.key].IsNull())
      errors.Forbidden(path.Child(one.key), "must populate the given metric source only");
  }
}

void ValidatePolicy(const Value& policy, const Path& path, FieldErrors& errors) {
  errors.OneOf(path.Child("type"), policy["type"], {"Percent", "Pods"});
  if (policy["value"].AsInt() <= 0)
    errors.Invalid(path.Child("value"), policy["value"].AsInt(), "must be greater than zero");
  const int64_t period = policy["periodSeconds"].AsInt();
  if (period <= 0) errors.Invalid(path.Child("periodSeconds"), period, "must be greater than zero");
  if (period > kMaxPeriodSeconds) {
    errors.Invalid(path.Child("periodSeconds"), period,
                   fmt::format("must be less than or equal to {}", kMaxPeriodSeconds));
  }
}

void ValidateScaling(const Value& rules, const Path& path, FieldErrors& errors) {
  if (rules.IsNull()) return;
  const Value& window = rules["stabilizationWindowSeconds"];
  const Path window_path = path.Child("stabilizationWindowSeconds");
  if (window.AsInt() < 0)
    errors.Invalid(window_path, window, "must be greater than or equal to zero");
  if (window.AsInt() > kMaxStabilizationSeconds) {
    errors.Invalid(window_path, window,
                   fmt::format("must be less than or equal to {}", kMaxStabilizationSeconds));
  }
  if (!rules["selectPolicy"].IsNull())
    errors.OneOf(path.Child("selectPolicy"), rules["selectPolicy"], {"Disabled", "Max", "Min"});
  const Path policies = path.Child("policies");
  if (rules["policies"].empty()) errors.Required(policies, "must specify at least one Policy");
  for (size_t i = 0; i < rules["policies"].size(); ++i)
    ValidatePolicy(rules["policies"].At(i), policies.Index(i), errors);
  const Value& tolerance = rules["tolerance"];
  const Result<Amount> share = AmountFromJson(tolerance);
  if (!tolerance.IsNull() && share && share->nano < 0)
    errors.Invalid(path.Child("tolerance"), tolerance, kNotNegativeMessage);
}

}  // namespace

void ValidateHorizontalPodAutoscaler(const Value& autoscaler, FieldErrors& errors) {
  const Value& spec = autoscaler["spec"];
  const Path path("spec");
  const int64_t least = spec["minReplicas"].AsInt(), most = spec["maxReplicas"].AsInt();
  if (least < 1)
    errors.Invalid(path.Child("minReplicas"), least, "must be greater than or equal to 1");
  if (most < 1) errors.Invalid(path.Child("maxReplicas"), most, "must be greater than 0");
  if (most < least) {
    errors.Invalid(path.Child("maxReplicas"), most,
                   "must be greater than or equal to `minReplicas`");
  }
  ValidateReference(spec["scaleTargetRef"], path.Child("scaleTargetRef"), errors);
  const Path metrics = path.Child("metrics");
  for (size_t i = 0; i < spec["metrics"].size(); ++i)
    ValidateMetric(spec["metrics"].At(i), metrics.Index(i), errors);
  const Path behavior = path.Child("behavior");
  for (const char* key : {"scaleUp", "scaleDown"})
    ValidateScaling(spec["behavior"][key], behavior.Child(key), errors);
}

void ValidateHorizontalPodAutoscalerStatusUpdate(const Value&, const Value& after,
                                                 FieldErrors& errors) {
  const Path path("status");
  for (const char* key : {"currentReplicas", "desiredReplicas"})
    errors.NotNegative(path.Child(key), after["status"][key]);
}

}  // namespace muster::schema
