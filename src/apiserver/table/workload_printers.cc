// Tables of apps/v1 and batch/v1. Logic: k8s.io/kubernetes pkg/printers/internalversion.

#include <optional>
#include <vector>

#include <fmt/core.h>

#include "apiserver/table/printers.h"
#include "base/strings.h"
#include "schema/conditions.h"
#include "schema/label_selector.h"

namespace muster::apiserver {
namespace {

std::string Age(const json::Value& object, Time now) {
  return AgeCell(object["metadata"]["creationTimestamp"], now);
}

// One member of each container of a template: "name" or "image".
std::string Containers(const json::Value& pod_template, const char* member) {
  std::vector<std::string> texts;
  for (const json::Value& container : pod_template["spec"]["containers"].items())
    texts.push_back(container[member].Str());
  return Join(texts, ",");
}

// The wide columns.
void AddPodCells(const json::Value& pod_template, json::Array& cells) {
  for (const char* member : {"name", "image"}) cells.push_back(Containers(pod_template, member));
}

std::string ReadyOf(const json::Value& object) {
  return fmt::format("{}/{}", object["status"]["readyReplicas"].AsInt(),
                     object["spec"]["replicas"].AsInt());
}

std::string JobStatusText(const json::Value& job) {
  const json::Value& conditions = job["status"]["conditions"];
  for (const char* type : {"Complete", "Failed"}) {
    if (schema::ConditionHolds(conditions, type)) return type;
  }
  if (job["metadata"].Has("deletionTimestamp")) return "Terminating";
  for (const char* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (schema::ConditionHolds(conditions, type)) return type;
  }
  return "Running";
}

// "1/3"; without a number of completions one success is enough.
std::string CompletionsText(const json::Value& job) {
  const int64_t succeeded = job["status"]["succeeded"].AsInt();
  const json::Value& completions = job["spec"]["completions"];
  if (!completions.IsNull()) return fmt::format("{}/{}", succeeded, completions.AsInt());
  const int64_t parallelism = job["spec"]["parallelism"].AsInt();
  return parallelism > 1 ? fmt::format("{}/1 of {}", succeeded, parallelism)
                         : fmt::format("{}/1", succeeded);
}

std::string DurationText(const json::Value& status, Time now) {
  const std::optional<Time> start = ParseTime(status["startTime"].AsString());
  if (!start) return "";
  return HumanDuration(ParseTime(status["completionTime"].AsString()).value_or(now) - *start);
}

// "statefulset.apps/web".
std::string ControllerOf(const json::Value& object) {
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].AsBool()) continue;
    const std::string_view version = owner["apiVersion"].AsString();
    const size_t slash = version.find('/');
    std::string kind = owner["kind"].Str();
    if (slash != std::string_view::npos) kind += fmt::format(".{}", version.substr(0, slash));
    return fmt::format("{}/{}", ToLower(kind), owner["name"].AsString());
  }
  return "<none>";
}

}  // namespace

std::string SelectorText(const json::Value& selector) {
  const Result<schema::LabelSelector> parsed = schema::LabelSelector::FromJson(selector);
  return parsed ? OrNone(parsed->ToString()) : "<error>";
}

json::Array DeploymentCells(const json::Value& deployment, Time now) {
  const json::Value& spec = deployment["spec"];
  const json::Value& status = deployment["status"];
  json::Array cells = {deployment["metadata"]["name"], ReadyOf(deployment),
                       status["updatedReplicas"].AsInt(), status["availableReplicas"].AsInt(),
                       Age(deployment, now)};
  AddPodCells(spec["template"], cells);
  cells.push_back(SelectorText(spec["selector"]));
  return cells;
}

json::Array ReplicaSetCells(const json::Value& replica_set, Time now) {
  const json::Value& spec = replica_set["spec"];
  const json::Value& status = replica_set["status"];
  json::Array cells = {replica_set["metadata"]["name"], spec["replicas"].AsInt(),
                       status["replicas"].AsInt(), status["readyReplicas"].AsInt(),
                       Age(replica_set, now)};
  AddPodCells(spec["template"], cells);
  cells.push_back(SelectorText(spec["selector"]));
  return cells;
}

json::Array StatefulSetCells(const json::Value& stateful_set, Time now) {
  json::Array cells = {stateful_set["metadata"]["name"], ReadyOf(stateful_set),
                       Age(stateful_set, now)};
  AddPodCells(stateful_set["spec"]["template"], cells);
  return cells;
}

json::Array DaemonSetCells(const json::Value& daemon_set, Time now) {
  const json::Value& spec = daemon_set["spec"];
  const json::Value& status = daemon_set["status"];
  json::Array cells = {daemon_set["metadata"]["name"]};
  for (const char* key : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                          "updatedNumberScheduled", "numberAvailable"}) {
    cells.push_back(status[key].AsInt());
  }
  cells.push_back(FormatLabels(spec["template"]["spec"]["nodeSelector"]));
  cells.push_back(Age(daemon_set, now));
  AddPodCells(spec["template"], cells);
  cells.push_back(SelectorText(spec["selector"]));
  return cells;
}

json::Array ControllerRevisionCells(const json::Value& revision, Time now) {
  return {revision["metadata"]["name"], ControllerOf(revision), revision["revision"].AsInt(),
          Age(revision, now)};
}

json::Array JobCells(const json::Value& job, Time now) {
  json::Array cells = {job["metadata"]["name"], JobStatusText(job), CompletionsText(job),
                       DurationText(job["status"], now), Age(job, now)};
  AddPodCells(job["spec"]["template"], cells);
  cells.push_back(SelectorText(job["spec"]["selector"]));
  return cells;
}

json::Array CronJobCells(const json::Value& cron_job, Time now) {
  const json::Value& spec = cron_job["spec"];
  const json::Value& last = cron_job["status"]["lastScheduleTime"];
  const json::Value& job = spec["jobTemplate"]["spec"];
  json::Array cells = {cron_job["metadata"]["name"],
                       spec["schedule"].Str(),
                       OrNone(spec["timeZone"].AsString()),
                       spec["suspend"].AsBool() ? "True" : "False",
                       static_cast<int64_t>(cron_job["status"]["active"].size()),
                       last.IsNull() ? "<none>" : AgeCell(last, now),
                       Age(cron_job, now)};
  AddPodCells(job["template"], cells);
  cells.push_back(SelectorText(job["selector"]));
  return cells;
}

}  // namespace muster::apiserver
