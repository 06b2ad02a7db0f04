#include "agent/pod_workers/plain_pod.h"

#include <fmt/core.h>

#include <set>

#include "agent/images/image_reference.h"
#include "agent/pod_workers/pod_inputs.h"

namespace muster::agent {
namespace {

constexpr std::string_view kMachine = "127.0.0.1";
constexpr std::string_view kRemedy =
    "this node has no namespaces (its condition NoNamespaces says why and what helps)";

// A hostPath that is where the pod wants it anyway.
bool IsThereAnyway(const json::Value& pod, const json::Value& mount) {
  if (mount["readOnly"].AsBool() || mount.Has("subPath") || mount.Has("subPathExpr")) return false;
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    if (volume["name"].AsString() == mount["name"].AsString())
      return volume["hostPath"]["path"].AsString() == mount["mountPath"].AsString();
  }
  return false;
}

// The token of its account, which the pod did not ask for: every pod gets it mounted, few read it.
bool IsUnaskedToken(const json::Value& mount) {
  return mount["name"].AsString().starts_with("kube-api-access-") &&
         mount["mountPath"].AsString() == "/var/run/secrets/kubernetes.io/serviceaccount";
}

}  // namespace

Status CheckPlainImage(const json::Value& container) {
  const std::string_view image = container["image"].AsString();
  if (IsMachineImage(image)) return Status::Ok();
  return Error(Reason::kInvalid,
               "image {} cannot be the root folder of container {}: {}; image \"none\" runs the "
               "machine's programs",
               image, container["name"].AsString(), kRemedy);
}

Status CheckPlainPod(const json::Value& pod) {
  for (const json::Value& container : AllContainers(pod)) {
    const std::string name = container["name"].Str();
    for (const json::Value& port : container["ports"].items()) {
      const int64_t host_port = port["hostPort"].AsInt();
      if (host_port == 0 || host_port == port["containerPort"].AsInt()) continue;
      return Error(Reason::kInvalid,
                   "container {}: hostPort {} cannot lead to containerPort {}: {}; give both the "
                   "same number",
                   name, host_port, port["containerPort"].AsInt(), kRemedy);
    }
    if (container["securityContext"]["readOnlyRootFilesystem"].AsBool()) {
      return Error(Reason::kInvalid,
                   "container {}: securityContext.readOnlyRootFilesystem cannot be enforced: {}",
                   name, kRemedy);
    }
    for (const json::Value& mount : container["volumeMounts"].items()) {
      if (IsThereAnyway(pod, mount) || IsUnaskedToken(mount)) continue;
      return Error(Reason::kInvalid,
                   "container {}: volume {} cannot be mounted at {}: {}; a hostPath works where "
                   "path and mountPath are the same",
                   name, mount["name"].AsString(), mount["mountPath"].AsString(), kRemedy);
    }
  }
  return Status::Ok();
}

void UseMachineForNames(std::vector<std::string>& environment, const std::string& pod_namespace,
                        const std::vector<json::Value>& services) {
  std::set<std::string, std::less<>> names;
  for (const json::Value& service : services) {
    if (service["metadata"]["namespace"].AsString() == pod_namespace &&
        service["spec"]["clusterIP"].AsString() == "None") {
      names.insert(service["metadata"]["name"].Str());
    }
  }
  for (std::string& variable : environment) {
    const size_t start = variable.find('=') + 1;
    const std::string_view value = std::string_view(variable).substr(start);
    const std::string_view name = value.substr(0, value.find(':'));
    if (names.contains(name)) variable.replace(start, name.size(), kMachine);
  }
}

}  // namespace muster::agent
