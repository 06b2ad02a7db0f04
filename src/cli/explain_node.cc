// What a node has, who has it, and why it takes no pods.

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/explanation.h"
#include "cli/live_cluster.h"
#include "cli/waiting.h"
#include "cluster/device_shares.h"
#include "cluster/resources.h"
#include "scheduler/node_kinds.h"
#include "scheduler/scheduler.h"

namespace muster::cli {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeIndex;

// Holders that the text names; the JSON has all pods.
constexpr size_t kMaxHoldersShown = 10;
constexpr int64_t kSharesOfAGpu = 1000;

std::string SentenceForNode(const json::Value& node) {
  const json::Value& ready = FindCondition(node, "Ready");
  if (ready.IsNull()) return "is not Ready: its agent has not reported yet";
  if (ready["status"].AsString() != "True") {
    return fmt::format("is not Ready: {}{}{}", ready["reason"].AsString(),
                       ready["message"].AsString().empty() ? "" : ": ",
                       ready["message"].AsString());
  }
  if (node["spec"]["unschedulable"].AsBool())
    return "is Ready, but unschedulable: new pods do not go there until it is uncordoned";
  return "is Ready";
}

// What keeps new pods away, each in words.
std::vector<std::string> WhyClosed(const json::Value& node) {
  std::vector<std::string> reasons;
  for (const json::Value& condition : node["status"]["conditions"].items()) {
    if (condition["type"].AsString() == "Ready" || condition["status"].AsString() != "True")
      continue;
    reasons.push_back(
        fmt::format("{}: {}", condition["type"].AsString(), condition["message"].AsString()));
  }
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    const std::string_view value = taint["value"].AsString();
    reasons.push_back(fmt::format("taint {}{}{}:{}, only for pods that tolerate it",
                                  taint["key"].AsString(), value.empty() ? "" : "=", value,
                                  taint["effect"].AsString()));
  }
  return reasons;
}

bool TakesPods(const json::Value& node) {
  if (node["spec"]["unschedulable"].AsBool()) return false;
  if (FindCondition(node, "Ready")["status"].AsString() != "True") return false;
  const json::Value& taints = node["spec"]["taints"];
  return std::all_of(taints.items().begin(), taints.items().end(), [](const json::Value& taint) {
    return taint["effect"].AsString() == "PreferNoSchedule";
  });
}

// One node of a copy of the cluster.
class NodeView {
 public:
  NodeView(const scheduler::ClusterCopy& copy, NodeIndex node)
      : snapshot_(copy.cache.snapshot()), node_(node), info_(snapshot_.Node(node)) {
    for (const auto& [key, pod] : copy.cache.pods()) {
      if (pod.placement == cluster::kNoIndex) continue;
      const cluster::Placement& placement = snapshot_.At(pod.placement);
      if (placement.node == node) pods_.push_back({key, &placement});
    }
  }

  void AddTo(Explanation& out) const {
    AddAmounts(out);
    AddLargest(out);
    AddDevices(out);
    AddHolders(out);
  }

 private:
  struct PodHere {
    cluster::PodKey key;
    const cluster::Placement* placement;
  };

  int64_t Free(const std::string& resource) const {
    return std::max<int64_t>(snapshot_.Free(node_, snapshot_.FindResource(resource)), 0);
  }

  // Of all GPUs together, where Free() tells what there is of one.
  int64_t FreeShares() const {
    int64_t free = cluster::AmountOf(info_.allocatable, cluster::resource::kGpuMilli);
    for (const PodHere& pod : pods_) {
      const cluster::ResourceList& requests =
          snapshot_.Shape(pod.placement->shape).constraints.requests;
      free -= cluster::AmountOf(requests, cluster::resource::kGpuMilli) +
              kSharesOfAGpu * cluster::AmountOf(requests, cluster::resource::kNvidiaGpu);
    }
    return std::max<int64_t>(free, 0);
  }

  void AddAmounts(Explanation& out) const {
    json::Array amounts;
    for (const auto& [resource, offered] : info_.allocatable) {
      const bool is_share = resource == cluster::resource::kGpuMilli;
      const std::string free =
          cluster::AmountText(resource, is_share ? FreeShares() : Free(resource));
      const std::string all = cluster::AmountText(resource, offered);
      out.lines.push_back(fmt::format("free: {} of {} {}", free, all, resource));
      amounts.push_back(json::Obj({{"resource", resource}, {"free", free}, {"allocatable", all}}));
    }
    out.json = out.json.Set("amounts", json::Value(std::move(amounts)));
  }

  // What is free is the largest pod that fits; devices without anything to go with them are lost.
  void AddLargest(Explanation& out) const {
    json::Value largest = json::Obj({});
    std::vector<std::string> texts, used_up;
    for (const bool extended : {true, false}) {
      for (const auto& [resource, offered] : info_.allocatable) {
        if (cluster::IsExtendedResource(resource) != extended) continue;
        if (resource == cluster::resource::kGpuMilli) continue;  // beside no whole GPU
        const int64_t free = Free(resource);
        if (free == 0 && offered > 0 && !extended) used_up.push_back(resource);
        if (free == 0 || resource == cluster::resource::kPods) continue;
        largest = largest.Set(resource, cluster::AmountText(resource, free));
        texts.push_back(fmt::format("{} {}", cluster::AmountText(resource, free), resource));
      }
    }
    const bool full = Free(std::string(cluster::resource::kPods)) == 0;
    if (full) largest = json::Obj({});
    out.json = out.json.Set("largestPod", largest);
    if (full || texts.empty()) {
      out.lines.push_back("takes no further pod");
    } else {
      out.lines.push_back("the largest pod that fits: " + Join(texts, ", "));
    }
    if (const int64_t milli = FreeOrZero(std::string(cluster::resource::kGpuMilli));
        milli > 0 && !full) {
      out.lines.push_back(fmt::format("the largest share of a GPU that fits: {} {}", milli,
                                      cluster::resource::kGpuMilli));
      out.json = out.json.Set("largestShare", std::to_string(milli));
    }
    const auto gpus =
        info_.allocatable.empty() ? 0 : FreeOrZero(std::string(cluster::resource::kNvidiaGpu));
    if (gpus > 0 && !used_up.empty()) {
      out.lines.push_back(fmt::format("{} free GPU{} stranded: no {} is free beside {}", gpus,
                                      gpus == 1 ? " is" : "s are", Join(used_up, ", "),
                                      gpus == 1 ? "it" : "them"));
      out.json = out.json.Set("strandedGpus", gpus);
    }
    if (const int64_t joined = snapshot_.MostJoined(node_); joined > 0) {
      out.lines.push_back(fmt::format("{} of the free GPUs are joined by NVLink", joined));
      out.json = out.json.Set("joinedByNvlink", joined);
    }
  }

  int64_t FreeOrZero(const std::string& resource) const {
    return cluster::AmountOf(info_.allocatable, resource) == 0 ? 0 : Free(resource);
  }

  void AddDevices(Explanation& out) const {
    std::map<size_t, std::string> owner;
    for (const PodHere& pod : pods_) {
      for (const size_t position : pod.placement->devices.Positions())
        owner[position] = pod.key.ToString();
    }
    json::Array devices;
    std::vector<std::string> texts;
    for (size_t position = 0; position < info_.devices.size(); ++position) {
      const cluster::Device& device = info_.devices[position];
      const auto owned = owner.find(position);
      const std::string pod = owned == owner.end() ? "" : owned->second;
      json::Value entry = json::Obj({{"resource", device.resource},
                                     {"index", device.index},
                                     {"id", device.id},
                                     {"model", device.model}});
      if (!pod.empty()) entry = entry.Set("pod", pod);
      if (!device.unhealthy.empty()) entry = entry.Set("unhealthy", device.unhealthy);
      devices.push_back(std::move(entry));
      const bool share = cluster::GpuOf(device.id) != device.id;
      texts.push_back(fmt::format("{} {}: {}", device.resource,
                                  share ? device.id : std::to_string(device.index),
                                  !device.unhealthy.empty() ? "unhealthy: " + device.unhealthy
                                  : pod.empty()             ? "free"
                                                            : "pod " + pod));
    }
    for (std::string& text : texts) out.lines.push_back(std::move(text));
    if (!devices.empty()) out.json = out.json.Set("devices", json::Value(std::move(devices)));
  }

  void AddHolders(Explanation& out) const {
    json::Array pods;
    std::map<std::string, std::pair<size_t, cluster::ResourceList>> by_holder;
    for (const PodHere& pod : pods_) {
      const cluster::ResourceList& requests =
          snapshot_.Shape(pod.placement->shape).constraints.requests;
      const std::string& holder = snapshot_.Holder(pod.placement->holder);
      json::Value amounts = json::Obj({});
      for (const auto& [resource, amount] : requests)
        amounts = amounts.Set(resource, cluster::AmountText(resource, amount));
      pods.push_back(json::Obj({{"namespace", pod.key.ns},
                                {"name", pod.key.name},
                                {"holder", holder},
                                {"requests", amounts}}));
      auto& [count, sum] = by_holder[holder];
      ++count;
      cluster::AddTo(sum, requests);
    }
    size_t shown = 0;
    for (const auto& [holder, what] : by_holder) {
      if (shown++ == kMaxHoldersShown) {
        out.lines.push_back(fmt::format("and {} others", by_holder.size() - kMaxHoldersShown));
        break;
      }
      std::vector<std::string> texts;
      for (const auto& [resource, amount] : what.second) {
        if (resource != cluster::resource::kPods)
          texts.push_back(fmt::format("{} {}", cluster::AmountText(resource, amount), resource));
      }
      out.lines.push_back(fmt::format("{} has {} pod{}{}", holder, what.first,
                                      what.first == 1 ? "" : "s",
                                      texts.empty() ? "" : " with " + Join(texts, ", ")));
    }
    out.json = out.json.Set("pods", json::Value(std::move(pods)));
  }

  const ClusterSnapshot& snapshot_;
  const NodeIndex node_;
  const cluster::NodeInfo& info_;
  std::vector<PodHere> pods_;
};

}  // namespace

Result<Explanation> ExplainNode(Session& session, const json::Value& node) {
  const std::string name = node["metadata"]["name"].Str();
  const std::string sentence = SentenceForNode(node);
  const std::vector<std::string> closed = WhyClosed(node);
  Explanation out;
  out.sentence = fmt::format("Node {} {}", name, sentence);
  out.lines = closed;
  out.json = json::Obj({{"kind", "Node"},
                        {"name", name},
                        {"nodeKind", scheduler::KindOf(cluster::ToNodeInfo(node))},
                        {"message", sentence},
                        {"takesPods", TakesPods(node)},
                        {"closedBy", json::Strings(closed)}});
  ASSIGN_OR_RETURN(const scheduler::ClusterLists lists, ReadCluster(session));
  const scheduler::ClusterCopy copy(lists, scheduler::SchedulerConfig().scheduler_names);
  if (const NodeIndex index = copy.cache.FindNode(name); index != cluster::kNoIndex)
    NodeView(copy, index).AddTo(out);
  RETURN_IF_ERROR(AddWarnings(session, node, out.sentence + "\n" + Join(closed, "\n"), out));
  return out;
}

}  // namespace muster::cli
