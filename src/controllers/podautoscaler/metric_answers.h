// src/controllers/podautoscaler/metric_answers.h
//
// What the metrics APIs are asked for one metric of an autoscaler, and what their answers say:
// metrics.k8s.io (pods' resources), custom.metrics.k8s.io (pods and objects) and
// external.metrics.k8s.io. Messages: k8s.io/kubernetes pkg/controller/podautoscaler/metrics.
//
// Thread: any (pure functions).

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/podautoscaler/replica_calculator.h"
#include "json/value.h"

namespace muster::controllers {

// Asked for the versions of the custom metrics API.
inline constexpr char kCustomMetricsGroup[] = "/apis/custom.metrics.k8s.io";

using KindFinder =
    std::function<const client::ServedKind*(std::string_view group, std::string_view kind)>;

// Where a metric is asked for.
struct MetricScope {
  std::string ns;
  std::string selector;  // of the pods, as text
  const client::Observations& observations;
  KindFinder find_kind;
};

// "Pods" and "Object": whose API may not be there.
bool IsCustomMetric(const json::Value& metric);

// What has to be asked for an entry of spec.metrics; nullopt: nothing that helps.
std::optional<client::Probe> QuestionFor(const json::Value& metric, const MetricScope& scope);

// The answers to these questions. `container`: "" for the sum of all.
Result<Samples> ResourceSamples(const MetricScope& scope, std::string_view resource,
                                std::string_view container);
Result<Samples> PodSamples(const json::Value& metric, const MetricScope& scope);
Result<int64_t> ObjectMilli(const json::Value& metric, const MetricScope& scope);
Result<int64_t> ExternalMilli(const json::Value& metric, const MetricScope& scope);

// group and kind of an apiVersion and a kind.
std::string GroupOf(std::string_view api_version);
std::string NoSuchKind(std::string_view group, std::string_view kind);

}  // namespace muster::controllers
