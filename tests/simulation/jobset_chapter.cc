#include "simulation/jobset_chapter.h"

#include <utility>

#include "base/strings.h"
#include "client/reconcile.h"
#include "controllers/jobset/jobset_facts.h"
#include "schema/conditions.h"
#include "simulation/gang_oracle.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;
using controllers::kJobSetResource;

constexpr char kJobSets[] = "/registry/jobset.x-k8s.io/jobsets/";
constexpr char kJobs[] = "/registry/batch/jobs/";

int64_t AttemptOf(const json::Value& job) {
  return ParseInt(job["metadata"]["labels"][controllers::kRestartAttemptLabel].AsString())
      .value_or(-1);
}

bool Holds(const json::Value& object, std::string_view condition) {
  return schema::ConditionHolds(object["status"]["conditions"], condition);
}

bool HasEnded(const json::Value& job_set) {
  return Holds(job_set, "Completed") || Holds(job_set, "Failed");
}

bool BlocksRecreation(const json::Value& job_set) {
  return job_set["spec"]["failurePolicy"]["restartStrategy"].AsString() == "BlockingRecreate" ||
         job_set["metadata"]["annotations"][controllers::kGangAnnotation].AsString() == "true";
}

}  // namespace

JobSetChapter::JobSetChapter(const Tale& tale) : Chapter(tale) {
  world_.oracles().Listen(kJobSets, [this](const std::string&, const json::Value& object,
                                           bool deleted) { OnJobSet(object, deleted); });
  world_.oracles().Listen(kJobs, [this](const std::string&, const json::Value& object,
                                        bool deleted) { OnJob(object, deleted); });
}

// ---- what is told ----

void JobSetChapter::Plan() {
  for (int64_t i = rng_.Between(1, 4); i > 0; --i) {
    names_.push_back(fmt::format("set-{}", i));
    world_.At(trouble_.UpTo(50'000), [this, name = names_.back()] { Make(name); });
  }
  trouble_.Sometimes(1, 5, [this] { Change(); });
}

std::string JobSetChapter::RandomPolicies(bool two) {
  std::string policies;
  const auto perhaps = [&](double probability, std::string_view text) {
    if (rng_.Chance(probability)) policies += fmt::format("  {}\n", text);
  };
  if (rng_.Chance(0.8)) {
    const int64_t most = rng_.Between(0, 3);
    perhaps(1, fmt::format("failurePolicy: {{maxRestarts: {}, restartStrategy: {}{}}}", most,
                           rng_.Chance(0.5) ? "Recreate" : "BlockingRecreate",
                           rng_.Chance(0.2) ? ", rules: [{name: r, action: FailJobSet, "
                                              "targetReplicatedJobs: [a]}]"
                                            : ""));
  }
  perhaps(0.3, rng_.Chance(0.5) ? "successPolicy: {operator: Any}"
                                : "successPolicy: {operator: All, targetReplicatedJobs: [a]}");
  if (two) perhaps(0.3, "startupPolicy: {startupPolicyOrder: InOrder}");
  perhaps(0.15, "suspend: true");
  perhaps(0.15, fmt::format("ttlSecondsAfterFinished: {}", rng_.Between(0, 30)));
  return policies;
}

std::string JobSetChapter::RandomJob(const std::string& name, const std::string& more) {
  const int64_t pods = rng_.Between(1, 2);
  return fmt::format(R"(
  - name: {}
    replicas: {}
    {}
    template:
      spec:
        completions: {}
        parallelism: {}
        completionMode: Indexed
        backoffLimit: {}
        template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: v1}}]}}}})",
                     name, rng_.Between(1, 3), more, pods, pods, rng_.Chance(0.7) ? 0 : 2);
}

void JobSetChapter::Make(const std::string& name) {
  const bool two = rng_.Chance(0.6);
  const std::string policies = RandomPolicies(two);
  const bool in_order = policies.find("InOrder") != std::string::npos;
  std::string jobs = RandomJob("a", "");
  if (two) {
    const bool depends = !in_order && rng_.Chance(0.3);
    jobs += RandomJob("b", depends ? "dependsOn: [{name: a, status: Complete}]" : "");
    if (depends) counts_.Add("story: a JobSet with dependsOn");
  }
  if (in_order) counts_.Add("story: a JobSet in order");
  const bool gang = !in_order && jobs.find("dependsOn") == std::string::npos && rng_.Chance(0.3);
  Tell(gang ? "make a JobSet as a gang" : "make a JobSet", name);
  CreateUntilTaken(world_, kJobSetResource,
                   Yaml(fmt::format(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: {}, namespace: default, annotations: {{muster.dev/gang: "{}"}}}}
spec:
{}  replicatedJobs:{}
)",
                                    name, gang, policies, jobs)));
}

void JobSetChapter::Change() {
  const std::string name = names_[rng_.Below(names_.size())];
  const uint64_t what = rng_.Below(5);
  if (what < 2) return SetSuspend(name, rng_.Chance(0.5));
  if (what == 2) return DeleteJobSet(name);
  DeleteAJob();
}

void JobSetChapter::SetSuspend(const std::string& name, bool suspend) {
  Tell(suspend ? "suspend a JobSet" : "resume a JobSet", name);
  EditUntilTaken(
      world_, {kJobSetResource, "default", name, ""}, [this, suspend](json::Value object) {
        return suspend && ends_ ? json::Value() : object.SetPath({"spec", "suspend"}, suspend);
      });
}

void JobSetChapter::DeleteJobSet(const std::string& name) {
  constexpr std::string_view kPolicies[] = {"Background", "Foreground", "Orphan"};
  const std::string policy(OneOf(kPolicies));
  Tell(fmt::format("delete a JobSet ({})", policy), name);
  client::DeleteOptions options;
  options.propagation_policy = policy;
  Delete({kJobSetResource, "default", name, ""}, options);
  if (rng_.Chance(0.5))
    world_.At(trouble_.UpTo(15'000), [this, name] {
      if (!ends_) Make(name);
    });
}

void JobSetChapter::DeleteAJob() {
  if (jobs_.empty()) return;
  auto it = jobs_.begin();
  std::advance(it, static_cast<ptrdiff_t>(rng_.Below(jobs_.size())));
  const client::ObjectKey key = client::KeyOf(it->second);
  Tell("delete a Job of a JobSet", key.ToString());
  Delete({resources::kJobs, key.ns, key.name, ""});
}

// ---- the end ----

// Suspended ones go on; Jobs that an orphaning deletion left, or leaves from now on, keep nobody
// from its names.
void JobSetChapter::End() {
  ends_ = true;
  for (const std::string& name : names_) SetSuspend(name, false);
  for (const auto& [uid, job] : jobs_) DeleteOrphan(job);
}

void JobSetChapter::DeleteOrphan(const json::Value& job) {
  if (!job["metadata"]["ownerReferences"].empty() || IsGoing(job)) return;
  const client::ObjectKey key = client::KeyOf(job);
  client::DeleteOptions options;
  options.propagation_policy = "Background";
  Delete({resources::kJobs, key.ns, key.name, ""}, options);
}

std::vector<std::string> JobSetChapter::Restless() const {
  std::vector<std::string> restless;
  for (const auto& [uid, job_set] : job_sets_) {
    const bool lapses = job_set.object["spec"].Has("ttlSecondsAfterFinished");
    if (IsGoing(job_set.object) || !job_set.has_ended || lapses)
      restless.push_back("JobSet " + NameOf(job_set.object));
  }
  for (const auto& [uid, job] : jobs_) {
    if (IsGoing(job)) restless.push_back("Job " + NameOf(job) + " goes");
  }
  return restless;
}

// ---- after every change ----

void JobSetChapter::OnJobSet(const json::Value& object, bool deleted) {
  const std::string uid = object["metadata"]["uid"].Str();
  const Time now = world_.loop().Steady();
  JobSet& job_set = job_sets_[uid];
  const json::Value before = std::exchange(job_set.object, object);
  const json::Value& status = object["status"];
  const int64_t restarts = status["restarts"].AsInt();
  const int64_t former = before["status"]["restarts"].AsInt();
  const std::string name = NameOf(object);
  if (restarts < former)
    world_.Violation(fmt::format("{} had begun anew {} times, now {}", name, former, restarts));
  if (restarts > former) {
    job_set.began_anew = now;
    counts_.Add("branch: a JobSet began anew");
  }
  const json::Value& policy = object["spec"]["failurePolicy"];
  if (status["restartsCountTowardsMax"].AsInt() > policy["maxRestarts"].AsInt())
    world_.Violation(fmt::format("{} began anew {} times, maxRestarts is {}", name,
                                 status["restartsCountTowardsMax"].AsInt(),
                                 policy["maxRestarts"].AsInt()));
  if (HasEnded(object) && !std::exchange(job_set.has_ended, true)) {
    job_set.ended = now;
    counts_.Add(Holds(object, "Completed") ? "branch: a JobSet completed"
                                           : "branch: a JobSet failed");
  }
  if (job_set.has_ended && !HasEnded(object))
    world_.Violation(fmt::format("{} had ended and goes on", name));
  if (deleted) job_sets_.erase(uid);
}

void JobSetChapter::OnJob(const json::Value& object, bool deleted) {
  if (AttemptOf(object) < 0) return;
  const std::string uid = object["metadata"]["uid"].Str();
  if (deleted) {
    jobs_.erase(uid);
    return;
  }
  if (ends_) DeleteOrphan(object);
  if (!jobs_.insert_or_assign(uid, object).second) return;
  const auto job_set = job_sets_.find(client::ControllerOf(object)["uid"].Str());
  if (job_set != job_sets_.end()) CheckNewJob(object, job_set->second);
}

void JobSetChapter::CheckNewJob(const json::Value& job, const JobSet& job_set) {
  const Time now = world_.loop().Steady();
  const int64_t restarts = job_set.object["status"]["restarts"].AsInt();
  counts_.Add("oracle: Job of a JobSet");
  if (AttemptOf(job) > restarts ||
      (AttemptOf(job) < restarts && now - job_set.began_anew > kPlanAge))
    world_.Violation(fmt::format("{} of attempt {} was made in attempt {}", NameOf(job),
                                 AttemptOf(job), restarts));
  if (job_set.has_ended && now - job_set.ended > kPlanAge)
    world_.Violation(fmt::format("{} was made after the end", NameOf(job)));
  if (!BlocksRecreation(job_set.object)) return;
  for (const auto& [uid, other] : jobs_) {
    if (client::ControllerOf(other)["uid"] != client::ControllerOf(job)["uid"]) continue;
    if (AttemptOf(other) < AttemptOf(job))
      world_.Violation(fmt::format("{} was made beside {} of attempt {}", NameOf(job),
                                   NameOf(other), AttemptOf(other)));
  }
}

// ---- at rest ----

void JobSetChapter::Judge() {
  for (const auto& [uid, job_set] : job_sets_) {
    const json::Value& status = job_set.object["status"];
    std::map<std::string, int64_t> succeeded, failed;
    for (const auto& [job_uid, job] : jobs_) {
      if (client::ControllerOf(job)["uid"].AsString() != uid) continue;
      const std::string of = job["metadata"]["labels"][controllers::kReplicatedJobNameLabel].Str();
      succeeded[of] += Holds(job, "Complete");
      failed[of] += Holds(job, "Failed");
      if (!Holds(job, "Complete") && !Holds(job, "Failed"))
        world_.Violation(fmt::format("{} rests unfinished after the end", NameOf(job)));
      if (AttemptOf(job) != status["restarts"].AsInt() && !Holds(job_set.object, "Failed"))
        world_.Violation(fmt::format("{} of attempt {} rests", NameOf(job), AttemptOf(job)));
    }
    counts_.Add("oracle: JobSet at rest");
    for (const json::Value& says : status["replicatedJobsStatus"].items()) {
      const std::string name = says["name"].Str();
      if (says["succeeded"].AsInt() == succeeded[name] && says["failed"].AsInt() == failed[name] &&
          says["active"].AsInt() == 0)
        continue;
      world_.Violation(fmt::format("{} says {} {} succeeded, {} failed, {} active; so are {}, {}",
                                   NameOf(job_set.object), name, says["succeeded"].AsInt(),
                                   says["failed"].AsInt(), says["active"].AsInt(), succeeded[name],
                                   failed[name]));
    }
  }
}

}  // namespace muster::simulation
