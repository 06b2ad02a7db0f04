#include "agent/spawner/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "agent/cgroups/cgroups.h"
#include "agent/network/connection_tracking.h"
#include "agent/network/host_network.h"
#include "agent/network/netlink.h"
#include "agent/network/policy_dataplane.h"
#include "agent/network/service_dataplane.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/unique_fd.h"
#include "agent/spawner/network_config.h"
#include "agent/spawner/sandbox.h"
#include "agent/user_node/user_identity.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {

SpawnerHandle::SpawnerHandle(SpawnerHandle&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), pid_(std::exchange(other.pid_, -1)) {}

SpawnerHandle& SpawnerHandle::operator=(SpawnerHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(pid_, other.pid_);
  return *this;
}

SpawnerHandle::~SpawnerHandle() {
  if (fd_ < 0) return;
  close(fd_);  // the spawner ends when it sees this
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

namespace {

class Spawner {
 public:
  Spawner(int socket_fd, int signal_fd, const SpawnerOptions& options)
      : socket_(socket_fd),
        signals_(signal_fd),
        cgroups_(Cgroups::At(options.cgroup)),
        plain_(options.plain),
        user_namespace_(InUserNamespace()) {}

  // Until the parent is gone.
  void Serve() {
    std::string buffer(kMaxSpawnerMessageBytes, '\0');
    while (true) {
      pollfd fds[2] = {{socket_, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) ReapShims();
      if (fds[0].revents == 0) continue;
      const ssize_t n = recv(socket_, buffer.data(), buffer.size(), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      Reply(std::string_view(buffer.data(), static_cast<size_t>(n)));
    }
  }

 private:
  void Reply(std::string_view text) {
    json::Value id;
    Result<json::Value> answer = Error(Reason::kBadRequest, "spawner: broken request");
    if (const auto request = json::Parse(text)) {
      id = (*request)["id"];
      answer = Answer(*request);
    }
    const json::Value message = answer
                                    ? answer->Set("id", id)
                                    : json::Obj({{"id", id}, {"error", answer.error().message()}});
    const std::string out = json::Write(message);
    while (send(socket_, out.data(), out.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
  }

  Result<json::Value> Answer(const json::Value& request) {
    const std::string_view op = request["op"].AsString();
    if (op == "createSandbox") return Create(request);
    if (op == "removeSandbox") return Remove(request["podDir"].Str(), request["cgroup"].Str());
    if (op == "setupNetwork") {
      services_.reset();
      policies_.reset();
      fenced_ = false;
      RETURN_IF_ERROR(EnsureHost(NetworkConfigFromJson(request)));
      return json::Obj();
    }
    if (op == "applyServices") return ApplyServices(request);
    if (op == "applyPolicies") return ApplyPolicies(request);
    return Error(Reason::kBadRequest, "spawner: unknown request {:?}", op);
  }

  Result<json::Value> Create(const json::Value& message) {
    ASSIGN_OR_RETURN(SandboxRequest request, SandboxRequestFromJson(message));
    request.user_namespace = user_namespace_;
    request.plain = plain_;
    if (!netlink_ && !request.host_network) {
      ASSIGN_OR_RETURN(netlink_, Netlink::Open());
    }
    ASSIGN_OR_RETURN(const pid_t pid,
                     CreateSandbox(request, cgroups_, netlink_ ? &*netlink_ : nullptr));
    shims_.insert(pid);
    return json::Obj({{"pid", static_cast<int64_t>(pid)}});
  }

  Result<json::Value> Remove(const std::string& pod_dir, const std::string& cgroup) {
    if (!cgroup.starts_with(std::string(kCgroupRoot) + "/pod") ||
        cgroup.find("..") != std::string::npos) {
      return Error(Reason::kInvalid, "{:?} is not the cgroup of a pod", cgroup);
    }
    RETURN_IF_ERROR(EndSandbox(pod_dir, cgroup, cgroups_, plain_));
    return json::Obj();
  }

  // What "table" or, when it does not fit a message, "file" has.
  static Result<std::string> TableOf(const json::Value& request, size_t max_bytes) {
    if (!request.Has("file")) return request["table"].Str();
    return ReadSmallFile(request["file"].Str(), max_bytes);
  }

  // A PolicyTable, the whole of it, for the "network" (network_config.h).
  Result<json::Value> ApplyPolicies(const json::Value& request) {
    ASSIGN_OR_RETURN(const std::string text, TableOf(request, kMaxPolicyTableBytes));
    ASSIGN_OR_RETURN(const PolicyTable table, ParsePolicyTable(text));
    if (!fenced_ && !table.empty()) {
      RETURN_IF_ERROR(FencePods(NetworkConfigFromJson(request["network"])));
      fenced_ = true;
    }
    if (!policies_) {
      ASSIGN_OR_RETURN(policies_, PolicyDataplane::Open());
    }
    auto applied = policies_->Replace(table);
    if (!applied) {
      policies_.reset();
      return Error(std::move(applied.error()));
    }
    LOG_DEBUG("spawner: policies changed added={} removed={} chains={} transactions={}",
              applied->added, applied->removed, applied->chains, applied->transactions);
    return json::Obj();
  }

  // A ServiceTable; "whole": there are no other frontends.
  Result<json::Value> ApplyServices(const json::Value& request) {
    ASSIGN_OR_RETURN(const std::string text, TableOf(request, kMaxServiceTableBytes));
    ASSIGN_OR_RETURN(const ServiceTable table, ParseServiceTable(text));
    if (!services_) {
      ASSIGN_OR_RETURN(services_, ServiceDataplane::Open());
    }
    auto applied = request["whole"].AsBool() ? services_->Replace(table) : services_->Apply(table);
    if (!applied) {
      services_.reset();
      return Error(std::move(applied.error()));
    }
    const auto forgotten = ForgetDatagrams(applied->lost_datagram_endpoints);
    if (!forgotten) LOG_WARN("spawner: {}", forgotten.error().message());
    LOG_DEBUG("spawner: services changed added={} removed={} transactions={}", applied->added,
              applied->removed, applied->transactions);
    return json::Obj();
  }

  void ReapShims() {
    signalfd_siginfo ignored;
    while (read(signals_.get(), &ignored, sizeof ignored) > 0) {
    }
    // Only shims: programs that the network code runs are waited for there.
    std::erase_if(shims_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) == pid; });
  }

  int socket_;
  UniqueFd signals_;
  Cgroups cgroups_;
  const bool plain_;
  const bool user_namespace_;
  std::optional<Netlink> netlink_;
  std::optional<ServiceDataplane> services_;
  std::optional<PolicyDataplane> policies_;
  bool fenced_ = false;
  std::set<pid_t> shims_;
};

constexpr int kSocket = STDERR_FILENO + 1;
constexpr int kNetwork = kSocket + 1;  // of an executed one
constexpr std::string_view kOwnNetwork = "own-network";
constexpr std::string_view kPlain = "plain";

// Serves kSocket. Nothing else of the parent stays open: its locks must end with it, not with us or
// a shim.
[[noreturn]] void RunSpawner(const SpawnerOptions& options) {
  // Else its pods would be on the machine's network.
  if (options.network >= 0 && setns(options.network, CLONE_NEWNET) != 0) {
    LOG_ERROR("spawner: enter the node's network: {}", std::strerror(errno));
    _exit(1);
  }
  syscall(SYS_close_range, static_cast<unsigned>(kSocket + 1), ~0U, 0U);
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  setsid();  // a Ctrl-C in the terminal is for the parent to handle
  prctl(PR_SET_NAME, "muster-spawner", 0, 0, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (!options.lock_file.empty()) {
    const Status locked = TakeOverProcessLock(options.lock_file, kPredecessorPatience);
    if (!locked.ok()) LOG_ERROR("spawner: {}", locked.message());
  }
  Spawner spawner(kSocket, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), options);
  spawner.Serve();
  _exit(0);
}

struct Ends {
  UniqueFd parent, child;
};

Result<Ends> MakeEnds() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return SystemError("make", "the spawner's socket pair", errno);
  return Ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// posix_spawn with the child's end as kSocket and the network as kNetwork.
int StartProgram(const SpawnerOptions& options, int child_end, pid_t& pid) {
  std::string name = "muster", command(kSpawnerCommand), lock = options.lock_file;
  std::string network(options.plain ? kPlain : options.network >= 0 ? kOwnNetwork : "");
  std::string cgroup = options.cgroup;
  char* argv[] = {name.data(), command.data(), lock.data(), network.data(), cgroup.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  // Neither may stand where the other one goes.
  const UniqueFd end(fcntl(child_end, F_DUPFD_CLOEXEC, kNetwork + 1));
  const UniqueFd network_fd(
      options.network < 0 ? -1 : fcntl(options.network, F_DUPFD_CLOEXEC, kNetwork + 1));
  posix_spawn_file_actions_adddup2(&files, end.get(), kSocket);
  if (network_fd.valid()) posix_spawn_file_actions_adddup2(&files, network_fd.get(), kNetwork);
  // The caller may block signals that the new program needs.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(&pid, "/proc/self/exe", &files, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Result<SpawnerHandle> SpawnerProcess::Fork(const SpawnerOptions& options) {
  ASSIGN_OR_RETURN(Ends ends, MakeEnds());
  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork", "the spawner", errno);
  if (pid == 0) {
    if (ends.child.get() != kSocket) dup2(ends.child.get(), kSocket);
    ends.child.Release();
    ends.parent.Release();
    RunSpawner(options);
  }
  return SpawnerHandle(ends.parent.Release(), pid);
}

Result<SpawnerHandle> SpawnerProcess::Execute(const SpawnerOptions& options) {
  ASSIGN_OR_RETURN(Ends ends, MakeEnds());
  pid_t pid = -1;
  const int error = StartProgram(options, ends.child.get(), pid);
  if (error != 0) return SystemError("start", "the spawner", error);
  return SpawnerHandle(ends.parent.Release(), pid);
}

void SpawnerProcess::Serve(int argc, char** argv) {
  SpawnerOptions options;
  if (argc > 2) options.lock_file = argv[2];
  if (argc > 3 && argv[3] == kOwnNetwork) options.network = kNetwork;
  options.plain = argc > 3 && argv[3] == kPlain;
  if (argc > 4) options.cgroup = argv[4];
  RunSpawner(options);
}

}  // namespace muster::agent
