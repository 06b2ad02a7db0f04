#include "agent/user_node/user_node.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/cgroups/delegated_group.h"
#include "agent/network/netlink.h"
#include "agent/network/pod_api_socket.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/process_runtime.h"
#include "agent/shim/shim.h"
#include "agent/user_node/limitations.h"
#include "agent/user_node/outside_network.h"
#include "agent/user_node/refusal.h"
#include "agent/user_node/user_identity.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr Duration kEndPatience = seconds(5);

std::string CgroupFile(const std::string& data_dir) { return data_dir + "/run/cgroup"; }
std::string HolderLockFile(const std::string& data_dir) { return data_dir + "/run/node.lock"; }

// What the two ends of a holder's start say to each other: one message each, at most this long.
constexpr size_t kMaxStartMessageBytes = 512;
constexpr std::string_view kNeedsIds = "ids";
constexpr std::string_view kReady = "ready";

void Say(int fd, std::string_view text) {
  (void)!send(fd, text.data(), std::min(text.size(), kMaxStartMessageBytes), MSG_NOSIGNAL);
}

std::string Hear(int fd) {
  std::array<char, kMaxStartMessageBytes> buffer;
  ssize_t n = -1;
  do {
    n = recv(fd, buffer.data(), buffer.size(), 0);
  } while (n < 0 && errno == EINTR);
  return std::string(buffer.data(), n > 0 ? static_cast<size_t>(n) : 0);
}

// An overlay of two memory folders: what a container's root needs, in small.
Status TryOverlay(const std::string& scratch) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return SystemError("make private", "/", errno);
  if (mount("tmpfs", scratch.c_str(), "tmpfs", 0, "mode=0700") != 0)
    return SystemError("mount tmpfs on", scratch, errno);
  for (const char* dir : {"/a", "/b", "/c"}) RETURN_IF_ERROR(MakeDirs(scratch + dir));
  const std::string options = fmt::format("lowerdir={0}/a:{0}/b,userxattr", scratch);
  if (mount("overlay", (scratch + "/c").c_str(), "overlay", 0, options.c_str()) != 0)
    return SystemError("mount an overlay (Linux 5.11) on", scratch, errno);
  umount2(scratch.c_str(), MNT_DETACH);
  return Status::Ok();
}

Status MakeNamespaces(const std::string& data_dir, int parent) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return SystemError("make", "a user namespace", errno);
  Say(parent, kNeedsIds);
  const std::string answer = Hear(parent);
  if (answer != kReady) RETURN_IF_ERROR(MapOwnId(user, group));
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
    return SystemError("make", "network and mount namespaces", errno);
  RETURN_IF_ERROR(TryOverlay(data_dir + "/run"));
  ASSIGN_OR_RETURN(Netlink netlink, Netlink::Open());
  UniqueFd network(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  RETURN_IF_ERROR(netlink.SetLoopbackUp(network.get()));
  return TakeProcessLock(HolderLockFile(data_dir));
}

// Nothing else of the parent stays open: its locks must end with it.
[[noreturn]] void RunHolder(const std::string& data_dir, int parent) {
  constexpr int kParent = STDERR_FILENO + 1;
  setsid();
  prctl(PR_SET_NAME, "muster-node", 0, 0, 0);
  if (parent != kParent) dup2(parent, kParent);
  syscall(SYS_close_range, static_cast<unsigned>(kParent + 1), ~0U, 0U);
  const Status status = MakeNamespaces(data_dir, kParent);
  Say(kParent, status.ok() ? kReady : std::string_view(status.message()));
  if (!status.ok()) _exit(1);
  (void)!chdir("/");
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, kParent}) dup2(null, fd);
  while (true) pause();
}

ErrorStatus RefusalError(std::string_view error) {
  const Refusal refusal = ExplainRefusal(GatherRefusalFacts(std::string(error)));
  return Error(Reason::kForbidden, "{}; fix: {}", refusal.why, refusal.remedy);
}

Status StartHolder(const std::string& data_dir) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return SystemError("make", "a socket pair", errno);
  const UniqueFd ours(fds[0]);
  UniqueFd theirs(fds[1]);
  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork", "the node's holder", errno);
  if (pid == 0) RunHolder(data_dir, theirs.get());
  theirs.Reset();
  std::string heard = Hear(ours.get());
  if (heard == kNeedsIds) {
    const auto ids = OwnSubordinateIds();
    Status mapped = ids ? MapSubordinateIds(pid, *ids) : Status(Reason::kNotFound, "none");
    if (ids && !mapped.ok()) LOG_WARN("node: one user id only: {}", mapped.message());
    Say(ours.get(), mapped.ok() ? kReady : kNeedsIds);
    heard = Hear(ours.get());
  }
  if (heard == kReady) return Status::Ok();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return RefusalError(heard.empty() ? "the process that should hold them died" : heard);
}

// The holder and its network, which is surely its own: it lived after that was opened.
struct Holder {
  UniqueFd process, network;
};

Result<Holder> OpenHolder(const std::string& data_dir) {
  const std::string lock = HolderLockFile(data_dir);
  Holder holder;
  ASSIGN_OR_RETURN(holder.process, OpenProcessLockHolder(lock));
  if (!holder.process.valid()) return holder;
  const auto pid = ProcessLockHolder(lock);
  if (!pid) return Holder();
  const std::string path = fmt::format("/proc/{}/ns/net", *pid);
  holder.network.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!holder.network.valid()) return SystemError("open", path, errno);
  pollfd ended = {holder.process.get(), POLLIN, 0};
  if (poll(&ended, 1, 0) != 0) return Holder();
  return holder;
}

// Pods of a node whose holder was killed: their network is gone.
Status EndOrphans(const std::string& data_dir) {
  for (const std::string& uid : PodFolders(data_dir)) {
    RETURN_IF_ERROR(
        EndProcess(fmt::format("{}/{}", PodDir(data_dir, uid), kShimLockName), kEndPatience));
  }
  return Status::Ok();
}

// The sockets that our parts serve in there.
struct NodeSockets {
  DnsSockets dns;
  UniqueFd pod_api, gateway;
};

Result<NodeSockets> BindHere(const DnsEndpoint& dns) {
  NodeSockets sockets;
  ASSIGN_OR_RETURN(sockets.dns, BindDns(dns, /*free=*/true));
  ASSIGN_OR_RETURN(sockets.pod_api, BindPodApi(dns.address));
  ASSIGN_OR_RETURN(sockets.gateway, BindPodApi(dns.address, kGatewayPort));
  return sockets;
}

// Opens the sockets in a child that shares our descriptors: to go to another network and back takes
// rights in both.
Result<NodeSockets> BindInNetwork(int network, const DnsEndpoint& dns) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return SystemError("make", "a pipe", errno);
  const UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  clone_args arguments = {};
  arguments.flags = CLONE_FILES;
  arguments.exit_signal = SIGCHLD;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0) return SystemError("clone", "a helper", errno);
  if (pid == 0) {
    Result<NodeSockets> sockets =
        setns(network, CLONE_NEWNET) == 0
            ? BindHere(dns)
            : Result<NodeSockets>(SystemError("enter", "the node's network", errno));
    const std::string text =
        sockets ? fmt::format("{} {} {} {}", sockets->dns.udp.Release(), sockets->dns.tcp.Release(),
                              sockets->pod_api.Release(), sockets->gateway.Release())
                : sockets.error().message();
    (void)!write(write_end.get(), text.data(), text.size());
    _exit(sockets ? 0 : 1);
  }
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  write_end.Reset();
  ASSIGN_OR_RETURN(const std::string text, ReadAll(read_end.get(), "a pipe"));
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
    return Error(Reason::kInternalError, "{}", text);
  const auto numbers = Split(text, ' ');
  const auto socket_of = [&](size_t i) {
    return UniqueFd(static_cast<int>(ParseInt(numbers[i]).value_or(-1)));
  };
  return NodeSockets{{socket_of(0), socket_of(1)}, socket_of(2), socket_of(3)};
}

}  // namespace

Result<UserNode> EnterUserNode(const std::string& data_dir, const DnsEndpoint& dns) {
  ASSIGN_OR_RETURN(Holder holder, OpenHolder(data_dir));
  if (!holder.process.valid()) {
    RETURN_IF_ERROR(StartHolder(data_dir));
    // Of the network that is gone.
    RETURN_IF_ERROR(EndOutsideNetwork(data_dir));
    RETURN_IF_ERROR(EndOrphans(data_dir));
    ASSIGN_OR_RETURN(holder, OpenHolder(data_dir));
    if (!holder.process.valid())
      return Error(Reason::kInternalError, "the process that holds the node's namespaces died");
  }
  if (setns(holder.process.get(), CLONE_NEWUSER) != 0)
    return SystemError("enter", "the node's user namespace", errno);
  UserNode node;
  ASSIGN_OR_RETURN(NodeSockets sockets, BindInNetwork(holder.network.get(), dns));
  node.dns = std::move(sockets.dns);
  node.pod_api = std::move(sockets.pod_api);
  node.gateway = std::move(sockets.gateway);
  node.network = std::move(holder.network);
  return node;
}

UserNode PlainUserNode(const Status& why) {
  UserNode node;
  node.plain = true;
  node.limitations.push_back(NoNamespaces(why.message()));
  return node;
}

void EquipUserNode(const std::string& data_dir, UserNode& node) {
  const DelegatedGroup group = FindDelegatedGroup(CgroupFile(data_dir));
  node.cgroup = group.path.empty() ? std::string(kNoCgroups) : group.path;
  if (auto missing = MissingLimits(group)) node.limitations.push_back(std::move(*missing));
  if (node.plain) return;  // its pods are outside
  const auto program = FindOutsideProgram();
  OutsideMeans means = {program.has_value(), access("/dev/net/tun", R_OK | W_OK) == 0};
  if (means.program && means.device) {
    const Status kept = KeepOutsideNetwork(data_dir, *program, node.network.get());
    if (kept.ok()) return;
    means.failure = kept.message();
  }
  node.limitations.push_back(NoWayOut(means));
}

Cgroups CgroupsOfUserNode(const std::string& data_dir) {
  return Cgroups::At(ReadSmallFile(CgroupFile(data_dir)).value_or(std::string(kNoCgroups)));
}

Status EndUserNode(const std::string& data_dir) {
  RETURN_IF_ERROR(EndOutsideNetwork(data_dir));
  return EndProcess(HolderLockFile(data_dir), kEndPatience);
}

}  // namespace muster::agent
