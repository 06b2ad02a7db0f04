#include "apiserver/pods/pod_location.h"

#include <vector>

#include "apiserver/errors.h"
#include "apiserver/object_writer.h"
#include "base/strings.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

std::vector<std::string> NamesOf(const json::Value& containers) {
  std::vector<std::string> names;
  for (const json::Value& container : containers.items()) names.push_back(container["name"].Str());
  return names;
}

Result<std::string> ChooseContainer(const json::Value& pod, std::string_view wanted) {
  const std::string name = pod["metadata"]["name"].Str();
  const json::Value& spec = pod["spec"];
  if (wanted.empty()) {
    const std::vector<std::string> names = NamesOf(spec["containers"]);
    if (names.size() == 1) return names[0];
    const std::vector<std::string> init = NamesOf(spec["initContainers"]);
    return Error(
        Reason::kBadRequest, "a container name must be specified for pod {}, choose one of: [{}]{}",
        name, Join(names, " "),
        init.empty() ? "" : fmt::format(" or one of the init containers: [{}]", Join(init, " ")));
  }
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const std::string& one : NamesOf(spec[list])) {
      if (one == wanted) return one;
    }
  }
  return Error(Reason::kBadRequest, "container {} is not valid for pod {}", wanted, name);
}

std::string AddressOf(const json::Value& node) {
  for (std::string_view type : {"InternalIP", "Hostname", "ExternalIP"}) {
    for (const json::Value& address : node["status"]["addresses"].items()) {
      if (address["type"].AsString() == type) return address["address"].Str();
    }
  }
  return {};
}

}  // namespace

Result<NodeEndpoint> LocateNode(Core& core, const std::string& name) {
  const schema::KindPtr nodes = schema::Registry::BuiltIn().Find("", "v1", "nodes");
  ASSIGN_OR_RETURN(const Found node, FindObject(core, *nodes, "", name));
  NodeEndpoint endpoint;
  endpoint.node = name;
  endpoint.address = AddressOf(node.object);
  const json::Value& status = node.object["status"];
  endpoint.port =
      static_cast<uint16_t>(status["daemonEndpoints"]["kubeletEndpoint"]["Port"].AsInt());
  if (endpoint.address.empty() || endpoint.port == 0 || core.options.node_proxy == nullptr) {
    return Error(Reason::kServiceUnavailable,
                 "node {:?} offers no kubelet API (status.addresses, status.daemonEndpoints): logs "
                 "and exec need one; on a simulated node pods are only said to run",
                 name);
  }
  return endpoint;
}

Result<PodLocation> LocatePod(Core& core, const json::Value& pod, std::string_view container) {
  PodLocation location;
  ASSIGN_OR_RETURN(location.container, ChooseContainer(pod, container));
  location.node.node = pod["spec"]["nodeName"].Str();
  if (location.node.node.empty()) {
    return Error(Reason::kBadRequest, "pod {} does not have a host assigned",
                 pod["metadata"]["name"].AsString());
  }
  ASSIGN_OR_RETURN(location.node, LocateNode(core, location.node.node));
  return location;
}

Status WaitingToStart(const json::Value& pod, std::string_view container, bool previous) {
  const std::string name = pod["metadata"]["name"].Str();
  for (std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items()) {
      if (status["name"].AsString() != container) continue;
      const bool ended_before = !status["lastState"]["terminated"].IsNull();
      if (previous && !ended_before) {
        return Error(Reason::kBadRequest,
                     "previous terminated container \"{}\" in pod \"{}\" not found", container,
                     name);
      }
      const json::Value& waiting = status["state"]["waiting"];
      if (previous || ended_before || waiting.IsNull()) return Status::Ok();
      const std::string_view reason = waiting["reason"].AsString();
      std::string_view why = reason;
      if (reason == "ErrImagePull") why = "image can't be pulled";
      if (reason == "ImagePullBackOff") why = "trying and failing to pull image";
      return Error(Reason::kBadRequest, "container \"{}\" in pod \"{}\" is waiting to start: {}",
                   container, name, why);
    }
  }
  return Error(Reason::kBadRequest, "container \"{}\" in pod \"{}\" is not available", container,
               name);
}

}  // namespace muster::apiserver
