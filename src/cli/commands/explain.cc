// muster explain: why a pod or job does not run, and what would change that; what a node has free.

#include <algorithm>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/job_follower.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"
#include "cli/waiting.h"
#include "cluster/resources.h"
#include "schema/pod_phase.h"

namespace muster::cli {
namespace {

std::string WhyPodFailed(const json::Value& pod) {
  const json::Value& status = pod["status"];
  std::string out = status["reason"].Str();
  if (const std::string_view message = status["message"].AsString(); !message.empty()) {
    out += (out.empty() ? "" : ": ") + std::string(message);
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& container : status[list].items()) {
      const json::Value& ended = container["state"]["terminated"];
      if (ended.IsNull() || ended["exitCode"].AsInt() == 0) continue;
      out += fmt::format("{}container {} ended with {}", out.empty() ? "" : "; ",
                         container["name"].AsString(), HowContainerEnded(ended));
    }
  }
  return out;
}

// Of a pod in phase Running, which it also is while its containers are ended and come again.
std::string HowPodRuns(const json::Value& pod) {
  const json::Value& containers = pod["status"]["containerStatuses"];
  std::string notes;
  bool any_running = containers.empty();
  for (const json::Value& container : containers.items()) {
    const json::Value& ended = container["state"]["terminated"];
    const json::Value& last = container["lastState"]["terminated"];
    any_running = any_running || container["state"].Has("running");
    if (!ended.IsNull()) {
      notes += fmt::format("; container {} ended with {}", container["name"].AsString(),
                           HowContainerEnded(ended));
    } else if (!last.IsNull()) {
      const int64_t restarts = container["restartCount"].AsInt();
      notes +=
          fmt::format("; container {} was restarted {} {}", container["name"].AsString(),
                      restarts == 1 ? "once, after" : fmt::format("{} times, last after", restarts),
                      HowContainerEnded(last));
    }
  }
  return fmt::format("{} node {}{}", any_running ? "runs on" : "does not run at the moment on",
                     pod["spec"]["nodeName"].AsString(), notes);
}

std::string SentenceForPod(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (pod["metadata"].Has("deletionTimestamp")) return "is being deleted";
  if (phase == "Failed") return "failed: " + WhyPodFailed(pod);
  if (phase == "Succeeded") return "is done";
  const std::string why = WhyPodWaits(pod);
  if (!why.empty()) return "waits: " + why;
  return HowPodRuns(pod);
}

// An event may have words of its own before the cause: `Failed to pull image "x": CAUSE`.
bool WasSaid(const std::string& said, const std::string& message) {
  const size_t colon = message.find(": ");
  const std::string cause = colon == message.npos ? "" : message.substr(colon + 2);
  return said.contains(message) || (!cause.empty() && said.contains(cause));
}

// The newest warning events of an object, without what was said already.
Status PrintWarnings(Invocation& invocation, const json::Value& object, std::string said) {
  client::ListOptions options;
  options.field_selector =
      "involvedObject.name=" + object["metadata"]["name"].Str() + ",type=Warning";
  ASSIGN_OR_RETURN(json::Value events,
                   invocation.session.List(client::resources::kEvents,
                                           object["metadata"]["namespace"].AsString(), options));
  for (const json::Value& event : events["items"].items()) {
    const std::string message = event["message"].Str();
    if (WasSaid(said, message)) continue;
    said += "\n" + message;
    invocation.console.Print("  {}: {}\n", event["reason"].AsString(), message);
  }
  return Status::Ok();
}

Result<int> ExplainPod(Invocation& invocation, const json::Value& pod) {
  const std::string name = pod["metadata"]["name"].Str();
  const std::string sentence = SentenceForPod(pod);
  invocation.console.Print("Pod {} {}\n", name, sentence);
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (phase != "Succeeded" && phase != "Running")
    RETURN_IF_ERROR(PrintWarnings(invocation, pod, sentence));
  return 0;
}

std::string SentenceForJob(const json::Value& job) {
  for (const char* type : {"Failed", "Succeeded", "Complete", "Suspended", "Restarting"}) {
    if (!ConditionHolds(job, type)) continue;
    const json::Value& condition = FindCondition(job, type);
    return fmt::format("{}: {}", ToLower(type), condition["message"].AsString());
  }
  return ConditionHolds(job, "Running") ? "runs" : "has not started";
}

// The pods of a job, those with the same answer together.
void PrintPods(Console& console, const std::vector<json::Value>& pods, const std::string& said) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const json::Value& pod : pods) {
    const std::string sentence = SentenceForPod(pod);
    const std::string name = pod["metadata"]["name"].Str();
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == sentence; });
    if (found == groups.end()) {
      groups.push_back({sentence, {name}});
    } else {
      found->second.push_back(name);
    }
  }
  for (const auto& [sentence, names] : groups) {
    const std::string who = names.size() <= 3
                                ? Join(names, ", ")
                                : fmt::format("{} and {} others", names[0], names.size() - 1);
    // The gang's sentence was printed already.
    const bool known = sentence.size() > 7 && said.find(sentence.substr(7)) != std::string::npos;
    console.Print("  {}: {}\n", who, known ? "waits with its gang" : sentence);
  }
}

Result<int> ExplainJob(Invocation& invocation, const ApiResource& resource,
                       const json::Value& job) {
  Session& session = invocation.session;
  const std::string name = job["metadata"]["name"].Str();
  const std::string ns = job["metadata"]["namespace"].Str();
  const std::string sentence = SentenceForJob(job);
  invocation.console.Print("{} {} {}\n", resource.kind, name, sentence);
  std::string said = sentence;
  if (!JobFinished(job)) {
    Result<json::Value> group = session.Get({client::resources::kPodGroups, ns, name, ""});
    if (group && ConditionHolds(*group, "Unschedulable")) {
      const std::string message = FindCondition(*group, "Unschedulable")["message"].Str();
      invocation.console.Print("  It waits as a gang of {}: {}\n",
                               (*group)["spec"]["minMember"].AsInt(1), message);
      said += message;
    }
    if (!group && group.error().reason() != Reason::kNotFound) return Error(group.error());
  }
  client::ListOptions options;
  options.label_selector = PodSelectorOf(resource, job);
  ASSIGN_OR_RETURN(json::Value pods, session.List(client::resources::kPods, ns, options));
  PrintPods(invocation.console, {pods["items"].items().begin(), pods["items"].items().end()}, said);
  RETURN_IF_ERROR(PrintWarnings(invocation, job, said));
  return 0;
}

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

// What keeps pods away from a node that is Ready, and what they find there.
Result<int> ExplainNode(Invocation& invocation, const json::Value& node) {
  Console& console = invocation.console;
  const std::string name = node["metadata"]["name"].Str();
  std::string said = SentenceForNode(node);
  console.Print("Node {} {}\n", name, said);
  for (const json::Value& condition : node["status"]["conditions"].items()) {
    if (condition["type"].AsString() == "Ready" || condition["status"].AsString() != "True")
      continue;
    console.Print("  {}: {}\n", condition["type"].AsString(), condition["message"].AsString());
    said += "\n" + condition["message"].Str();
  }
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    const std::string_view value = taint["value"].AsString();
    console.Print("  taint {}{}{}:{}, only for pods that tolerate it\n", taint["key"].AsString(),
                  value.empty() ? "" : "=", value, taint["effect"].AsString());
  }
  client::ListOptions options;
  options.field_selector = "spec.nodeName=" + name;
  ASSIGN_OR_RETURN(json::Value pods,
                   invocation.session.List(client::resources::kPods, "", options));
  cluster::ResourceList used;
  for (const json::Value& pod : pods["items"].items()) {
    if (!schema::IsFinalPhase(pod["status"]["phase"].AsString()))
      cluster::AddTo(used, cluster::PodRequests(pod));
  }
  for (const auto& [resource, amount] : cluster::NodeAllocatable(node)) {
    const int64_t left = std::max<int64_t>(amount - cluster::AmountOf(used, resource), 0);
    console.Print("  free: {} of {} {}\n", cluster::AmountText(resource, left),
                  cluster::AmountText(resource, amount), resource);
  }
  RETURN_IF_ERROR(PrintWarnings(invocation, node, said));
  return 0;
}

// "job NAME" means a PyTorchJob before a batch Job.
Result<ApiResource> FindJobKind(ResourceFinder& finder) {
  Result<ApiResource> training = finder.Find("pytorchjobs");
  return training ? training : finder.Find("jobs");
}

Result<int> Run(Invocation& invocation) {
  std::vector<std::string> words = invocation.arguments.positionals;
  ResourceFinder finder(invocation.session);
  if (words.size() == 1 && words[0].find('/') != std::string::npos) {
    const size_t slash = words[0].find('/');
    words = {words[0].substr(0, slash), words[0].substr(slash + 1)};
  }
  if (words.size() != 2) {
    return Error(Reason::kInvalid,
                 "name one pod, job or node: muster explain pod NAME, muster explain job NAME "
                 "(for fields: kubectl explain)");
  }
  ASSIGN_OR_RETURN(ApiResource resource, words[0] == "job" || words[0] == "jobs"
                                             ? FindJobKind(finder)
                                             : finder.Find(words[0]));
  ASSIGN_OR_RETURN(
      json::Value object,
      invocation.session.Get(
          {resource.resource, NamespaceFor(resource, invocation.session), words[1], ""}));
  if (resource.kind == "Pod") return ExplainPod(invocation, object);
  if (resource.kind == "Node") return ExplainNode(invocation, object);
  return ExplainJob(invocation, resource, object);
}

}  // namespace

Command ExplainCommand() {
  Command command;
  command.name = "explain";
  command.summary = "say why a pod or job waits or failed, or what a node has free";
  command.usage = "pod|job|node NAME | TYPE/NAME";
  command.examples = {{"muster explain pod web-0", "which rule fails on how many nodes"},
                      {"muster explain job digits", "a job with its gang"},
                      {"muster explain node gpu-1", "whether it takes pods, and what is free"}};
  command.most_words = 2;
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
