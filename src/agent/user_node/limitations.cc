#include "agent/user_node/limitations.h"

#include <fmt/core.h>

namespace muster::agent {

std::optional<NodeLimitation> MissingLimits(const DelegatedGroup& group) {
  if (group.memory && group.cpu) return std::nullopt;
  if (group.path.empty()) {
    return NodeLimitation{
        kLimitsNotEnforced, "NoDelegatedCgroup",
        "limits of memory and CPU are not enforced: no cgroup (v2) is delegated to this user; "
        "with systemd: systemd-run --user --scope -p Delegate=yes muster up --detach"};
  }
  const char* missing = group.memory ? "cpu" : "memory";
  return NodeLimitation{
      kLimitsNotEnforced, "ControllerNotDelegated",
      fmt::format("limits of {} are not enforced: the cgroup of this user has no controller {}; "
                  "with systemd set Delegate=cpu memory pids for user@.service",
                  group.memory ? "CPU" : "memory", missing)};
}

NodeLimitation NoNamespaces(const std::string& why) {
  return {"NoNamespaces", "UserNamespacesRefused",
          "pods are plain processes of this user, not isolated from him, from each other or from "
          "GPUs: they share the machine's files, /tmp, names and ports; there are no Services and "
          "no images and no volumes but a hostPath in its own place: " +
              why};
}

NodeLimitation NoWayOut(const OutsideMeans& means) {
  const std::string what = "pods reach each other and Services, but nothing outside of this node: ";
  if (!means.program) {
    return {kNoOutsideNetwork, "NoProgram",
            what + "neither pasta nor slirp4netns is installed; sudo apt-get install passt"};
  }
  if (!means.device) {
    return {kNoOutsideNetwork, "NoDevice",
            what + "this user may not open /dev/net/tun; sudo chmod 666 /dev/net/tun"};
  }
  return {kNoOutsideNetwork, "NotStarted", what + means.failure};
}

}  // namespace muster::agent
