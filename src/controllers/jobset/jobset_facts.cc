#include "controllers/jobset/jobset_facts.h"

#include <algorithm>

#include <fmt/core.h>

namespace muster::controllers {
namespace {

ReplicatedJob ToReplicatedJob(const json::Value& from) {
  ReplicatedJob out;
  out.name = from["name"].Str();
  out.group = from["groupName"].Str("default");
  out.replicas = from["replicas"].AsInt(1);
  out.job_template = from["template"];
  for (const json::Value& dependency : from["dependsOn"].items())
    out.depends_on.push_back(
        {dependency["name"].Str(), dependency["status"].AsString() == "Complete"});
  return out;
}

}  // namespace

JobSetFacts::JobSetFacts(const json::Value& job_set) : object(job_set) {
  const json::Value& metadata = job_set["metadata"];
  const json::Value& spec = job_set["spec"];
  const json::Value& status = job_set["status"];
  ns = metadata["namespace"].Str();
  name = metadata["name"].Str();
  uid = metadata["uid"].Str();
  for (const json::Value& item : spec["replicatedJobs"].items())
    replicated_jobs.push_back(ToReplicatedJob(item));
  restarts = status["restarts"].AsInt();
  restarts_towards_max = status["restartsCountTowardsMax"].AsInt();
  suspended = spec["suspend"].AsBool();
  in_order = spec["startupPolicy"]["startupPolicyOrder"].AsString() == "InOrder";
  gang = metadata["annotations"][kGangAnnotation].AsString() == "true";
  blocking_recreate =
      gang || spec["failurePolicy"]["restartStrategy"].AsString() == "BlockingRecreate";
  const json::Value& network = spec["network"];
  dns_hostnames = network["enableDNSHostnames"].AsBool(true);
  publish_not_ready = network["publishNotReadyAddresses"].AsBool(true);
  subdomain = network["subdomain"].Str();
  if (subdomain.empty()) subdomain = name;
  const json::Value& pod = spec["coordinator"];
  if (!pod.IsNull()) {
    coordinator = fmt::format("{}-{}-{}-{}.{}", name, pod["replicatedJob"].AsString(),
                              pod["jobIndex"].AsInt(), pod["podIndex"].AsInt(), subdomain);
  }
}

std::string JobSetFacts::JobName(const ReplicatedJob& replicated_job, int64_t index) const {
  return fmt::format("{}-{}-{}", name, replicated_job.name, index);
}

bool IsJobSetManagedElsewhere(const json::Value& job_set) {
  const json::Value& manager = job_set["spec"]["managedBy"];
  return !manager.IsNull() && manager.AsString() != kJobSetControllerName;
}

int64_t PodsAtATime(const json::Value& job_spec) {
  const int64_t parallelism = job_spec["parallelism"].AsInt(1);
  return std::min(parallelism, job_spec["completions"].AsInt(parallelism));
}

}  // namespace muster::controllers
