#include "controllers/job/job_pass.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "controllers/job/index_set.h"
#include "controllers/job/job_conditions.h"
#include "controllers/job/job_facts.h"
#include "controllers/job/job_pods.h"
#include "controllers/job/job_policies.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pod_template.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

using Uids = std::set<std::string, std::less<>>;

std::string UidOf(const json::Value& pod) { return pod["metadata"]["uid"].Str(); }

Uids UidsOf(const json::Value& list) {
  Uids uids;
  for (const json::Value& uid : list.items()) uids.insert(uid.Str());
  return uids;
}

// Zeros are absent but for those that are always there.
json::Value WithCount(json::Value status, const char* name, int64_t count) {
  return count == 0 ? status.Remove(name) : std::move(status).Set(name, count);
}

int64_t Restarts(const json::Value& pod) {
  int64_t count = 0;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items())
      count += status["restartCount"].AsInt();
  }
  return count;
}

class Pass {
 public:
  Pass(const JobInput& input, Time now, client::Reconciled& out)
      : job_(input.job),
        spec_(input.job),
        input_(input),
        now_(now),
        out_(out),
        status_(input.job["status"]),
        conditions_(status_["conditions"], now) {
    uncounted_succeeded_ = UidsOf(status_["uncountedTerminatedPods"]["succeeded"]);
    uncounted_failed_ = UidsOf(status_["uncountedTerminatedPods"]["failed"]);
    for (const json::Value& pod : input.pods) {
      if (IsActive(pod)) active_.push_back(pod);
      if (IsTerminating(pod)) ++terminating_;
    }
  }

  void Run() {
    CountIndexes();
    CountPods();
    if (!status_.Has("startTime") && !spec_.suspended)
      status_ = std::move(status_).Set("startTime", FormatTime(now_));
    DecideEnd();
    if (!end_.has_value() && !IsDeleting()) {
      PlanPods();
      if (IsComplete()) {
        end_ = JobEnd{"SuccessCriteriaMet", "CompletionsReached",
                      "Reached expected number of succeeded pods"};
      } else {
        TellSuspension();
      }
    }
    if (end_.has_value()) to_delete_ = active_;
    Track();
    if (end_.has_value()) TellEnd();
    Write();
  }

 private:
  bool IsDeleting() const { return job_["metadata"].Has("deletionTimestamp"); }

  bool HasValidIndex(const json::Value& pod) const {
    if (!spec_.indexed) return true;
    const std::optional<int64_t> index = CompletionIndexOf(pod);
    return index.has_value() && *index < *spec_.completions;
  }

  // Tracked, and of a valid index: it counts sometime.
  bool Counts(const json::Value& pod) const { return IsTracked(pod) && HasValidIndex(pod); }

  bool IsCounted(const json::Value& pod) const {
    const std::string uid = UidOf(pod);
    return uncounted_succeeded_.contains(uid) || uncounted_failed_.contains(uid);
  }

  // An index has either succeeded or failed for good, what its pods come to afterwards.
  void CountIndexes() {
    if (!spec_.indexed) return;
    const bool limited = spec_.backoff_limit_per_index.has_value();
    succeeded_indexes_ =
        IndexSet::Parse(status_["completedIndexes"].AsString(), *spec_.completions);
    if (limited)
      failed_indexes_ = IndexSet::Parse(status_["failedIndexes"].AsString(), *spec_.completions);
    for (const json::Value& pod : input_.pods) {
      if (Counts(pod) && HasSucceeded(pod) && !failed_indexes_.Has(*CompletionIndexOf(pod)))
        succeeded_indexes_.Add(*CompletionIndexOf(pod));
    }
    if (!limited) return;
    for (const json::Value& pod : input_.pods) {
      if (!Counts(pod) || !HasFailed(pod, spec_)) continue;
      // A Job that ends sends its pods away: that is not their indexes' failure.
      if (IsTerminating(pod) && conditions_.DecidedEnd().has_value()) continue;
      const PodFailureVerdict verdict = JudgeFailure(spec_.failure_policy, pod);
      const bool used_up = IndexFailuresOf(pod).counted >= *spec_.backoff_limit_per_index;
      const int64_t index = *CompletionIndexOf(pod);
      if ((verdict.fails_index || (verdict.counts && used_up)) && !succeeded_indexes_.Has(index))
        failed_indexes_.Add(index);
    }
    FindReplaced();
  }

  // The last failed pod of each index that waits for its replacement: it keeps its finalizer until
  // then, because it knows how often the index has failed.
  void FindReplaced() {
    IndexSet active;
    for (const json::Value& pod : active_) {
      if (const auto index = CompletionIndexOf(pod)) active.Add(*index);
    }
    for (const json::Value& pod : input_.pods) {
      if (!Counts(pod) || !HasFailed(pod, spec_)) continue;
      const int64_t index = *CompletionIndexOf(pod);
      if (succeeded_indexes_.Has(index) || failed_indexes_.Has(index) || active.Has(index))
        continue;
      const auto [it, is_new] = replaced_.emplace(index, pod);
      const bool later = IndexFailuresOf(it->second).total() <= IndexFailuresOf(pod).total() &&
                         FinishedAt(it->second) <= FinishedAt(pod);
      if (!is_new && later) it->second = pod;
    }
  }

  // Succeeded and failed so far, those that the status has still to take in included.
  void CountPods() {
    succeeded_ = status_["succeeded"].AsInt() + static_cast<int64_t>(uncounted_succeeded_.size());
    failed_ = status_["failed"].AsInt() + static_cast<int64_t>(uncounted_failed_.size());
    for (const json::Value& pod : input_.pods) {
      if (!Counts(pod) || IsCounted(pod)) continue;
      if (HasSucceeded(pod)) ++succeeded_;
      if (HasFailed(pod, spec_) && JudgeFailure(spec_.failure_policy, pod).counts) ++failed_;
    }
    if (spec_.indexed) succeeded_ = succeeded_indexes_.size();
  }

  void Fail(std::string reason, std::string message) {
    if (!end_.has_value()) end_ = JobEnd{"FailureTarget", std::move(reason), std::move(message)};
  }

  void DecideEnd() {
    end_ = conditions_.DecidedEnd();
    if (end_.has_value()) return;
    for (const json::Value& pod : input_.pods) {
      if (spec_.failure_policy.IsNull() || !HasFailed(pod, spec_)) continue;
      std::string message = JudgeFailure(spec_.failure_policy, pod).fails_job;
      if (!message.empty()) Fail("PodFailurePolicy", std::move(message));
    }
    if (failed_ > spec_.backoff_limit || RestartedTooOften())
      Fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    CheckDeadline();
    if (!spec_.indexed) return;
    CheckFailedIndexes();
    if (end_.has_value()) return;
    if (auto rule = MetSuccessRule(spec_.success_policy, *spec_.completions, succeeded_indexes_))
      end_ = JobEnd{"SuccessCriteriaMet", "SuccessPolicy", std::move(*rule)};
  }

  // Containers that are started again within their pods, with restartPolicy OnFailure.
  bool RestartedTooOften() const {
    const json::Value& policy = job_.Path({"spec", "template", "spec", "restartPolicy"});
    if (policy.AsString() != "OnFailure") return false;
    int64_t count = 0;
    for (const json::Value& pod : input_.pods) {
      const std::string_view phase = pod["status"]["phase"].AsString();
      if (phase == "Running" || phase == "Pending") count += Restarts(pod);
    }
    return spec_.backoff_limit == 0 ? count > 0 : count >= spec_.backoff_limit;
  }

  void CheckDeadline() {
    const std::optional<Time> start = ParseTime(status_["startTime"].AsString());
    if (!spec_.active_deadline.has_value() || !start.has_value() || spec_.suspended) return;
    // A Job that is resumed starts anew.
    if (conditions_.Holds("Suspended")) return;
    const Time deadline = *start + *spec_.active_deadline;
    if (deadline <= now_) {
      Fail("DeadlineExceeded", "Job was active longer than specified deadline");
    } else {
      out_.LookAgainAt(deadline);
    }
  }

  void CheckFailedIndexes() {
    const int64_t failed = failed_indexes_.size();
    if (spec_.max_failed_indexes.has_value() && failed > *spec_.max_failed_indexes)
      Fail("MaxFailedIndexesExceeded",
           "Job has exceeded the specified maximal number of failed indexes");
    if (failed > 0 && failed + succeeded_indexes_.size() >= *spec_.completions)
      Fail("FailedIndexes", "Job has failed indexes");
  }

  bool IsComplete() const {
    if (!active_.empty() || !to_create_.empty()) return false;
    return spec_.completions.has_value() ? succeeded_ >= *spec_.completions : succeeded_ > 0;
  }

  int64_t WantedActive() const {
    const auto active = static_cast<int64_t>(active_.size());
    if (spec_.suspended) return 0;
    if (!spec_.completions.has_value()) return succeeded_ > 0 ? active : spec_.parallelism;
    return std::max<int64_t>(std::min(*spec_.completions - succeeded_, spec_.parallelism), 0);
  }

  void PlanPods() {
    const auto active = static_cast<int64_t>(active_.size());
    const int64_t wanted = WantedActive();
    PlanRemoval(static_cast<size_t>(std::max<int64_t>(active - wanted, 0)));
    if (!to_remove_.empty() || spec_.suspended) return;
    const int64_t missing = wanted - active - (spec_.replaces_only_failed ? terminating_ : 0);
    if (missing > 0) PlanCreation(std::min(static_cast<size_t>(missing), kMaxPodChangesPerPass));
  }

  // At least so many; of an Indexed Job also those whose index is no good or there twice.
  void PlanRemoval(size_t at_least) {
    std::vector<json::Value> left;
    std::map<int64_t, std::vector<json::Value>> of_index;
    for (const json::Value& pod : active_) {
      if (!spec_.indexed) {
        left.push_back(pod);
      } else if (HasValidIndex(pod)) {
        of_index[*CompletionIndexOf(pod)].push_back(pod);
      } else {
        to_remove_.push_back(pod);
      }
    }
    for (auto& [index, pods] : of_index) {
      if (pods.size() > 1) SortForDeletion(pods, {}, now_);
      left.push_back(pods.back());
      pods.pop_back();
      to_remove_.insert(to_remove_.end(), pods.begin(), pods.end());
    }
    if (to_remove_.size() < at_least) {
      const size_t more = at_least - to_remove_.size();
      if (more < left.size()) SortForDeletion(left, {}, now_);
      to_remove_.insert(to_remove_.end(), left.begin(),
                        left.begin() + static_cast<std::ptrdiff_t>(std::min(more, left.size())));
    }
    if (to_remove_.size() > kMaxPodChangesPerPass) to_remove_.resize(kMaxPodChangesPerPass);
  }

  void PlanCreation(size_t count) {
    if (!spec_.backoff_limit_per_index.has_value()) {
      const Time from = BackoffEnds(input_.pods, spec_, now_);
      if (from > now_) return out_.LookAgainAt(from);
    }
    if (!spec_.indexed) {
      to_create_.assign(count, std::nullopt);
      return;
    }
    IndexSet taken = succeeded_indexes_;
    taken.Add(failed_indexes_);
    for (const json::Value& pod : input_.pods) {
      const bool holds = IsActive(pod) || (spec_.replaces_only_failed && IsTerminating(pod));
      if (const auto index = CompletionIndexOf(pod); holds && index.has_value()) taken.Add(*index);
    }
    for (const int64_t index : taken.Missing(*spec_.completions, count)) {
      const auto before = replaced_.find(index);
      const Time from = before == replaced_.end()
                            ? Time{}
                            : BackoffEnds(IndexFailuresOf(before->second).total() + 1,
                                          FinishedAt(before->second), now_);
      if (from > now_) {
        out_.LookAgainAt(from);
      } else {
        to_create_.emplace_back(index);
      }
    }
  }

  void TellSuspension() {
    if (spec_.suspended) {
      if (conditions_.Ensure("Suspended", "True", "JobSuspended", "Job suspended"))
        Tell(client::EventType::kNormal, "Suspended", "Job suspended");
    } else if (conditions_.Ensure("Suspended", "False", "JobResumed", "Job resumed")) {
      Tell(client::EventType::kNormal, "Resumed", "Job resumed");
      status_ = std::move(status_).Set("startTime", FormatTime(now_));
    }
  }

  bool IsSuccess() const { return end_.has_value() && end_->type == "SuccessCriteriaMet"; }

  // The Job has ended but for what its last pods have to say.
  bool IsWindingUp() const { return end_.has_value() && active_.empty(); }

  bool MayLetGo(const json::Value& pod) const {
    if (IsDeleting() || IsWindingUp() || HasSucceeded(pod)) return true;
    if (!HasFailed(pod, spec_)) return false;
    const auto index = CompletionIndexOf(pod);
    const auto waiting = index.has_value() ? replaced_.find(*index) : replaced_.end();
    return waiting == replaced_.end() || UidOf(waiting->second) != UidOf(pod);
  }

  // Pods that a Job which succeeded sends away have not failed; those that a failed Job sends away
  // have.
  bool CountsAsFailed(const json::Value& pod) const {
    if (IsSuccess() && pod["metadata"].Has("deletionTimestamp")) return false;
    return HasFailed(pod, spec_) || IsWindingUp();
  }

  void Track() {
    Settle(uncounted_succeeded_, "succeeded");
    Settle(uncounted_failed_, "failed");
    size_t held = uncounted_succeeded_.size() + uncounted_failed_.size();
    for (const json::Value& pod : input_.pods) {
      if (!IsTracked(pod) || !MayLetGo(pod)) continue;
      if (held >= kMaxUncountedPods && !IsCounted(pod)) continue;  // in a later pass
      let_go_.push_back(pod);
      if (IsCounted(pod) || !HasValidIndex(pod)) continue;
      if (HasSucceeded(pod)) {
        if (!spec_.indexed) uncounted_succeeded_.insert(UidOf(pod));
        ++held;
      } else if (CountsAsFailed(pod) && JudgeFailure(spec_.failure_policy, pod).counts) {
        uncounted_failed_.insert(UidOf(pod));
        ++held;
      }
    }
  }

  // UIDs whose pods have lost the finalizer become numbers.
  void Settle(Uids& uids, const char* counter) {
    Uids tracked;
    for (const json::Value& pod : input_.pods) {
      if (IsTracked(pod)) tracked.insert(UidOf(pod));
    }
    const size_t before = uids.size();
    std::erase_if(uids, [&](const std::string& uid) { return !tracked.contains(uid); });
    const int64_t count = status_[counter].AsInt() + static_cast<int64_t>(before - uids.size());
    status_ = WithCount(std::move(status_), counter, count);
  }

  void TellEnd() {
    if (!IsSuccess()) {
      conditions_.Ensure("FailureTarget", "True", end_->reason, end_->message);
    } else {
      conditions_.Ensure("SuccessCriteriaMet", "True", end_->reason, end_->message);
    }
    const bool all_counted =
        let_go_.empty() && uncounted_succeeded_.empty() && uncounted_failed_.empty();
    if (!active_.empty() || !all_counted || terminating_ > 0) return;
    // Also of one that was suspended all its life.
    if (!status_.Has("startTime")) status_ = std::move(status_).Set("startTime", FormatTime(now_));
    conditions_.Ensure(IsSuccess() ? "Complete" : "Failed", "True", end_->reason, end_->message);
    if (!IsSuccess()) return Tell(client::EventType::kWarning, end_->reason, end_->message);
    // A clock that was set back would have it end before it began, which the server refuses.
    const Time began = ParseTime(status_["startTime"].AsString()).value_or(now_);
    status_ = std::move(status_).Set("completionTime", FormatTime(std::max(began, now_)));
    if (spec_.completions.has_value() && succeeded_ > *spec_.completions)
      Tell(client::EventType::kWarning, "TooManySucceededPods",
           "Too many succeeded pods running after completion count reached");
    Tell(client::EventType::kNormal, "Completed", "Job completed");
  }

  void Tell(client::EventType type, std::string reason, std::string message) {
    out_.Event(job_, type, std::move(reason), std::move(message));
  }

  json::Value NewStatus() {
    json::Value uncounted = json::Obj();
    for (const auto& [name, uids] :
         {std::pair{"succeeded", &uncounted_succeeded_}, {"failed", &uncounted_failed_}}) {
      if (!uids->empty())
        uncounted = std::move(uncounted).Set(name, json::Strings({uids->begin(), uids->end()}));
    }
    json::Value status = std::move(status_).Set("uncountedTerminatedPods", std::move(uncounted));
    status = WithCount(std::move(status), "active", static_cast<int64_t>(active_.size()));
    status = std::move(status).Set("ready", std::count_if(active_.begin(), active_.end(), IsReady));
    status = std::move(status).Set("terminating", terminating_);
    if (spec_.indexed) {
      status = WithCount(std::move(status), "succeeded", succeeded_indexes_.size());
      status = succeeded_indexes_.empty()
                   ? status.Remove("completedIndexes")
                   : std::move(status).Set("completedIndexes", succeeded_indexes_.ToString());
      status = spec_.backoff_limit_per_index.has_value()
                   ? std::move(status).Set("failedIndexes", failed_indexes_.ToString())
                   : status.Remove("failedIndexes");
    }
    return conditions_.PutInto(std::move(status));
  }

  // The order is what keeps the count right; see the header.
  void Write() {
    const client::ObjectKey key = client::KeyOf(job_);
    json::Value status = NewStatus();
    json::Value known = job_["status"];
    if (!known.Has("uncountedTerminatedPods") && known.Has("ready"))
      known = known.Set("uncountedTerminatedPods", json::Obj());  // a server may drop what is empty
    if (status != known)
      out_.UpdateStatus({resources::kJobs, key.ns, key.name, ""},
                        job_.Set("status", std::move(status)));
    for (const json::Value& pod : let_go_) StopTracking(pod, out_);
    // A pod that the Job has no use for does not count.
    for (const json::Value& pod : to_remove_) {
      if (IsTracked(pod)) StopTracking(pod, out_);
    }
    for (const json::Value& pod : to_remove_) Delete(pod);
    for (const json::Value& pod : to_delete_) Delete(pod);
    Create();
    out_.subject = job_;
    out_.brief_refusals = true;
  }

  void Delete(const json::Value& pod) {
    const client::ObjectKey key = client::KeyOf(pod);
    client::DeleteOptions options;
    options.precondition_uid = UidOf(pod);
    out_.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
    Tell(client::EventType::kNormal, "SuccessfulDelete", fmt::format("Deleted pod: {}", key.name));
  }

  void Create() {
    const std::string job_name = job_["metadata"]["name"].Str();
    PodNames names(job_name, input_.seed);
    for (const std::optional<int64_t>& index : to_create_) {
      std::optional<IndexFailures> failures;
      std::string name;
      if (index.has_value()) {
        name = PodNames(IndexedNameBase(job_name, *index), input_.seed).Next(input_.is_taken);
        if (spec_.backoff_limit_per_index.has_value()) failures = FailuresOf(*index);
      } else {
        name = names.Next(input_.is_taken);
      }
      out_.Create({resources::kPods, job_["metadata"]["namespace"].Str(), name, ""},
                  NewJobPod(job_, index, failures, name));
      Tell(client::EventType::kNormal, "SuccessfulCreate", fmt::format("Created pod: {}", name));
    }
  }

  // Of an index, the pod that is being replaced included.
  IndexFailures FailuresOf(int64_t index) const {
    const auto before = replaced_.find(index);
    if (before == replaced_.end()) return {};
    IndexFailures failures = IndexFailuresOf(before->second);
    const bool counts = JudgeFailure(spec_.failure_policy, before->second).counts;
    ++(counts ? failures.counted : failures.ignored);
    return failures;
  }

  const json::Value& job_;
  const JobSpec spec_;
  const JobInput& input_;
  const Time now_;
  client::Reconciled& out_;
  json::Value status_;
  JobConditions conditions_;
  std::vector<json::Value> active_;
  int64_t terminating_ = 0;
  Uids uncounted_succeeded_, uncounted_failed_;
  IndexSet succeeded_indexes_, failed_indexes_;
  std::map<int64_t, json::Value> replaced_;  // by index
  int64_t succeeded_ = 0, failed_ = 0;
  std::optional<JobEnd> end_;
  std::vector<std::optional<int64_t>> to_create_;  // indexes; none for a pod of no index
  std::vector<json::Value> to_remove_;             // too many: they do not count
  std::vector<json::Value> to_delete_;             // of a Job that ends: they may count
  std::vector<json::Value> let_go_;                // lose the finalizer
};

}  // namespace

void ReconcileJob(const JobInput& input, Time now, client::Reconciled& out) {
  Pass(input, now, out).Run();
}

}  // namespace muster::controllers
