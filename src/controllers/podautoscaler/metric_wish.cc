#include "controllers/podautoscaler/metric_wish.h"

#include <utility>
#include <vector>

#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::controllers {
namespace {

int64_t MilliOf(const json::Value& quantity) {
  const Result<cluster::Quantity> amount = cluster::Quantity::FromJson(quantity);
  return amount ? amount->Milli() : 0;
}

std::string MilliText(int64_t milli) { return cluster::Quantity::FromMilli(milli).ToString(); }

// As Go prints a *metav1.LabelSelector.
std::string SelectorText(const json::Value& selector) {
  if (selector.IsNull()) return "nil";
  std::string labels, expressions;
  const json::Value sorted = json::SortKeys(selector["matchLabels"]);
  for (const auto& [key, value] : sorted.members())
    labels += fmt::format("{}: {},", key, value.AsString());
  for (const json::Value& term : selector["matchExpressions"].items()) {
    expressions += fmt::format("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                               term["key"].AsString(), term["operator"].AsString(),
                               Join(json::ToStrings(term["values"]), " "));
  }
  return fmt::format(
      "&LabelSelector{{MatchLabels:map[string]string{{{}}},"
      "MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
      labels, expressions);
}

std::string ExternalName(const json::Value& identifier) {
  return fmt::format("external metric {}({})", identifier["name"].AsString(),
                     SelectorText(identifier["selector"]));
}

json::Value Identifier(const json::Value& metric) {
  json::Value identifier = json::Obj({{"name", metric["name"]}});
  if (!metric["selector"].IsNull())
    identifier = std::move(identifier).Set("selector", metric["selector"]);
  return identifier;
}

json::Value StatusOf(const char* type, const char* member, json::Value measured) {
  return json::Obj({{"type", type}, {member, std::move(measured)}});
}

MetricWish Valid(const Proposal& proposal, std::string name, json::Value status) {
  MetricWish wish;
  wish.valid = true;
  wish.replicas = proposal.replicas;
  wish.name = std::move(name);
  wish.status = std::move(status);
  return wish;
}

// `context` leads to `problem` in the error.
MetricWish Invalid(std::string reason, std::string problem, std::string_view context) {
  MetricWish wish;
  wish.reason = std::move(reason);
  wish.error = fmt::format("{}: {}", context, problem);
  wish.problem = std::move(problem);
  return wish;
}

Result<Proposal> ResourceProposal(const json::Value& source, std::string_view container,
                                  const Fleet& fleet, const MetricScope& scope) {
  const json::Value& target = source["target"];
  const std::string_view resource = source["name"].AsString();
  const bool average = !target["averageValue"].IsNull();
  if (!average && target["averageUtilization"].IsNull()) {
    return Error(Reason::kInvalid,
                 "invalid resource metric source: neither an average utilization target nor an "
                 "average value (usage) target was set");
  }
  const std::string context =
      fmt::format("failed to get {} {}: ", resource, average ? "usage" : "utilization");
  Result<Samples> samples = ResourceSamples(scope, resource, container);
  if (!samples) {
    return Error(samples.error().WithPrefix(
        fmt::format("{}unable to get metrics for resource {}: ", context, resource)));
  }
  Result<Proposal> proposal =
      average ? ReplicasForAverage(fleet, std::move(*samples), resource,
                                   MilliOf(target["averageValue"]))
              : ReplicasForUtilization(fleet, std::move(*samples), resource, container,
                                       target["averageUtilization"].AsInt());
  if (!proposal) return Error(proposal.error().WithPrefix(context));
  return proposal;
}

MetricWish ResourceWish(const json::Value& metric, const Fleet& fleet, const MetricScope& scope) {
  const bool of_container = metric["type"].AsString() == "ContainerResource";
  const json::Value& source = metric[of_container ? "containerResource" : "resource"];
  const std::string resource = source["name"].Str();
  const std::string container = of_container ? source["container"].Str() : "";
  const Result<Proposal> proposal = ResourceProposal(source, container, fleet, scope);
  if (!proposal) {
    return Invalid(of_container ? "FailedGetContainerResourceMetric" : "FailedGetResourceMetric",
                   proposal.error().message(),
                   of_container ? fmt::format("failed to get {} container metric value", container)
                                : fmt::format("failed to get {} resource metric value", resource));
  }
  const bool average = !source["target"]["averageValue"].IsNull();
  json::Value current = json::Obj({{"averageValue", MilliText(proposal->milli)}});
  std::string name = fmt::format("{} resource", resource);
  if (!average) {
    current = std::move(current).Set("averageUtilization", proposal->utilization);
    name = fmt::format("{} {}resource utilization (percentage of request)", resource,
                       of_container ? "container " : "");
  }
  json::Value measured = json::Obj({{"name", resource}, {"current", std::move(current)}});
  if (of_container) measured = std::move(measured).Set("container", container);
  return Valid(*proposal, std::move(name),
               of_container ? StatusOf("ContainerResource", "containerResource", measured)
                            : StatusOf("Resource", "resource", measured));
}

MetricWish PodsWish(const json::Value& metric, const Fleet& fleet, const MetricScope& scope) {
  const json::Value& source = metric["pods"];
  const std::string name = source["metric"]["name"].Str();
  Result<Samples> samples = PodSamples(metric, scope);
  if (!samples)
    samples =
        std::unexpected(samples.error().WithPrefix(fmt::format("unable to get metric {}: ", name)));
  const Result<Proposal> proposal =
      samples ? ReplicasForAverage(fleet, std::move(*samples), "",
                                   MilliOf(source["target"]["averageValue"]))
              : Result<Proposal>(std::unexpected(samples.error()));
  if (!proposal) {
    return Invalid("FailedGetPodsMetric", proposal.error().message(),
                   "failed to get pods metric value");
  }
  return Valid(
      *proposal, fmt::format("pods metric {}", name),
      StatusOf(
          "Pods", "pods",
          json::Obj({{"metric", Identifier(source["metric"])},
                     {"current", json::Obj({{"averageValue", MilliText(proposal->milli)}})}})));
}

MetricWish ObjectWish(const json::Value& metric, const Fleet& fleet, const MetricScope& scope) {
  constexpr char kReason[] = "FailedGetObjectMetric";
  constexpr char kContext[] = "failed to get object metric value";
  const json::Value& source = metric["object"];
  const json::Value& target = source["target"];
  const json::Value& object = source["describedObject"];
  const std::string name = source["metric"]["name"].Str();
  const std::string_view type = target["type"].AsString();
  const bool whole = type == "Value" && !target["value"].IsNull();
  if (!whole && (type != "AverageValue" || target["averageValue"].IsNull())) {
    return Invalid(kReason,
                   "invalid object metric source: neither a value target nor an average value "
                   "target was set",
                   kContext);
  }
  const Result<int64_t> measured = ObjectMilli(metric, scope);
  if (!measured) {
    // In upstream's order of words.
    return Invalid(
        kReason,
        fmt::format("unable to get metric {}: {} on {} {}/{}", name, object["kind"].AsString(),
                    scope.ns, object["name"].AsString(), measured.error().message()),
        kContext);
  }
  const Result<Proposal> proposal =
      whole ? ReplicasForValue(fleet, *measured, MilliOf(target["value"]))
            : ReplicasForShare(fleet, *measured, MilliOf(target["averageValue"]));
  if (!proposal) return Invalid(kReason, proposal.error().message(), kContext);
  return Valid(*proposal,
               whole ? fmt::format("{} metric {}", object["kind"].AsString(), name)
                     : ExternalName(source["metric"]),
               StatusOf("Object", "object",
                        json::Obj({{"metric", Identifier(source["metric"])},
                                   {"describedObject", object},
                                   {"current", json::Obj({{whole ? "value" : "averageValue",
                                                           MilliText(proposal->milli)}})}})));
}

MetricWish ExternalWish(const json::Value& metric, const Fleet& fleet, const MetricScope& scope) {
  constexpr char kReason[] = "FailedGetExternalMetric";
  const json::Value& source = metric["external"];
  const json::Value& target = source["target"];
  const std::string name = source["metric"]["name"].Str();
  const std::string context = fmt::format("failed to get {} external metric value", name);
  const bool average = !target["averageValue"].IsNull();
  if (!average && target["value"].IsNull()) {
    return Invalid(kReason,
                   "invalid external metric source: neither a value target nor an average value "
                   "target was set",
                   context);
  }
  Result<Proposal> proposal;
  Result<int64_t> measured = ExternalMilli(metric, scope);
  if (!measured) {
    proposal = std::unexpected(measured.error().WithPrefix(
        fmt::format("unable to get external metric {}/{}/{}: ", scope.ns, name,
                    SelectorText(source["metric"]["selector"]))));
  } else if (average) {
    proposal = ReplicasForShare(fleet, *measured, MilliOf(target["averageValue"]));
  } else {
    proposal = ReplicasForValue(fleet, *measured, MilliOf(target["value"]));
  }
  if (!proposal) {
    return Invalid(kReason, proposal.error().message(),
                   average ? fmt::format("{}: failed to get {} external metric", context, name)
                           : fmt::format("{}: failed to get external metric {}", context, name));
  }
  return Valid(*proposal, ExternalName(source["metric"]),
               StatusOf("External", "external",
                        json::Obj({{"metric", Identifier(source["metric"])},
                                   {"current", json::Obj({{average ? "averageValue" : "value",
                                                           MilliText(proposal->milli)}})}})));
}

}  // namespace

MetricWish WishOf(const json::Value& metric, const Fleet& fleet, const MetricScope& scope) {
  const std::string_view type = metric["type"].AsString();
  if (type == "Pods") return PodsWish(metric, fleet, scope);
  if (type == "Object") return ObjectWish(metric, fleet, scope);
  if (type == "External") return ExternalWish(metric, fleet, scope);
  return ResourceWish(metric, fleet, scope);
}

}  // namespace muster::controllers
