#include "app/up.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "agent/agent.h"
#include "agent/spawner/spawner.h"
#include "app/control_plane.h"
#include "app/data_dir.h"
#include "app/doctor/doctor.h"
#include "app/instance_lock.h"
#include "app/threads.h"
#include "app/up_options.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/kubeconfig_merge.h"
#include "loop/asio_loop.h"

namespace muster::app {
namespace {

// How long `muster down` waits for a graceful stop before it kills.
constexpr Duration kStopTimeout = seconds(20);
// A start that takes longer says where to look.
constexpr Duration kSlowStart = seconds(10);

// With what helps where whoever failed did not know: any file may be the one for which there is no
// room.
std::string Explained(const Status& status) {
  const std::string& message = status.message();
  const bool full =
      message.contains(std::strerror(ENOSPC)) || message.contains(std::strerror(EDQUOT));
  return full && !message.contains("make room") ? message + ": the disk is full, make room"
                                                : message;
}

int Fail(std::string_view command, const Status& status) {
  fmt::print(stderr, "muster {}: {}\n", command, Explained(status));
  return status.reason() == Reason::kBadRequest ? 2 : 1;
}

int WrongUsage(std::string_view command, const Status& status) {
  fmt::print(stderr, "muster {0}: {1}. See: muster {0} --help\n", command, status.message());
  return 2;
}

// The background process tells its parent how the start went: one byte ('+' or '-') and a text. A
// pipe that closes without a byte means that the process died. Before, it may send lines for the
// terminal, which begin with '~'.
class StartReport {
 public:
  explicit StartReport(int fd) : fd_(fd) {}
  void Note(const std::string& line) {
    if (fd_ < 0) return;
    const std::string message = "~" + line + "\n";
    [[maybe_unused]] const ssize_t written = write(fd_, message.data(), message.size());
  }
  void Send(bool ok, const std::string& text) {
    if (fd_ < 0) return;
    const std::string message = (ok ? "+" : "-") + text;
    [[maybe_unused]] const ssize_t written = write(fd_, message.data(), message.size());
    close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

int WaitForReport(int fd, const std::string& log_file) {
  std::string message;
  char buffer[4096];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR)) {
    if (count > 0) message.append(buffer, static_cast<size_t>(count));
    for (size_t end; message.starts_with('~') && (end = message.find('\n')) != message.npos;) {
      fmt::print(stderr, "{}\n", message.substr(1, end - 1));
      message.erase(0, end + 1);
    }
  }
  if (message.empty()) {
    fmt::print(stderr, "muster up: the process ended while it started; see {}\n", log_file);
    return 1;
  }
  const bool ok = message[0] == '+';
  fmt::print(ok ? stdout : stderr, "{}\n", message.substr(1));
  return ok ? 0 : 1;
}

// Detaches from the terminal. In the parent returns the exit code through `exit_code`; the child
// goes on.
Result<StartReport> GoToBackground(const std::string& log_file, bool& is_parent, int& exit_code) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0)
    return Error(Reason::kInternalError, "pipe: {}", std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) return Error(Reason::kInternalError, "fork: {}", std::strerror(errno));
  if (pid > 0) {
    close(fds[1]);
    is_parent = true;
    exit_code = WaitForReport(fds[0], log_file);
    return StartReport(-1);
  }
  close(fds[0]);
  setsid();
  const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (log < 0 || null < 0)
    return Error(Reason::kInternalError, "cannot open {}: {}", log_file, std::strerror(errno));
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  close(log);
  close(null);
  return StartReport(fds[1]);
}

// A line to paste: quoted where a shell would read it otherwise.
std::string QuoteForShell(const std::string& path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@";
  if (path.find_first_not_of(kPlain) == path.npos) return path;
  return "'" + ReplaceAll(path, "'", "'\\''") + "'";
}

std::string ReadyText(const UpOptions& options, const ControlPlane& plane,
                      const std::vector<agent::NodeLimitation>& limitations, Duration took) {
  std::string text = fmt::format(
      "muster is ready after {:.2f} s: https://{} (node {})\n"
      "  export KUBECONFIG={}",
      std::chrono::duration<double>(took).count(), plane.address(), options.node_name,
      QuoteForShell(plane.kubeconfig()));
  for (const agent::NodeLimitation& limitation : limitations)
    text += fmt::format("\n  note: {}", limitation.Text());
  return text;
}

int Serve(const UpOptions& options, agent::SpawnerHandle spawner, agent::UserNode user_node,
          StartReport report, Duration started) {
  const std::vector<agent::NodeLimitation> limitations = user_node.limitations;
  AsioLoop loop;
  Result<std::unique_ptr<ControlPlane>> opened =
      ControlPlane::Open(options, loop, std::move(spawner), std::move(user_node));
  if (!opened.has_value()) {
    report.Send(false, "muster up: " + Explained(opened.error()));
    return Fail("up", opened.error());
  }
  std::unique_ptr<ControlPlane> plane = std::move(*opened);
  int exit_code = 0;
  bool stopping = false;
  const auto stop = [&] {
    if (std::exchange(stopping, true)) return loop.Stop();  // the second signal does not wait
    LOG_INFO("app: stopping; pods keep running");
    plane->Stop([&loop] { loop.Stop(); });
  };
  loop.OnSignal(SIGINT, stop);
  loop.OnSignal(SIGTERM, stop);
  TimerId slow = 0;
  loop.Post([&] {
    slow = loop.After(kSlowStart, [&] {
      const std::string line = fmt::format(
          "muster up: the API server answers at https://{} (export KUBECONFIG={}), but the node is "
          "not ready yet; {} has what fails",
          plane->address(), QuoteForShell(plane->kubeconfig()),
          options.detach ? options.data_dir + "/logs/muster.log" : "the log above");
      report.Note(line);
      if (!options.detach) fmt::print(stderr, "{}\n", line);
    });
    plane->Start([&](Status status) {
      loop.Cancel(slow);
      if (!status.ok()) {
        report.Send(false, "muster up: " + Explained(status));
        exit_code = Fail("up", status);
        return stop();
      }
      const std::string text =
          ReadyText(options, *plane, limitations, RealClock().Monotonic() - started);
      report.Send(true, text);
      if (!options.detach) fmt::print("{}\nPress Ctrl-C to stop the control plane.\n", text);
      std::fflush(stdout);
    });
  });
  loop.Run();
  plane.reset();
  return exit_code;
}

// Every connection is a descriptor, and a process gets 1,024 by default.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    LOG_WARN("app: cannot raise the limit of descriptors error={:?}", std::strerror(errno));
  }
}

Status StopProcess(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) {
    if (errno == ESRCH) return Status::Ok();
    return Error(Reason::kInternalError, "pidfd_open of process {}: {}", pid, std::strerror(errno));
  }
  if (kill(pid, SIGTERM) != 0 && errno != ESRCH) {
    close(fd);
    return Error(Reason::kForbidden, "cannot stop process {}: {}", pid, std::strerror(errno));
  }
  pollfd poll_fd{fd, POLLIN, 0};
  const int timeout_ms =
      static_cast<int>(std::chrono::duration_cast<milliseconds>(kStopTimeout).count());
  if (poll(&poll_fd, 1, timeout_ms) == 0) {
    fmt::print(stderr, "muster down: process {} did not stop within {} s; killing it\n", pid,
               timeout_ms / 1000);
    kill(pid, SIGKILL);
    poll(&poll_fd, 1, timeout_ms);
  }
  close(fd);
  return Status::Ok();
}

// What `up` needs of the machine, then the data directory.
Status PrepareHost(UpOptions& options) {
  RETURN_IF_ERROR(CheckHost(options));
  return MakeDataDir(options.data_dir);
}

// A cluster keeps the ranges that it began with. REQUIRES: the lock.
Status KeepRanges(const UpOptions& options) {
  ASSIGN_OR_RETURN(const auto kept, agent::LoadAddressRanges(options.data_dir));
  return kept ? Status::Ok() : agent::SaveAddressRanges(options.data_dir, options.ranges);
}

Result<int> RunUp(const cli::Arguments& arguments, cli::Console&) {
  const Duration started = RealClock().Monotonic();
  Result<UpOptions> options = UpOptionsOf(arguments);
  if (!options.has_value()) return WrongUsage("up", options.error());
  SetLogLevel(options->verbose ? LogLevel::kDebug : LogLevel::kInfo);
  if (const auto pid = InstanceLock::LastingHolder(options->data_dir); pid && options->detach) {
    fmt::print(
        "muster is already running on {} (pid {}); for other options stop it first: "
        "muster down --data-dir {}\n",
        options->data_dir, *pid, options->data_dir);
    return 0;
  }
  if (const Status status = CheckOwner(options->data_dir); !status.ok()) return Fail("up", status);
  if (const Status status = PrepareHost(*options); !status.ok()) return Fail("up", status);
  Result<InstanceLock> lock = InstanceLock::Take(options->data_dir);
  if (!lock.has_value()) return Fail("up", lock.error());
  if (const Status status = KeepRanges(*options); !status.ok()) return Fail("up", status);
  if (const Status status =
          KeepNodeName(options->data_dir, options->node_name_given, options->node_name);
      !status.ok()) {
    return Fail("up", status);
  }
  StartReport report(-1);
  if (options->detach) {
    bool is_parent = false;
    int exit_code = 0;
    Result<StartReport> background =
        GoToBackground(options->data_dir + "/logs/muster.log", is_parent, exit_code);
    if (is_parent) return exit_code;
    if (!background.has_value()) return Fail("up", background.error());
    report = std::move(*background);
    if (const Status status = lock->RecordPid(); !status.ok()) {
      report.Send(false, "muster up: " + Explained(status));
      return Fail("up", status);
    }
  }
  signal(SIGPIPE, SIG_IGN);
  agent::ProtectFromOom(agent::kNodeOomScore);
  agent::UserNode user_node;
  if (geteuid() != 0) {
    Result<agent::UserNode> entered =
        agent::EnterNodeOfUser({.data_dir = options->data_dir, .ranges = options->ranges});
    if (!entered.has_value() && entered.error().reason() == Reason::kForbidden)
      entered = agent::PlainUserNode(entered.error());
    if (!entered.has_value()) {
      report.Send(false, "muster up: " + Explained(entered.error()));
      return Fail("up", entered.error());
    }
    user_node = std::move(*entered);
    agent::EquipUserNode(options->data_dir, user_node);
  }
  Result<agent::SpawnerHandle> spawner =
      agent::SpawnerProcess::Fork({agent::SpawnerLockFile(options->data_dir),
                                   user_node.network.get(), user_node.cgroup, user_node.plain});
  if (!spawner.has_value()) {
    report.Send(false, "muster up: " + Explained(spawner.error()));
    return Fail("up", spawner.error());
  }
  RaiseDescriptorLimit();  // after the fork: pods keep the limit that we were started with
  if (!PreferThisThread()) LOG_DEBUG("app: the control-plane loop has no priority over pods");
  return Serve(*options, std::move(*spawner), std::move(user_node), std::move(report), started);
}

// What `muster kubeconfig --merge` gave to kubectl leads nowhere now.
void ForgetInKubectl(const std::string& kubeconfig) {
  if (!cli::IsMerged(kubeconfig)) return;
  const Result<std::string> done = cli::UnmergeCluster({.own_file = kubeconfig});
  if (!done) fmt::print(stderr, "muster down: {}\n", done.error().message());
}

Result<int> RunDown(const cli::Arguments& arguments, cli::Console&) {
  Result<DownOptions> options = DownOptionsOf(arguments);
  if (!options.has_value()) return WrongUsage("down", options.error());
  SetLogLevel(LogLevel::kInfo);
  std::error_code error;
  if (!std::filesystem::exists(options->data_dir, error)) {
    fmt::print("muster down: nothing at {}\n", options->data_dir);
    return 0;
  }
  if (const Status status = CheckOwner(options->data_dir); !status.ok())
    return Fail("down", status);
  if (!IsDataDir(options->data_dir)) {
    return Fail("down", Error(Reason::kConflict,
                              "{} is not a data directory of muster; nothing was changed",
                              options->data_dir));
  }
  if (const auto pid = InstanceLock::Holder(options->data_dir)) {
    if (const Status status = StopProcess(*pid); !status.ok()) return Fail("down", status);
  }
  if (geteuid() != 0) {
    // Files of other ids of his are the user's only in there.
    const auto entered = agent::EnterNodeOfUser({.data_dir = options->data_dir});
    // Where there are no namespaces for him there is nothing in one.
    if (!entered.has_value() && entered.error().reason() != Reason::kForbidden)
      return Fail("down", entered.error());
  }
  if (const Status status = agent::TearDownNode(options->data_dir); !status.ok())
    return Fail("down", status);
  if (options->purge) {
    if (const Status status = PurgeDataDir(options->data_dir); !status.ok()) {
      return Fail("down", status);
    }
  }
  if (options->purge) ForgetInKubectl(options->data_dir + "/kubeconfig");
  fmt::print("muster is down{}\n",
             options->purge ? ", nothing is left" : "; `muster up` goes on where it stopped");
  return 0;
}

}  // namespace

cli::Command UpCommand() {
  cli::Command command = DeclareUp();
  command.run_offline = RunUp;
  return command;
}

cli::Command DownCommand() {
  cli::Command command = DeclareDown();
  command.run_offline = RunDown;
  return command;
}

}  // namespace muster::app
