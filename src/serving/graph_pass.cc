#include "serving/graph_pass.h"

#include <fmt/core.h>

#include "schema/conditions.h"
#include "serving/graph_condition.h"
#include "serving/hosts.h"
#include "serving/predictor_status.h"

namespace muster::serving {
namespace {

using json::Value;
namespace resources = client::resources;

bool IsOurs(const Value& object, const Value& graph) {
  return !object.IsNull() && client::ControllerOf(object)["uid"] == graph["metadata"]["uid"];
}

// What the steps of all nodes have under `key`.
std::set<std::string> OfSteps(const Value& graph, std::string_view key) {
  std::set<std::string> found;
  for (const auto& [node, router] : graph["spec"]["nodes"].members()) {
    for (const Value& step : router["steps"].items()) {
      if (std::string value = step[key].Str(); !value.empty()) found.insert(std::move(value));
    }
  }
  return found;
}

ServingCondition ReadyOf(const Value& graph, const GraphChildren& children,
                         const GatewayAddress& gateway) {
  const std::string name = graph["metadata"]["name"].Str();
  if (gateway.port == 0) {
    return {"Ready", "False", "NoGateway",
            "pods have no network of their own on this node, so there is no gateway", true};
  }
  const bool taken = !children.service.IsNull() && !IsOurs(children.service, graph);
  if (children.named_as_a_service) {
    return {"Ready", "False", "NameTaken",
            fmt::format("InferenceService {} is older and has the name; rename one of them", name),
            true};
  }
  if (taken) {
    return {"Ready", "False", "NameTaken",
            fmt::format("the Service {} belongs to somebody else; rename the InferenceGraph", name),
            true};
  }
  if (!children.url_fault.empty())
    return {"Ready", "False", "UrlRefused", children.url_fault, true};
  for (const std::string& condition : OfSteps(graph, "condition")) {
    if (const Status readable = CheckGraphCondition(condition); !readable.ok())
      return {"Ready", "False", "ConditionRefused", readable.message(), true};
  }
  if (!children.missing.empty()) {
    return {"Ready", "False", "ServiceMissing",
            fmt::format("there is no InferenceService {}", fmt::join(children.missing, ", ")),
            true};
  }
  if (!children.not_ready.empty()) {
    return {"Ready", "False", "ServiceNotReady",
            fmt::format("not ready: {}", fmt::join(children.not_ready, ", ")), true};
  }
  if (const std::string fault = gateway.Fault(); !fault.empty())
    return {"Ready", "False", "GatewayNotListening", fault, true};
  if (!IsOurs(children.service, graph) || !IsOurs(children.gateway_slice, graph))
    return {"Ready", "Unknown", "", "", true};
  return {"Ready", "True", "", "", true};
}

void KeepSlice(const Value& graph, const Value& is, const GatewayAddress& gateway,
               client::Reconciled& out) {
  const client::Target target{resources::kEndpointSlices, graph["metadata"]["namespace"].Str(),
                              GatewaySliceName(graph["metadata"]["name"].AsString()), ""};
  const Value wanted = MakeGatewaySlice(graph, gateway);
  if (is.IsNull()) return out.Create(target, wanted);
  const bool same = is["endpoints"].At(0)["addresses"] == wanted["endpoints"].At(0)["addresses"] &&
                    is["ports"].At(0)["port"] == wanted["ports"].At(0)["port"];
  if (same || !IsOurs(is, graph)) return;
  out.PatchMerge(target,
                 json::Obj({{"endpoints", wanted["endpoints"]}, {"ports", wanted["ports"]}}));
}

// To who has the name.
void Leave(const Value& graph, const client::Resource& resource, const Value& child,
           client::Reconciled& out) {
  if (!IsOurs(child, graph) || child["metadata"].Has("deletionTimestamp")) return;
  client::DeleteOptions options;
  options.precondition_uid = child["metadata"]["uid"].Str();
  out.Delete({resource, graph["metadata"]["namespace"].Str(), child["metadata"]["name"].Str(), ""},
             std::move(options));
}

}  // namespace

std::set<std::string> ServicesOf(const Value& graph) { return OfSteps(graph, "serviceName"); }

std::set<std::string> UrlsOf(const Value& graph) { return OfSteps(graph, "serviceUrl"); }

client::Reconciled ReconcileGraph(const Value& graph, const GraphChildren& children,
                                  const GatewayAddress& gateway, Time now) {
  client::Reconciled out;
  out.subject = graph;
  const std::string ns = graph["metadata"]["namespace"].Str();
  const std::string name = graph["metadata"]["name"].Str();
  if (!gateway.Fault().empty()) out.LookAgainAt(now + kGatewayLookPeriod);
  std::vector<ServingCondition> conditions = {ReadyOf(graph, children, gateway)};
  std::string host = SharedHostOf(name, ns);
  const Value& before = graph["status"]["conditions"];
  if (!children.host_owner.empty()) {
    host = OwnHostOf(name, ns);
    conditions.push_back(HostTaken(name, ns, children.host_owner));
    if (!schema::ConditionHolds(before, "HostTaken"))
      out.Event(graph, client::EventType::kWarning, "HostTaken", conditions.back().message);
  }
  Value status = graph["status"]
                     .Set("conditions", ConditionsOf(before, std::move(conditions), now))
                     .Set("url", "http://" + host)
                     .Set("observedGeneration", graph["metadata"]["generation"])
                     .Set("deploymentMode", "Standard");
  if (status != graph["status"])
    out.UpdateStatus({kInferenceGraphs, ns, name, ""}, graph.Set("status", status));
  if (gateway.port == 0) return out;
  if (children.named_as_a_service) {
    Leave(graph, resources::kServices, children.service, out);
    Leave(graph, resources::kEndpointSlices, children.gateway_slice, out);
    return out;
  }
  if (children.service.IsNull()) {
    out.Create({resources::kServices, ns, name, ""}, MakeGatewayService(graph));
  }
  if (children.service.IsNull() || IsOurs(children.service, graph))
    KeepSlice(graph, children.gateway_slice, gateway, out);
  return out;
}

}  // namespace muster::serving
