#include "agent/spawner/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>

#include "agent/cgroups/cgroups.h"
#include "agent/network/host_network.h"
#include "agent/network/netlink.h"
#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "agent/spawner/network_config.h"
#include "agent/spawner/sandbox.h"
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
  Spawner(int socket_fd, int signal_fd)
      : socket_(socket_fd), signals_(signal_fd), cgroups_(Cgroups::DetectSystem()) {}

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
    if (op == "removeSandbox") return Remove(request["cgroup"].Str());
    if (op == "setupNetwork") {
      RETURN_IF_ERROR(EnsureHost(NetworkConfigFromJson(request)));
      return json::Obj();
    }
    if (op == "applyRules") {
      // The text of thousands of Services does not fit a message.
      ASSIGN_OR_RETURN(const std::string rules, ReadSmallFile(request["file"].Str()));
      RETURN_IF_ERROR(ApplyNft(rules));
      return json::Obj();
    }
    return Error(Reason::kBadRequest, "spawner: unknown request {:?}", op);
  }

  Result<json::Value> Create(const json::Value& message) {
    ASSIGN_OR_RETURN(const SandboxRequest request, SandboxRequestFromJson(message));
    if (!netlink_ && !request.host_network) {
      ASSIGN_OR_RETURN(netlink_, Netlink::Open());
    }
    ASSIGN_OR_RETURN(const pid_t pid,
                     CreateSandbox(request, cgroups_, netlink_ ? &*netlink_ : nullptr));
    shims_.insert(pid);
    return json::Obj({{"pid", static_cast<int64_t>(pid)}});
  }

  Result<json::Value> Remove(const std::string& cgroup) {
    if (!cgroup.starts_with(std::string(kCgroupRoot) + "/pod") ||
        cgroup.find("..") != std::string::npos) {
      return Error(Reason::kInvalid, "{:?} is not the cgroup of a pod", cgroup);
    }
    cgroups_.KillAll(cgroup);
    RETURN_IF_ERROR(cgroups_.Remove(cgroup));
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
  std::optional<Netlink> netlink_;
  std::set<pid_t> shims_;
};

[[noreturn]] void RunSpawner(int socket_fd) {
  setsid();  // a Ctrl-C in the terminal is for the parent to handle
  prctl(PR_SET_NAME, "muster-spawner", 0, 0, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Spawner spawner(socket_fd, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  spawner.Serve();
  _exit(0);
}

}  // namespace

Result<SpawnerHandle> SpawnerProcess::Fork() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return SystemError("make", "the spawner's socket pair", errno);
  }
  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork", "the spawner", errno);
  if (pid == 0) {
    // Nothing else of the parent stays open here: its locks must end with it, not with us or a
    // shim.
    constexpr int kSocket = STDERR_FILENO + 1;
    if (fds[1] != kSocket) dup3(fds[1], kSocket, O_CLOEXEC);
    syscall(SYS_close_range, static_cast<unsigned>(kSocket + 1), ~0U, 0U);
    RunSpawner(kSocket);
  }
  close(fds[1]);
  return SpawnerHandle(fds[0], pid);
}

}  // namespace muster::agent
