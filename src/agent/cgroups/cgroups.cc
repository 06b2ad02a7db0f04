#include "agent/cgroups/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// The v1 controllers that we use; cpuacct counts, freezer is not needed.
constexpr std::string_view kV1Controllers[] = {"memory", "cpu", "cpuacct", "pids"};
constexpr std::string_view kV2Controllers[] = {"cpu", "memory", "pids"};

int64_t ReadNumber(const std::string& path) {
  const auto text = ReadSmallFile(path);
  return text ? ParseInt(Trim(*text)).value_or(0) : 0;
}

// "oom_kill 3" in a file of "name value" lines.
int64_t ReadKeyed(const std::string& path, std::string_view key) {
  const auto text = ReadSmallFile(path);
  if (!text) return 0;
  for (std::string_view line : Split(*text, '\n')) {
    const auto parts = SplitNonEmpty(line, ' ');
    if (parts.size() == 2 && parts[0] == key) return ParseInt(parts[1]).value_or(0);
  }
  return 0;
}

std::vector<pid_t> ReadPids(const std::string& dir) {
  std::vector<pid_t> pids;
  const auto text = ReadSmallFile(dir + "/cgroup.procs");
  if (!text) return pids;
  for (std::string_view line : SplitNonEmpty(*text, '\n')) {
    if (const auto pid = ParseInt(line); pid && *pid > 0) pids.push_back(static_cast<pid_t>(*pid));
  }
  return pids;
}

// The groups below; a cgroup folder also holds dozens of files.
std::vector<std::string> SubGroups(const std::string& dir) {
  std::vector<std::string> names;
  DIR* open_dir = opendir(dir.c_str());
  if (open_dir == nullptr) return names;
  while (const dirent* entry = readdir(open_dir)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  closedir(open_dir);
  return names;
}

void CollectPids(const std::string& dir, std::set<pid_t>& pids) {
  for (pid_t pid : ReadPids(dir)) pids.insert(pid);
  for (const std::string& name : SubGroups(dir)) CollectPids(dir + "/" + name, pids);
}

Status RemoveGroupTree(const std::string& dir) {
  for (const std::string& name : SubGroups(dir)) {
    RETURN_IF_ERROR(RemoveGroupTree(dir + "/" + name));
  }
  if (rmdir(dir.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  if (errno == EBUSY) return Error(Reason::kConflict, "cgroup {} still has processes", dir);
  return SystemError("rmdir", dir, errno);
}

// A limit that the kernel refuses (an old kernel without swap accounting, say) must not stop the
// pod: optional ones are tried only.
void WriteOptional(const std::string& path, std::string_view text) { (void)WriteFile(path, text); }

// A controller that was not delegated has no file: the node says so.
Status WriteLimit(const std::string& path, std::string_view text) {
  Status status = WriteFile(path, text);
  return status.ok() || PathExists(path) ? status : Status::Ok();
}

// "a/b/c" -> {"a", "a/b", "a/b/c"}.
std::vector<std::string> Ancestors(const std::string& group) {
  std::vector<std::string> out;
  for (size_t i = 0; i <= group.size(); ++i) {
    if (i == group.size() || group[i] == '/') out.push_back(group.substr(0, i));
  }
  return out;
}

}  // namespace

int64_t CpuSharesFromMilli(int64_t milli) {
  if (milli <= 0) return kMinCpuShares;
  return std::clamp(milli * 1024 / 1000, kMinCpuShares, kMaxCpuShares);
}

int64_t CpuWeightFromShares(int64_t shares) {
  return 1 + ((std::clamp(shares, kMinCpuShares, kMaxCpuShares) - 2) * 9999) / 262142;
}

int64_t CpuQuotaUsFromMilli(int64_t milli) {
  return std::max(milli * kCpuPeriodUs / 1000, kMinCpuQuotaUs);
}

Cgroups Cgroups::Detect(std::string_view mountinfo, const std::string& prefix) {
  Cgroups out;
  std::string unified;
  for (std::string_view line : Split(mountinfo, '\n')) {
    const size_t separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    const auto left = SplitNonEmpty(line.substr(0, separator), ' ');
    const auto right = SplitNonEmpty(line.substr(separator + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const std::string mount_point = prefix + std::string(left[4]);
    if (right[0] == "cgroup2") unified = mount_point;
    if (right[0] != "cgroup") continue;
    for (std::string_view option : Split(right[2], ',')) {
      if (std::find(std::begin(kV1Controllers), std::end(kV1Controllers), option) !=
          std::end(kV1Controllers)) {
        out.roots_.emplace(std::string(option), mount_point);
      }
    }
  }
  // A unified hierarchy beside v1 controllers has none of ours.
  if (out.roots_.contains("memory") || out.roots_.contains("cpu")) {
    out.mode_ = Mode::kV1;
  } else if (!unified.empty()) {
    out.roots_.clear();
    out.roots_.emplace("", unified);
    out.mode_ = Mode::kV2;
  }
  return out;
}

Cgroups Cgroups::DetectSystem() {
  const auto text = ReadSmallFile("/proc/self/mountinfo");
  Cgroups out = Detect(text ? std::string_view(*text) : std::string_view());
  for (const auto& [controller, root] : out.roots_) {
    if (access(root.c_str(), W_OK) != 0) return Cgroups();
  }
  return out;
}

Cgroups Cgroups::At(const std::string& place) {
  if (place.empty()) return DetectSystem();
  Cgroups out;
  if (place == kNoCgroups) return out;
  out.mode_ = Mode::kV2;
  out.roots_.emplace("", place);
  return out;
}

std::string UnifiedRoot(std::string_view mountinfo) {
  const Cgroups all = Cgroups::Detect(mountinfo);
  return all.mode() == Cgroups::Mode::kV2 ? all.Root() : "";
}

std::string Cgroups::Dir(std::string_view controller, std::string_view group) const {
  const auto found = roots_.find(mode_ == Mode::kV2 ? std::string_view() : controller);
  if (found == roots_.end()) return "";
  return group.empty() ? found->second : found->second + "/" + std::string(group);
}

std::string Cgroups::Root() const { return mode_ == Mode::kV2 ? Dir("", "") : ""; }

Status Cgroups::CreateV1(const std::string& group, const CgroupLimits& limits) const {
  for (const auto& [controller, root] : roots_) RETURN_IF_ERROR(MakeDirs(root + "/" + group));
  if (const std::string dir = Dir("memory", group); !dir.empty() && limits.memory_bytes > 0) {
    const std::string bytes = std::to_string(limits.memory_bytes);
    RETURN_IF_ERROR(WriteFile(dir + "/memory.limit_in_bytes", bytes));
    WriteOptional(dir + "/memory.memsw.limit_in_bytes", bytes);
  }
  if (const std::string dir = Dir("cpu", group); !dir.empty()) {
    if (limits.cpu_request_milli > 0) {
      RETURN_IF_ERROR(WriteFile(dir + "/cpu.shares",
                                std::to_string(CpuSharesFromMilli(limits.cpu_request_milli))));
    }
    if (limits.cpu_limit_milli > 0) {
      WriteOptional(dir + "/cpu.cfs_period_us", std::to_string(kCpuPeriodUs));
      RETURN_IF_ERROR(WriteFile(dir + "/cpu.cfs_quota_us",
                                std::to_string(CpuQuotaUsFromMilli(limits.cpu_limit_milli))));
    }
  }
  if (const std::string dir = Dir("pids", group); !dir.empty() && limits.pids > 0) {
    RETURN_IF_ERROR(WriteFile(dir + "/pids.max", std::to_string(limits.pids)));
  }
  return Status::Ok();
}

Status Cgroups::CreateV2(const std::string& group, const CgroupLimits& limits) const {
  const std::string root = Dir("", "");
  std::string parent = root;
  for (const std::string& step : Ancestors(group)) {
    for (std::string_view controller : kV2Controllers) {
      WriteOptional(parent + "/cgroup.subtree_control", fmt::format("+{}", controller));
    }
    parent = root + "/" + step;
    RETURN_IF_ERROR(MakeDirs(parent));
  }
  const std::string& dir = parent;
  if (limits.memory_bytes > 0) {
    RETURN_IF_ERROR(WriteLimit(dir + "/memory.max", std::to_string(limits.memory_bytes)));
    WriteOptional(dir + "/memory.swap.max", "0");
    WriteOptional(dir + "/memory.oom.group", "1");
  }
  if (limits.cpu_request_milli > 0) {
    const int64_t shares = CpuSharesFromMilli(limits.cpu_request_milli);
    RETURN_IF_ERROR(WriteLimit(dir + "/cpu.weight", std::to_string(CpuWeightFromShares(shares))));
  }
  if (limits.cpu_limit_milli > 0) {
    RETURN_IF_ERROR(WriteLimit(
        dir + "/cpu.max",
        fmt::format("{} {}", CpuQuotaUsFromMilli(limits.cpu_limit_milli), kCpuPeriodUs)));
  }
  if (limits.pids > 0) RETURN_IF_ERROR(WriteLimit(dir + "/pids.max", std::to_string(limits.pids)));
  return Status::Ok();
}

std::map<std::string, std::string> Cgroups::DirsV1(const std::string& group) const {
  std::map<std::string, std::string> dirs;
  if (mode_ != Mode::kV1) return dirs;
  for (const auto& [controller, root] : roots_) dirs[controller] = Dir(controller, group);
  return dirs;
}

Status Cgroups::Create(const std::string& group, const CgroupLimits& limits) const {
  switch (mode_) {
    case Mode::kNone:
      return Status::Ok();
    case Mode::kV1:
      return CreateV1(group, limits);
    case Mode::kV2:
      return CreateV2(group, limits);
  }
  return Status::Ok();
}

Status Cgroups::Join(const std::string& group) const {
  // "tasks" with 0 moves the caller alone and so does without the kernel's global lock, which waits
  // for an RCU grace period (milliseconds); v2 has no such file for ordinary groups.
  const std::string_view file = mode_ == Mode::kV1 ? "/tasks" : "/cgroup.procs";
  for (const auto& [controller, root] : roots_) {
    const std::string path = fmt::format("{}/{}{}", root, group, file);
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return SystemError("open", path, errno);
    const bool written = write(fd, "0", 1) == 1;
    const int error_number = errno;
    close(fd);
    if (!written) return SystemError("join", path, error_number);
  }
  return Status::Ok();
}

void Cgroups::KillAll(const std::string& group) const {
  std::set<pid_t> pids;
  for (const auto& [controller, root] : roots_) CollectPids(root + "/" + group, pids);
  for (pid_t pid : pids) kill(pid, SIGKILL);
}

Status Cgroups::Remove(const std::string& group) const {
  Status first;
  for (const auto& [controller, root] : roots_) {
    Status status = RemoveGroupTree(root + "/" + group);
    if (!status.ok() && first.ok()) first = std::move(status);
  }
  return first;
}

Status Cgroups::RemoveIfEmpty(const std::string& group) const {
  for (const auto& [controller, root] : roots_) {
    const std::string dir = root + "/" + group;
    if (rmdir(dir.c_str()) != 0 && errno != ENOENT) return SystemError("rmdir", dir, errno);
  }
  return Status::Ok();
}

int64_t Cgroups::OomKills(const std::string& group) const {
  const std::string dir = Dir("memory", group);
  if (dir.empty()) return 0;
  return ReadKeyed(dir + (mode_ == Mode::kV2 ? "/memory.events" : "/memory.oom_control"),
                   "oom_kill");
}

int64_t Cgroups::MemoryUsageBytes(const std::string& group) const {
  const std::string dir = Dir("memory", group);
  if (dir.empty()) return 0;
  return ReadNumber(dir + (mode_ == Mode::kV2 ? "/memory.current" : "/memory.usage_in_bytes"));
}

int64_t Cgroups::WorkingSetBytes(const std::string& group) const {
  const std::string dir = Dir("memory", group);
  if (dir.empty()) return 0;
  const int64_t inactive =
      ReadKeyed(dir + "/memory.stat", mode_ == Mode::kV2 ? "inactive_file" : "total_inactive_file");
  return std::max<int64_t>(MemoryUsageBytes(group) - inactive, 0);
}

int64_t Cgroups::CpuUsageNs(const std::string& group) const {
  if (mode_ == Mode::kV2) return ReadKeyed(Dir("", group) + "/cpu.stat", "usage_usec") * 1000;
  const std::string dir = Dir("cpuacct", group);
  return dir.empty() ? 0 : ReadNumber(dir + "/cpuacct.usage");
}

}  // namespace muster::agent
