// muster status: the cluster on one page.

#include <map>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/ray_words.h"
#include "cli/resource_finder.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "cli/waiting.h"
#include "client/reconcile.h"
#include "cluster/quantity.h"
#include "schema/distributed_training.h"
#include "schema/pod_phase.h"
#include "schema/training_kinds.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxJobsShown = 20;

using Amounts = std::map<std::string, cluster::Quantity>;

void Add(Amounts& sum, const json::Value& amounts) {
  for (const auto& [name, value] : amounts.members()) {
    const Result<cluster::Quantity> amount = cluster::Quantity::FromJson(value);
    if (!amount) continue;
    const auto [entry, added] = sum.try_emplace(name, *amount);
    if (!added) entry->second = entry->second + *amount;
  }
}

bool IsOver(const json::Value& pod) {
  return schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

// A person reads "31.2 GiB", not "32767412Ki".
std::string Readable(const std::string& resource, const cluster::Quantity& amount) {
  if (resource != "memory") return amount.ToString();
  return fmt::format("{:.1f} GiB",
                     static_cast<double>(amount.Units()) / (1024.0 * 1024.0 * 1024.0));
}

void PrintNodes(Console& console, const json::Value& nodes, const json::Value& pods) {
  Amounts offered;
  Amounts used;
  size_t ready = 0;
  for (const json::Value& node : nodes["items"].items()) {
    if (ConditionHolds(node, "Ready")) ++ready;
    Add(offered, node["status"]["allocatable"]);
  }
  for (const json::Value& pod : pods["items"].items()) {
    if (IsOver(pod) || pod["spec"]["nodeName"].AsString().empty()) continue;
    for (const json::Value& container : pod["spec"]["containers"].items())
      Add(used, container["resources"]["requests"]);
  }
  console.Print("Nodes      {} of {} ready\n", ready, nodes["items"].size());
  for (const auto& [name, amount] : offered) {
    if (name == "pods" || name == "ephemeral-storage" || name.starts_with("hugepages-")) continue;
    const auto found = used.find(name);
    console.Print("{:<10} {} of {} requested\n",
                  name == "memory" || name == "cpu" ? name : name.substr(name.find('/') + 1),
                  found == used.end() ? "0" : Readable(name, found->second),
                  Readable(name, amount));
  }
}

void PrintPods(Console& console, const json::Value& pods) {
  std::map<std::string, size_t> phases;
  for (const json::Value& pod : pods["items"].items())
    ++phases[pod["status"]["phase"].Str("Pending")];
  std::string text;
  for (const auto& [phase, count] : phases)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, phase);
  console.Print("Pods       {}\n", text.empty() ? "none" : text);
}

std::string StateOf(const json::Value& job) {
  if (IsRayKind(job["kind"].AsString())) return RayStateOf(job);
  for (const char* type :
       {"Failed", "Succeeded", "Suspended", "Restarting", "Running", "Created"}) {
    if (ConditionHolds(job, type)) return type;
  }
  return "New";
}

void PrintJobs(Console& console, const json::Array& jobs, const json::Value& pods) {
  std::vector<std::vector<std::string>> rows = {{"JOB", "NAMESPACE", "STATE", "WHY"}};
  for (const json::Value& job : jobs) {
    const bool ray = IsRayKind(job["kind"].AsString());
    if (ray ? IsRayOver(job) : JobFinished(job)) continue;
    const std::string name = job["metadata"]["name"].Str();
    const std::string_view label = ray ? "ray.io/cluster" : "training.kubeflow.org/job-name";
    const std::string value = ray ? RayClusterOf(job) : name;
    std::map<std::string, json::Value> own;
    for (const json::Value& pod : pods["items"].items()) {
      const bool same = pod["metadata"]["namespace"] == job["metadata"]["namespace"] &&
                        pod["metadata"]["labels"][label].AsString() == value;
      if (same) own[pod["metadata"]["name"].Str()] = pod;
    }
    if (rows.size() > kMaxJobsShown) break;
    rows.push_back({name, job["metadata"]["namespace"].Str(), StateOf(job), WhyPodsWait(own)});
  }
  if (rows.size() > 1) console.Out("\n" + FormatColumns(rows));
}

// A line for each check of the server that fails.
void PrintHealth(Console& console, Session& session) {
  net::Request request;
  request.method = "GET";
  request.target = "/readyz?verbose";
  const Result<net::Response> answer = session.Send(std::move(request));
  if (!answer || answer->status == 200) return;
  for (const std::string_view line : Split(answer->body, '\n')) {
    if (line.starts_with("[-]"))
      console.Out(console.Paint(Colour::kRed, fmt::format("Not ready  {}", line.substr(3))) + "\n");
  }
}

// Training jobs of all kinds and what is Ray's; one that another became is told of as that.
json::Array WorkOf(Session& session) {
  std::vector<client::Resource> resources = {{"ml.example.com", "v1", "distributedtrainings"}};
  for (const schema::TrainingKind& kind : schema::TrainingKinds())
    resources.push_back({"kubeflow.org", "v1", std::string(kind.plural)});
  for (const char* plural : kRayPlurals) resources.push_back({"ray.io", "v1", plural});
  json::Array jobs;
  for (const client::Resource& resource : resources) {
    const Result<json::Value> list = session.List(resource, "");
    if (!list) continue;  // not served here
    const std::string_view list_kind = (*list)["kind"].AsString();
    const std::string kind(list_kind.substr(0, list_kind.rfind("List")));
    for (const json::Value& job : (*list)["items"].items()) {
      if (client::ControllerOf(job)["kind"].AsString() != schema::kDistributedTraining)
        jobs.push_back(job.Set("kind", kind));
    }
  }
  return jobs;
}

Result<int> Run(Invocation& invocation) {
  Session& session = invocation.session;
  Console& console = invocation.console;
  std::vector<Result<json::Value>> answers = session.GetJsons(
      {"/version", client::ApiClient::PathOf({client::resources::kNodes, "", "", ""}),
       client::ApiClient::PathOf({client::resources::kPods, "", "", ""})});
  for (const Result<json::Value>& answer : answers) {
    if (!answer) return Error(answer.error());
  }
  console.Print("Server     {} {}\n", session.server(), (*answers[0])["gitVersion"].AsString());
  PrintHealth(console, session);
  PrintNodes(console, *answers[1], *answers[2]);
  PrintPods(console, *answers[2]);
  PrintJobs(console, WorkOf(session), *answers[2]);
  return 0;
}

}  // namespace

Command StatusCommand() {
  Command command;
  command.name = "status";
  command.summary = "the cluster on one page";
  command.usage = "[flags]";
  command.details =
      "Nodes, what they offer and what is requested of it, pods, and jobs that are not over with "
      "what they\n"
      "wait for.";
  command.examples = {{"muster status", "the cluster of the current context"}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
