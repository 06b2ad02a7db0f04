#include "ray/job_pass.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/bounded_seconds.h"
#include "base/strings.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_template.h"
#include "ray/cluster.h"
#include "ray/cluster_status.h"
#include "ray/dashboard.h"
#include "ray/submission.h"
#include "schema/conditions.h"

namespace muster::ray {
namespace {

using client::EventType;
using client::Reconciled;
namespace core = client::resources;

constexpr char kAnswer[] = "job";
constexpr std::string_view kJobsPath = "api/jobs/";

bool IsTerminating(const json::Value& object) {
  return object["metadata"].Has("deletionTimestamp");
}

bool HasEnded(std::string_view deployment_status) {
  return deployment_status == "Complete" || deployment_status == "Failed" ||
         deployment_status == "ValidationFailed";
}

bool IsTerminal(std::string_view job_status) {
  return job_status == "SUCCEEDED" || job_status == "FAILED" || job_status == "STOPPED";
}

bool JobHas(const json::Value& submitter, std::string_view condition) {
  return schema::ConditionHolds(submitter["status"]["conditions"], condition);
}

std::optional<Time> TimeOfMs(const json::Value& milliseconds_since) {
  const std::optional<int64_t> count = milliseconds_since.Int();
  if (!count || *count <= 0) return std::nullopt;
  return Time(milliseconds(*count));
}

class Pass {
 public:
  Pass(const json::Value& ray_job, const JobChildren& children,
       const client::Observations& observations, Time now, uint64_t seed)
      : job_(ray_job),
        spec_(ray_job["spec"]),
        children_(children),
        observations_(observations),
        now_(now),
        seed_(seed),
        status_(ray_job["status"]) {}

  Reconciled Run() {
    out_.subject = job_;
    Decide();
    WriteStatus();
    return std::move(out_);
  }

 private:
  std::string Ns() const { return job_["metadata"]["namespace"].Str(); }
  std::string Name() const { return job_["metadata"]["name"].Str(); }
  std::string State() const { return status_["jobDeploymentStatus"].Str(); }
  std::string ClusterName() const { return status_["rayClusterName"].Str(); }
  bool HasOwnCluster() const { return spec_["clusterSelector"].empty(); }
  bool IsHttp() const { return spec_["submissionMode"].AsString() == "HTTPMode"; }

  void Set(std::string_view name, json::Value value) {
    status_ = std::move(status_).Set(name, std::move(value));
  }

  // Where it goes next; the next pass goes on from there.
  void Become(std::string_view state) { Set("jobDeploymentStatus", state); }

  void Decide() {
    if (HasEnded(State())) return CleanUp();
    if (State() == "Retrying") return Clear("");
    if (spec_["suspend"].AsBool()) return Suspend();
    if (State() == "Suspending" || State() == "Suspended") return Clear("");
    if (State().empty()) return Begin();
    if (PastDeadline()) return;
    if (State() == "Initializing") return Initialize();
    Follow();
  }

  // First of all writes.
  void WriteStatus() {
    if (children_.cluster.Has("status") &&
        ClusterName() == children_.cluster["metadata"]["name"].AsString())
      Set("rayClusterStatus", children_.cluster["status"]);
    Set("observedGeneration", job_["metadata"]["generation"]);
    if (status_ == job_["status"]) return;
    client::Target target{resources::kRayJobs, Ns(), Name(), "status"};
    out_.writes.insert(
        out_.writes.begin(),
        {client::Write::Verb::kUpdate, std::move(target), job_.Set("status", status_), {}});
  }

  void Delete(const client::Resource& resource, const json::Value& object) {
    const bool ours = client::ControllerOf(object)["uid"] == job_["metadata"]["uid"];
    if (object.IsNull() || IsTerminating(object) || !ours) return;
    client::DeleteOptions options;
    options.precondition_uid = object["metadata"]["uid"].Str();
    options.propagation_policy = "Background";
    out_.Delete({resource, Ns(), object["metadata"]["name"].Str(), ""}, std::move(options));
  }

  void Suspend() {
    if (State() == "Suspended") return;
    if (State().empty()) return Become("Suspended");
    Become("Suspending");
    Clear("Suspended");
  }

  // Cluster and submitter go; when they are gone, `next` begins.
  void Clear(std::string_view next) {
    if (HasOwnCluster()) Delete(resources::kRayClusters, children_.cluster);
    Delete(core::kJobs, children_.submitter);
    const bool gone =
        (children_.cluster.IsNull() || !HasOwnCluster()) && children_.submitter.IsNull();
    if (!gone) return;
    for (const char* member : {"jobId", "rayClusterName", "dashboardURL", "jobStatus", "message",
                               "reason", "startTime", "endTime", "rayJobInfo", "rayClusterStatus"})
      status_ = status_.Remove(member);
    Become(next);
  }

  // ---- on its way ----

  void Begin() {
    const std::string_view mode = spec_["submissionMode"].AsString("K8sJobMode");
    if (mode != "K8sJobMode" && mode != "HTTPMode") {
      return Refuse(
          fmt::format("submissionMode {} is not acted on yet: use K8sJobMode or HTTPMode", mode));
    }
    if (const Result<json::Value> env = RuntimeEnvOf(job_); !env)
      return Refuse(env.error().message());
    // Another try gets other names than the one before.
    const uint64_t seed = Hash64(fmt::format("{}", status_["failed"].AsInt()), seed_);
    const auto never = [](const std::string&) { return false; };
    const std::string name = controllers::PodNames(Name(), seed).Next(never);
    Set("jobId", spec_["jobId"].Str(name));
    Set("rayClusterName", HasOwnCluster() ? name : spec_["clusterSelector"][kClusterLabel].Str());
    Set("startTime", FormatTime(now_));
    Become("Initializing");
  }

  void Refuse(std::string message) {
    out_.Event(job_, EventType::kWarning, "ValidationFailed", message);
    Set("reason", "ValidationFailed");
    Set("message", std::move(message));
    Become("ValidationFailed");
  }

  bool PastDeadline() {
    const std::optional<Time> start = ParseTime(status_["startTime"].AsString());
    const auto passed = [&](const json::Value& limit) {
      if (limit.IsNull() || !start) return false;
      const Time due = *start + BoundedSeconds(limit.AsInt());
      if (now_ < due) out_.LookAgainAt(due);
      return now_ >= due;
    };
    if (passed(spec_["activeDeadlineSeconds"])) {
      Fail("DeadlineExceeded",
           fmt::format("The RayJob has passed the activeDeadlineSeconds of {} s",
                       spec_["activeDeadlineSeconds"].AsInt()));
      return true;
    }
    if (State() == "Initializing" && passed(spec_["preRunningDeadlineSeconds"])) {
      Fail("PreRunningDeadlineExceeded",
           fmt::format("The RayJob did not run within the preRunningDeadlineSeconds of {} s",
                       spec_["preRunningDeadlineSeconds"].AsInt()));
      return true;
    }
    return false;
  }

  void Initialize() {
    if (children_.cluster.IsNull()) return MakeCluster();
    const Cluster cluster = ParseCluster(children_.cluster);
    if (children_.cluster["status"]["state"].AsString() != kReady) {
      // Nobody tells of a cluster that is not the job's own.
      if (!HasOwnCluster()) out_.LookAgainAt(now_ + kJobPeriod);
      return;
    }
    submission_.dashboard = fmt::format("{}:{}", cluster.HeadAddress(), kDashboardPort);
    submission_.image = cluster.head["template"]["spec"]["containers"].At(0)["image"].Str();
    submission_.id = status_["jobId"].Str();
    Set("dashboardURL", submission_.dashboard);
    if (IsHttp()) return Post();
    if (children_.submitter.IsNull()) {
      out_.Create({core::kJobs, Ns(), Name(), ""}, MakeSubmitter(job_, submission_));
      out_.Event(job_, EventType::kNormal, "CreatedRayJobSubmitter",
                 fmt::format("Created Kubernetes Job {}/{}", Ns(), Name()));
      return;
    }
    Become("Running");
  }

  void MakeCluster() {
    // One that is there already may come again; what is ours is made.
    if (!HasOwnCluster()) return out_.LookAgainAt(now_ + kJobPeriod);
    const json::Value labels = json::Obj(
        {{std::string(kOriginNameLabel), Name()}, {std::string(kOriginKindLabel), "RayJob"}});
    out_.Create({resources::kRayClusters, Ns(), ClusterName(), ""},
                json::Obj({{"apiVersion", "ray.io/v1"},
                           {"kind", "RayCluster"},
                           {"metadata",
                            json::Obj({{"name", ClusterName()},
                                       {"namespace", Ns()},
                                       {"labels", labels},
                                       {"ownerReferences", controllers::ControlledByOnly(job_)}})},
                           {"spec", spec_["rayClusterSpec"]}}));
    out_.Event(job_, EventType::kNormal, "CreatedRayCluster",
               fmt::format("Created RayCluster {}/{}", Ns(), ClusterName()));
  }

  // Null before it was asked.
  const json::Value* Answer() {
    const auto found = observations_.find(kAnswer);
    if (found != observations_.end()) return &found->second;
    out_.Ask(AskDashboard(kAnswer, Ns(), ClusterName(),
                          fmt::format("{}{}", kJobsPath, status_["jobId"].AsString())));
    return nullptr;
  }

  // Once: a submission whose answer was lost is there already.
  void Post() {
    const json::Value* answer = Answer();
    if (answer == nullptr) return;
    if (!client::IsFailure(*answer)) return Become("Running");
    if (!IsUnknownToRay(*answer)) return out_.LookAgainAt(now_ + kJobPeriod);
    out_.Create(DashboardTarget(Ns(), ClusterName(), kJobsPath), SubmitRequest(job_, submission_));
    out_.LookAgainAt(now_ + kJobPeriod);
  }

  void Follow() {
    if (children_.cluster.IsNull())
      return Fail("AppFailed", fmt::format("RayCluster {:?} is gone", ClusterName()));
    const json::Value* answer = Answer();
    if (answer == nullptr) return;
    out_.LookAgainAt(now_ + kJobPeriod);
    if (!client::IsFailure(*answer)) {
      Report(*answer);
      if (IsTerminal(status_["jobStatus"].AsString())) return End(*answer);
    }
    if (!IsHttp() && JobHas(children_.submitter, "Failed")) {
      return Fail(
          "SubmissionFailed",
          fmt::format("Job {:?}, which submits, has failed: see the log of its pod", Name()));
    }
    const bool submitted = IsHttp() || JobHas(children_.submitter, "Complete");
    if (submitted && IsUnknownToRay(*answer)) {
      Fail("AppFailed",
           fmt::format("the cluster knows no job {:?} any more: its head was restarted",
                       status_["jobId"].AsString()));
    }
  }

  void Report(const json::Value& info) {
    Set("jobStatus", info["status"]);
    if (const std::string message = info["message"].Str(); !message.empty())
      Set("message", message);
    json::Value times;
    if (const auto start = TimeOfMs(info["start_time"]))
      times = std::move(times).Set("startTime", FormatTime(*start));
    if (const auto end = TimeOfMs(info["end_time"]))
      times = std::move(times).Set("endTime", FormatTime(*end));
    if (!times.IsNull()) Set("rayJobInfo", std::move(times));
  }

  void End(const json::Value& info) {
    const bool submitter_goes_on = !children_.submitter.IsNull() && !IsHttp() &&
                                   !JobHas(children_.submitter, "Complete") &&
                                   !JobHas(children_.submitter, "Failed");
    const Time patience = TimeOfMs(info["end_time"]).value_or(now_) + kMaxLogPatience;
    if (submitter_goes_on && now_ < patience) return;
    if (status_["jobStatus"].AsString() == "FAILED")
      return Fail("AppFailed", status_["message"].Str("the job has failed"));
    Set("endTime", FormatTime(now_));
    if (status_["jobStatus"].AsString() == "SUCCEEDED")
      Set("succeeded", status_["succeeded"].AsInt() + 1);
    Become("Complete");
    CleanUp();
  }

  void Fail(std::string_view reason, std::string message) {
    const int64_t failed = status_["failed"].AsInt() + 1;
    Set("failed", failed);
    Set("reason", reason);
    Set("message", message);
    Set("endTime", FormatTime(now_));
    const bool again =
        reason != "DeadlineExceeded" && HasOwnCluster() && failed <= spec_["backoffLimit"].AsInt();
    out_.Event(job_, EventType::kWarning, again ? "RayJobRetrying" : "RayJobFailed",
               std::move(message));
    Become(again ? "Retrying" : "Failed");
  }

  // ---- ended ----

  void CleanUp() {
    if (!spec_["shutdownAfterJobFinishes"].AsBool() || !HasOwnCluster()) return;
    const std::optional<Time> end = ParseTime(status_["endTime"].AsString());
    if (!end) return;
    const Time due = *end + BoundedSeconds(spec_["ttlSecondsAfterFinished"].AsInt());
    if (now_ < due) return out_.LookAgainAt(due);
    Delete(resources::kRayClusters, children_.cluster);
  }

  const json::Value& job_;
  const json::Value& spec_;
  const JobChildren& children_;
  const client::Observations& observations_;
  const Time now_;
  const uint64_t seed_;
  json::Value status_;
  Submission submission_;
  Reconciled out_;
};

}  // namespace

Reconciled ReconcileJob(const json::Value& ray_job, const JobChildren& children,
                        const client::Observations& observations, Time now, uint64_t seed) {
  return Pass(ray_job, children, observations, now, seed).Run();
}

}  // namespace muster::ray
