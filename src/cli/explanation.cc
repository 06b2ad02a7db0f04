#include "cli/explanation.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/errors.h"
#include "cli/live_cluster.h"
#include "cli/waiting.h"
#include "cluster/pod_info.h"
#include "cluster/volumes.h"
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

// Of events of either API.
std::string_view WhenOf(const json::Value& event) {
  for (const json::Value* time : {&event["series"]["lastObservedTime"], &event["lastTimestamp"],
                                  &event["eventTime"], &event["firstTimestamp"]}) {
    if (!time->AsString().empty()) return time->AsString();
  }
  return event["metadata"]["creationTimestamp"].AsString();
}

// Times are whole seconds, so the latest alone may be that of a step before the one that failed.
json::Value MostTelling(const json::Array& latest_first) {
  for (const json::Value& event : latest_first) {
    if (event["type"].AsString() == "Warning") return event;
  }
  return latest_first.empty() ? json::Value() : latest_first.front();
}

// The claims of those pods of the unit that have no node.
std::set<cluster::ClaimKey> ClaimsOf(const json::Value& pods, const scheduler::UnitKey& unit) {
  std::set<cluster::ClaimKey> claims;
  for (const json::Value& pod : pods["items"].items()) {
    const cluster::PodInfo info = cluster::ToPodInfo(pod);
    if (scheduler::UnitOf(info) != unit || !pod["spec"]["nodeName"].AsString().empty()) continue;
    for (const cluster::ClaimUse& use : cluster::ToClaimUses(pod)) claims.insert(use.claim);
  }
  return claims;
}

// Claims that nobody decides about any more and that have no volume all the same: a node was
// selected for them, or the making of one failed. What was said of them last.
std::vector<json::Value> ClaimsThatHold(Session& session, const scheduler::ClusterLists& lists,
                                        const scheduler::UnitKey& unit) {
  std::vector<json::Value> out;
  const std::set<cluster::ClaimKey> wanted = ClaimsOf(lists.pods, unit);
  for (const json::Value& claim : lists.claims["items"].items()) {
    const json::Value& metadata = claim["metadata"];
    const cluster::ClaimKey key{metadata["namespace"].Str(), metadata["name"].Str()};
    if (out.size() == kMaxPodsNamed) break;
    if (!wanted.contains(key) || claim["status"]["phase"].AsString() == "Bound") continue;
    const auto events = EventsOf(session, "PersistentVolumeClaim", key.ns, key.name);
    const json::Value said = events ? MostTelling(*events) : json::Value();
    const std::string node = metadata["annotations"][cluster::kSelectedNodeAnnotation].Str();
    if (said["type"].AsString() != "Warning" && node.empty()) continue;
    const std::string why =
        said.IsNull()
            ? fmt::format("node {} is selected for it, and nobody says what comes of that", node)
            : fmt::format("{}: {}", said["reason"].AsString(), said["message"].AsString());
    out.push_back(json::Obj({{"name", key.name}, {"message", why}}));
  }
  return out;
}

// What the server said when it refused to bind a pod of the unit; "" if it did not.
std::string RefusalOf(const json::Value& pods, const scheduler::UnitKey& unit) {
  for (const json::Value& pod : pods["items"].items()) {
    const json::Value& scheduled = FindCondition(pod, "PodScheduled");
    if (scheduled["reason"].AsString() != "SchedulerError" ||
        !pod["spec"]["nodeName"].AsString().empty())
      continue;
    if (scheduler::UnitOf(cluster::ToPodInfo(pod)) == unit) return scheduled["message"].Str();
  }
  return "";
}

// There is room, and the server does not let the scheduler use it.
void AddRefusal(const scheduler::UnitAnswer& answer, const std::string& refusal, Explanation& out) {
  if (!out.sentence.contains(refusal)) out.lines.push_back(refusal);
  out.lines.push_back(
      fmt::format("there is room on {}, but the binding is refused: whoever refuses it, often an "
                  "admission webhook for pods/binding, has to let it pass; it is tried again",
                  answer.nodes.front()));
  out.json = out.json.Set("bindingRefused", refusal);
}

void AddPlaces(const scheduler::UnitAnswer& answer, Explanation& out) {
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

void AddClaims(std::vector<json::Value> claims, Explanation& out) {
  for (const json::Value& claim : claims) {
    out.lines.push_back(fmt::format("claim {} has no volume yet: {}", claim["name"].AsString(),
                                    claim["message"].AsString()));
  }
  out.lines.emplace_back("it is bound to its place as soon as its claims have volumes");
  out.json = out.json.Set("claims", json::Value(json::Array(std::move(claims))));
}

}  // namespace

Result<json::Array> EventsOf(Session& session, const std::string& kind, const std::string& ns,
                             const std::string& name) {
  client::ListOptions options;
  options.field_selector = "involvedObject.name=" + name;
  if (!kind.empty()) options.field_selector += ",involvedObject.kind=" + kind;
  // Events of cluster-scoped objects live in "default".
  ASSIGN_OR_RETURN(const json::Value list,
                   session.List(client::resources::kEvents, ns.empty() ? "default" : ns, options));
  json::Array events;
  for (const json::Value& event : list["items"].items()) {
    const json::Value& object = event["involvedObject"];
    if (object["name"].AsString() == name && (kind.empty() || object["kind"].AsString() == kind))
      events.push_back(event);
  }
  // The latest first.
  std::ranges::stable_sort(events, std::greater(), WhenOf);
  return events;
}

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
  const json::Value& metadata = object["metadata"];
  // An autoscaler is often called like what it scales.
  ASSIGN_OR_RETURN(
      const json::Array events,
      EventsOf(session, object["kind"].Str(), metadata["namespace"].Str(), metadata["name"].Str()));
  json::Array warnings;
  for (const json::Value& event : events) {
    const std::string message = event["message"].Str();
    if (event["type"].AsString() != "Warning" || WasSaid(said, message)) continue;
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
    std::vector<json::Value> claims = ClaimsThatHold(session, *lists, unit);
    const std::string refusal = RefusalOf(lists->pods, unit);
    if (!refusal.empty()) {
      AddRefusal(answer, refusal, out);
    } else if (claims.empty()) {
      AddPlaces(answer, out);
    } else {
      AddClaims(std::move(claims), out);
    }
  }
  if (!answer.infeasible.has_value()) return;
  if (!out.sentence.contains(Explain(*answer.infeasible)) && answer.nodes.empty())
    out.lines.push_back("as of now: " + Explain(*answer.infeasible));
  for (std::string& line : DetailLines(*answer.infeasible)) out.lines.push_back(std::move(line));
  out.json = out.json.Set("scheduling", ToJson(*answer.infeasible));
  AddNodePools(session, *lists, unit, out);
}

}  // namespace muster::cli
