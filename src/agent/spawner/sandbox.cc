#include "agent/spawner/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "agent/shim/shim.h"
#include "base/log.h"

namespace muster::agent {

json::Value ToJson(const SandboxRequest& request) {
  return json::Obj({{"uid", request.uid},
                    {"podDir", request.pod_dir},
                    {"hostname", request.hostname},
                    {"cgroup", request.cgroup},
                    {"memoryBytes", request.limits.memory_bytes},
                    {"cpuLimitMilli", request.limits.cpu_limit_milli},
                    {"cpuRequestMilli", request.limits.cpu_request_milli},
                    {"pids", request.limits.pids},
                    {"hostNetwork", request.host_network},
                    {"bridge", request.bridge},
                    {"address", request.address.IsUnset() ? "" : request.address.ToString()},
                    {"gateway", request.gateway.IsUnset() ? "" : request.gateway.ToString()}});
}

Result<SandboxRequest> SandboxRequestFromJson(const json::Value& value) {
  SandboxRequest request;
  request.uid = value["uid"].Str();
  request.pod_dir = value["podDir"].Str();
  request.hostname = value["hostname"].Str();
  request.cgroup = value["cgroup"].Str();
  request.limits.memory_bytes = value["memoryBytes"].AsInt();
  request.limits.cpu_limit_milli = value["cpuLimitMilli"].AsInt();
  request.limits.cpu_request_milli = value["cpuRequestMilli"].AsInt();
  request.limits.pids = value["pids"].AsInt();
  request.host_network = value["hostNetwork"].AsBool();
  request.bridge = value["bridge"].Str();
  request.address = Ipv4::Parse(value["address"].AsString()).value_or(Ipv4{});
  request.gateway = Ipv4::Parse(value["gateway"].AsString()).value_or(Ipv4{});
  if (request.uid.empty() || request.pod_dir.empty() || request.cgroup.empty()) {
    return Error(Reason::kInvalid, "a sandbox needs uid, podDir and cgroup");
  }
  return request;
}

namespace {

Result<pid_t> CloneShim(const SandboxRequest& request, int ready_read, int ready_write) {
  clone_args arguments = {};
  arguments.flags = CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS;
  if (!request.host_network) arguments.flags |= CLONE_NEWNET;
  arguments.exit_signal = SIGCHLD;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0) return SystemError("clone", "the pod's namespaces", errno);
  if (pid == 0) {
    close(ready_read);
    RunShim({request.uid, request.pod_dir, request.host_network ? "" : request.hostname},
            UniqueFd(ready_write));
  }
  return pid;
}

Status Connect(const SandboxRequest& request, pid_t pid, Netlink* netlink) {
  if (request.host_network || netlink == nullptr) return Status::Ok();
  const std::string path = fmt::format("/proc/{}/ns/net", pid);
  UniqueFd netns(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!netns.valid()) return SystemError("open", path, errno);
  if (request.address.IsUnset()) return netlink->SetLoopbackUp(netns.get());
  PodAttachment attachment;
  attachment.netns_fd = netns.get();
  attachment.host_interface = HostInterfaceName(request.uid);
  attachment.bridge = request.bridge;
  attachment.address = request.address;
  attachment.gateway = request.gateway;
  return netlink->AttachPod(attachment);
}

Status AwaitShim(int ready) {
  char buffer[1024];
  ssize_t n = -1;
  do {
    n = read(ready, buffer, sizeof buffer);
  } while (n < 0 && errno == EINTR);
  const std::string_view answer(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  if (answer == "ok") return Status::Ok();
  return Error(Reason::kInternalError, "the pod's shim did not start: {}",
               answer.empty() ? "it died" : answer);
}

}  // namespace

Result<pid_t> CreateSandbox(const SandboxRequest& request, const Cgroups& cgroups,
                            Netlink* netlink) {
  RETURN_IF_ERROR(cgroups.Create(request.cgroup, request.limits));
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return SystemError("make", "a pipe", errno);
  UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  ASSIGN_OR_RETURN(const pid_t pid, CloneShim(request, read_end.get(), write_end.get()));
  write_end.Reset();
  // The link is made while the shim prepares itself.
  Status status = Connect(request, pid, netlink);
  if (status.ok()) status = AwaitShim(read_end.get());
  if (status.ok()) status = WriteFile(request.pod_dir + "/shim.pid", std::to_string(pid), 0600);
  if (status.ok()) return pid;
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  (void)cgroups.Remove(request.cgroup);
  return Error(std::move(status));
}

}  // namespace muster::agent
