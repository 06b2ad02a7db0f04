// src/agent/cgroups/cgroups.h
//
// Cgroups: limits and accounting of pods and containers, cgroup v1 and v2 behind one interface. The
// tree is muster/pod<uid>/<container> in every hierarchy that we use.
//
// Life cycle: Detect() once per process (it reads /proc/self/mountinfo); the object is a value.
// Thread:     any; blocking but quick (kernel files).
// Invariants: a group is named by its path below the root, e.g. "muster/pod1234/main"; Create() and
// Remove() may be
//             repeated.
// Sources:    kernel Documentation/admin-guide/cgroup-v1 and cgroup-v2; milli-CPU to shares and
// weight as the kubelet
//             (MilliCPUToShares) and runc (ConvertCPUSharesToCgroupV2Value) compute them.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

inline constexpr std::string_view kCgroupRoot = "muster";
inline constexpr std::string_view kNoCgroups = "none";
inline constexpr int64_t kCpuPeriodUs = 100'000;
inline constexpr int64_t kMinCpuQuotaUs = 1'000;
inline constexpr int64_t kMinCpuShares = 2;
inline constexpr int64_t kMaxCpuShares = 262'144;

// 0 means: no limit, or the kernel's default.
struct CgroupLimits {
  int64_t memory_bytes = 0;  // memory and swap together
  int64_t cpu_limit_milli = 0;
  int64_t cpu_request_milli = 0;
  int64_t pids = 0;
};

int64_t CpuSharesFromMilli(int64_t milli);    // 1000 -> 1024
int64_t CpuWeightFromShares(int64_t shares);  // 1024 -> 39
int64_t CpuQuotaUsFromMilli(int64_t milli);   // 500 -> 50000

// Where cgroup v2 is mounted; "" if it is not, or has none of our controllers beside v1.
std::string UnifiedRoot(std::string_view mountinfo);

class Cgroups {
 public:
  enum class Mode : uint8_t { kNone, kV1, kV2 };

  // From the text of /proc/self/mountinfo. `prefix` goes in front of every path (a fake root in
  // tests).
  static Cgroups Detect(std::string_view mountinfo, const std::string& prefix = "");
  static Cgroups DetectSystem();
  // As a spawner is told: "" detects, kNoCgroups has none, else a group of cgroup v2 to stay below.
  static Cgroups At(const std::string& place);

  Mode mode() const { return mode_; }
  std::string Root() const;  // of v2; "" for v1
  // v1: where the group is, by controller; with the controllers of one hierarchy the same folder.
  std::map<std::string, std::string> DirsV1(const std::string& group) const;
  bool CanLimitMemory() const { return !Dir("memory", "").empty(); }

  Status Create(const std::string& group, const CgroupLimits& limits) const;
  // The calling process, alone, into the group. It must have one thread.
  Status Join(const std::string& group) const;
  // SIGKILL to every process in the group and below it.
  void KillAll(const std::string& group) const;
  // Removes the group and those below it; Conflict while processes are left.
  Status Remove(const std::string& group) const;
  // Removes the group unless there are groups below it or processes in it.
  Status RemoveIfEmpty(const std::string& group) const;
  // How often the kernel's OOM killer took a process of the group.
  int64_t OomKills(const std::string& group) const;
  int64_t MemoryUsageBytes(const std::string& group) const;  // 0 if unknown
  // What the kubelet calls the working set: usage without inactive pages of files.
  int64_t WorkingSetBytes(const std::string& group) const;
  int64_t CpuUsageNs(const std::string& group) const;

 private:
  std::string Dir(std::string_view controller,
                  std::string_view group) const;  // "" if the controller is not there
  Status CreateV1(const std::string& group, const CgroupLimits& limits) const;
  Status CreateV2(const std::string& group, const CgroupLimits& limits) const;

  Mode mode_ = Mode::kNone;
  std::map<std::string, std::string, std::less<>>
      roots_;  // v1: controller -> mount point; v2: "" -> mount point
};

}  // namespace muster::agent
