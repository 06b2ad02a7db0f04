#include "cli/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

extern char** environ;

namespace muster::cli {
namespace {

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> EnvironmentWith(const std::vector<std::string>& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool changed =
        std::any_of(changes.begin(), changes.end(),
                    [&](const std::string& change) { return NameOf(change) == NameOf(*entry); });
    if (!changed) out.emplace_back(*entry);
  }
  for (const std::string& change : changes)
    if (change.find('=') != std::string::npos) out.push_back(change);
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// What comes until the other end is closed; false when it is still open at the deadline.
bool ReadUntil(int fd, Duration deadline, std::string& out) {
  std::array<char, 4096> buffer;
  while (true) {
    const Duration left = deadline - RealClock().Monotonic();
    const auto left_ms = std::chrono::duration_cast<milliseconds>(left).count();
    if (left_ms <= 0) return false;
    pollfd waits{fd, POLLIN, 0};
    if (poll(&waits, 1, static_cast<int>(std::min<int64_t>(left_ms, 60'000))) <= 0) continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    const size_t room = kMaxProgramOutput - std::min(out.size(), kMaxProgramOutput);
    out.append(buffer.data(), std::min(static_cast<size_t>(got), room));
  }
}

int CodeOf(pid_t child) {
  int state = 0;
  while (waitpid(child, &state, 0) < 0)
    if (errno != EINTR) return 127;
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

}  // namespace

Result<ProgramEnd> RunProgram(const std::vector<std::string>& words,
                              const std::vector<std::string>& environment, Duration timeout) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error(Reason::kInternalError, "start {}: {}", words[0], std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<std::string> arguments = words, settings = EnvironmentWith(environment);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0].c_str(), &actions, nullptr,
                                 Pointers(arguments).data(), Pointers(settings).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return Error(Reason::kInvalid, "start {}: {}", words[0], std::strerror(error));
  }
  ProgramEnd end;
  const bool ended = ReadUntil(ends[0], RealClock().Monotonic() + timeout, end.output);
  if (!ended) kill(child, SIGKILL);
  close(ends[0]);
  end.code = CodeOf(child);
  if (!ended)
    return Error(Reason::kInvalid, "{} did not end within {}", words[0], HumanDuration(timeout));
  return end;
}

}  // namespace muster::cli
