#include "agent/runtime/program.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"

namespace muster::agent {

Result<ProgramResult> RunProgram(const std::string& path, const std::vector<std::string>& arguments,
                                 std::string_view input, size_t max_output_bytes) {
  const UniqueFd in(memfd_create("program-in", MFD_CLOEXEC));
  const UniqueFd out(memfd_create("program-out", MFD_CLOEXEC));
  if (in.get() < 0 || out.get() < 0) return Error(SystemError("make", "a memory file", errno));
  RETURN_IF_ERROR(WriteAll(in.get(), path + "'s input", input));
  lseek(in.get(), 0, SEEK_SET);

  std::string name = std::filesystem::path(path).filename();
  std::vector<char*> argv = {name.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::array<char*, 2> environment = {const_cast<char*>("LC_ALL=C"), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, path.c_str(), &files, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Error(SystemError("start", path, error));
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return Error(SystemError("wait for", path, errno));
  }
  ProgramResult result;
  result.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128;
  result.output.resize(max_output_bytes);
  const ssize_t size = pread(out.get(), result.output.data(), result.output.size(), 0);
  result.output.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return result;
}

}  // namespace muster::agent
