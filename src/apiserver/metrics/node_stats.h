// src/apiserver/metrics/node_stats.h
//
// NodeStats: what nodes use, as their agents say it (GET /stats/summary of the kubelet API). A node
// is asked when somebody wants to know, and its answer is good for kStatsAge: nothing happens while
// nobody asks, and nothing is stored.
//
// Life cycle: a member of the Core.
// Thread:     the loop thread.
// Invariants: at most kMaxStatsRequests are under way, one for each node; Fetch() answers within
//             kStatsPatience whatever nodes do, and who was silent has no sample.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/node_proxy.h"
#include "base/task.h"
#include "base/time.h"
#include "json/value.h"
#include "loop/loop.h"

namespace muster::apiserver {

struct Core;

inline constexpr Duration kStatsAge = seconds(10);
inline constexpr Duration kStatsPatience = seconds(3);
inline constexpr size_t kMaxStatsRequests = 64;
inline constexpr Duration kStatsMemory = minutes(1);  // then what a node said is forgotten

struct Usage {
  Time time{};
  Duration window{};
  int64_t cpu_nano = 0;  // nano-cores
  int64_t memory_bytes = 0;
};

struct ContainerUsage {
  std::string name;
  Usage usage;
};

// What one node said.
struct NodeSample {
  std::optional<Usage> node;
  // By namespace/name; containers that have been measured.
  std::map<std::string, std::vector<ContainerUsage>> pods;
};

using SamplePtr = std::shared_ptr<const NodeSample>;

// Of the answer to /stats/summary; what is not as expected is left out.
NodeSample ParseSummary(const json::Value& summary);

class NodeStats {
 public:
  explicit NodeStats(Core& core) : core_(core) {}
  ~NodeStats();

  // `done` when each of these nodes has a sample or could not give one.
  void Fetch(const std::vector<std::string>& nodes, Task done);
  // nullptr: the node gave none.
  SamplePtr Find(const std::string& node) const;

 private:
  struct Wait {
    size_t missing = 0;
    TimerId deadline = 0;
    Task done;
  };
  using WaitPtr = std::shared_ptr<Wait>;

  struct Node {
    SamplePtr sample;
    Time asked{};
    bool asking = false;  // queued or under way
    std::string body;
    int status = 0;
    uint64_t question = 0;  // the one under way; what is said of an earlier one is late
    std::unique_ptr<NodeStream> stream;
    std::vector<WaitPtr> waits;
  };

  bool IsUnderWay(const std::string& name, uint64_t question) const;
  void Pump();
  void Ask(const std::string& name);
  void EndLater(const std::string& name, bool ok);
  void OnEnd(const std::string& name, bool ok);
  void Forget();
  static void Finish(const WaitPtr& wait);

  Core& core_;
  std::map<std::string, Node> nodes_;
  std::deque<std::string> queue_;
  size_t under_way_ = 0;
  uint64_t questions_ = 0;
};

}  // namespace muster::apiserver
