#include "agent/runtime/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr int kLookMs = 200;

std::string OwnFolder() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return "";
  const std::string_view text(path, static_cast<size_t>(size));
  return std::string(text.substr(0, text.rfind('/')));
}

struct Streams {
  int in, out, err;
};

// Between fork() and exec of a process with threads: system calls alone, no memory.
[[noreturn]] void Become(char* const* argv, const Streams& streams, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGQUIT}) signal(number, SIG_DFL);
  if (const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
    (void)!write(score, "0", 1);
    close(score);
  }
  umask(022);
  if (dup2(streams.in, 0) < 0 || dup2(streams.out, 1) < 0 || dup2(streams.err, 2) < 0) _exit(127);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  execv(argv[0], argv);
  _exit(127);
}

std::string ReadBack(const UniqueFd& fd) {
  lseek(fd.get(), 0, SEEK_SET);
  return ReadAll(fd.get(), "a program's output", kMaxProgramOutputBytes).value_or("");
}

// Ok when it ended by itself.
Status AwaitEnd(const ProgramCall& call, int pid_fd) {
  const Duration start = RealClock().Monotonic();
  while (true) {
    pollfd ended = {pid_fd, POLLIN, 0};
    if (poll(&ended, 1, kLookMs) > 0) return Status::Ok();
    const Duration now = RealClock().Monotonic();
    if (call.cancelled != nullptr && *call.cancelled)
      return Error(Reason::kServiceUnavailable, "the node agent stops");
    if (now - start > call.time_limit) {
      return Error(Reason::kTimeout, "{} did not end within {}", call.arguments[0],
                   HumanDuration(call.time_limit));
    }
    RETURN_IF_ERROR(call.watch());
  }
}

}  // namespace

std::string FindProgram(std::string_view name) {
  const char* path = getenv("PATH");
  std::vector<std::string> dirs = {OwnFolder()};
  for (std::string_view dir :
       SplitNonEmpty(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, ':'))
    dirs.emplace_back(dir);
  for (const std::string& dir : dirs) {
    if (!dir.starts_with('/')) continue;
    std::string candidate = fmt::format("{}/{}", dir, name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

Result<ProgramResult> RunProgram(const ProgramCall& call) {
  // Memory files: no pipe can fill up, whatever the program does first.
  const UniqueFd in(memfd_create("program-in", MFD_CLOEXEC));
  const UniqueFd out(memfd_create("program-out", MFD_CLOEXEC));
  const UniqueFd err(memfd_create("program-err", MFD_CLOEXEC));
  if (!in.valid() || !out.valid() || !err.valid())
    return SystemError("make", "a memory file", errno);
  RETURN_IF_ERROR(WriteAll(in.get(), call.arguments[0] + "'s input", call.input));
  lseek(in.get(), 0, SEEK_SET);
  std::vector<char*> argv;
  for (const std::string& word : call.arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const Streams streams = {in.get(), out.get(), err.get()};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return SystemError("start", call.arguments[0], errno);
  if (pid == 0) Become(argv.data(), streams, parent);
  const UniqueFd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const Status ended = pid_fd.valid() ? AwaitEnd(call, pid_fd.get())
                                      : SystemError("watch", call.arguments[0], errno);
  if (!ended.ok()) {
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
  }
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  RETURN_IF_ERROR(ended);
  return ProgramResult{WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state),
                       ReadBack(out), ReadBack(err)};
}

}  // namespace muster::agent
