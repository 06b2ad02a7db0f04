// services/proxy: a request is passed on over HTTP to a ready endpoint of the Service, and answered
// by what that answers. Source of names and messages: k8s.io/kubernetes
// pkg/registry/core/service/storage, k8s.io/apimachinery pkg/util/net SplitSchemeNamePort.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/admission/admission.h"
#include "apiserver/aggregation/extension_request.h"
#include "apiserver/aggregation/service_proxy.h"
#include "apiserver/handlers.h"
#include "apiserver/object_writer.h"
#include "apiserver/services/service_resolver.h"
#include "apiserver/stored_object.h"
#include "base/strings.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

// "[scheme:]name[:port]", "http:web:" included.
struct ProxyName {
  std::string service, port;
};

Result<ProxyName> ParseName(std::string_view name) {
  const std::vector<std::string_view> parts = Split(name, ':');
  const bool schemed = parts.size() == 3;
  if (parts.size() > 3 || parts[schemed ? 1 : 0].empty())
    return Error(Reason::kBadRequest, "invalid service request {:?}", name);
  if (schemed && parts[0] == "https") {
    return Error(Reason::kBadRequest,
                 "the proxy to services speaks http only so far: not https, as in {:?}", name);
  }
  if (schemed && !parts[0].empty() && parts[0] != "http")
    return Error(Reason::kBadRequest, "invalid service request {:?}", name);
  if (schemed) return ProxyName{std::string(parts[1]), std::string(parts[2])};
  return ProxyName{std::string(parts[0]), parts.size() == 2 ? std::string(parts[1]) : ""};
}

// The number of the Service's port that is named, or has the number; of its only one if none is
// given. -1: it has none such.
int64_t PortOf(Core& core, std::string_view ns, const ProxyName& name) {
  const schema::Kind& services = *schema::Registry::BuiltIn().Find("", "v1", "services");
  const store::EntryPtr entry = core.store.Get(ObjectKey(services, ns, name.service));
  if (entry == nullptr) return -1;
  const json::Value ports = core.trees.Of(services, *entry)["spec"]["ports"];
  if (name.port.empty() && ports.size() == 1) return ports.At(0)["port"].AsInt();
  const std::optional<int64_t> number = ParseInt(name.port);
  for (const json::Value& port : ports.items()) {
    const bool meant = number ? port["port"].AsInt() == *number : port["name"].Str() == name.port;
    if (meant) return port["port"].AsInt();
  }
  return -1;
}

// What follows "proxy", with the slash at its end, which servers tell from none.
std::string TargetOf(const Call& call) {
  std::string target;
  for (const std::string_view part : SplitNonEmpty(call.info().rest, '/'))
    target += "/" + PercentEncode(part);
  const std::string_view path =
      std::string_view(call.request().target).substr(0, call.request().target.find('?'));
  if (target.empty() || path.ends_with('/')) target += "/";
  if (const std::string query = call.info().query.Encode(); !query.empty()) target += "?" + query;
  return target;
}

Status StartProxy(Core& core, const CallPtr& call) {
  ASSIGN_OR_RETURN(const ProxyName name, ParseName(call->info().name));
  const std::string& ns = call->info().ns;
  const int64_t port = PortOf(core, ns, name);
  const ServiceLookup found = LookUpService(core, ns, name.service, port);
  if (found.problem == ServiceProblem::kNoService)
    return Error(Reason::kNotFound, "services {:?} not found", name.service);
  if (found.problem == ServiceProblem::kNoPort) {
    return Error(Reason::kServiceUnavailable, "no service port {:?} found for service {:?}",
                 name.port, name.service);
  }
  if (found.problem != ServiceProblem::kNone) {
    return Error(Reason::kServiceUnavailable, "no endpoints available for service {:?}",
                 name.service);
  }
  // Its name may lead anywhere, with the reach of this server.
  if (!found.service.in_cluster || core.options.extension_client == nullptr) {
    return Error(Reason::kServiceUnavailable, "service {:?} has no pods to pass a request on to",
                 name.service);
  }
  ExtensionTarget target;
  target.endpoint = {false, found.service.host, found.service.port, ""};
  target.believes_all = true;  // nobody: it is not TLS
  target.in_cluster = true;
  const std::string host = fmt::format("{}:{}", found.service.host, found.service.port);
  RelayAnswer(core, call, target, PassOnTo(*call, TargetOf(*call), host), host);
  return Status::Ok();
}

}  // namespace

void HandleServiceProxy(Core& core, const CallPtr& call) {
  AdmitUnstored(core, call, core.registry.Find("", "v1", "services"), Operation::kConnect, false,
                json::Obj({{"kind", "ServiceProxyOptions"},
                           {"apiVersion", "v1"},
                           {"path", "/" + call->info().rest}}),
                [&core, call](const json::Value&) { return StartProxy(core, call); });
}

}  // namespace muster::apiserver
