// muster explain: why a pod, gang or job does not run, and what would change that; what a node has.

#include <set>
#include <string>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/explanation.h"
#include "cli/resource_arguments.h"
#include "json/write.h"

namespace muster::cli {
namespace {

// What pods are made for.
bool IsWorkload(const ApiResource& resource) {
  static const std::set<std::string> kinds = {"PyTorchJob", "Job",         "JobSet",   "Deployment",
                                              "ReplicaSet", "StatefulSet", "DaemonSet"};
  return kinds.contains(resource.kind);
}

// "job NAME" means a PyTorchJob before a batch Job.
Result<ApiResource> FindJobKind(ResourceFinder& finder) {
  Result<ApiResource> training = finder.Find("pytorchjobs");
  return training ? training : finder.Find("jobs");
}

Result<ApiResource> FindKind(ResourceFinder& finder, const std::string& word) {
  if (word == "job" || word == "jobs") return FindJobKind(finder);
  return finder.Find(word == "gang" || word == "gangs" ? "podgroups" : word);
}

// "pod NAME", "pod/NAME", "gang NS/NAME".
Result<Explanation> ExplainOne(Session& session, std::vector<std::string> words) {
  if (words.size() == 1 && words[0].find('/') != std::string::npos) {
    const size_t slash = words[0].find('/');
    words = {words[0].substr(0, slash), words[0].substr(slash + 1)};
  }
  if (words.size() != 2) {
    return Error(Reason::kInvalid,
                 "name one pod, gang, job or node: muster explain pod NAME, muster explain job "
                 "NAME (for fields: kubectl explain)");
  }
  ResourceFinder finder(session);
  ASSIGN_OR_RETURN(const ApiResource resource, FindKind(finder, words[0]));
  std::string ns = NamespaceFor(resource, session), name = words[1];
  if (const size_t slash = name.find('/'); slash != std::string::npos && resource.namespaced) {
    ns = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  ASSIGN_OR_RETURN(const json::Value object, session.Get({resource.resource, ns, name, ""}));
  if (resource.kind == "Pod") return ExplainPod(session, object);
  if (resource.kind == "Node") return ExplainNode(session, object);
  if (resource.kind == "PodGroup") return ExplainGang(session, object);
  if (IsWorkload(resource)) return ExplainJob(session, resource, object);
  return ExplainOther(session, resource, object);
}

Result<int> Run(Invocation& invocation) {
  ASSIGN_OR_RETURN(const Explanation explanation,
                   ExplainOne(invocation.session, invocation.arguments.positionals));
  if (invocation.arguments.Get("output") == "json") {
    invocation.console.Out(json::WritePretty(explanation.json) + "\n");
    return 0;
  }
  invocation.console.Print("{}\n", explanation.sentence);
  for (const std::string& line : explanation.lines) invocation.console.Print("  {}\n", line);
  return 0;
}

}  // namespace

Command ExplainCommand() {
  Command command;
  command.name = "explain";
  command.summary = "say why a pod or job waits or failed, or what a node has free";
  command.usage = "pod|gang|job|node NAME | TYPE/NAME [flags]";
  command.details =
      "One sentence, then what would change it: which nodes fail which rule, whose end would let "
      "it\n"
      "run, which nodes would have to be added. What waits is planned on a copy of the cluster, "
      "so\n"
      "reading nodes and pods is all that it needs. Fields of -o json: docs/explain.md.";
  command.flags = {{"output", 'o', "FORMAT", "json", "", {"json"}}};
  command.examples = {
      {"muster explain pod web-0", "which rule fails on how many nodes"},
      {"muster explain job digits", "a job with its gang"},
      {"muster explain gang team/digits", "a gang, by its PodGroup"},
      {"muster explain node gpu-1 -o json", "whose its GPUs are, and what is free"}};
  command.most_words = 2;
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
