#include "controllers/endpointslice/endpoints_controller.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "controllers/endpointslice/service_pods.h"
#include "controllers/pods/pod_facts.h"
#include "json/write.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr const char* kManagedBy = "endpoints.kubernetes.io/managed-by";
constexpr const char* kManager = "endpoint-controller";
constexpr const char* kHeadless = "service.kubernetes.io/headless";
constexpr const char* kOverCapacity = "endpoints.kubernetes.io/over-capacity";

// Addresses that have the same ports, in order.
struct Subset {
  json::Value ports;
  std::map<std::pair<std::string, std::string>, json::Value> ready, other;  // by address and uid
};
using Subsets = std::map<std::string, Subset>;  // by the text of the ports

bool IsHeadless(const json::Value& service) {
  const std::string_view address = service["spec"]["clusterIP"].AsString();
  return address.empty() || address == "None";
}

json::Value AddressOf(const json::Value& service, const json::Value& pod) {
  json::Object address{{"ip", pod["status"]["podIP"]}};
  if (const std::string hostname = HostnameFor(service, pod); !hostname.empty())
    address.emplace_back("hostname", hostname);
  if (pod["spec"].Has("nodeName")) address.emplace_back("nodeName", pod["spec"]["nodeName"]);
  address.emplace_back("targetRef", ReferenceTo(pod));
  return json::Value(std::move(address));
}

// Ports without a name leave it out.
json::Value EndpointsPorts(const json::Value& service, const json::Value& pod) {
  const json::Value all = PortsOf(service, pod);
  json::Array ports;
  for (const json::Value& port : all.items())
    ports.push_back(port["name"].AsString().empty() ? port.Remove("name") : port);
  return json::Value(std::move(ports));
}

Subsets CollectSubsets(const json::Value& service, const std::vector<json::Value>& pods) {
  const bool publish = service["spec"]["publishNotReadyAddresses"].AsBool();
  const bool needs_ports = !service["spec"]["ports"].empty() || !IsHeadless(service);
  Subsets subsets;
  for (const json::Value& pod : pods) {
    if (!HasEndpoint(pod) || (pod["metadata"].Has("deletionTimestamp") && !publish)) continue;
    json::Value ports = EndpointsPorts(service, pod);
    if (ports.empty() && needs_ports) continue;
    Subset& subset = subsets[json::Write(ports)];
    subset.ports = std::move(ports);
    auto& into = publish || IsReady(pod) ? subset.ready : subset.other;
    into[{pod["status"]["podIP"].Str(), pod["metadata"]["uid"].Str()}] = AddressOf(service, pod);
  }
  return subsets;
}

size_t Count(const Subsets& subsets, bool ready) {
  size_t count = 0;
  for (const auto& [text, subset] : subsets)
    count += ready ? subset.ready.size() : subset.other.size();
  return count;
}

// Leaves `most` of the ready (other) addresses, each subset its share, rounded up.
void Cut(Subsets& subsets, bool ready, size_t most) {
  const size_t total = Count(subsets, ready);
  size_t left = most;
  for (auto& [text, subset] : subsets) {
    auto& addresses = ready ? subset.ready : subset.other;
    const size_t share = total == 0 ? 0 : (addresses.size() * most + total - 1) / total;
    const size_t keep = std::min({share, left, addresses.size()});
    addresses.erase(std::next(addresses.begin(), static_cast<ptrdiff_t>(keep)), addresses.end());
    left -= keep;
  }
}

// Whether something had to go.
bool CutToCapacity(Subsets& subsets) {
  const size_t ready = Count(subsets, true);
  if (ready + Count(subsets, false) <= kMaxEndpointsAddresses) return false;
  if (ready > kMaxEndpointsAddresses) Cut(subsets, true, kMaxEndpointsAddresses);
  Cut(subsets, false, kMaxEndpointsAddresses - std::min(ready, kMaxEndpointsAddresses));
  return true;
}

json::Value SubsetsToJson(const Subsets& subsets) {
  json::Array out;
  for (const auto& [text, subset] : subsets) {
    json::Object one;
    for (const auto& [key, addresses] :
         {std::pair("addresses", &subset.ready), std::pair("notReadyAddresses", &subset.other)}) {
      json::Array list;
      for (const auto& [place, address] : *addresses) list.push_back(address);
      if (!list.empty()) one.emplace_back(key, json::Value(std::move(list)));
    }
    if (one.empty()) continue;
    if (!subset.ports.empty()) one.emplace_back("ports", subset.ports);
    out.push_back(json::Value(std::move(one)));
  }
  return json::Value(std::move(out));
}

bool IsAsWanted(const json::Value& have, const json::Value& want) {
  const json::Value &mine = have["metadata"], &wanted = want["metadata"];
  return have["subsets"].items() == want["subsets"].items() && mine["labels"] == wanted["labels"] &&
         mine["annotations"][kOverCapacity] == wanted["annotations"][kOverCapacity];
}

// Over what is there: annotations of others stay.
json::Value Merge(const json::Value& have, const json::Value& want) {
  const json::Value& truncated = want["metadata"]["annotations"][kOverCapacity];
  json::Value out = have.SetPath({"metadata", "labels"}, want["metadata"]["labels"]);
  out = truncated.IsNull() ? out.RemovePath({"metadata", "annotations", kOverCapacity})
                           : out.SetPath({"metadata", "annotations", kOverCapacity}, truncated);
  return want["subsets"].empty() ? out.Remove("subsets") : out.Set("subsets", want["subsets"]);
}

}  // namespace

json::Value MakeEndpoints(const json::Value& service, const std::vector<json::Value>& pods) {
  Subsets subsets = CollectSubsets(service, pods);
  const bool truncated = CutToCapacity(subsets);
  json::Value labels = service["metadata"]["labels"].Set(kManagedBy, kManager);
  labels = IsHeadless(service) ? labels.Set(kHeadless, "") : labels.Remove(kHeadless);
  json::Value metadata = json::Obj({{"name", service["metadata"]["name"]},
                                    {"namespace", service["metadata"]["namespace"]},
                                    {"labels", std::move(labels)}});
  if (truncated)
    metadata = std::move(metadata).SetPath({"annotations", kOverCapacity}, "truncated");
  json::Value endpoints =
      json::Obj({{"apiVersion", "v1"}, {"kind", "Endpoints"}, {"metadata", std::move(metadata)}});
  json::Value list = SubsetsToJson(subsets);
  return list.empty() ? endpoints : std::move(endpoints).Set("subsets", std::move(list));
}

std::vector<client::Trigger> EndpointsController::Setup(client::InformerSet& informers) {
  const client::Informer& services = FollowServicesAndPods(informers);
  informers.Get(kOldEndpoints, json::Fields::Whole());
  return {client::OnSelf(resources::kServices), OnSelectedPod(services),
          client::OnSelf(kOldEndpoints)};
}

client::Reconciled EndpointsController::Reconcile(const client::View& view,
                                                  const client::Observations&,
                                                  const client::ObjectKey& key, Time, uint64_t) {
  client::Reconciled out;
  const json::Value* service = view.Of(resources::kServices).Find(key);
  const json::Value* have = view.Of(kOldEndpoints).Find(key);
  const client::Target target{kOldEndpoints, key.ns, key.name, ""};
  if (have != nullptr && (*have)["metadata"].Has("deletionTimestamp")) return out;
  if (service == nullptr) {
    const bool ours =
        have != nullptr && (*have)["metadata"]["labels"][kManagedBy].AsString() == kManager;
    if (!ours) return out;
    client::DeleteOptions options;
    options.precondition_uid = (*have)["metadata"]["uid"].Str();
    out.Delete(target, options);
    return out;
  }
  if ((*service)["metadata"].Has("deletionTimestamp") || !SelectsPods(*service)) return out;
  json::Value want = MakeEndpoints(*service, PodsOf(view.Of(resources::kPods), *service));
  if (have == nullptr) {
    out.Create(target, std::move(want));
  } else if (!IsAsWanted(*have, want)) {
    out.Update(target, Merge(*have, want));
  }
  return out;
}

}  // namespace muster::controllers
