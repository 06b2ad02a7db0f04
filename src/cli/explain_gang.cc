// What keeps a gang, or a job with its gang.

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/explanation.h"
#include "cli/job_follower.h"
#include "cli/ray_words.h"
#include "cli/waiting.h"
#include "schema/label_selector.h"
#include "schema/pod_phase.h"

namespace muster::cli {
namespace {

std::string SentenceForJobSet(const json::Value& job_set) {
  int64_t wanted = 0;
  for (const json::Value& replicated_job : job_set["spec"]["replicatedJobs"].items())
    wanted += replicated_job["replicas"].AsInt(1);
  std::vector<std::string> counts;
  for (const char* key : {"active", "ready", "succeeded", "failed", "suspended"}) {
    int64_t jobs = 0;
    for (const json::Value& state : job_set["status"]["replicatedJobsStatus"].items())
      jobs += state[key].AsInt();
    if (jobs > 0) counts.push_back(fmt::format("{} {}", jobs, key));
  }
  return fmt::format("of {} Job{}: {}", wanted, wanted == 1 ? "" : "s",
                     counts.empty() ? "none is active yet" : Join(counts, ", "));
}

// Of a job that says it runs: a pod that waits for a node or a container that crashes counts as
// active, too.
std::string HowJobRuns(const json::Value& pods) {
  int64_t live = 0, running = 0;
  bool any_ran = false;
  for (const json::Value& pod : pods["items"].items()) {
    const std::string_view phase = pod["status"]["phase"].AsString();
    const bool is_over = schema::IsFinalPhase(phase);
    any_ran = any_ran || is_over || phase == "Running";
    if (is_over || pod["metadata"].Has("deletionTimestamp")) continue;
    ++live;
    running += PodRuns(pod) ? 1 : 0;
  }
  if (running == live) return "runs";
  if (running > 0) return fmt::format("has {} of {} pods running", running, live);
  if (!any_ran) return "has not started";
  return fmt::format("does not run at the moment: {}",
                     live == 1 ? "its pod waits" : fmt::format("its {} pods wait", live));
}

std::string SentenceForJob(const std::string& kind, const json::Value& job,
                           const json::Value& pods) {
  if (IsRayKind(kind)) return SentenceForRay(job);
  for (const char* type :
       {"Failed", "Succeeded", "Complete", "Completed", "Suspended", "Restarting"}) {
    if (!ConditionHolds(job, type)) continue;
    const json::Value& condition = FindCondition(job, type);
    return fmt::format("{}: {}", ToLower(type), condition["message"].AsString());
  }
  const json::Value& status = job["status"];
  if (kind == "JobSet") return SentenceForJobSet(job);
  if (kind == "DaemonSet") {
    return fmt::format("has {} of {} pods ready", status["numberReady"].AsInt(),
                       status["desiredNumberScheduled"].AsInt());
  }
  // Workloads of replicas have no such conditions.
  if (const json::Value& replicas = job["spec"]["replicas"]; !replicas.IsNull()) {
    return fmt::format("has {} of {} pods ready", status["readyReplicas"].AsInt(),
                       replicas.AsInt());
  }
  const bool runs = ConditionHolds(job, "Running") || status["active"].AsInt() > 0;
  return runs ? HowJobRuns(pods) : "has not started";
}

// Of the pods that it has made; "" if that is not known.
std::string SelectorOf(const ApiResource& resource, const json::Value& job) {
  if (IsRayKind(resource.kind)) {
    const std::string cluster = RayClusterOf(job);
    return cluster.empty() ? "" : "ray.io/cluster=" + cluster;
  }
  if (resource.kind == "JobSet")
    return "jobset.sigs.k8s.io/jobset-name=" + job["metadata"]["name"].Str();
  if (resource.resource.group != "apps") return PodSelectorOf(resource, job);
  const auto selector = schema::LabelSelector::FromJson(job["spec"]["selector"]);
  return selector.has_value() && !selector->selects_nothing() ? selector->ToString() : "";
}

// Of a workload whose pods cannot be made, or do not come up in time.
void AddFailures(const json::Value& job, std::string& said, Explanation& out) {
  const auto tell = [&](const json::Value& condition, const char* key) {
    const std::string message = condition["message"].Str();
    out.lines.push_back(fmt::format("{}: {}: {}", condition["type"].AsString(),
                                    condition["reason"].AsString(), message));
    out.json = out.json.Set(
        key, json::Obj({{"reason", condition["reason"].AsString()}, {"message", message}}));
    said += "\n" + message;
  };
  if (ConditionHolds(job, "ReplicaFailure"))
    tell(FindCondition(job, "ReplicaFailure"), "replicaFailure");
  if (const json::Value& progress = FindCondition(job, "Progressing");
      progress["status"].AsString() == "False")
    tell(progress, "noProgress");
}

// That of Volcano or that of scheduler-plugins; null if there is neither.
Result<json::Value> FindGroup(Session& session, const std::string& ns, const std::string& name) {
  for (const client::Resource& resource : scheduler::kGroupResources) {
    Result<json::Value> group = session.Get({resource, ns, name, ""});
    if (group || group.error().reason() != Reason::kNotFound) return group;
  }
  return json::Value();
}

// "" if the scheduler does not say that it waits.
std::string WhyGangWaits(const json::Value& group) {
  return ConditionHolds(group, "Unschedulable")
             ? FindCondition(group, "Unschedulable")["message"].Str()
             : "";
}

std::string SentenceForGang(const json::Value& group) {
  const json::Value& status = group["status"];
  if (const std::string why = WhyGangWaits(group); !why.empty())
    return fmt::format("waits as a gang of {}: {}", group["spec"]["minMember"].AsInt(1), why);
  return fmt::format("is {}: {} running, {} succeeded, {} failed, of at least {}",
                     status["phase"].Str("not looked at by the scheduler yet"),
                     status["running"].AsInt(), status["succeeded"].AsInt(),
                     status["failed"].AsInt(), group["spec"]["minMember"].AsInt(1));
}

// Those that say they belong to the group.
Result<json::Value> PodsOfGroup(Session& session, const std::string& ns, const std::string& name) {
  ASSIGN_OR_RETURN(json::Value pods, session.List(client::resources::kPods, ns));
  json::Array members;
  for (const json::Value& pod : pods["items"].items()) {
    if (cluster::GroupOf(pod["metadata"]) == name) members.push_back(pod);
  }
  return pods.Set("items", json::Value(std::move(members)));
}

bool SomeWait(const json::Value& pods) {
  for (const json::Value& pod : pods["items"].items()) {
    if (pod["spec"]["nodeName"].AsString().empty() &&
        !schema::IsFinalPhase(pod["status"]["phase"].AsString()))
      return true;
  }
  return false;
}

}  // namespace

Result<Explanation> ExplainGang(Session& session, const json::Value& group) {
  const std::string ns = group["metadata"]["namespace"].Str();
  const std::string name = group["metadata"]["name"].Str();
  Explanation out;
  out.sentence = fmt::format("PodGroup {} {}", name, SentenceForGang(group));
  out.json = json::Obj({{"kind", "PodGroup"},
                        {"namespace", ns},
                        {"name", name},
                        {"state", group["status"]["phase"].AsString()},
                        {"message", SentenceForGang(group)}});
  ASSIGN_OR_RETURN(const json::Value pods, PodsOfGroup(session, ns, name));
  if (SomeWait(pods)) AddScheduling(session, {true, {ns, name}}, out);
  AddPods(pods, out.sentence, out);
  RETURN_IF_ERROR(AddWarnings(session, group, out.sentence, out));
  return out;
}

Result<Explanation> ExplainJob(Session& session, const ApiResource& resource,
                               const json::Value& job, Duration silence) {
  const std::string name = job["metadata"]["name"].Str();
  const std::string ns = job["metadata"]["namespace"].Str();
  client::ListOptions options;
  options.label_selector = SelectorOf(resource, job);
  json::Value pods;
  if (!options.label_selector.empty()) {
    ASSIGN_OR_RETURN(pods, session.List(client::resources::kPods, ns, options));
  }
  const std::string sentence = SentenceForJob(resource.kind, job, pods);
  Explanation out;
  out.sentence = fmt::format("{} {} {}", resource.kind, name, sentence);
  out.json = json::Obj(
      {{"kind", resource.kind}, {"namespace", ns}, {"name", name}, {"message", sentence}});
  if (!JobFinished(job)) AddQueue(session, job, out);
  std::string said = out.sentence;
  AddFailures(job, said, out);
  if (!JobFinished(job)) {
    const std::string gang =
        IsRayKind(resource.kind) ? fmt::format("ray-{}-pg", RayClusterOf(job)) : name;
    ASSIGN_OR_RETURN(const json::Value group, FindGroup(session, ns, gang));
    if (const std::string why = WhyGangWaits(group); !why.empty()) {
      out.lines.push_back("It " + SentenceForGang(group));
      out.json = out.json.Set("gang", SentenceForGang(group));
      said += why;
      Explanation detail;
      detail.sentence = said;
      detail.json = out.json;
      AddScheduling(session, {true, {ns, gang}}, detail);
      out.json = detail.json;
      for (const std::string& line : detail.lines) out.lines.push_back("  " + line);
    }
  }
  AddPods(pods, said, out);
  if (resource.resource.group != "apps") AddTrainingFaults(session, job, pods, silence, out);
  RETURN_IF_ERROR(AddWarnings(session, job, said, out));
  return out;
}

}  // namespace muster::cli
