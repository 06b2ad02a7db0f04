#include "agent/shim/launch.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "agent/runtime/files.h"
#include "agent/shim/container_user.h"
#include "agent/shim/privileges.h"
#include "agent/shim/system_calls.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return SystemError("make", "a pipe", errno);
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// fork() with namespaces. The caller has one thread, so the child may do what it wants before exec.
pid_t Clone(uint64_t namespaces, int* pid_fd) {
  clone_args arguments = {};
  arguments.flags = namespaces | (pid_fd != nullptr ? CLONE_PIDFD : 0);
  arguments.pidfd = reinterpret_cast<uint64_t>(pid_fd);
  arguments.exit_signal = SIGCHLD;
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGQUIT}) signal(number, SIG_DFL);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::string_view PathOf(const std::vector<std::string>& environment) {
  std::string_view path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
  }
  return path;
}

// Replaces the process; returns only when that failed.
Status Execute(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment) {
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const std::string& program = arguments[0];
  if (program.find('/') != std::string::npos) {
    execve(program.c_str(), argv.data(), envp.data());
    return Error(Reason::kInvalid, "exec: {:?}: {}", program, strerror(errno));
  }
  int error_number = ENOENT;
  for (std::string_view dir : Split(PathOf(environment), ':')) {
    const std::string candidate = fmt::format("{}/{}", dir.empty() ? "." : dir, program);
    execve(candidate.c_str(), argv.data(), envp.data());
    if (errno != ENOENT && errno != ENOTDIR) error_number = errno;
  }
  if (error_number == ENOENT)
    return Error(Reason::kNotFound, "exec: {:?}: executable file not found in $PATH", program);
  return Error(Reason::kInvalid, "exec: {:?}: {}", program, strerror(error_number));
}

// Waits for what the child says: nothing (it executed its program) or why it could not.
Status AwaitExec(Pipe& report, pid_t pid) {
  report.write_end.Reset();
  std::string text;
  char buffer[1024];
  while (true) {
    const ssize_t n = read(report.read_end.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  if (text.empty()) return Status::Ok();
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return Error(Reason::kInvalid, "{}", text);
}

[[noreturn]] void Report(const Pipe& report, const Status& status) {
  const std::string& text = status.message();
  (void)!write(report.write_end.get(), text.data(), text.size());
  _exit(127);
}

// The master and slave of a new terminal.
struct Terminal {
  UniqueFd master, slave;
};

// Below `root`, a container's: what is there may be links that the container made.
Result<Terminal> OpenTerminal(const std::string& root) {
  Terminal terminal;
  UniqueFd root_fd(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd.valid()) return SystemError("open", root, errno);
  ASSIGN_OR_RETURN(const int master,
                   OpenForUse(root_fd.get(), "dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK));
  terminal.master.Reset(master);
  if (fcntl(master, F_SETFL, 0) != 0) return SystemError("set up", "a terminal", errno);
  const int unlock = 0;
  if (ioctl(terminal.master.get(), TIOCSPTLCK, &unlock) != 0)
    return SystemError("unlock", "a terminal", errno);
  terminal.slave.Reset(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave.valid()) return SystemError("open", "a terminal", errno);
  return terminal;
}

// Standard input, output and error of a child.
Status TakeStandardStreams(int in, int out, int err, bool terminal) {
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
    return SystemError("dup", "standard streams", errno);
  if (terminal && ioctl(0, TIOCSCTTY, 0) != 0) return SystemError("take", "the terminal", errno);
  return Status::Ok();
}

// What all children do at the end, when the root and the streams are as they should be.
// `spec`: a ContainerSpec or an ExecSpec.
template <class Spec>
Status DropAndExecute(const Spec& spec, bool plain) {
  const std::string dir = spec.working_dir.empty() ? "/" : spec.working_dir;
  if (chdir(dir.c_str()) != 0) return SystemError("workingDir", dir, errno);
  umask(022);
  // Without capabilities a filter takes the promise first.
  if (plain || spec.no_new_privileges) RETURN_IF_ERROR(ForbidNewPrivileges());
  RETURN_IF_ERROR(FilterSystemCalls());
  if (!plain) RETURN_IF_ERROR(LimitCapabilities(spec.capabilities));
  std::vector<std::string> environment = spec.environment;
  // With capabilities that the container may not have.
  if (!spec.user.empty() || !spec.groups.empty() || spec.only_groups)
    RETURN_IF_ERROR(BecomeContainerUser({spec.user, spec.groups, spec.only_groups}, environment));
  if (!plain) RETURN_IF_ERROR(TakeCapabilities(geteuid() == 0 ? spec.capabilities : 0));
  syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  ResetSignals();
  return Execute(spec.arguments, environment);
}

// Until it executes the container's program, a child has our memory, our program as its
// /proc/PID/exe and all capabilities: nothing in the container may look at it.
void BeOpaque() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

struct ContainerStreams {
  int in, out, err;
};

Status RunContainer(const ContainerSpec& spec, const RootfsPlace& place, const Cgroups& cgroups,
                    const ContainerStreams& streams) {
  setsid();
  BeOpaque();
  RETURN_IF_ERROR(cgroups.Join(spec.cgroup));
  if (place.plain) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (!place.plain && cgroups.mode() != Cgroups::Mode::kNone && unshare(CLONE_NEWCGROUP) != 0) {
    return SystemError("make", "a cgroup namespace", errno);
  }
  (void)WriteFile("/proc/self/oom_score_adj", std::to_string(spec.oom_score_adj));
  if (!place.plain) RETURN_IF_ERROR(EnterRootfs(spec, place));
  RETURN_IF_ERROR(TakeStandardStreams(streams.in, streams.out, streams.err, spec.tty));
  return DropAndExecute(spec, place.plain);
}

}  // namespace

Result<Launched> LaunchContainer(const ContainerSpec& spec, const RootfsPlace& place,
                                 const Cgroups& cgroups) {
  ASSIGN_OR_RETURN(Pipe report, MakePipe());
  Pipe out, err;
  Terminal terminal;
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  ContainerStreams streams = {null.get(), -1, -1};
  if (spec.tty) {
    ASSIGN_OR_RETURN(terminal, OpenTerminal("/"));
    streams = {terminal.slave.get(), terminal.slave.get(), terminal.slave.get()};
  } else {
    ASSIGN_OR_RETURN(out, MakePipe());
    ASSIGN_OR_RETURN(err, MakePipe());
    streams.out = out.write_end.get();
    streams.err = err.write_end.get();
  }
  int pid_fd = -1;
  const uint64_t namespaces =
      place.plain ? 0 : CLONE_NEWNS | (spec.share_pid_namespace ? 0 : CLONE_NEWPID);
  const pid_t pid = Clone(namespaces, &pid_fd);
  if (pid < 0) return SystemError("clone", "the container", errno);
  if (pid == 0) Report(report, RunContainer(spec, place, cgroups, streams));
  Launched launched;
  launched.pid = pid;
  launched.pid_fd.Reset(pid_fd);
  RETURN_IF_ERROR(AwaitExec(report, pid));
  launched.out = spec.tty ? std::move(terminal.master) : std::move(out.read_end);
  launched.err = std::move(err.read_end);
  return launched;
}

namespace {

// setns() into the container's mount and PID namespaces. The PID namespace holds for children only,
// so a second process is needed; the first one waits for it and passes its end on.
Status EnterContainer(const ExecSpec& spec, int pid_fd, bool shares_pid_namespace,
                      const Cgroups& cgroups) {
  BeOpaque();
  RETURN_IF_ERROR(cgroups.Join(spec.cgroup));
  (void)WriteFile("/proc/self/oom_score_adj", std::to_string(spec.oom_score_adj));
  if (spec.plain) return Status::Ok();
  // As RunContainer(): its own, or the machine's, which an ordinary user may not enter again.
  const int cgroup = cgroups.mode() != Cgroups::Mode::kNone ? CLONE_NEWCGROUP : 0;
  const int namespaces = CLONE_NEWNS | cgroup | (shares_pid_namespace ? 0 : CLONE_NEWPID);
  if (setns(pid_fd, namespaces) != 0) return SystemError("enter", "the container", errno);
  return Status::Ok();
}

// What PassOnEnd() waits for; to be blocked before it.
sigset_t ExecSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, kKillExecSignal);
  return set;
}

[[noreturn]] void PassOnEnd(pid_t pid) {
  // The streams belong to the grandchild; whoever reads them must see their end with it.
  syscall(SYS_close_range, 0U, ~0U, 0U);
  const sigset_t set = ExecSignals();
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) != pid) {
    if (sigwaitinfo(&set, nullptr) != kKillExecSignal) continue;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);  // it may not lead its group yet
  }
  _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace

Result<ExecLaunched> LaunchExec(const ExecSpec& spec, pid_t container_pid,
                                bool shares_pid_namespace, const Cgroups& cgroups) {
  if (spec.arguments.empty()) return Error(Reason::kBadRequest, "exec needs a command");
  UniqueFd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, container_pid, 0)));
  if (!pid_fd.valid()) return SystemError("open", "the container's process", errno);
  ASSIGN_OR_RETURN(Pipe report, MakePipe());
  Pipe in, out, err;
  Terminal terminal;
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  ContainerStreams streams = {null.get(), -1, -1};
  if (spec.tty) {
    ASSIGN_OR_RETURN(terminal, OpenTerminal(fmt::format("/proc/{}/root", container_pid)));
    streams = {terminal.slave.get(), terminal.slave.get(), terminal.slave.get()};
  } else {
    ASSIGN_OR_RETURN(in, MakePipe());
    ASSIGN_OR_RETURN(out, MakePipe());
    ASSIGN_OR_RETURN(err, MakePipe());
    if (spec.stdin_open) streams.in = in.read_end.get();
    streams.out = out.write_end.get();
    streams.err = err.write_end.get();
  }
  const pid_t pid = Clone(0, nullptr);
  if (pid < 0) return SystemError("clone", "the command", errno);
  if (pid == 0) {
    const Status entered = EnterContainer(spec, pid_fd.get(), shares_pid_namespace, cgroups);
    if (!entered.ok()) Report(report, entered);
    const sigset_t set = ExecSignals();
    sigprocmask(SIG_BLOCK, &set, nullptr);
    const pid_t inner = Clone(0, nullptr);
    if (inner < 0) Report(report, SystemError("clone", "the command", errno));
    if (inner > 0) PassOnEnd(inner);
    setsid();
    const Status streams_taken =
        TakeStandardStreams(streams.in, streams.out, streams.err, spec.tty);
    if (!streams_taken.ok()) Report(report, streams_taken);
    Report(report, DropAndExecute(spec, spec.plain));
  }
  RETURN_IF_ERROR(AwaitExec(report, pid));
  ExecLaunched launched;
  launched.pid = pid;
  launched.in = spec.tty ? std::move(terminal.master) : std::move(in.write_end);
  launched.out = std::move(out.read_end);
  launched.err = std::move(err.read_end);
  return launched;
}

}  // namespace muster::agent
