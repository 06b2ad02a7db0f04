#include "cli/training_faults.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/waiting.h"
#include "schema/pod_phase.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxNamed = 4;
constexpr std::array kStatusLists = {"initContainerStatuses", "containerStatuses"};

std::string Named(const std::vector<std::string>& names) {
  if (names.size() <= kMaxNamed) return Join(names, ", ");
  return fmt::format("{} and {} others", names.front(), names.size() - 1);
}

bool Runs(const Rank& rank) {
  return rank.pod["status"]["phase"].AsString() == "Running" &&
         !rank.pod["metadata"].Has("deletionTimestamp");
}

// ---- memory ----

std::string MemoryLimitOf(const json::Value& pod, std::string_view container) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const json::Value& each : pod["spec"][list].items()) {
      if (each["name"].AsString() == container) return each["resources"]["limits"]["memory"].Str();
    }
  }
  return "";
}

bool IsOomKilled(const json::Value& status) {
  for (const char* state : {"state", "lastState"}) {
    if (status[state]["terminated"]["reason"].AsString() == "OOMKilled") return true;
  }
  return false;
}

constexpr std::string_view kUseLess =
    "a smaller batch, gradient checkpointing, mixed precision or fewer data loader workers";

std::string OomLine(const json::Value& pod, const json::Value& status,
                    const std::string& memory_now) {
  const std::string name = status["name"].Str();
  const std::string limit = MemoryLimitOf(pod, name);
  const int64_t restarts = status["restartCount"].AsInt();
  std::string now;
  if (!memory_now.empty() && status["state"].Has("running"))
    now = fmt::format("; started again it uses {} now", memory_now);
  const std::string often = restarts > 1 ? fmt::format(", {} times", restarts) : std::string();
  if (limit.empty()) {
    return fmt::format(
        "container {} of {} was ended for memory (OOMKilled{}) without a limit of its own: the "
        "node had none left{}; give it resources.requests.memory, so that it goes where there is "
        "enough",
        name, pod["metadata"]["name"].AsString(), often, now);
  }
  return fmt::format(
      "container {} of {} reached its memory limit of {} (OOMKilled{}){}; raise "
      "resources.limits.memory, or use less: {}",
      name, pod["metadata"]["name"].AsString(), limit, often, now, kUseLess);
}

// ---- ranks that wait ----

struct Ended {
  const Rank* rank;
  std::string how;
};

std::optional<Ended> HowEnded(const Rank& rank) {
  const json::Value& status = rank.pod["status"];
  if (!schema::IsFinalPhase(status["phase"].AsString())) return std::nullopt;
  for (const json::Value& container : status["containerStatuses"].items()) {
    const json::Value& ended = container["state"]["terminated"];
    if (!ended.IsNull()) return Ended{&rank, HowContainerEnded(ended)};
  }
  return Ended{&rank, status["reason"].Str(status["phase"].Str())};
}

// Containers that were started again in a pod that stayed: {how often, how the last one ended}.
std::pair<int64_t, std::string> RestartsOf(const Rank& rank) {
  int64_t restarts = 0;
  std::string how;
  for (const json::Value& container : rank.pod["status"]["containerStatuses"].items()) {
    restarts += container["restartCount"].AsInt();
    const json::Value& last = container["lastState"]["terminated"];
    if (!last.IsNull()) how = HowContainerEnded(last);
  }
  return {restarts, how};
}

class HangSearch {
 public:
  HangSearch(const std::vector<Rank>& ranks, int64_t wanted, Time now, Duration silence)
      : wanted_(wanted), now_(now), silence_(silence) {
    for (const Rank& rank : ranks) {
      if (Runs(rank)) {
        running_.push_back(&rank);
      } else if (std::optional<Ended> ended = HowEnded(rank)) {
        ended_.push_back(std::move(*ended));
      } else {
        others_.push_back(&rank);
      }
    }
  }

  std::vector<std::string> Run() {
    // One that was never there is the scheduler's, or the node's, to explain.
    if (running_.empty() || !others_.empty() || !Silent()) return {};
    lines_.push_back(fmt::format(
        "no rank has logged anything for {}: it may hang where ranks wait for each other (a "
        "collective, the rendezvous)",
        Minutes(SilentFor())));
    TellOfMissing();
    TellOfRestarted();
    TellOfOutsider();
    TellOfDrivers();
    lines_.emplace_back(
        "to see where: NCCL_DEBUG=INFO and TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment of "
        "its containers");
    return std::move(lines_);
  }

 private:
  static std::string Minutes(Duration duration) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
    return whole < 120 ? fmt::format("{} seconds", whole) : fmt::format("{} minutes", whole / 60);
  }

  // Since when each rank that runs has said nothing; a log that cannot be read is no silence.
  std::optional<Duration> SilenceOf(const Rank& rank) const {
    if (!rank.log_read) return std::nullopt;
    std::optional<Time> since = rank.last_word;
    for (const json::Value& container : rank.pod["status"]["containerStatuses"].items()) {
      const std::optional<Time> started =
          ParseTime(container["state"]["running"]["startedAt"].AsString());
      if (started && (!since || *started > *since)) since = started;
    }
    return since ? std::optional(now_ - *since) : std::nullopt;
  }

  bool Silent() const {
    return std::ranges::all_of(running_, [this](const Rank* rank) {
      const std::optional<Duration> silence = SilenceOf(*rank);
      return silence && *silence >= silence_;
    });
  }

  Duration SilentFor() const {
    Duration shortest = *SilenceOf(*running_.front());
    for (const Rank* rank : running_) shortest = std::min(shortest, *SilenceOf(*rank));
    return shortest;
  }

  std::vector<std::string> NamesOf(const std::vector<const Rank*>& ranks) const {
    std::vector<std::string> names;
    for (const Rank* rank : ranks) names.push_back(rank->name);
    return names;
  }

  void TellOfMissing() {
    for (const Ended& ended : ended_) {
      lines_.push_back(fmt::format("{} has ended with {}, and {} still {}: those wait for it",
                                   ended.rank->name, ended.how, Named(NamesOf(running_)),
                                   running_.size() == 1 ? "runs" : "run"));
    }
    const int64_t there = static_cast<int64_t>(running_.size() + ended_.size());
    if (there < wanted_) {
      lines_.push_back(fmt::format("{} of {} ranks are there: the others wait for {} more", there,
                                   wanted_, wanted_ - there));
    }
  }

  // A rank that begins anew is a stranger to the group of the others.
  void TellOfRestarted() {
    std::vector<const Rank*> steady;
    for (const Rank* rank : running_) {
      if (RestartsOf(*rank).first == 0) steady.push_back(rank);
    }
    if (steady.empty() || steady.size() == running_.size()) return;
    for (const Rank* rank : running_) {
      const auto [restarts, how] = RestartsOf(*rank);
      if (restarts == 0) continue;
      lines_.push_back(fmt::format(
          "{} was started again after {}, and {} {} not: those may wait for its former self; "
          "delete one of them, and all start together",
          rank->name, how, Named(NamesOf(steady)), steady.size() == 1 ? "was" : "were"));
    }
  }

  struct Split {
    std::vector<const Rank*> idle, busy;
  };

  // What a rank that waits over NCCL does: its GPU is at 100 %, and one CPU spins. One that waits
  // over gloo sleeps. So what counts is who differs, and by how much: a busy machine leaves little
  // to the busy ones, too. Neither, where all are alike and in between, or one was not measured.
  Split SplitByLoad() const {
    std::vector<const Rank*> ranks = running_;
    for (const Rank* rank : ranks) {
      if (!rank->cores) return {};
    }
    std::ranges::sort(ranks, {}, [](const Rank* rank) { return *rank->cores; });
    const auto used = [](const Rank* rank) { return std::max(*rank->cores, kLeastCores); };
    Split split;
    for (const Rank* rank : ranks) {
      const bool gap = !split.idle.empty() && split.busy.empty() &&
                       used(rank) > kLoadGap * used(split.idle.back());
      const bool busy = gap || !split.busy.empty();
      (busy ? split.busy : split.idle).push_back(rank);
    }
    if (split.busy.empty()) {
      if (used(ranks.back()) < kIdleCores) return {running_, {}};
      if (used(ranks.front()) > kBusyCores) return {{}, running_};
      return {};
    }
    for (std::vector<const Rank*>* part : {&split.idle, &split.busy})
      std::ranges::sort(*part, {}, &Rank::name);
    return split;
  }

  void TellOfOutsider() {
    const auto [idle, busy] = SplitByLoad();
    if (idle.empty() && busy.empty()) return;
    if (busy.empty()) {
      lines_.push_back(fmt::format(
          "all of {} use no CPU: they sleep, as ranks do that wait over gloo or for somebody who "
          "never comes",
          Named(NamesOf(idle))));
    } else if (idle.empty()) {
      lines_.push_back(fmt::format(
          "all of {} keep a CPU busy: they compute without a word, or spin, as ranks do that wait "
          "over NCCL",
          Named(NamesOf(busy))));
    } else if (busy.size() <= idle.size()) {
      lines_.push_back(fmt::format("{} {} a CPU busy while {} {}: the others wait for {}",
                                   Named(NamesOf(busy)), busy.size() == 1 ? "keeps" : "keep",
                                   Named(NamesOf(idle)), idle.size() == 1 ? "sleeps" : "sleep",
                                   Named(NamesOf(busy))));
    } else {
      lines_.push_back(fmt::format(
          "{} {} while {} keep a CPU busy: the others spin, as over NCCL, and wait for {}",
          Named(NamesOf(idle)), idle.size() == 1 ? "sleeps" : "sleep", Named(NamesOf(busy)),
          Named(NamesOf(idle))));
    }
  }

  void TellOfDrivers() {
    std::map<std::string, std::set<std::string>> nodes;  // by driver
    for (const Rank* rank : running_) {
      if (!rank->driver.empty()) nodes[rank->driver].insert(rank->node);
    }
    if (nodes.size() < 2) return;
    std::vector<std::string> parts;
    for (const auto& [driver, names] : nodes)
      parts.push_back(fmt::format("{} on {}", driver, Named({names.begin(), names.end()})));
    lines_.push_back(
        fmt::format("its nodes have different NVIDIA drivers ({}), with which NCCL may not agree",
                    Join(parts, "; ")));
  }

  const int64_t wanted_;
  const Time now_;
  const Duration silence_;
  std::vector<const Rank*> running_, others_;
  std::vector<Ended> ended_;
  std::vector<std::string> lines_;
};

// ---- slow GPUs ----

constexpr const char* kClock = "DCGM_FI_DEV_SM_CLOCK";
constexpr const char* kTemperature = "DCGM_FI_DEV_GPU_TEMP";
constexpr const char* kLoad = "DCGM_FI_DEV_GPU_UTIL";
constexpr const char* kReasons = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS";
constexpr const char* kErrors = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL";
constexpr const char* kXid = "DCGM_FI_DEV_XID_ERRORS";

std::optional<int64_t> FigureOf(const GpuOfRank& gpu, const char* metric) {
  const auto found = gpu.figures.find(metric);
  return found == gpu.figures.end() ? std::nullopt : ParseInt(found->second);
}

// Of all but the one that is judged; nullopt if no peer tells.
std::optional<int64_t> MedianOfPeers(const std::vector<const GpuOfRank*>& gpus,
                                     const GpuOfRank* judged, const char* metric) {
  std::vector<int64_t> values;
  for (const GpuOfRank* gpu : gpus) {
    if (gpu == judged) continue;
    if (const auto value = FigureOf(*gpu, metric)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

std::vector<std::string> WhatDiffers(const std::vector<const GpuOfRank*>& peers,
                                     const GpuOfRank& gpu) {
  std::vector<std::string> signs;
  const auto clock = FigureOf(gpu, kClock);
  const auto clocks = MedianOfPeers(peers, &gpu, kClock);
  const auto load = FigureOf(gpu, kLoad);
  // A GPU without work lowers its clock.
  if (clock && clocks && load.value_or(0) > 0 &&
      static_cast<double>(*clock) < kSlowClock * static_cast<double>(*clocks))
    signs.push_back(fmt::format("its clock is {} MHz and theirs {}", *clock, *clocks));
  if (const std::string reasons = SlowdownText(FigureOf(gpu, kReasons).value_or(0));
      !reasons.empty())
    signs.push_back(fmt::format("the driver holds it back ({})", reasons));
  const auto heat = FigureOf(gpu, kTemperature);
  const auto heats = MedianOfPeers(peers, &gpu, kTemperature);
  if (heat && heats && *heat >= *heats + kHotterByCelsius)
    signs.push_back(fmt::format("it is at {} C and they at {}", *heat, *heats));
  if (const int64_t errors = FigureOf(gpu, kErrors).value_or(0); errors > 0)
    signs.push_back(fmt::format("its memory had {} uncorrected errors (ECC)", errors));
  if (const int64_t xid = FigureOf(gpu, kXid).value_or(0); xid > 0)
    signs.push_back(fmt::format("its last error was XID {}", xid));
  const auto loads = MedianOfPeers(peers, &gpu, kLoad);
  if (load && loads && *load + kIdlerByPercent <= *loads) {
    signs.push_back(fmt::format(
        "it is busy {} % of the time and they {} %: its input may not keep up (disk, data "
        "loader, CPU)",
        *load, *loads));
  }
  return signs;
}

}  // namespace

std::string SlowdownText(int64_t reasons) {
  // NVML's nvmlClocksEventReason*; others mean idle, or what somebody set.
  static constexpr std::array<std::pair<int64_t, const char*>, 5> kBits = {{
      {0x04, "power limit"},
      {0x08, "hardware slowdown"},
      {0x20, "too hot, by software"},
      {0x40, "too hot, by hardware"},
      {0x80, "power brake"},
  }};
  std::vector<std::string> texts;
  for (const auto& [bit, text] : kBits) {
    if ((reasons & bit) != 0) texts.emplace_back(text);
  }
  return Join(texts, ", ");
}

bool WasOomKilled(const json::Value& pod) {
  return std::ranges::any_of(kStatusLists, [&pod](const char* list) {
    return std::ranges::any_of(pod["status"][list].items(), IsOomKilled);
  });
}

std::vector<std::string> MemoryFaults(const json::Value& pod, std::string_view log_tail,
                                      const std::string& memory_now) {
  std::vector<std::string> lines;
  for (const char* list : kStatusLists) {
    for (const json::Value& status : pod["status"][list].items()) {
      if (IsOomKilled(status)) lines.push_back(OomLine(pod, status, memory_now));
    }
  }
  for (const std::string_view words : {"CUDA out of memory", "CUDA_ERROR_OUT_OF_MEMORY"}) {
    if (log_tail.find(words) == log_tail.npos) continue;
    lines.push_back(fmt::format(
        "the log of {} says {:?}: the memory of its GPU ran out; use less: {}; if much of it is "
        "reserved and not allocated, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against "
        "fragmentation",
        pod["metadata"]["name"].AsString(), words, kUseLess));
    break;
  }
  return lines;
}

std::vector<std::string> HangFaults(const std::vector<Rank>& ranks, int64_t wanted, Time now,
                                    Duration silence) {
  return HangSearch(ranks, wanted, now, silence).Run();
}

std::vector<std::string> SlowGpus(const std::vector<Rank>& ranks) {
  std::map<std::string, std::vector<const GpuOfRank*>> by_model;
  for (const Rank& rank : ranks) {
    for (const GpuOfRank& gpu : rank.gpus) by_model[gpu.model].push_back(&gpu);
  }
  std::vector<std::string> lines;
  for (const Rank& rank : ranks) {
    for (const GpuOfRank& gpu : rank.gpus) {
      const std::vector<const GpuOfRank*>& peers = by_model[gpu.model];
      const std::vector<std::string> signs = WhatDiffers(peers, gpu);
      if (signs.empty()) continue;
      const std::string whom = peers.size() > 1
                                   ? fmt::format(" differs from its {} {}", peers.size() - 1,
                                                 peers.size() == 2 ? "peer" : "peers")
                                   : std::string(" is not at its best");
      lines.push_back(fmt::format("GPU {} of {} on node {}{}: {}; all ranks go at its pace",
                                  gpu.uuid, rank.name, rank.node, whom, Join(signs, "; ")));
    }
  }
  return lines;
}

}  // namespace muster::cli
