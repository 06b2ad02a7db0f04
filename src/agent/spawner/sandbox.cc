#include "agent/spawner/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/unique_fd.h"
#include "agent/shim/plain_processes.h"
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
                    {"gang", json::Strings(request.gang)},
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
  request.gang = json::ToStrings(value["gang"]);
  request.bridge = value["bridge"].Str();
  request.address = Ipv4::Parse(value["address"].AsString()).value_or(Ipv4{});
  request.gateway = Ipv4::Parse(value["gateway"].AsString()).value_or(Ipv4{});
  if (request.uid.empty() || request.pod_dir.empty() || request.cgroup.empty()) {
    return Error(Reason::kInvalid, "a sandbox needs uid, podDir and cgroup");
  }
  return request;
}

namespace {

constexpr int kMaxEndTurns = 50;
constexpr int kEndTurnMs = 10;

// The gang's namespaces are those of a shim; what it holds on to is this.
struct Peer {
  UniqueFd process;  // a pidfd; not valid: nobody of the gang lives
  std::string pod_dir;
};

Peer FindPeer(const SandboxRequest& request) {
  if (request.plain || request.host_network) return {};
  for (const std::string& pod_dir : request.gang) {
    Result<UniqueFd> process = OpenProcessLockHolder(pod_dir + "/" + kShimLockName);
    if (process && process->valid()) return {std::move(*process), pod_dir};
  }
  return {};
}

Result<pid_t> CloneShim(const SandboxRequest& request, const Cgroups& cgroups, int shim_end,
                        const Peer& peer) {
  clone_args arguments = {};
  if (!request.plain) {
    arguments.flags = CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS;
    if (!request.host_network && !peer.process.valid()) arguments.flags |= CLONE_NEWNET;
  }
  arguments.exit_signal = SIGCHLD;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0) return SystemError("clone", "the pod's namespaces", errno);
  if (pid == 0) {
    RunShim({request.uid, request.pod_dir, request.host_network ? "" : request.hostname,
             request.user_namespace, request.plain, peer.process.get(), peer.pod_dir},
            cgroups, UniqueFd(shim_end));
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

Status AwaitShim(int shim) {
  char buffer[1024];
  ssize_t n = -1;
  do {
    n = recv(shim, buffer, sizeof buffer, 0);
  } while (n < 0 && errno == EINTR);
  const std::string_view answer(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  if (answer == kShimReady) return Status::Ok();
  return Error(Reason::kInternalError, "the pod's shim did not start: {}",
               answer.empty() ? "it died" : answer);
}

// The last step: from now on the shim lives without the spawner.
Status LetGo(int shim) {
  if (send(shim, kShimGo.data(), kShimGo.size(), MSG_NOSIGNAL) < 0)
    return SystemError("let go", "the pod's shim", errno);
  return Status::Ok();
}

// As EndSandbox(), but waits a little for what is dying.
Status EndRemains(const SandboxRequest& request, const Cgroups& cgroups) {
  Status status = EndSandbox(request.pod_dir, request.cgroup, cgroups, request.plain);
  for (int i = 0; i < kMaxEndTurns && !status.ok(); ++i) {
    poll(nullptr, 0, kEndTurnMs);
    status = EndSandbox(request.pod_dir, request.cgroup, cgroups, request.plain);
  }
  return status.WithPrefix("end what is left of an earlier sandbox: ");
}

}  // namespace

Status EndSandbox(const std::string& pod_dir, const std::string& cgroup, const Cgroups& cgroups,
                  bool plain) {
  RETURN_IF_ERROR(EndProcess(pod_dir + "/" + kShimLockName, kShimEndPatience));
  if (plain) RETURN_IF_ERROR(EndPlainProcesses(pod_dir));
  cgroups.KillAll(cgroup);
  return cgroups.Remove(cgroup);
}

Result<pid_t> CreateSandbox(const SandboxRequest& request, const Cgroups& cgroups,
                            Netlink* netlink) {
  RETURN_IF_ERROR(EndRemains(request, cgroups));
  RETURN_IF_ERROR(cgroups.Create(request.cgroup, request.limits));
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return SystemError("make", "a socket pair", errno);
  UniqueFd shim(fds[0]);
  UniqueFd shim_end(fds[1]);
  const Peer peer = FindPeer(request);
  ASSIGN_OR_RETURN(const pid_t pid, CloneShim(request, cgroups, shim_end.get(), peer));
  shim_end.Reset();
  // The link is made while the shim prepares itself.
  Status status = peer.process.valid() ? Status::Ok() : Connect(request, pid, netlink);
  if (status.ok()) status = AwaitShim(shim.get());
  if (status.ok()) status = LetGo(shim.get());
  if (status.ok()) return pid;
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  (void)cgroups.Remove(request.cgroup);
  return Error(std::move(status));
}

}  // namespace muster::agent
