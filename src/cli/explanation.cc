#include "cli/explanation.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/errors.h"
#include "cli/live_cluster.h"
#include "cli/waiting.h"
#include "scheduler/scheduler.h"

namespace muster::cli {
namespace {

// Pods that a line names one by one.
constexpr size_t kMaxPodsNamed = 3;

// An event may have words of its own before the cause: `Failed to pull image "x": CAUSE`.
bool WasSaid(const std::string& said, const std::string& message) {
  const size_t colon = message.find(": ");
  const std::string cause = colon == message.npos ? "" : message.substr(colon + 2);
  return said.contains(message) || (!cause.empty() && said.contains(cause));
}

}  // namespace

void AddPods(const json::Value& pods, const std::string& said, Explanation& out) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  json::Array list;
  for (const json::Value& pod : pods["items"].items()) {
    const std::string sentence = SentenceForPod(pod);
    const std::string name = pod["metadata"]["name"].Str();
    list.push_back(json::Obj({{"name", name}, {"message", sentence}}));
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == sentence; });
    if (found == groups.end()) {
      groups.push_back({sentence, {name}});
    } else {
      found->second.push_back(name);
    }
  }
  for (const auto& [sentence, names] : groups) {
    const std::string who = names.size() <= kMaxPodsNamed
                                ? Join(names, ", ")
                                : fmt::format("{} and {} others", names[0], names.size() - 1);
    // The gang's sentence was said already.
    const bool known = sentence.size() > 7 && said.find(sentence.substr(7)) != std::string::npos;
    out.lines.push_back(fmt::format("{}: {}", who, known ? "waits with its gang" : sentence));
  }
  out.json = out.json.Set("pods", json::Value(std::move(list)));
}

Status AddWarnings(Session& session, const json::Value& object, std::string said,
                   Explanation& out) {
  client::ListOptions options;
  options.field_selector =
      "involvedObject.name=" + object["metadata"]["name"].Str() + ",type=Warning";
  // An autoscaler is often called like what it scales.
  if (const std::string kind = object["kind"].Str(); !kind.empty())
    options.field_selector += ",involvedObject.kind=" + kind;
  ASSIGN_OR_RETURN(json::Value events,
                   session.List(client::resources::kEvents,
                                object["metadata"]["namespace"].AsString(), options));
  json::Array warnings;
  for (const json::Value& event : events["items"].items()) {
    const std::string message = event["message"].Str();
    if (WasSaid(said, message)) continue;
    said += "\n" + message;
    out.lines.push_back(fmt::format("{}: {}", event["reason"].AsString(), message));
    warnings.push_back(json::Obj({{"reason", event["reason"].AsString()}, {"message", message}}));
  }
  if (!warnings.empty()) out.json = out.json.Set("warnings", json::Value(std::move(warnings)));
  return Status::Ok();
}

void AddScheduling(Session& session, const scheduler::UnitKey& unit, Explanation& out) {
  const auto lists = ReadCluster(session);
  if (!lists) {
    out.lines.push_back("no detail: " + DescribeError(lists.error()));
    return;
  }
  const scheduler::ClusterCopy copy(*lists, scheduler::SchedulerConfig().scheduler_names);
  const scheduler::UnitAnswer answer = copy.Ask(unit);
  if (!answer.nodes.empty()) {
    std::vector<std::string> nodes = answer.nodes;
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    out.lines.push_back(fmt::format(
        "{} now, on {}: the scheduler will bind {}, if one runs",
        answer.infeasible.has_value() ? fmt::format("{} of its pods fit", answer.nodes.size())
                                      : "it fits",
        nodes.size() <= kMaxPodsNamed ? Join(nodes, ", ")
                                      : fmt::format("{} and {} others", nodes[0], nodes.size() - 1),
        answer.infeasible.has_value() ? "them" : "it"));
    out.json = out.json.Set("fitsNowOn", json::Strings(answer.nodes));
  }
  if (!answer.infeasible.has_value()) return;
  if (!out.sentence.contains(Explain(*answer.infeasible)) && answer.nodes.empty())
    out.lines.push_back("as of now: " + Explain(*answer.infeasible));
  for (std::string& line : DetailLines(*answer.infeasible)) out.lines.push_back(std::move(line));
  out.json = out.json.Set("scheduling", ToJson(*answer.infeasible));
}

}  // namespace muster::cli
