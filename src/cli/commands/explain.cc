// muster explain: why a pod, gang or job does not run, and what would change that; what a node has.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/duration_flag.h"
#include "cli/explanation.h"
#include "cli/printable.h"
#include "cli/ray_words.h"
#include "cli/resource_arguments.h"
#include "cli/training_faults.h"
#include "client/reconcile.h"
#include "json/write.h"
#include "schema/distributed_training.h"
#include "schema/training_kinds.h"

namespace muster::cli {
namespace {

// What pods are made for.
bool IsWorkload(const ApiResource& resource) {
  static const std::set<std::string> kinds = {"Job",
                                              "JobSet",
                                              "Deployment",
                                              "ReplicaSet",
                                              "StatefulSet",
                                              "DaemonSet",
                                              std::string(schema::kDistributedTraining)};
  return kinds.contains(resource.kind) || IsRayKind(resource.kind) ||
         schema::FindTrainingKind(resource.kind) != nullptr;
}

// What a word may mean, in the order in which a name is looked for. Others mean what they say.
std::vector<std::string> MeaningsOf(const std::string& word) {
  static const std::map<std::string, std::vector<std::string>> meanings = {
      {"gang", {"podgroups.scheduling.volcano.sh", "podgroups.scheduling.x-k8s.io"}}};
  const std::string lower = ToLower(word);
  if (lower == "job" || lower == "jobs") {
    std::vector<std::string> jobs = {"distributedtrainings.ml.example.com"};
    for (const schema::TrainingKind& kind : schema::TrainingKinds())
      jobs.push_back(fmt::format("{}.kubeflow.org", kind.plural));
    for (const char* other : {"jobs.batch", "jobsets.jobset.x-k8s.io", "rayjobs.ray.io"})
      jobs.emplace_back(other);
    return jobs;
  }
  if (lower == "gang" || lower == "gangs" || lower == "podgroup" || lower == "podgroups")
    return meanings.at("gang");
  return {word};
}

struct Found {
  ApiResource resource;
  json::Value object;
};

// The namespace and the name that "NS/NAME" or "NAME" stands for.
client::Target TargetOf(const ApiResource& resource, const Session& session,
                        const std::string& name) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos && resource.namespaced)
    return {resource.resource, name.substr(0, slash), name.substr(slash + 1), ""};
  return {resource.resource, NamespaceFor(resource, session), name, ""};
}

// A job that another one of the same name became is explained with that.
bool IsPartOf(const Found& one, const std::vector<Found>& found) {
  const std::string owner = client::ControllerOf(one.object)["uid"].Str();
  return std::ranges::any_of(found, [&owner](const Found& other) {
    return !owner.empty() && other.object["metadata"]["uid"].AsString() == owner;
  });
}

// All that the word and the name mean; at least one.
Result<std::vector<Found>> FindObjects(Session& session, const std::string& word,
                                       const std::string& name) {
  ResourceFinder finder(session);
  const std::vector<std::string> meanings = MeaningsOf(word);
  std::vector<Found> found;
  std::vector<std::string> tried;
  Status fault = Status::Ok();  // of the last that could not be asked for
  client::Target target;
  for (const std::string& meaning : meanings) {
    const Result<ApiResource> resource = finder.Find(meaning);
    if (!resource) {
      if (meanings.size() == 1) return Error(resource.error());
      continue;  // this server does not have it
    }
    target = TargetOf(*resource, session, name);
    Result<json::Value> object = session.Get(target);
    if (object) {
      Found one{*resource, std::move(*object)};
      if (!IsPartOf(one, found)) found.push_back(std::move(one));
    } else if (meanings.size() == 1 || object.error().reason() != Reason::kNotFound) {
      fault = object.error();
    }
    tried.push_back(resource->QualifiedSingular());
  }
  if (!found.empty()) return found;
  if (!fault.ok()) return Error(fault);
  if (tried.empty())
    return Error(Reason::kInvalid, "the server has none of {}", Join(meanings, ", "));
  return Error(Reason::kNotFound, "no {} \"{}\" in namespace {}", Join(tried, ", "), target.name,
               target.ns);
}

Result<Explanation> Explain(Session& session, const ApiResource& resource,
                            const json::Value& object, Duration silence) {
  if (resource.kind == "Pod") return ExplainPod(session, object);
  if (resource.kind == "Node") return ExplainNode(session, object);
  if (resource.kind == "PodGroup") return ExplainGang(session, object);
  if (IsWorkload(resource)) return ExplainJob(session, resource, object, silence);
  return ExplainOther(session, resource, object);
}

// "pod NAME", "pod/NAME", "gang NS/NAME".
Result<Explanation> ExplainOne(Session& session, std::vector<std::string> words, Duration silence) {
  if (words.size() == 1 && words[0].find('/') != std::string::npos) {
    const size_t slash = words[0].find('/');
    words = {words[0].substr(0, slash), words[0].substr(slash + 1)};
  }
  if (words.size() != 2) {
    return Error(Reason::kInvalid,
                 "name one pod, gang, job or node: muster explain pod NAME, muster explain job "
                 "NAME (for fields: kubectl explain)");
  }
  ASSIGN_OR_RETURN(const std::vector<Found> found, FindObjects(session, words[0], words[1]));
  ASSIGN_OR_RETURN(Explanation out, Explain(session, found[0].resource, found[0].object, silence));
  for (size_t i = 1; i < found.size(); ++i) {
    out.lines.push_back(fmt::format("of that name there is another one: muster explain {} {}",
                                    found[i].resource.QualifiedSingular(), words[1]));
  }
  return out;
}

Result<int> Run(Invocation& invocation) {
  Duration silence = kSilence;
  if (const std::string text = invocation.arguments.Get("silence"); !text.empty()) {
    ASSIGN_OR_RETURN(silence, ParseSpanFlag("silence", text));
  }
  ASSIGN_OR_RETURN(const Explanation explanation,
                   ExplainOne(invocation.session, invocation.arguments.positionals, silence));
  if (invocation.arguments.Get("output") == "json") {
    invocation.console.Out(json::WritePretty(explanation.json) + "\n");
    return 0;
  }
  invocation.console.Print("{}\n", PrintableLines(explanation.sentence));
  for (const std::string& line : explanation.lines)
    invocation.console.Print("  {}\n", PrintableLines(line));
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
  command.flags = {{"output", 'o', "FORMAT", "json", "", {"json"}},
                   {"silence",
                    0,
                    "DURATION",
                    "how long ranks must have logged nothing to be suspected to hang (5m)",
                    "",
                    {}}};
  command.examples = {
      {"muster explain pod web-0", "which rule fails on how many nodes"},
      {"muster explain job digits", "a PyTorchJob, TFJob, RayJob, Job or JobSet, with its gang"},
      {"muster explain gang team/digits", "a gang, by its PodGroup"},
      {"muster explain node gpu-1 -o json", "whose its GPUs are, and what is free"}};
  command.most_words = 2;
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
