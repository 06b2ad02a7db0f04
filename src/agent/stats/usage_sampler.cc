#include "agent/stats/usage_sampler.h"

#include <algorithm>
#include <utility>

#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr int64_t kNsPerTick = 10'000'000;  // of /proc/stat: USER_HZ is 100 everywhere

std::string GroupOf(const MeasuredPod& pod, const MeasuredContainer& container) {
  return PodCgroup(pod.uid) + "/" + container.name;
}

// "MemTotal:  16303428 kB".
int64_t KilobytesOf(std::string_view meminfo, std::string_view key) {
  for (std::string_view line : Split(meminfo, '\n')) {
    const auto parts = SplitNonEmpty(line, ' ');
    if (parts.size() >= 2 && parts[0] == key) return ParseInt(parts[1]).value_or(0);
  }
  return 0;
}

}  // namespace

struct UsageSampler::Look {
  Time time{};
  std::vector<MeasuredPod> pods;
  UsageReading node;
  std::map<std::string, UsageReading> containers;
};

UsageReading ReadNodeUsage(std::string_view proc_stat, std::string_view meminfo, Time time) {
  UsageReading reading{time, 0, 0};
  // user nice system idle iowait irq softirq steal, then guests, who are in user already.
  const auto fields = SplitNonEmpty(proc_stat.substr(0, proc_stat.find('\n')), ' ');
  if (!fields.empty() && fields[0] == "cpu") {
    for (size_t i = 1; i < std::min<size_t>(fields.size(), 9); ++i) {
      if (i != 4 && i != 5) reading.cpu_ns += ParseInt(fields[i]).value_or(0) * kNsPerTick;
    }
  }
  reading.memory_bytes =
      std::max<int64_t>(KilobytesOf(meminfo, "MemTotal:") - KilobytesOf(meminfo, "MemAvailable:"),
                        0) *
      1024;
  return reading;
}

void UsageSampler::Start() {
  LookNow();
  LookLater();
}

void UsageSampler::LookLater() {
  timer_ = loop_.After(kUsagePeriod, [this] {
    LookNow();
    LookLater();
  });
}

void UsageSampler::LookNow() {
  if (std::exchange(looking_, true)) return;
  auto look = std::make_shared<Look>();
  look->time = loop_.Now();
  look->pods = list_pods_();
  pool_.Run(
      [look, cgroups = cgroups_] {
        look->node = ReadNodeUsage(ReadSmallFile("/proc/stat").value_or(""),
                                   ReadSmallFile("/proc/meminfo").value_or(""), look->time);
        if (cgroups.mode() == Cgroups::Mode::kNone) return;
        for (const MeasuredPod& pod : look->pods) {
          for (const MeasuredContainer& container : pod.containers) {
            const std::string group = GroupOf(pod, container);
            look->containers[group] = {look->time, cgroups.CpuUsageNs(group),
                                       cgroups.WorkingSetBytes(group)};
          }
        }
      },
      loop_, lifetime_.Guard([this, look] { OnLooked(*look); }));
}

// Without an earlier look, or after one of another life of the container (whose counter began
// anew), the average since its start.
UsageSampler::Measured UsageSampler::Next(const Measured* before, const UsageReading& now,
                                          Time started) {
  Measured next{now, {}, 0};
  const bool goes_on = before != nullptr && before->last.cpu_ns <= now.cpu_ns &&
                       before->last.time >= started && before->last.time < now.time;
  const Time since = goes_on ? before->last.time : started;
  const int64_t used = now.cpu_ns - (goes_on ? before->last.cpu_ns : 0);
  if (since == Time{} || now.time - since < kMinUsageWindow) return next;
  next.window = now.time - since;
  next.cpu_nano = static_cast<int64_t>(static_cast<double>(used) /
                                       std::chrono::duration<double>(next.window).count());
  return next;
}

void UsageSampler::OnLooked(const Look& look) {
  looking_ = false;
  looked_ = look.time;
  machine_ = Next(&machine_, look.node, Time{});
  std::map<std::string, Measured> containers;
  for (const MeasuredPod& pod : look.pods) {
    for (const MeasuredContainer& container : pod.containers) {
      const std::string group = GroupOf(pod, container);
      const auto reading = look.containers.find(group);
      if (reading == look.containers.end()) continue;
      const auto before = containers_.find(group);
      containers[group] = Next(before == containers_.end() ? nullptr : &before->second,
                               reading->second, ParseTime(container.started_at).value_or(Time{}));
    }
  }
  containers_ = std::move(containers);
  pods_ = look.pods;
  for (Function<void(json::Value)>& answer : std::exchange(waiting_, {})) answer(Answer());
}

void UsageSampler::Summary(Function<void(json::Value)> answer) {
  const Duration age = loop_.Now() - looked_;
  if (!looking_ && age >= Duration::zero() && age < kUsageAge) return answer(Answer());
  waiting_.push_back(std::move(answer));
  LookNow();
}

json::Value UsageSampler::Answer() const {
  const auto add = [](json::Value object, const Measured& measured) {
    const std::string time = FormatTime(measured.last.time);
    const int64_t window = std::chrono::round<seconds>(measured.window).count();
    return object
        .Set("cpu", json::Obj({{"time", time},
                               {"usageNanoCores", measured.cpu_nano},
                               {"usageCoreNanoSeconds", measured.last.cpu_ns},
                               {"windowSeconds", window}}))
        .Set("memory",
             json::Obj({{"time", time}, {"workingSetBytes", measured.last.memory_bytes}}));
  };
  json::Array pods;
  for (const MeasuredPod& pod : pods_) {
    json::Array containers;
    for (const MeasuredContainer& container : pod.containers) {
      const auto found = containers_.find(GroupOf(pod, container));
      if (found == containers_.end() || found->second.window == Duration::zero()) continue;
      containers.push_back(
          add(json::Obj({{"name", container.name}, {"startTime", container.started_at}}),
              found->second));
    }
    pods.push_back(json::Obj(
        {{"podRef", json::Obj({{"name", pod.name}, {"namespace", pod.ns}, {"uid", pod.uid}})},
         {"containers", json::Value(std::move(containers))}}));
  }
  json::Value node = json::Obj({{"nodeName", node_}});
  if (machine_.window != Duration::zero()) node = add(node, machine_);
  return json::Obj({{"node", node}, {"pods", json::Value(std::move(pods))}});
}

}  // namespace muster::agent
