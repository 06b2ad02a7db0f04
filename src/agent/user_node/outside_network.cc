#include "agent/user_node/outside_network.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/unique_fd.h"
#include "agent/shim/privileges.h"
#include "base/log.h"

namespace muster::agent {
namespace {

constexpr Duration kEndPatience = seconds(5);
constexpr int kRestartWaitMs = 2000;
constexpr int kNetwork = STDERR_FILENO + 1;
constexpr int kStarter = kNetwork + 1;

std::string LockFile(const std::string& data_dir) { return data_dir + "/run/outside.lock"; }

// As the machine's /proc numbers us, whatever our own PID namespace says.
std::string OwnNetworkPath() {
  char self[PATH_MAX] = {};
  const ssize_t size = readlink("/proc/self", self, sizeof self - 1);
  return fmt::format("/proc/{}/fd/{}", std::string_view(self, size > 0 ? size_t(size) : 0),
                     kNetwork);
}

// pasta and slirp4netns print what they do, and why they cannot.
void TakeLog(const std::string& data_dir) {
  const std::string path = data_dir + "/logs/outside.log";
  const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  for (int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(log < 0 ? null : log, stream);
}

[[noreturn]] void RunProgram(std::vector<std::string> arguments) {
  signal(SIGPIPE, SIG_DFL);  // pasta of Debian 12 takes an ignored one for a failure
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

[[noreturn]] void RunKeeper(const std::string& data_dir, const OutsideProgram& program, int network,
                            int starter) {
  const UniqueFd high(fcntl(starter, F_DUPFD_CLOEXEC, kStarter + 1));
  dup3(network, kNetwork, O_CLOEXEC);
  dup3(high.get(), kStarter, O_CLOEXEC);
  syscall(SYS_close_range, static_cast<unsigned>(kStarter + 1), ~0U, 0U);
  setsid();
  prctl(PR_SET_NAME, "muster-outside", 0, 0, 0);
  const Status locked = TakeProcessLock(LockFile(data_dir));
  (void)!write(kStarter, locked.ok() ? "+" : "-", 1);
  close(kStarter);
  if (!locked.ok()) _exit(1);
  (void)!chdir("/");
  // pasta gives most of its capabilities away before it opens the network by our /proc/PID: that
  // takes as many as we have.
  (void)LayDownCapabilities();
  const std::vector<std::string> arguments = OutsideArguments(program, OwnNetworkPath());
  while (true) {
    TakeLog(data_dir);
    const pid_t child = fork();
    if (child == 0) RunProgram(arguments);
    pid_t ended = -1;
    do {
      ended = waitpid(-1, nullptr, 0);  // and what it leaves behind
    } while (ended != child && (ended > 0 || errno == EINTR));
    poll(nullptr, 0, kRestartWaitMs);
  }
}

}  // namespace

std::optional<OutsideProgram> FindOutsideProgram(const std::vector<std::string>& dirs) {
  for (const char* name : {"pasta", "slirp4netns"}) {
    for (const std::string& dir : dirs) {
      const std::string path = dir + "/" + name;
      if (access(path.c_str(), X_OK) == 0)
        return OutsideProgram{path, std::string_view(name) == "pasta"};
    }
  }
  return std::nullopt;
}

std::optional<OutsideProgram> FindOutsideProgram() {
  return FindOutsideProgram({"/usr/local/bin", "/usr/bin", "/bin"});
}

std::vector<std::string> OutsideArguments(const OutsideProgram& program,
                                          const std::string& network) {
  if (!program.is_pasta) {
    return {program.path,        "--configure", "--mtu=65520", "--disable-host-loopback",
            "--netns-type=path", network,       "tap0"};
  }
  return {program.path,  "--foreground", "--quiet",     "--config-net", "--no-map-gw",
          "--tcp-ports", "none",         "--udp-ports", "none",         "--tcp-ns",
          "none",        "--udp-ns",     "none",        "--netns",      network};
}

Status KeepOutsideNetwork(const std::string& data_dir, const OutsideProgram& program, int network) {
  if (ProcessLockHolder(LockFile(data_dir))) return Status::Ok();
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return SystemError("make", "a socket pair", errno);
  const UniqueFd ours(fds[0]);
  UniqueFd theirs(fds[1]);
  clone_args arguments = {};
  arguments.flags = CLONE_NEWPID;
  arguments.exit_signal = SIGCHLD;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0) return SystemError("clone", "the keeper of the outside network", errno);
  if (pid == 0) RunKeeper(data_dir, program, network, theirs.get());
  theirs.Reset();
  char answer = 0;
  if (read(ours.get(), &answer, 1) == 1 && answer == '+') return Status::Ok();
  return Error(Reason::kInternalError, "the keeper of the outside network did not start");
}

Status EndOutsideNetwork(const std::string& data_dir) {
  return EndProcess(LockFile(data_dir), kEndPatience);
}

}  // namespace muster::agent
