#include "agent/shim/container_spec.h"

#include "agent/runtime/files.h"

namespace muster::agent {

json::Value ToJson(const ContainerSpec& spec) {
  json::Array mounts;
  for (const ContainerMount& mount : spec.mounts) {
    mounts.push_back(json::Obj({{"source", mount.source},
                                {"subPath", mount.sub_path},
                                {"target", mount.target},
                                {"readOnly", mount.read_only},
                                {"hiddenBelow", mount.hidden_below},
                                {"resolved", mount.resolved},
                                {"fixed", mount.fixed}}));
  }
  json::Array plugin_devices;
  for (const DeviceNode& device : spec.plugin_devices)
    plugin_devices.push_back(json::Obj({{"source", device.source}, {"target", device.target}}));
  return json::Obj({{"name", spec.name},
                    {"attempt", spec.attempt},
                    {"imageRoot", spec.image_root},
                    {"imageName", spec.image_name},
                    {"user", spec.user},
                    {"arguments", json::Strings(spec.arguments)},
                    {"environment", json::Strings(spec.environment)},
                    {"workingDir", spec.working_dir},
                    {"cgroup", spec.cgroup},
                    {"memoryBytes", spec.limits.memory_bytes},
                    {"cpuLimitMilli", spec.limits.cpu_limit_milli},
                    {"cpuRequestMilli", spec.limits.cpu_request_milli},
                    {"pids", spec.limits.pids},
                    {"oomScoreAdj", spec.oom_score_adj},
                    {"mounts", std::move(mounts)},
                    {"devices", json::Strings(spec.devices)},
                    {"pluginDevices", std::move(plugin_devices)},
                    {"logPath", spec.log_path},
                    {"terminationMessagePath", spec.termination_message_path},
                    {"messageFromLog", spec.message_from_log},
                    {"sharePid", spec.share_pid_namespace},
                    {"readOnlyRoot", spec.read_only_root},
                    {"noNewPrivileges", spec.no_new_privileges},
                    {"capabilities", static_cast<int64_t>(spec.capabilities)},
                    {"groups", json::Array(spec.groups.begin(), spec.groups.end())},
                    {"onlyGroups", spec.only_groups},
                    {"tty", spec.tty}});
}

Result<ContainerSpec> ContainerSpecFromJson(const json::Value& value) {
  ContainerSpec spec;
  spec.name = value["name"].Str();
  spec.attempt = static_cast<int>(value["attempt"].AsInt());
  spec.image_root = value["imageRoot"].Str();
  spec.image_name = value["imageName"].Str();
  spec.user = value["user"].Str();
  spec.arguments = json::ToStrings(value["arguments"]);
  spec.environment = json::ToStrings(value["environment"]);
  spec.working_dir = value["workingDir"].Str();
  spec.cgroup = value["cgroup"].Str();
  spec.limits.memory_bytes = value["memoryBytes"].AsInt();
  spec.limits.cpu_limit_milli = value["cpuLimitMilli"].AsInt();
  spec.limits.cpu_request_milli = value["cpuRequestMilli"].AsInt();
  spec.limits.pids = value["pids"].AsInt();
  spec.oom_score_adj = static_cast<int>(value["oomScoreAdj"].AsInt());
  for (const json::Value& mount : value["mounts"].items()) {
    spec.mounts.push_back({mount["source"].Str(), mount["subPath"].Str(), mount["target"].Str(),
                           mount["readOnly"].AsBool(), mount["hiddenBelow"].Str(),
                           mount["resolved"].AsBool(), mount["fixed"].AsBool()});
  }
  spec.devices = json::ToStrings(value["devices"]);
  for (const json::Value& device : value["pluginDevices"].items())
    spec.plugin_devices.push_back({device["source"].Str(), device["target"].Str()});
  spec.log_path = value["logPath"].Str();
  spec.termination_message_path = value["terminationMessagePath"].Str();
  spec.message_from_log = value["messageFromLog"].AsBool();
  spec.share_pid_namespace = value["sharePid"].AsBool();
  spec.read_only_root = value["readOnlyRoot"].AsBool();
  spec.no_new_privileges = value["noNewPrivileges"].AsBool();
  if (value.Has("capabilities"))
    spec.capabilities = static_cast<uint64_t>(value["capabilities"].AsInt());
  for (const json::Value& group : value["groups"].items()) spec.groups.push_back(group.AsInt());
  spec.only_groups = value["onlyGroups"].AsBool();
  spec.tty = value["tty"].AsBool();
  if (!IsFileName(spec.name)) {
    return Error(Reason::kInvalid, "container name {:?} is not a file name", spec.name);
  }
  if (spec.arguments.empty())
    return Error(Reason::kInvalid, "container {} has no command", spec.name);
  if (spec.arguments.size() > kMaxContainerArguments || spec.mounts.size() > kMaxContainerMounts) {
    return Error(Reason::kInvalid, "container {} has more than {} arguments or {} mounts",
                 spec.name, kMaxContainerArguments, kMaxContainerMounts);
  }
  return spec;
}

json::Value ToJson(const ContainerExit& exit) {
  return json::Obj({{"exitCode", exit.exit_code},
                    {"signal", exit.signal},
                    {"reason", exit.reason},
                    {"message", exit.message},
                    {"startedAt", exit.started_at},
                    {"finishedAt", exit.finished_at}});
}

ContainerExit ContainerExitFromJson(const json::Value& value) {
  ContainerExit exit;
  exit.exit_code = static_cast<int>(value["exitCode"].AsInt());
  exit.signal = static_cast<int>(value["signal"].AsInt());
  exit.reason = value["reason"].Str();
  exit.message = value["message"].Str();
  exit.started_at = value["startedAt"].Str();
  exit.finished_at = value["finishedAt"].Str();
  return exit;
}

}  // namespace muster::agent
