#include "controllers/podautoscaler/metric_answers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/bounded_seconds.h"
#include "base/go_duration.h"
#include "base/strings.h"
#include "cluster/quantity.h"
#include "schema/label_selector.h"

namespace muster::controllers {
namespace {

constexpr Duration kDefaultWindow = minutes(1);
constexpr char kResourceApi[] = "resource metrics API";
constexpr char kCustomApi[] = "custom metrics API";
constexpr char kExternalApi[] = "external metrics API";

client::Probe ProbeOf(std::string path) {
  client::Probe probe;
  probe.name = path;
  probe.path = std::move(path);
  probe.failures_too = true;
  return probe;
}

client::Probe ResourceProbe(const MetricScope& scope) {
  client::Probe probe;
  probe.name = fmt::format("pods.metrics.k8s.io {}", scope.selector);
  probe.target = {{"metrics.k8s.io", "v1beta1", "pods"}, scope.ns, "", ""};
  probe.list = {.label_selector = scope.selector};
  probe.failures_too = true;
  return probe;
}

// A selector of metrics; none: every one of them.
std::string MetricSelector(const json::Value& metric) {
  if (metric["selector"].IsNull()) return "";
  const Result<schema::LabelSelector> selector =
      schema::LabelSelector::FromJson(metric["selector"]);
  return selector ? selector->ToString() : "";
}

std::string WithQuery(std::string path,
                      std::initializer_list<std::pair<const char*, std::string>> query) {
  char separator = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    path += fmt::format("{}{}={}", separator, name, PercentEncode(value));
    separator = '&';
  }
  return path;
}

// The newest version that we know and the server has; "" if it has none.
std::string CustomVersion(const MetricScope& scope) {
  const auto group = scope.observations.find(kCustomMetricsGroup);
  if (group == scope.observations.end()) return "";
  for (const std::string_view known : {"v1beta2", "v1beta1"}) {
    for (const json::Value& version : group->second["versions"].items()) {
      if (version["version"].AsString() == known) return std::string(known);
    }
  }
  return "";
}

// The path of an object among custom metrics; "" if its kind is not known.
std::string ObjectPath(const json::Value& object, const MetricScope& scope) {
  const std::string name = PercentEncode(object["name"].AsString());
  const std::string ns = PercentEncode(scope.ns);
  if (object["kind"].AsString() == "Namespace") return fmt::format("/namespaces/{}/metrics", ns);
  const client::ServedKind* kind =
      scope.find_kind(GroupOf(object["apiVersion"].AsString()), object["kind"].AsString());
  if (kind == nullptr) return "";
  std::string resource = kind->resource.plural;
  if (!kind->resource.group.empty()) resource += "." + kind->resource.group;
  if (!kind->namespaced) return fmt::format("/{}/{}", resource, name);
  return fmt::format("/namespaces/{}/{}/{}", ns, resource, name);
}

std::optional<client::Probe> CustomProbe(const json::Value& metric, const MetricScope& scope) {
  const std::string version = CustomVersion(scope);
  if (version.empty()) return std::nullopt;
  const std::string root = fmt::format("{}/{}", kCustomMetricsGroup, version);
  const bool of_pods = metric["type"].AsString() == "Pods";
  const json::Value& source = metric[of_pods ? "pods" : "object"];
  const std::string name = PercentEncode(source["metric"]["name"].AsString());
  const std::string selector = MetricSelector(source["metric"]);
  if (of_pods) {
    return ProbeOf(
        WithQuery(fmt::format("{}/namespaces/{}/pods/*/{}", root, PercentEncode(scope.ns), name),
                  {{"labelSelector", scope.selector}, {"metricLabelSelector", selector}}));
  }
  const std::string object = ObjectPath(source["describedObject"], scope);
  if (object.empty()) return std::nullopt;
  return ProbeOf(
      WithQuery(fmt::format("{}{}/{}", root, object, name), {{"metricLabelSelector", selector}}));
}

client::Probe ExternalProbe(const json::Value& metric, const MetricScope& scope) {
  const json::Value& identifier = metric["external"]["metric"];
  return ProbeOf(
      WithQuery(fmt::format("/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{}",
                            PercentEncode(scope.ns), PercentEncode(identifier["name"].AsString())),
                {{"labelSelector", MetricSelector(identifier)}}));
}

// What a server said, or its silence about a path that it does not have.
std::string Reported(const json::Value& failure, std::string_view asked_for) {
  constexpr std::string_view kNoSuchPath = "the server could not find the requested resource";
  const std::string_view message = failure["message"].AsString();
  const bool no_path = failure["reason"].AsString() == "NotFound" &&
                       (message == kNoSuchPath || message.starts_with("the server answered 404"));
  return no_path ? fmt::format("{} (get {})", kNoSuchPath, asked_for) : std::string(message);
}

// The items of an answer.
Result<json::Array> ItemsOf(const client::Probe& probe, const MetricScope& scope,
                            std::string_view api, std::string_view asked_for) {
  const auto answer = scope.observations.find(probe.name);
  const json::Value& list = answer == scope.observations.end() ? json::Value() : answer->second;
  if (client::IsFailure(list)) {
    return Error(Reason::kInternalError, "unable to fetch metrics from {}: {}", api,
                 Reported(list, asked_for));
  }
  if (list["items"].empty())
    return Error(Reason::kInternalError, "no metrics returned from {}", api);
  return list["items"].items();
}

Result<json::Array> CustomItems(const json::Value& metric, const MetricScope& scope) {
  const std::optional<client::Probe> probe = CustomProbe(metric, scope);
  if (probe.has_value()) return ItemsOf(*probe, scope, kCustomApi, "pods.custom.metrics.k8s.io");
  if (CustomVersion(scope).empty()) {
    const auto group = scope.observations.find(kCustomMetricsGroup);
    const bool silent = group != scope.observations.end() && client::IsFailure(group->second) &&
                        group->second["reason"].AsString() != "NotFound";
    return Error(Reason::kInternalError, "unable to fetch metrics from {}: {}", kCustomApi,
                 silent ? group->second["message"].AsString()
                        : "no custom metrics API (custom.metrics.k8s.io) registered");
  }
  const json::Value& object = metric["object"]["describedObject"];
  return Error(Reason::kInternalError, "unable to fetch metrics from {}: {}", kCustomApi,
               NoSuchKind(GroupOf(object["apiVersion"].AsString()), object["kind"].AsString()));
}

Result<int64_t> MilliOf(const json::Value& quantity) {
  ASSIGN_OR_RETURN(const cluster::Quantity amount, cluster::Quantity::FromJson(quantity));
  return amount.Milli();
}

Duration WindowOf(const json::Value& item) {
  if (const std::optional<int64_t> whole = item["windowSeconds"].Int())
    return BoundedSeconds(*whole);
  if (const std::optional<int64_t> whole = item["window"].Int()) return BoundedSeconds(*whole);
  return ParseGoDuration(item["window"].AsString()).value_or(kDefaultWindow);
}

Sample SampleOf(const json::Value& item, int64_t milli) {
  return {milli, ParseTime(item["timestamp"].AsString()).value_or(Time{}), WindowOf(item)};
}

// What the containers of a pod use together; nullopt if one of them was not measured.
Result<std::optional<int64_t>> SumOf(const json::Value& item, std::string_view resource) {
  __int128 sum = 0;
  for (const json::Value& container : item["containers"].items()) {
    const json::Value& usage = container["usage"][resource];
    if (usage.IsNull()) return std::nullopt;
    ASSIGN_OR_RETURN(const int64_t milli, MilliOf(usage));
    sum += milli;
  }
  if (item["containers"].empty()) return std::nullopt;
  return static_cast<int64_t>(std::min<__int128>(sum, INT64_MAX));
}

Result<std::optional<int64_t>> UsageOf(const json::Value& item, std::string_view resource,
                                       std::string_view container_name) {
  for (const json::Value& container : item["containers"].items()) {
    if (container["name"].AsString() != container_name) continue;
    const json::Value& usage = container["usage"][resource];
    if (usage.IsNull()) return std::nullopt;
    return MilliOf(usage);
  }
  return Error(Reason::kInternalError,
               "failed to get container metrics: container {} not present in metrics for pod {}/{}",
               container_name, item["metadata"]["namespace"].AsString(),
               item["metadata"]["name"].AsString());
}

}  // namespace

bool IsCustomMetric(const json::Value& metric) {
  const std::string_view type = metric["type"].AsString();
  return type == "Pods" || type == "Object";
}

std::optional<client::Probe> QuestionFor(const json::Value& metric, const MetricScope& scope) {
  if (IsCustomMetric(metric)) return CustomProbe(metric, scope);
  if (metric["type"].AsString() == "External") return ExternalProbe(metric, scope);
  return ResourceProbe(scope);
}

Result<Samples> ResourceSamples(const MetricScope& scope, std::string_view resource,
                                std::string_view container) {
  ASSIGN_OR_RETURN(const json::Array items,
                   ItemsOf(ResourceProbe(scope), scope, kResourceApi, "pods.metrics.k8s.io"));
  Samples samples;
  for (const json::Value& item : items) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> milli, container.empty()
                                                             ? SumOf(item, resource)
                                                             : UsageOf(item, resource, container));
    if (milli.has_value()) samples[item["metadata"]["name"].Str()] = SampleOf(item, *milli);
  }
  return samples;
}

Result<Samples> PodSamples(const json::Value& metric, const MetricScope& scope) {
  ASSIGN_OR_RETURN(const json::Array items, CustomItems(metric, scope));
  Samples samples;
  for (const json::Value& item : items) {
    ASSIGN_OR_RETURN(const int64_t milli, MilliOf(item["value"]));
    samples[item["describedObject"]["name"].Str()] = SampleOf(item, milli);
  }
  return samples;
}

Result<int64_t> ObjectMilli(const json::Value& metric, const MetricScope& scope) {
  ASSIGN_OR_RETURN(const json::Array items, CustomItems(metric, scope));
  if (items.size() != 1) {
    return Error(Reason::kInternalError,
                 "unable to fetch metrics from {}: the custom metrics API server returned {} "
                 "results when we asked for exactly one",
                 kCustomApi, items.size());
  }
  return MilliOf(items[0]["value"]);
}

Result<int64_t> ExternalMilli(const json::Value& metric, const MetricScope& scope) {
  const std::string asked_for =
      fmt::format("{}.external.metrics.k8s.io", metric["external"]["metric"]["name"].AsString());
  ASSIGN_OR_RETURN(const json::Array items,
                   ItemsOf(ExternalProbe(metric, scope), scope, kExternalApi, asked_for));
  __int128 sum = 0;
  for (const json::Value& item : items) {
    ASSIGN_OR_RETURN(const int64_t milli, MilliOf(item["value"]));
    sum += milli;
  }
  return static_cast<int64_t>(std::clamp<__int128>(sum, INT64_MIN, INT64_MAX));
}

std::string GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == api_version.npos ? "" : std::string(api_version.substr(0, slash));
}

std::string NoSuchKind(std::string_view group, std::string_view kind) {
  return fmt::format("no matches for kind {:?} in group {:?}", kind, group);
}

}  // namespace muster::controllers
