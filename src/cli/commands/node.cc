// muster node: nodes that are taken back, as spot nodes are, and those that may be.

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/duration_flag.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "cluster/interruption.h"
#include "json/write.h"
#include "schema/conditions.h"
#include "schema/preemptible_nodes.h"

namespace muster::cli {
namespace {

using json::Value;

Result<Value> FindNode(Invocation& run, const std::string& name) {
  Result<Value> node = run.session.Get({client::resources::kNodes, "", name, ""});
  if (node || node.error().reason() != Reason::kNotFound) return node;
  ASSIGN_OR_RETURN(const Value list, run.session.GetJson("/api/v1/nodes"));
  std::vector<std::string> names;
  for (const Value& each : list["items"].items()) names.push_back(each["metadata"]["name"].Str());
  constexpr size_t kNamed = 8;
  const bool all = names.size() <= kNamed;
  if (!all) names.resize(kNamed);
  return Error(Reason::kNotFound, "there is no node {:?}; the nodes are {}{}", name,
               Join(names, ", "), all ? "" : ", ...");
}

Status Annotate(Invocation& run, const Value& node, Value deadline) {
  const Value patch = json::Obj(
      {{"metadata",
        json::Obj({{"uid", node["metadata"]["uid"]},
                   {"annotations", json::Obj({{std::string(cluster::kInterruptionDeadline),
                                               std::move(deadline)}})}})}});
  net::Request request;
  request.method = "PATCH";
  request.target = "/api/v1/nodes/" + PercentEncode(node["metadata"]["name"].Str());
  request.headers.Set("Content-Type", "application/merge-patch+json");
  request.body = json::Write(patch);
  const Result<net::Response> answer = run.session.Raw(std::move(request));
  return answer ? Status::Ok() : answer.error();
}

Result<int> Interrupt(Invocation& run, const std::string& name) {
  const std::string text = run.arguments.Get("after");
  if (text.starts_with('-')) {
    return Error(Reason::kInvalid, "--after {:?}: expected how long the node stays, such as 30s",
                 text);
  }
  ASSIGN_OR_RETURN(const Duration after, ParseSpanFlag("after", text));
  ASSIGN_OR_RETURN(const Value node, FindNode(run, name));
  const Value& labels = node["metadata"]["labels"];
  // Whole seconds, rounded up: nobody has less than was said.
  const Time deadline = run.session.loop().Now() + after + milliseconds(999);
  if (const auto before = cluster::InterruptionDeadline(node);
      before && *before <= run.session.loop().Now()) {
    return Error(Reason::kInvalid,
                 "node {} was taken back at {}; to have it again: muster node restore {}", name,
                 FormatTime(*before), name);
  }
  RETURN_IF_ERROR(Annotate(run, node, FormatTime(deadline)));
  run.console.Print("node/{} is taken back at {}: its pods are told to end, and go elsewhere\n",
                    name, FormatTime(deadline));
  if (schema::PreemptibleLabel(labels).empty()) {
    run.console.Err(
        fmt::format("note: no label says that {} is a spot or preemptible node (e.g. "
                    "karpenter.sh/capacity-type=spot)\n",
                    name));
  }
  return 0;
}

Result<int> Restore(Invocation& run, const std::string& name) {
  ASSIGN_OR_RETURN(const Value node, FindNode(run, name));
  if (!node["metadata"]["annotations"].Has(cluster::kInterruptionDeadline))
    return Error(Reason::kInvalid, "node {} has no notice of an interruption", name);
  RETURN_IF_ERROR(Annotate(run, node, nullptr));
  run.console.Print("node/{} stays: pods may come to it again\n", name);
  return 0;
}

std::string StateOf(const Value& node, Time now) {
  if (const auto deadline = cluster::InterruptionDeadline(node)) {
    if (*deadline <= now) return "taken back";
    return fmt::format("taken back in {}", HumanDuration(*deadline - now));
  }
  if (!schema::ConditionHolds(node["status"]["conditions"], "Ready")) return "not ready";
  return node["spec"]["unschedulable"].AsBool() ? "cordoned" : "ready";
}

Result<int> List(Invocation& run) {
  ASSIGN_OR_RETURN(const Value list, run.session.GetJson("/api/v1/nodes"));
  std::vector<std::vector<std::string>> rows = {{"NODE", "TYPE", "GPUS", "PREEMPTIBLE", "STATE"}};
  for (const Value& node : list["items"].items()) {
    const Value& labels = node["metadata"]["labels"];
    const std::string label = schema::PreemptibleLabel(labels);
    rows.push_back({node["metadata"]["name"].Str(),
                    labels["node.kubernetes.io/instance-type"].Str("-"),
                    node["status"]["capacity"]["nvidia.com/gpu"].Str("-"),
                    label.empty() ? "-" : label, StateOf(node, run.session.loop().Now())});
  }
  run.console.Out(FormatColumns(rows));
  return 0;
}

Result<int> Run(Invocation& run) {
  const std::vector<std::string>& words = run.arguments.positionals;
  if (words[0] == "list") return List(run);
  return words[0] == "interrupt" ? Interrupt(run, words[1]) : Restore(run, words[1]);
}

}  // namespace

Command NodeCommand() {
  Command command;
  command.name = "node";
  command.summary = "take a node back as a cloud does with spot nodes, and list nodes";
  command.usage = "interrupt NODE [--after DURATION] | restore NODE | list";
  command.details =
      "`interrupt` gives a node the notice that spot and preemptible nodes get: no pod comes to "
      "it\n"
      "any more, those on it are told to end (SIGTERM, with no more grace than is left) and go\n"
      "elsewhere. When the time is over a simulated node is gone, and the pods of another are\n"
      "ended. `restore` takes the notice back, also after its time.";
  command.flags = {
      {"after", 0, "DURATION", "how long the node stays: 30s on GCP, 2m on AWS", "30s", {}}};
  command.examples = {{"muster node interrupt gpu-0 --after 2m", "as AWS does"},
                      {"muster node list", "which nodes are preemptible, and which are taken back"},
                      {"muster node restore gpu-0", "it stays"}};
  command.verbs = {{"interrupt", 1, 1, {"after"}}, {"restore", 1, 1}, {"list", 0, 0}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
