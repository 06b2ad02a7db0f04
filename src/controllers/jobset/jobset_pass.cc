#include "controllers/jobset/jobset_pass.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/jobset/jobset_conditions.h"
#include "controllers/jobset/jobset_facts.h"
#include "controllers/jobset/jobset_jobs.h"
#include "controllers/jobset/jobset_policies.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

struct Counts {
  int64_t ready = 0, succeeded = 0, failed = 0, active = 0, suspended = 0;

  // Also those that have ended.
  bool AllStarted(const ReplicatedJob& replicated_job) const {
    return replicated_job.replicas == ready + succeeded + failed;
  }
};

bool IsGoing(const json::Value& object) { return object["metadata"].Has("deletionTimestamp"); }
bool IsSuspended(const json::Value& job) { return job["spec"]["suspend"].AsBool(); }

class Pass {
 public:
  Pass(const JobSetInput& input, Time now, client::Reconciled& out)
      : input_(input),
        facts_(input.job_set),
        now_(now),
        out_(out),
        status_(input.job_set["status"]),
        conditions_(status_["conditions"], now) {}

  void Run() {
    SortJobs();
    CountStates();
    if (conditions_.Holds("Completed") || conditions_.Holds("Failed")) {
      DeleteAll(active_);
      DeleteGang();
      Expire();
    } else {
      DeleteAll(former_);
      if (!failed_.empty()) {
        ApplyFailurePolicy();
      } else if (!succeeded_.empty() && HasSucceededBy(facts_.object["spec"], succeeded_)) {
        Complete();
      } else {
        GoOn();
      }
    }
    Write();
  }

 private:
  void SortJobs() {
    for (const json::Value& job : input_.jobs) {
      names_.insert(job["metadata"]["name"].Str());
      const auto attempt =
          ParseInt(job["metadata"]["labels"][kRestartAttemptLabel].AsString()).value_or(-1);
      const json::Value& conditions = job["status"]["conditions"];
      if (attempt < facts_.restarts) {
        former_.push_back(job);
      } else if (schema::ConditionHolds(conditions, "Complete")) {
        succeeded_.push_back(job);
      } else if (schema::ConditionHolds(conditions, "Failed")) {
        failed_.push_back(job);
      } else {
        active_.push_back(job);
      }
    }
  }

  Counts& CountsOf(const json::Value& job) {
    return counts_[job["metadata"]["labels"][kReplicatedJobNameLabel].Str()];
  }

  void CountStates() {
    for (const json::Value& job : active_) {
      const json::Value& status = job["status"];
      Counts& counts = CountsOf(job);
      const int64_t pods = status["ready"].AsInt() + status["succeeded"].AsInt();
      if (pods >= PodsAtATime(job["spec"])) ++counts.ready;
      if (status["active"].AsInt() > 0) ++counts.active;
      if (IsSuspended(job)) ++counts.suspended;
    }
    for (const json::Value& job : succeeded_) ++CountsOf(job).succeeded;
    for (const json::Value& job : failed_) ++CountsOf(job).failed;
  }

  void DeleteAll(const std::vector<json::Value>& jobs) {
    for (const json::Value& job : jobs) {
      if (IsGoing(job)) continue;
      client::DeleteOptions options;
      options.propagation_policy = "Foreground";
      options.precondition_uid = job["metadata"]["uid"].Str();
      changes_.Delete(TargetOf(job), std::move(options));
    }
  }

  void DeleteGang() {
    const json::Value& group = input_.pod_group;
    if (client::ControllerOf(group)["uid"].AsString() != facts_.uid || IsGoing(group)) return;
    client::DeleteOptions options;
    options.precondition_uid = group["metadata"]["uid"].Str();
    changes_.Delete({resources::kPodGroups, facts_.ns, facts_.name, ""}, std::move(options));
  }

  void Expire() {
    const json::Value& ttl = facts_.object["spec"]["ttlSecondsAfterFinished"];
    if (ttl.IsNull()) return;
    const Time ended = conditions_.Holds("Completed") ? conditions_.Since("Completed")
                                                      : conditions_.Since("Failed");
    const Time at = ended + seconds(ttl.AsInt());
    if (at > now_) return out_.LookAgainAt(at);
    client::DeleteOptions options;
    options.propagation_policy = "Foreground";
    options.precondition_uid = facts_.uid;
    // Its time to live may have become longer.
    options.precondition_resource_version = facts_.object["metadata"]["resourceVersion"].Str();
    changes_.Delete({kJobSetResource, facts_.ns, facts_.name, ""}, std::move(options));
  }

  void ApplyFailurePolicy() {
    const json::Value& policy = facts_.object["spec"]["failurePolicy"];
    const FailureVerdict verdict = JudgeFailedJobs(policy, failed_);
    const std::string who = fmt::format(" (first failed job: {})", verdict.job);
    switch (verdict.action) {
      case FailureAction::kFailWithoutPolicy:
        return Fail("FailedJobs", "jobset failed due to one or more job failures" + who);
      case FailureAction::kFail:
        return Fail("FailJobSetFailurePolicyAction",
                    "applying FailJobSet failure policy action" + who);
      case FailureAction::kRestart:
        if (facts_.restarts_towards_max >= policy["maxRestarts"].AsInt())
          return Fail("ReachedMaxRestarts",
                      "jobset failed due to reaching max number of restarts" + who);
        status_ =
            std::move(status_).Set("restartsCountTowardsMax", facts_.restarts_towards_max + 1);
        return Restart("RestartJobSet", who);
      case FailureAction::kRestartUncounted:
        return Restart("RestartJobSetAndIgnoreMaxRestarts", who);
    }
  }

  void Fail(std::string reason, std::string message) {
    conditions_.Ensure("Failed", true, reason, message);
    status_ = std::move(status_).Set("terminalState", "Failed");
    Tell(client::EventType::kWarning, std::move(reason), std::move(message));
  }

  void Restart(std::string_view action, const std::string& who) {
    status_ = std::move(status_).Set("restarts", facts_.restarts + 1);
    Tell(client::EventType::kWarning, fmt::format("{}FailurePolicyAction", action),
         fmt::format("applying {} failure policy action{}", action, who));
  }

  void Complete() {
    Ensure("Completed", true, "AllJobsCompleted", "jobset completed successfully");
    status_ = std::move(status_).Set("terminalState", "Completed");
  }

  void GoOn() {
    if (facts_.dns_hostnames) EnsureService();
    if (facts_.gang) EnsureGang();
    Start();
    if (facts_.suspended) {
      for (const json::Value& job : active_) {
        if (!IsSuspended(job)) Suspend(job);
      }
      Ensure("Suspended", true, "SuspendedJobs", "jobset is suspended");
    } else {
      Resume();
    }
  }

  // Pods that succeeded count for the gang as long as they are there. When they are evicted from a
  // node that is lost, no others take their place.
  void EnsureGang() {
    const client::Target target{resources::kPodGroups, facts_.ns, facts_.name, ""};
    const json::Value& group = input_.pod_group;
    int64_t succeeded = 0;
    for (const auto* jobs : {&active_, &succeeded_}) {
      for (const json::Value& job : *jobs) succeeded += job["status"]["succeeded"].AsInt();
    }
    const json::Value wanted =
        MakeGang(facts_, std::max<int64_t>(succeeded - input_.succeeded_pods, 0));
    const json::Value& members = wanted["spec"]["minMember"];
    if (group.IsNull()) return changes_.Create(target, wanted);
    if (client::ControllerOf(group)["uid"].AsString() != facts_.uid || IsGoing(group) ||
        group["spec"]["minMember"] == members)
      return;
    changes_.PatchMerge(target, PatchOf(group, "spec", json::Obj({{"minMember", members}})));
  }

  // Upstream takes any that has the name, and leaves it to the user to find out why no host name
  // resolves.
  void EnsureService() {
    const std::string& name = facts_.subdomain;
    const json::Value* service = input_.find_service(name);
    if (service == nullptr)
      return changes_.Create({resources::kServices, facts_.ns, name, ""},
                             MakeHeadlessService(facts_));
    if (client::ControllerOf(*service)["uid"].AsString() == facts_.uid ||
        GivesHostNames(*service, facts_))
      return;
    Tell(client::EventType::kWarning, "HeadlessServiceCreationFailed",
         fmt::format("services \"{}\" already exists, is not controlled by this JobSet, and is not "
                     "a headless Service of its pods, so their host names do not resolve: delete "
                     "that Service, or give the JobSet another network.subdomain",
                     name));
    out_.LookAgainAt(now_ + kTakenNameRetry);
  }

  // Those that wait for nobody, in their order.
  void Start() {
    const bool one_by_one = facts_.in_order && !facts_.suspended;
    for (const ReplicatedJob& replicated_job : facts_.replicated_jobs) {
      if (!MayStart(replicated_job)) continue;
      if (one_by_one && counts_[replicated_job.name].AllStarted(replicated_job)) continue;
      CreateMissing(replicated_job);
      if (one_by_one) return TellStartup();
    }
    if (one_by_one)
      Ensure("StartupPolicyCompleted", true, "InOrderStartupPolicyCompleted",
             "in order startup policy has completed");
  }

  void Resume() {
    for (const ReplicatedJob& replicated_job : facts_.replicated_jobs) {
      if (!MayStart(replicated_job)) continue;
      if (facts_.in_order && counts_[replicated_job.name].AllStarted(replicated_job)) continue;
      for (const json::Value& job : active_) {
        const json::Value& name = job["metadata"]["labels"][kReplicatedJobNameLabel];
        if (IsSuspended(job) && name.AsString() == replicated_job.name)
          ResumeJob(job, replicated_job);
      }
      if (facts_.in_order) return TellStartup();
    }
    Ensure("Suspended", false, "ResumeJobs", "jobset is resumed");
  }

  void TellStartup() {
    Ensure("StartupPolicyInProgress", true, "InOrderStartupPolicyInProgress",
           "in order startup policy is in progress");
  }

  bool MayStart(const ReplicatedJob& replicated_job) {
    for (const Dependency& dependency : replicated_job.depends_on) {
      for (const ReplicatedJob& other : facts_.replicated_jobs) {
        if (other.name != dependency.name) continue;
        const Counts& counts = counts_[other.name];
        if (dependency.complete ? counts.succeeded != other.replicas : !counts.AllStarted(other))
          return false;
      }
    }
    return true;
  }

  void CreateMissing(const ReplicatedJob& replicated_job) {
    if (facts_.blocking_recreate && !former_.empty()) return;
    for (int64_t i = 0; i < replicated_job.replicas && created_ < kMaxJobsPerJobSetPass; ++i) {
      const std::string name = facts_.JobName(replicated_job, i);
      if (names_.contains(name)) continue;
      ++created_;
      if (input_.is_taken(name)) {
        Tell(client::EventType::kWarning, "JobCreationFailed",
             fmt::format("job \"{0}\" creation failed with error: jobs.batch \"{0}\" already "
                         "exists and is not controlled by this JobSet: rename one of them, or "
                         "delete that Job",
                         name));
        out_.LookAgainAt(now_ + kTakenNameRetry);
        continue;
      }
      changes_.Create({resources::kJobs, facts_.ns, name, ""}, MakeJob(facts_, replicated_job, i));
    }
  }

  static client::Target TargetOf(const json::Value& job, std::string subresource = {}) {
    const client::ObjectKey key = client::KeyOf(job);
    return {resources::kJobs, key.ns, key.name, std::move(subresource)};
  }

  // A patch of this very object and no later one of its name.
  static json::Value PatchOf(const json::Value& seen, std::string_view part, json::Value content) {
    return json::Obj({{"metadata", json::Obj({{"uid", seen["metadata"]["uid"]}})},
                      {std::string(part), std::move(content)}});
  }

  void Suspend(const json::Value& job) {
    changes_.PatchMerge(TargetOf(job), PatchOf(job, "spec", json::Obj({{"suspend", true}})));
  }

  // The template of a Job that has run before may change only when it forgets that it did.
  void ResumeJob(const json::Value& job, const ReplicatedJob& replicated_job) {
    const json::Value& known = job["spec"]["template"];
    const json::Value wanted =
        WithDirectives(known, replicated_job.job_template["spec"]["template"]);
    json::Value spec = json::Obj({{"suspend", false}});
    if (wanted != known) {
      if (job["status"].Has("startTime"))
        changes_.PatchMerge(TargetOf(job, "status"),
                            PatchOf(job, "status", json::Obj({{"startTime", nullptr}})));
      spec = std::move(spec).Set("template", wanted);
    }
    changes_.PatchMerge(TargetOf(job), PatchOf(job, "spec", std::move(spec)));
  }

  void Ensure(std::string_view type, bool holds, std::string reason, std::string message) {
    if (conditions_.Ensure(type, holds, reason, message))
      Tell(client::EventType::kNormal, std::move(reason), std::move(message));
  }

  void Tell(client::EventType type, std::string reason, std::string message) {
    out_.Event(facts_.object, type, std::move(reason), std::move(message));
  }

  json::Value NewStatus() {
    json::Array states;
    for (const ReplicatedJob& replicated_job : facts_.replicated_jobs) {
      const Counts& counts = counts_[replicated_job.name];
      states.push_back(json::Obj({{"name", replicated_job.name},
                                  {"ready", counts.ready},
                                  {"succeeded", counts.succeeded},
                                  {"failed", counts.failed},
                                  {"active", counts.active},
                                  {"suspended", counts.suspended}}));
    }
    json::Value status = conditions_.PutInto(std::move(status_));
    if (!status.Has("restarts")) status = std::move(status).Set("restarts", 0);
    return std::move(status).Set("replicatedJobsStatus", json::Value(std::move(states)));
  }

  // The status goes first: it is refused if the JobSet is another one than we know, and then
  // nothing else is done either.
  void Write() {
    json::Value status = NewStatus();
    if (status != facts_.object["status"])
      out_.UpdateStatus({kJobSetResource, facts_.ns, facts_.name, ""},
                        facts_.object.Set("status", std::move(status)));
    for (client::Write& write : changes_.writes) out_.writes.push_back(std::move(write));
    out_.subject = facts_.object;
  }

  const JobSetInput& input_;
  const JobSetFacts facts_;
  const Time now_;
  client::Reconciled& out_;
  client::Reconciled changes_;  // after the status
  json::Value status_;
  JobSetConditions conditions_;
  std::vector<json::Value> active_, succeeded_, failed_;  // of this attempt
  std::vector<json::Value> former_;
  std::set<std::string> names_;           // of its Jobs
  std::map<std::string, Counts> counts_;  // by replicated job
  size_t created_ = 0;
};

}  // namespace

void ReconcileJobSet(const JobSetInput& input, Time now, client::Reconciled& out) {
  Pass(input, now, out).Run();
}

}  // namespace muster::controllers
