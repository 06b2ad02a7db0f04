// src/agent/stats/usage_sampler.h
//
// UsageSampler: what the node and its containers use, for the resource metrics API and its users
// (kubectl top, autoscalers). CPU is an average between two looks, or since the container's start
// while there was only one; memory is the working set.
//
// Life cycle: Start() once; destroy to stop.
// Thread:     the loop thread; it reads the kernel's files on the pool.
// Invariants: a look every kUsagePeriod, and before an answer when the last one is older than
//             kUsageAge; the answer has the form of the kubelet's /stats/summary.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cgroups/cgroups.h"
#include "base/task.h"
#include "base/time.h"
#include "client/lifetime.h"
#include "json/value.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kUsagePeriod = seconds(15);
inline constexpr Duration kUsageAge = seconds(5);
// A container is not judged by less than this.
inline constexpr Duration kMinUsageWindow = seconds(1);

struct MeasuredContainer {
  std::string name, started_at;
};
// A pod with containers that run.
struct MeasuredPod {
  std::string ns, name, uid;
  std::vector<MeasuredContainer> containers;
};

// A counter of CPU time and the memory at one moment.
struct UsageReading {
  Time time{};
  int64_t cpu_ns = 0;
  int64_t memory_bytes = 0;
};

// Of /proc/stat and /proc/meminfo: all CPUs' time that was not idle, and memory that could not be
// had without swapping. Zeros for what is not there.
UsageReading ReadNodeUsage(std::string_view proc_stat, std::string_view meminfo, Time time);

class UsageSampler {
 public:
  using ListPods = std::function<std::vector<MeasuredPod>()>;

  UsageSampler(Loop& loop, Pool& pool, Cgroups cgroups, std::string node, ListPods list_pods)
      : loop_(loop),
        pool_(pool),
        cgroups_(std::move(cgroups)),
        node_(std::move(node)),
        list_pods_(std::move(list_pods)) {}
  ~UsageSampler() { loop_.Cancel(timer_); }

  void Start();
  void Summary(Function<void(json::Value)> answer);

 private:
  // One container, or the node, as it was last seen.
  struct Measured {
    UsageReading last;
    Duration window{};     // 0: not known yet
    int64_t cpu_nano = 0;  // nano-cores over the window
  };
  struct Look;

  void LookLater();
  void LookNow();
  void OnLooked(const Look& look);
  static Measured Next(const Measured* before, const UsageReading& now, Time started);
  json::Value Answer() const;

  Loop& loop_;
  Pool& pool_;
  const Cgroups cgroups_;
  const std::string node_;
  const ListPods list_pods_;
  TimerId timer_ = 0;
  Time looked_{};
  bool looking_ = false;
  Measured machine_;
  std::vector<MeasuredPod> pods_;               // of the last look
  std::map<std::string, Measured> containers_;  // by control group
  std::vector<Function<void(json::Value)>> waiting_;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
