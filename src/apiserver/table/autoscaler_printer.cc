// The table of HorizontalPodAutoscalers. Logic: k8s.io/kubernetes pkg/printers/internalversion.

#include <fmt/core.h>

#include "apiserver/table/printers.h"
#include "base/strings.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr size_t kMaxListedMetrics = 2;

// The member of a metric that its type names: "ContainerResource" -> "containerResource".
std::string SourceOf(const json::Value& metric) {
  std::string key = metric["type"].Str();
  if (!key.empty()) key[0] = ToLower(key.substr(0, 1))[0];
  return key;
}

std::string Number(const json::Value& value) {
  if (value.IsNull()) return "<unknown>";
  return value.IsString() ? value.Str() : json::Write(value);
}

// "cpu: 12%/80%", "5/10 (avg)".
std::string MetricText(const json::Value& metric, const json::Value& measured) {
  const std::string key = SourceOf(metric);
  const json::Value& target = metric[key]["target"];
  const json::Value& current = measured[key]["current"];
  const bool average = !target["averageValue"].IsNull();
  const bool resource = key == "resource" || key == "containerResource";
  if (resource) {
    const std::string name = metric[key]["name"].Str();
    if (average) {
      return fmt::format("{}: {}/{}", name, Number(current["averageValue"]),
                         Number(target["averageValue"]));
    }
    const json::Value& share = current["averageUtilization"];
    const json::Value& wanted = target["averageUtilization"];
    return fmt::format("{}: {}/{}", name, share.IsNull() ? "<unknown>" : Number(share) + "%",
                       wanted.IsNull() ? "<auto>" : Number(wanted) + "%");
  }
  if (key == "pods" || average) {
    return fmt::format("{}/{}{}", Number(current["averageValue"]), Number(target["averageValue"]),
                       key == "pods" ? "" : " (avg)");
  }
  return fmt::format("{}/{}", Number(current["value"]), Number(target["value"]));
}

std::string Targets(const json::Value& autoscaler) {
  const json::Value& metrics = autoscaler["spec"]["metrics"];
  if (metrics.empty()) return "<none>";
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(metrics.size(), kMaxListedMetrics); ++i)
    texts.push_back(MetricText(metrics.At(i), autoscaler["status"]["currentMetrics"].At(i)));
  const std::string text = Join(texts, ", ");
  if (metrics.size() <= kMaxListedMetrics) return text;
  return fmt::format("{} + {} more...", text, metrics.size() - kMaxListedMetrics);
}

}  // namespace

json::Array HorizontalPodAutoscalerCells(const json::Value& autoscaler, Time now) {
  const json::Value& spec = autoscaler["spec"];
  const json::Value& least = spec["minReplicas"];
  return {NameCell(autoscaler),
          spec["scaleTargetRef"]["kind"].Str() + "/" + spec["scaleTargetRef"]["name"].Str(),
          Targets(autoscaler),
          least.IsNull() ? "<unset>" : json::Write(least),
          spec["maxReplicas"].AsInt(),
          autoscaler["status"]["currentReplicas"].AsInt(),
          AgeOf(autoscaler, now)};
}

}  // namespace muster::apiserver
