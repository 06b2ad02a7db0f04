// muster explain: why a pod or job does not run, and what would change that.

#include <algorithm>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/job_follower.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"
#include "cli/waiting.h"

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
      out += fmt::format("{}container {} ended with exit code {} ({})", out.empty() ? "" : "; ",
                         container["name"].AsString(), ended["exitCode"].AsInt(),
                         ended["reason"].AsString());
    }
  }
  return out;
}

std::string SentenceForPod(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (pod["metadata"].Has("deletionTimestamp")) return "is being deleted";
  if (phase == "Failed") return "failed: " + WhyPodFailed(pod);
  if (phase == "Succeeded") return "is done";
  const std::string why = WhyPodWaits(pod);
  if (!why.empty()) return "waits: " + why;
  return fmt::format("runs on node {}", pod["spec"]["nodeName"].AsString());
}

// The newest warning events of an object, without what was said already.
Status PrintWarnings(Invocation& invocation, const json::Value& object, const std::string& said) {
  client::ListOptions options;
  options.field_selector =
      "involvedObject.name=" + object["metadata"]["name"].Str() + ",type=Warning";
  ASSIGN_OR_RETURN(json::Value events,
                   invocation.session.List(client::resources::kEvents,
                                           object["metadata"]["namespace"].AsString(), options));
  for (const json::Value& event : events["items"].items()) {
    const std::string message = event["message"].Str();
    if (said.find(message) != std::string::npos) continue;
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
                 "name one pod or job: muster explain pod NAME, muster explain job NAME "
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
  return ExplainJob(invocation, resource, object);
}

}  // namespace

Command ExplainCommand() {
  Command command;
  command.name = "explain";
  command.summary = "say why a pod or job waits or failed, and what would change it";
  command.usage = "pod|job NAME | TYPE/NAME";
  command.examples = {{"muster explain pod web-0", "which rule fails on how many nodes"},
                      {"muster explain job digits", "a job with its gang"}};
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
