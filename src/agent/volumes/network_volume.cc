#include "agent/volumes/network_volume.h"

#include <algorithm>
#include <set>

#include "agent/runtime/files.h"
#include "agent/runtime/mount_table.h"
#include "agent/volumes/nfs_support.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr const char* kMountOptionsAnnotation = "volume.beta.kubernetes.io/mount-options";

// What would be read as something else than it is meant to be.
Status CheckArguments(const NetworkVolume& volume) {
  if (volume.source.starts_with('-'))
    return Error(Reason::kInvalid, "nfs server {:?} is no name of a server", volume.server);
  for (const std::string& option : volume.options) {
    const auto words = Split(option, ',');  // one option may be several to mount(8)
    if (std::ranges::find(words, "bg") == words.end()) continue;
    return Error(Reason::kInvalid,
                 "mount option bg is not supported: it says that the volume is there before it is; "
                 "leave it out, the mount is tried again for as long as the pod is there");
  }
  return Status::Ok();
}

// What was missing, when it did not work: a machine that has it is not told of it.
std::string Advice() {
  const std::string missing = MissingForNfs(ProbeNfs());
  return missing.empty() ? "" : "\nOn this node " + missing;
}

// mount(8) is run, as the kubelet does, instead of mount(2): its helper for NFS resolves the
// server's name, tries the protocol's versions in turn, asks NFSv3's mountd, starts rpc.statd for
// locks, and takes the options of nfs(5) that the kernel does not know. That is also what
// administrators try by hand when a volume does not come.
Status RunMount(const NetworkVolume& volume, const MountTools& tools,
                const std::atomic<bool>* cancelled) {
  ProgramCall call;
  call.arguments = {tools.program.empty() ? FindProgram("mount") : tools.program, "-t", "nfs"};
  if (call.arguments[0].empty())
    return Error(Reason::kInternalError, "there is no program mount in PATH: install util-linux");
  if (!volume.options.empty()) {
    call.arguments.emplace_back("-o");
    call.arguments.push_back(Join(volume.options, ","));
  }
  call.arguments.push_back(volume.source);
  call.arguments.push_back(volume.target);
  call.time_limit = tools.time_limit;
  call.cancelled = cancelled;
  const Result<ProgramResult> result = RunProgram(call);
  if (!result) {
    if (result.error().reason() != Reason::kTimeout) return result.error();
    return Error(Reason::kTimeout, "nfs server {} does not answer: {}", volume.server,
                 result.error().message());
  }
  if (result->exit_code == 0) return Status::Ok();
  const std::vector<std::string> told(call.arguments.begin() + 1, call.arguments.end());
  return Error(Reason::kInternalError,
               "mount failed: exit status {}\nMounting command: mount\nMounting arguments: {}\n"
               "Output: {}{}",
               result->exit_code, Join(told, " "), Trim(result->out + result->err), Advice());
}

Status Mount(const NetworkVolume& volume, const MountTools& tools,
             const std::atomic<bool>* cancelled) {
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(volume.target));
  if (mounted) return Status::Ok();
  if (!tools.refusal.empty()) return Error(Reason::kForbidden, "{}", tools.refusal);
  RETURN_IF_ERROR(CheckArguments(volume));
  if (cancelled != nullptr && *cancelled)
    return Error(Reason::kServiceUnavailable, "the pod is ending");
  RETURN_IF_ERROR(MakeDirs(volume.target, 0750));
  RETURN_IF_ERROR(RunMount(volume, tools, cancelled));
  // Else the pod would write to the node's own disk.
  ASSIGN_OR_RETURN(const bool now, IsMountPoint(volume.target));
  if (now) return Status::Ok();
  return Error(Reason::kInternalError, "mount reports success, but nothing is mounted on {}",
               volume.target);
}

}  // namespace

NetworkVolume NfsVolume(const std::string& server, std::string_view path,
                        std::vector<std::string> options, bool read_only) {
  NetworkVolume out;
  out.server = server;
  const bool is_ipv6 = server.contains(':') && !server.starts_with('[');
  out.source = fmt::format("{}:{}", is_ipv6 ? "[" + server + "]" : server, path);
  if (read_only) options.emplace_back("ro");
  std::set<std::string> sorted(options.begin(), options.end());
  out.options.assign(sorted.begin(), sorted.end());
  return out;
}

std::vector<std::string> MountOptionsOf(const json::Value& persistent_volume) {
  const json::Value& former = persistent_volume["metadata"]["annotations"][kMountOptionsAnnotation];
  std::vector<std::string> out;
  if (former.AsString().empty()) {
    for (const json::Value& option : persistent_volume["spec"]["mountOptions"].items())
      out.push_back(option.Str());
  } else {
    for (const std::string_view option : SplitNonEmpty(former.AsString(), ','))
      out.emplace_back(option);
  }
  return out;
}

Result<std::vector<NetworkVolume>> NotMounted(const std::vector<NetworkVolume>& volumes) {
  std::vector<NetworkVolume> out;
  for (const NetworkVolume& volume : volumes) {
    ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(volume.target));
    if (!mounted) out.push_back(volume);
  }
  return out;
}

Status MountNetworkVolume(const NetworkVolume& volume, const MountTools& tools,
                          const std::atomic<bool>* cancelled) {
  return Mount(volume, tools, cancelled)
      .WithPrefix(fmt::format("MountVolume.SetUp failed for volume \"{}\" : ", volume.shown));
}

}  // namespace muster::agent
