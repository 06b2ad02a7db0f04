// src/agent/shim/container_spec.h
//
// ContainerSpec: everything that a shim needs to start one container, as the agent computed it. It
// travels as JSON over the shim's socket.
//
// Thread: any (a value).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/cgroups/cgroups.h"
#include "agent/shim/capabilities.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

inline constexpr size_t kMaxContainerMounts = 512;
inline constexpr size_t kMaxContainerArguments = 65'536;

struct ContainerMount {
  std::string source;  // absolute path on the node
  // Below source, resolved without leaving it; "" = source itself.
  std::string sub_path = {};
  std::string target;  // absolute path in the container
  bool read_only = false;
  // Path below source that must look empty: the data folder inside a hostPath.
  std::string hidden_below = {};
  bool resolved = false;  // source had its links resolved: it must have none when it is mounted
  bool fixed = false;     // the volume itself is read-only: a sub_path is not made
};

// A character device of the node, by another path below /dev perhaps.
struct DeviceNode {
  std::string source, target;
};

struct ContainerSpec {
  std::string name;
  int attempt = 0;
  // The folder with the image's files, and the name by which the image cache knows it; both "": the
  // root is the node's own.
  std::string image_root, image_name;
  // "1000", "nginx", "1000:1000", of the container's own /etc/passwd; "": root, without asking.
  std::string user;
  std::vector<std::string> arguments;    // arguments[0] is looked up in PATH of `environment`
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_dir;               // "" = /
  std::string cgroup;                    // "muster/pod<uid>/<name>"
  CgroupLimits limits;
  int oom_score_adj = 0;
  std::vector<ContainerMount> mounts;
  std::vector<std::string> devices;        // device nodes of the node to offer, e.g. /dev/nvidia0
  std::vector<DeviceNode> plugin_devices;  // what device plugins give it
  std::string log_path;
  std::string termination_message_path = "/dev/termination-log";
  bool message_from_log = false;  // when it fails without a message of its own
  bool share_pid_namespace = false;
  bool read_only_root = false;
  bool no_new_privileges = false;
  uint64_t capabilities = DefaultCapabilities();
  std::vector<int64_t> groups;  // further ones of its processes
  bool only_groups = false;     // and none that the container's /etc/group gives `user`
  bool tty = false;
};

json::Value ToJson(const ContainerSpec& spec);
Result<ContainerSpec> ContainerSpecFromJson(const json::Value& value);

// How a container ended; DIR/pods/<uid>/containers/<name>/<attempt>.exit is this as JSON.
struct ContainerExit {
  int exit_code = 0;
  int signal = 0;
  std::string reason;  // "Completed", "Error", "OOMKilled", "StartError"
  std::string message;
  std::string started_at, finished_at;  // FormatNanoTime
};

json::Value ToJson(const ContainerExit& exit);
ContainerExit ContainerExitFromJson(const json::Value& value);

}  // namespace muster::agent
