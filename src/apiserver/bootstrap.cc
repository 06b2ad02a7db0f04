#include "apiserver/bootstrap.h"

#include <algorithm>

#include "apiserver/aggregation/local_api_services.h"
#include "apiserver/errors.h"
#include "apiserver/identity/default_roles.h"
#include "apiserver/kinds/ip_allocator.h"
#include "apiserver/object_writer.h"
#include "apiserver/stored_object.h"
#include "apiserver/update.h"
#include "schema/conform.h"
#include "schema/names.h"
#include "schema/own_crds.h"
#include "schema/storage_names.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kExtensionAuthentication = "extension-apiserver-authentication";

// Counts writes that are on their way; the first failure wins.
struct Pending {
  size_t count = 1;  // the one who issues them
  Status failure;
  Function<void(Status)> done;
  void Finish(const Status& status) {
    if (!status.ok() && failure.ok()) failure = status;
    if (--count == 0) done(failure);
  }
};
using PendingPtr = std::shared_ptr<Pending>;

json::Value Object(std::string_view api_version, std::string_view kind, json::Value metadata) {
  return json::Obj(
      {{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}});
}

// Where pods reach this server.
struct Endpoint {
  std::string address;
  uint16_t port = 0;
};

Endpoint EndpointOf(const ServerOptions& options) {
  if (!options.pod_address.empty()) return {options.pod_address, options.pod_port};
  return {options.advertise_address, options.advertise_port};
}

json::Value KubernetesService(const ServerOptions& options) {
  const Result<IpAllocator> range = IpAllocator::Make(options.service_cidr);
  const json::Value port = json::Obj({{"name", "https"},
                                      {"port", 443},
                                      {"protocol", "TCP"},
                                      {"targetPort", EndpointOf(options).port}});
  return Object("v1", "Service",
                json::Obj({{"name", "kubernetes"},
                           {"namespace", "default"},
                           {"labels",
                            json::Obj({{"component", "apiserver"}, {"provider", "kubernetes"}})}}))
      .Set("spec", json::Obj({{"clusterIP", range ? range->First() : ""},
                              {"ports", json::List({port})},
                              {"type", "ClusterIP"}}));
}

json::Value KubernetesEndpoints(const ServerOptions& options) {
  const Endpoint endpoint = EndpointOf(options);
  return Object("discovery.k8s.io/v1", "EndpointSlice",
                json::Obj({{"name", "kubernetes"},
                           {"namespace", "default"},
                           {"labels", json::Obj({{"kubernetes.io/service-name", "kubernetes"}})}}))
      .Set("addressType", "IPv4")
      .Set("endpoints", json::List({json::Obj({{"addresses", json::List({endpoint.address})},
                                               {"conditions", json::Obj({{"ready", true}})}})}))
      .Set("ports", json::List({json::Obj(
                        {{"name", "https"}, {"port", endpoint.port}, {"protocol", "TCP"}})}));
}

// The same, for clients of the older kind.
json::Value KubernetesOldEndpoints(const ServerOptions& options) {
  const Endpoint endpoint = EndpointOf(options);
  const json::Value labels = json::Obj({{"endpointslice.kubernetes.io/skip-mirror", "true"}});
  const json::Value address = json::Obj({{"ip", endpoint.address}});
  const json::Value port =
      json::Obj({{"name", "https"}, {"port", endpoint.port}, {"protocol", "TCP"}});
  const json::Value subset =
      json::Obj({{"addresses", json::List({address})}, {"ports", json::List({port})}});
  return Object("v1", "Endpoints",
                json::Obj({{"name", "kubernetes"}, {"namespace", "default"}, {"labels", labels}}))
      .Set("subsets", json::List({subset}));
}

json::Value PriorityClass(std::string_view name, int64_t value, std::string_view description) {
  return Object("scheduling.k8s.io/v1", "PriorityClass", json::Obj({{"name", name}}))
      .Set("value", value)
      .Set("description", description);
}

// Directories on the nodes. Whoever wants another default says "false" here: what is deleted comes
// back with the next start.
json::Value LocalPathClass() {
  json::Value metadata = json::Obj({{"name", schema::kLocalPathClass}});
  metadata = std::move(metadata).SetPath({"annotations", schema::kDefaultClassAnnotation}, "true");
  return Object("storage.k8s.io/v1", "StorageClass", std::move(metadata))
      .Set("provisioner", schema::kLocalPathProvisioner)
      .Set("reclaimPolicy", "Delete")
      .Set("volumeBindingMode", "WaitForFirstConsumer");
}

// What servers behind APIServices need to believe who asks through this one, in the form that stock
// ones read: k8s.io/apiserver pkg/server/options/authentication.go.
json::Value ExtensionAuthentication(const ServerOptions& options) {
  const json::Value data =
      json::Obj({{"client-ca-file", options.client_ca_pem},
                 {"requestheader-client-ca-file", options.front_proxy_ca_pem},
                 {"requestheader-allowed-names", R"(["front-proxy-client"])"},
                 {"requestheader-username-headers", R"(["X-Remote-User"])"},
                 {"requestheader-group-headers", R"(["X-Remote-Group"])"},
                 {"requestheader-extra-headers-prefix", R"(["X-Remote-Extra-"])"}});
  return Object("v1", "ConfigMap",
                json::Obj({{"name", kExtensionAuthentication}, {"namespace", "kube-system"}}))
      .Set("data", data);
}

std::vector<json::Value> FirstObjects(const ServerOptions& options) {
  std::vector<json::Value> objects;
  for (std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    objects.push_back(Object("v1", "Namespace", json::Obj({{"name", name}})));
    // A controller makes it elsewhere; here the first pod may come before that.
    objects.push_back(
        Object("v1", "ServiceAccount", json::Obj({{"name", "default"}, {"namespace", name}})));
  }
  objects.push_back(
      PriorityClass("system-node-critical", 2000001000, "For what a node cannot do without."));
  objects.push_back(PriorityClass("system-cluster-critical", 2000000000,
                                  "For what the cluster cannot do without."));
  objects.push_back(LocalPathClass());
  for (json::Value& object : DefaultRbac()) objects.push_back(std::move(object));
  for (const json::Value& crd : schema::OwnCrds()) {
    const std::vector<std::string>& groups = options.own_groups;
    if (groups.empty() ||
        std::ranges::find(groups, crd["spec"]["group"].AsString()) != groups.end())
      objects.push_back(crd);
  }
  for (json::Value& service : BuiltInApiServices()) objects.push_back(std::move(service));
  objects.push_back(KubernetesService(options));
  // A loopback address is no endpoint: in a pod it would be the pod itself.
  if (schema::Problems problems;
      schema::CheckOrdinaryIp(EndpointOf(options).address, problems), problems.empty()) {
    objects.push_back(KubernetesEndpoints(options));
    objects.push_back(KubernetesOldEndpoints(options));
  }
  if (!options.front_proxy_ca_pem.empty()) objects.push_back(ExtensionAuthentication(options));
  for (const json::Value& seed : options.seed_objects) objects.push_back(seed);
  return objects;
}

bool IsRbac(const json::Value& object) {
  return object["apiVersion"].AsString() == "rbac.authorization.k8s.io/v1";
}

// What a restart with other options, or a newer program, may change.
bool IsKeptUpToDate(const json::Value& object) {
  const std::string_view kind = object["kind"].AsString();
  return kind == "CustomResourceDefinition" || kind == "EndpointSlice" || kind == "Endpoints" ||
         IsRbac(object) || object["metadata"]["name"].AsString() == kExtensionAuthentication;
}

ResourcePtr ResourceOf(const Core& core, const json::Value& object) {
  const std::string_view api_version = object["apiVersion"].AsString();
  const size_t slash = api_version.find('/');
  const std::string_view group =
      slash == std::string_view::npos ? "" : api_version.substr(0, slash);
  const std::string_view version =
      slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  return core.registry.FindKind(group, version, object["kind"].AsString());
}

// The parts that `wanted` says, over what is there.
json::Value Merge(json::Value there, const json::Value& wanted) {
  if (IsRbac(wanted)) return ReconcileRbac(there, wanted);
  for (const auto& [field, value] : wanted.members()) {
    if (field != "metadata") there = there.Set(field, value);
  }
  return there;
}

// Our own definitions are valid: a test of theirs sees to it, and the first start does not pay for
// reading their large schemas once more.
bool IsOwnCrd(const json::Value& object) {
  if (object["kind"].AsString() != "CustomResourceDefinition") return false;
  return std::ranges::any_of(schema::OwnCrds(), [&object](const json::Value& crd) {
    return crd["metadata"]["name"] == object["metadata"]["name"] && crd == object;
  });
}

Status Ensure(Core& core, const json::Value& wanted, const PendingPtr& pending) {
  const ResourcePtr resource = ResourceOf(core, wanted);
  if (resource == nullptr) {
    return InternalError(fmt::format("cannot create the first objects: no kind {} in {}",
                                     wanted["kind"].AsString(), wanted["apiVersion"].AsString()));
  }
  const schema::Kind& kind = *resource->kind;
  WriteContext context{kind,
                       wanted["metadata"]["namespace"].Str(),
                       wanted["metadata"]["name"].Str(),
                       core.loop.Now(),
                       false,
                       {}};
  ASSIGN_OR_RETURN(json::Value object, schema::Conform(kind, wanted, nullptr));
  const auto done = [pending](const Result<store::EntryPtr>& entry) {
    pending->Finish(entry ? Status::Ok() : entry.error());
  };
  const Result<Found> found = FindObject(core, kind, context.ns, context.name);
  if (!found) {
    ASSIGN_OR_RETURN(object, IsOwnCrd(wanted)
                                 ? FillCreate(core, *resource, context, std::move(object))
                                 : PrepareCreate(core, *resource, context, std::move(object)));
    ++pending->count;
    CreateObject(core, resource, context, std::move(object), done);
  } else if (IsKeptUpToDate(wanted)) {
    json::Value merged = Merge(found->object, object);
    if (merged == found->object) return Status::Ok();
    ASSIGN_OR_RETURN(object, PrepareUpdate(*resource, context, found->object, std::move(merged),
                                           UpdateScope::kMain));
    ++pending->count;
    ReplaceObject(core, resource, context, *found, std::move(object), done);
  }
  return Status::Ok();
}

}  // namespace

void Bootstrap(Core& core, Function<void(Status)> done) {
  auto pending = std::make_shared<Pending>();
  pending->done = std::move(done);
  for (const json::Value& object : FirstObjects(core.options)) {
    if (Status status = Ensure(core, object, pending); !status.ok()) {
      const std::string what =
          fmt::format("{} {}: ", object["kind"].AsString(), object["metadata"]["name"].AsString());
      return pending->Finish(status.WithPrefix(what));
    }
  }
  pending->Finish(Status::Ok());
}

}  // namespace muster::apiserver
