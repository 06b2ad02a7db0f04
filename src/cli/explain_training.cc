// What can be seen from outside of a training that gets no further, gathered for training_faults.h.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/explanation.h"
#include "cli/gpu_figures.h"
#include "cli/job_follower.h"
#include "cli/training_faults.h"
#include "cli/waiting.h"
#include "cluster/device_shares.h"
#include "cluster/devices.h"
#include "cluster/quantity.h"
#include "schema/pod_phase.h"
#include "schema/training_kinds.h"

namespace muster::cli {
namespace {

// Whose logs are read; the ranks of a larger job are judged by these.
constexpr size_t kMaxLogsRead = 64;
constexpr int kLinesRead = 40;
constexpr const char* kDriverLabel = "nvidia.com/cuda.driver-version.full";

// The container that trains: as the kind calls it, or the first.
std::string MainContainer(const json::Value& pod) {
  const json::Value& containers = pod["spec"]["containers"];
  for (const json::Value& container : containers.items()) {
    for (const schema::TrainingKind& kind : schema::TrainingKinds()) {
      if (container["name"].AsString() == kind.container) return std::string(kind.container);
    }
  }
  return containers.At(0)["name"].Str();
}

// The last lines with their times; nullopt where there are none to read.
std::optional<std::string> LogTail(Session& session, const json::Value& pod, bool previous) {
  net::Request request;
  request.method = "GET";
  request.target = fmt::format(
      "{}?container={}&tailLines={}&timestamps=true{}",
      client::ApiClient::PathOf({client::resources::kPods, pod["metadata"]["namespace"].Str(),
                                 pod["metadata"]["name"].Str(), "log"}),
      MainContainer(pod), kLinesRead, previous ? "&previous=true" : "");
  Result<net::Response> answer = session.Raw(std::move(request));
  if (!answer) return std::nullopt;
  return std::move(answer->body);
}

// Of a log's last line: "2026-01-02T03:04:05.678901Z words".
std::optional<Time> LastTime(std::string_view tail) {
  const std::vector<std::string_view> lines = SplitNonEmpty(tail, '\n');
  if (lines.empty()) return std::nullopt;
  return ParseTime(lines.back().substr(0, lines.back().find(' ')));
}

bool EndedBadly(const json::Value& pod, const char* state) {
  return std::ranges::any_of(pod["status"]["containerStatuses"].items(),
                             [state](const json::Value& status) {
                               const json::Value& ended = status[state]["terminated"];
                               return !ended.IsNull() && ended["exitCode"].AsInt() != 0;
                             });
}

// {cores, memory as people write it} by pod.
struct Usage {
  double cores = 0;
  std::string memory;
};

std::map<std::string, Usage> ReadUsage(Session& session, const std::string& ns) {
  std::map<std::string, Usage> out;
  const Result<json::Value> list = session.List({"metrics.k8s.io", "v1beta1", "pods"}, ns);
  if (!list) return out;
  for (const json::Value& pod : (*list)["items"].items()) {
    cluster::Quantity cpu, memory;
    for (const json::Value& container : pod["containers"].items()) {
      const auto used = cluster::Quantity::FromJson(container["usage"]["cpu"]);
      const auto bytes = cluster::Quantity::FromJson(container["usage"]["memory"]);
      if (used) cpu = cpu + *used;
      if (bytes) memory = memory + *bytes;
    }
    out[pod["metadata"]["name"].Str()] = {static_cast<double>(cpu.Milli()) / 1000.0,
                                          fmt::format("{}Mi", memory.Units() >> 20)};
  }
  return out;
}

void AddGpus(const json::Value& node, const GpuFigures& figures, Rank& rank) {
  std::map<std::string, std::string> models;
  for (const cluster::Device& device : cluster::NodeDevices(node))
    models[std::string(cluster::GpuOf(device.id))] = device.model;
  std::vector<std::string> seen;
  for (const auto& [container, lists] : cluster::PodDevices(rank.pod)) {
    for (const auto& [resource, ids] : lists) {
      for (const std::string& gpu : cluster::GpusOf(ids)) {
        const auto found = figures.find(gpu);
        if (found == figures.end() || std::ranges::find(seen, gpu) != seen.end()) continue;
        seen.push_back(gpu);
        rank.gpus.push_back({gpu, models[gpu], found->second});
      }
    }
  }
}

class Gatherer {
 public:
  Gatherer(Session& session, json::Value pods) : session_(session), pods_(std::move(pods)) {}

  std::vector<std::string> MemoryLines() {
    std::vector<std::string> lines;
    for (const json::Value& pod : pods_["items"].items()) {
      std::string tail;
      for (const bool previous : {false, true}) {
        if (!EndedBadly(pod, previous ? "lastState" : "state") || read_ >= kMaxLogsRead) continue;
        ++read_;
        tail += LogTail(session_, pod, previous).value_or("");
      }
      const std::string now = WasOomKilled(pod) ? UsageOf(pod).memory : std::string();
      for (std::string& line : MemoryFaults(pod, tail, now)) lines.push_back(std::move(line));
    }
    return lines;
  }

  // Nodes and figures that may not be read are done without.
  std::vector<Rank> Ranks() {
    std::map<std::string, json::Value> nodes;
    if (const Result<json::Value> list = session_.List(client::resources::kNodes, "")) {
      for (const json::Value& node : (*list)["items"].items())
        nodes[node["metadata"]["name"].Str()] = node;
    }
    const GpuFigures figures = ReadGpuFigures(session_).value_or(GpuFigures());
    std::vector<Rank> ranks;
    for (const json::Value& pod : pods_["items"].items()) {
      if (ranks.size() == kMaxLogsRead) break;
      Rank rank;
      rank.name = pod["metadata"]["name"].Str();
      rank.pod = pod;
      rank.node = pod["spec"]["nodeName"].Str();
      rank.driver = nodes[rank.node]["metadata"]["labels"][kDriverLabel].Str();
      if (pod["status"]["phase"].AsString() == "Running") {
        const std::optional<std::string> tail = LogTail(session_, pod, false);
        rank.log_read = tail.has_value();
        if (tail) rank.last_word = LastTime(*tail);
        if (const Usage used = UsageOf(pod); !used.memory.empty()) rank.cores = used.cores;
        AddGpus(nodes[rank.node], figures, rank);
      }
      ranks.push_back(std::move(rank));
    }
    return ranks;
  }

 private:
  // Of a pod that nobody has measured yet: no memory.
  Usage UsageOf(const json::Value& pod) {
    if (!usage_) usage_ = ReadUsage(session_, pod["metadata"]["namespace"].Str());
    const auto found = usage_->find(pod["metadata"]["name"].Str());
    return found == usage_->end() ? Usage() : found->second;
  }

  Session& session_;
  const json::Value pods_;
  std::optional<std::map<std::string, Usage>> usage_;
  size_t read_ = 0;
};

// Who runs on although the job has failed.
void AddSurvivors(const json::Value& pods, std::vector<std::string>& lines) {
  std::vector<std::string> names;
  for (const json::Value& pod : pods["items"].items()) {
    if (pod["status"]["phase"].AsString() == "Running" && !pod["metadata"].Has("deletionTimestamp"))
      names.push_back(pod["metadata"]["name"].Str());
  }
  if (names.empty()) return;
  lines.push_back(fmt::format(
      "{} still {} and {} what was given to {}, although the job has failed: delete the job, or "
      "set cleanPodPolicy: Running",
      Join(names, ", "), names.size() == 1 ? "runs" : "run", names.size() == 1 ? "keeps" : "keep",
      names.size() == 1 ? "it" : "them"));
}

void Add(std::vector<std::string> lines, Explanation& out) {
  if (lines.empty()) return;
  out.json = out.json.Set("faults", json::Strings(lines));
  for (std::string& line : lines) out.lines.push_back(std::move(line));
}

}  // namespace

void AddPodFaults(Session& session, const json::Value& pod, Explanation& out) {
  Gatherer gatherer(session, json::Obj({{"items", json::List({pod})}}));
  Add(gatherer.MemoryLines(), out);
}

void AddTrainingFaults(Session& session, const json::Value& job, const json::Value& pods,
                       Duration silence, Explanation& out) {
  if (pods["items"].empty() || JobSucceeded(job)) return;
  Gatherer gatherer(session, pods);
  std::vector<std::string> lines = gatherer.MemoryLines();
  if (JobFinished(job)) {
    AddSurvivors(pods, lines);
  } else if (ReplicasOf(job) > 1 || pods["items"].size() > 1) {
    const std::vector<Rank> ranks = gatherer.Ranks();
    for (std::string& line : HangFaults(ranks, ReplicasOf(job), session.loop().Now(), silence))
      lines.push_back(std::move(line));
    for (std::string& line : SlowGpus(ranks)) lines.push_back(std::move(line));
  }
  Add(std::move(lines), out);
}

}  // namespace muster::cli
