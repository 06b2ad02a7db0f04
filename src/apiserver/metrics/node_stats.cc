#include "apiserver/metrics/node_stats.h"

#include <utility>

#include "apiserver/core.h"
#include "apiserver/pods/pod_location.h"
#include "json/parse.h"

namespace muster::apiserver {
namespace {

std::optional<Usage> UsageOf(const json::Value& cpu, const json::Value& memory) {
  const std::optional<Time> time = ParseTime(cpu["time"].AsString());
  const std::optional<int64_t> cpu_nano = cpu["usageNanoCores"].Int();
  const std::optional<int64_t> bytes = memory["workingSetBytes"].Int();
  if (!time || !cpu_nano || !bytes || *cpu_nano < 0 || *bytes < 0) return std::nullopt;
  // Ours; the kubelet averages over some ten seconds and does not say.
  const Duration window = seconds(cpu["windowSeconds"].AsInt(10));
  return Usage{*time, window, *cpu_nano, *bytes};
}

}  // namespace

NodeSample ParseSummary(const json::Value& summary) {
  NodeSample sample;
  sample.node = UsageOf(summary["node"]["cpu"], summary["node"]["memory"]);
  for (const json::Value& pod : summary["pods"].items()) {
    const json::Value& ref = pod["podRef"];
    std::vector<ContainerUsage> containers;
    for (const json::Value& container : pod["containers"].items()) {
      const std::optional<Usage> usage = UsageOf(container["cpu"], container["memory"]);
      if (usage) containers.push_back({container["name"].Str(), *usage});
    }
    if (!containers.empty())
      sample.pods[ref["namespace"].Str() + "/" + ref["name"].Str()] = std::move(containers);
  }
  return sample;
}

NodeStats::~NodeStats() {
  for (auto& [name, node] : nodes_) {
    for (const WaitPtr& wait : node.waits) core_.loop.Cancel(wait->deadline);
  }
}

SamplePtr NodeStats::Find(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second.sample;
}

void NodeStats::Fetch(const std::vector<std::string>& nodes, Task done) {
  Forget();
  const auto wait = std::make_shared<Wait>();
  wait->done = std::move(done);
  const Time now = core_.loop.Now();
  for (const std::string& name : nodes) {
    Node& node = nodes_[name];
    // A clock that was set back makes an answer old, not good for ever.
    const bool fresh = node.asked <= now && now - node.asked < kStatsAge && node.asked != Time{};
    if (!node.asking && fresh) continue;
    ++wait->missing;
    node.waits.push_back(wait);
    if (std::exchange(node.asking, true)) continue;
    queue_.push_back(name);
  }
  if (wait->missing == 0) return Finish(wait);
  wait->deadline = core_.loop.After(kStatsPatience, core_.Guarded([wait] { Finish(wait); }));
  Pump();
}

void NodeStats::Finish(const WaitPtr& wait) {
  if (!wait->done) return;
  Task done = std::exchange(wait->done, nullptr);
  done();
}

void NodeStats::Forget() {
  const Time now = core_.loop.Now();
  std::erase_if(nodes_, [now](const auto& one) {
    const Node& node = one.second;
    return !node.asking && (node.asked > now || now - node.asked > kStatsMemory);
  });
}

void NodeStats::Pump() {
  while (under_way_ < kMaxStatsRequests && !queue_.empty()) {
    const std::string name = std::move(queue_.front());
    queue_.pop_front();
    ++under_way_;
    Ask(name);
  }
}

void NodeStats::Ask(const std::string& name) {
  Node& node = nodes_[name];
  node.asked = core_.loop.Now();
  node.body.clear();
  node.status = 0;
  Result<NodeEndpoint> endpoint = LocateNode(core_, name);
  node.question = ++questions_;
  if (!endpoint) return EndLater(name, false);
  net::Request request;
  request.method = "GET";
  request.target = "/stats/summary";
  // The stream is destroyed with its end, so these come for the latest question only.
  NodeStreamCallbacks callbacks;
  callbacks.on_head = [this, name](int status, const net::Headers&) {
    nodes_[name].status = status;
  };
  callbacks.on_data = [this, name](std::string_view bytes) {
    std::string& body = nodes_[name].body;
    if (body.size() + bytes.size() <= kMaxNodeAnswerBytes) body += bytes;
  };
  callbacks.on_end = [this, name](const Status& status) { EndLater(name, status.ok()); };
  node.stream =
      core_.options.node_proxy->Stream(*endpoint, std::move(request), std::move(callbacks));
  // A node that never answers is given up, so that it can be asked again.
  core_.loop.After(kStatsPatience, core_.Guarded([this, name, question = node.question] {
    if (IsUnderWay(name, question)) OnEnd(name, false);
  }));
}

bool NodeStats::IsUnderWay(const std::string& name, uint64_t question) const {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && found->second.question == question;
}

// The stream may not be destroyed inside its own callback.
void NodeStats::EndLater(const std::string& name, bool ok) {
  core_.loop.Post(core_.Guarded([this, name, ok, question = nodes_[name].question] {
    if (IsUnderWay(name, question)) OnEnd(name, ok);
  }));
}

void NodeStats::OnEnd(const std::string& name, bool ok) {
  Node& node = nodes_[name];
  node.question = 0;
  node.stream.reset();
  node.asking = false;
  --under_way_;
  const Result<json::Value> summary =
      ok && node.status == 200 ? json::Parse(node.body) : Result<json::Value>(json::Value());
  const bool good = summary && summary->IsObject();
  node.sample = good ? std::make_shared<const NodeSample>(ParseSummary(*summary)) : nullptr;
  node.body = std::string();
  for (const WaitPtr& wait : std::exchange(node.waits, {})) {
    if (--wait->missing > 0) continue;
    core_.loop.Cancel(wait->deadline);
    Finish(wait);
  }
  Pump();
}

}  // namespace muster::apiserver
