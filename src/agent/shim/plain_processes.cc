#include "agent/shim/plain_processes.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

std::string Mark(const std::string& pod_dir, const std::string& container) {
  return fmt::format("{}={}:{}", kPodMark, pod_dir, container);
}

// `mark` is whole with a container, else the beginning of one.
bool HasMark(std::string_view environment, std::string_view mark) {
  for (std::string_view variable : Split(environment, '\0')) {
    if (mark.ends_with(':') ? variable.starts_with(mark) : variable == mark) return true;
  }
  return false;
}

// Not so of a dead one that nobody has waited for, and of the kernel's own: vsize, field 23 of
// proc(5)'s stat, is 0.
bool HasMemory(const std::string& pid) {
  constexpr size_t kSize = 23 - 3;  // of the fields behind the name, which is the second
  const auto stat = ReadSmallFile("/proc/" + pid + "/stat");
  const size_t name_end = stat.has_value() ? stat->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return false;
  const auto fields = Split(std::string_view(*stat).substr(name_end + 2), ' ');
  return fields.size() > kSize && fields[kSize] != "0";
}

// In the middle of execve the old environment is gone and the new one is not there yet: whoever has
// none is looked at again. Few programs run without one.
bool IsMarked(const std::string& pid, std::string_view mark) {
  constexpr int kMaxLooks = 1000;
  for (int look = 0; look < kMaxLooks; ++look) {
    const auto environment = ReadSmallFile("/proc/" + pid + "/environ");
    if (!environment.has_value()) return false;
    if (!environment->empty() || !HasMemory(pid)) return HasMark(*environment, mark);
    sched_yield();
  }
  return false;
}

}  // namespace

std::string PlainHome(const std::string& pod_dir) { return pod_dir + "/home"; }

std::vector<std::string> PlainEnvironment(std::vector<std::string> environment,
                                          const std::string& pod_dir,
                                          const std::string& container) {
  const std::string home = PlainHome(pod_dir);
  bool has_tmp = false;
  for (std::string& variable : environment) {
    if (variable == "HOME=/root") variable = "HOME=" + home;
    has_tmp = has_tmp || variable.starts_with("TMPDIR=");
  }
  if (!has_tmp) environment.push_back("TMPDIR=" + home);
  environment.push_back(Mark(pod_dir, container));
  return environment;
}

Status EndPlainProcesses(const std::string& pod_dir, const std::string& container) {
  const std::string mark = Mark(pod_dir, container);
  bool any = false;
  for (const std::string& name : ListDir("/proc")) {
    const auto pid = ParseInt(name);
    if (!pid || *pid == getpid() || !IsMarked(name, mark)) continue;
    any = true;
    kill(static_cast<pid_t>(*pid), SIGKILL);
  }
  if (!any) return Status::Ok();
  return Error(Reason::kConflict, "processes of {} are ending", pod_dir);
}

}  // namespace muster::agent
