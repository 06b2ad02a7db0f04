#include "agent/user_node/limitations.h"

#include <fmt/core.h>

namespace muster::agent {

std::optional<NodeLimitation> MissingLimits(const DelegatedGroup& group) {
  if (group.memory && group.cpu) return std::nullopt;
  if (group.path.empty()) {
    return NodeLimitation{
        kLimitsNotEnforced, "NoDelegatedCgroup",
        fmt::format(
            "limits of memory and CPU are not enforced: {}",
            group.unified
                ? "no cgroup is delegated to this user"
                : "this machine has no cgroup version 2, the only one that users can be given"),
        group.unified ? "systemd-run --user --scope -p Delegate=yes muster up --detach"
                      : "start the kernel with systemd.unified_cgroup_hierarchy=1, or run muster "
                        "as root"};
  }
  const char* missing = group.memory ? "cpu" : "memory";
  return NodeLimitation{
      kLimitsNotEnforced, "ControllerNotDelegated",
      fmt::format("limits of {} are not enforced: the cgroup of this user has no controller {}",
                  group.memory ? "CPU" : "memory", missing),
      "with systemd set Delegate=cpu memory pids for user@.service"};
}

NodeLimitation NoNamespaces(const std::string& why) {
  return {
      kNoNamespaces, "UserNamespacesRefused",
      "pods are plain processes of this user, not isolated from him, from each other or from "
      "GPUs: they share the machine's files, /tmp, names and ports; there are no Services and "
      "no images, no tokens of service accounts and no volumes but a hostPath in its own place: " +
          why};
}

NodeLimitation NoWayOut(const OutsideMeans& means) {
  const std::string what = "pods reach each other and Services, but nothing outside of this node: ";
  if (!means.program) {
    return {kNoOutsideNetwork, "NoProgram", what + "neither pasta nor slirp4netns is installed",
            "sudo apt-get install passt"};
  }
  if (!means.device) {
    return {kNoOutsideNetwork, "NoDevice", what + "this user may not open /dev/net/tun",
            "sudo chmod 666 /dev/net/tun"};
  }
  return {kNoOutsideNetwork, "NotStarted", what + means.failure};
}

}  // namespace muster::agent
