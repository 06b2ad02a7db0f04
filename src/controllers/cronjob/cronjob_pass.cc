#include "controllers/cronjob/cronjob_pass.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "controllers/cronjob/cron_times.h"
#include "controllers/job/job_facts.h"
#include "controllers/pods/ownership.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kScheduledAt[] = "batch.kubernetes.io/cronjob-scheduled-timestamp";

// "Mon, 02 Jan 2006 15:04:05 +0000"
std::string MailTime(Time time) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  return fmt::format("{}, {:02} {} {} {} +0000", kDays[std::chrono::weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()),
                     kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), FormatTime(time).substr(11, 8));
}

// RFC 3339 on clocks of the zone.
std::string LocalTime(Time time, const TimeZone& zone) {
  const int64_t offset = zone.At(time).offset.count();
  std::string text = FormatTime(time + seconds(offset));
  if (offset == 0) return text;
  text.pop_back();
  const int64_t minutes_off = std::abs(offset) / 60;
  return fmt::format("{}{}{:02}:{:02}", text, offset < 0 ? '-' : '+', minutes_off / 60,
                     minutes_off % 60);
}

class Pass {
 public:
  Pass(const CronJobInput& input, const client::Observations& observations, Time now,
       client::Reconciled& out)
      : input_(input),
        cron_job_(input.cron_job),
        spec_(cron_job_["spec"]),
        observations_(observations),
        now_(now),
        out_(out),
        status_(cron_job_["status"]),
        active_(status_["active"].items()) {}

  void Run() {
    for (const json::Value& job : input_.jobs) TakeIn(job);
    if (AsksForMissing()) return;
    if (!cron_job_["metadata"].Has("deletionTimestamp")) Schedule();
    WriteStatus();
    CleanUp("successfulJobsHistoryLimit", "Complete");
    CleanUp("failedJobsHistoryLimit", "Failed");
    out_.subject = cron_job_;
    out_.brief_refusals = true;
  }

 private:
  std::string NameFor(Time start) const {
    const int64_t minute = std::chrono::floor<minutes>(start.time_since_epoch()).count();
    return fmt::format("{}-{}", cron_job_["metadata"]["name"].AsString(), minute);
  }

  // The start that this Job is for; nullopt if somebody else made it.
  std::optional<Time> StartOf(const json::Value& job) const {
    const std::optional<Time> start =
        ParseTime(job["metadata"]["annotations"][kScheduledAt].AsString());
    if (!start.has_value() || job["metadata"]["name"].AsString() != NameFor(*start))
      return std::nullopt;
    return start;
  }

  bool IsInActive(const json::Value& uid) const {
    return std::any_of(active_.begin(), active_.end(),
                       [&uid](const json::Value& ref) { return ref["uid"] == uid; });
  }

  void RemoveFromActive(const json::Value& uid) {
    std::erase_if(active_, [&uid](const json::Value& ref) { return ref["uid"] == uid; });
  }

  std::optional<Time> StatusTime(const char* name) const {
    return ParseTime(status_[name].AsString());
  }

  void Tell(client::EventType type, std::string reason, std::string message) {
    out_.Event(cron_job_, type, std::move(reason), std::move(message));
  }
  void Warn(std::string reason, std::string message) {
    Tell(client::EventType::kWarning, std::move(reason), std::move(message));
  }

  // Never back: a later start was made already.
  void MoveLastStart(Time start) {
    const std::optional<Time> last = StatusTime("lastScheduleTime");
    if (!last.has_value() || *last < start)
      status_ = std::move(status_).Set("lastScheduleTime", FormatTime(start));
  }

  void TakeIn(const json::Value& job) {
    const json::Value& metadata = job["metadata"];
    const json::Value& finished = FinishedCondition(job);
    const std::optional<Time> start = StartOf(job);
    if (start.has_value()) MoveLastStart(*start);
    if (finished.IsNull()) {
      if (IsInActive(metadata["uid"]) || metadata.Has("deletionTimestamp")) return;
      if (start.has_value()) {
        active_.push_back(json::Obj({{"apiVersion", "batch/v1"},
                                     {"kind", "Job"},
                                     {"name", metadata["name"]},
                                     {"namespace", metadata["namespace"]},
                                     {"resourceVersion", metadata["resourceVersion"]},
                                     {"uid", metadata["uid"]}}));
      } else {
        Warn("UnexpectedJob",
             fmt::format("Saw a job that the controller did not create or forgot: {}",
                         metadata["name"].AsString()));
      }
      return;
    }
    if (IsInActive(metadata["uid"])) {
      RemoveFromActive(metadata["uid"]);
      Tell(client::EventType::kNormal, "SawCompletedJob",
           fmt::format("Saw completed job: {}, condition: {}", metadata["name"].AsString(),
                       finished["type"].AsString()));
    }
    const std::optional<Time> end = ParseTime(job["status"]["completionTime"].AsString());
    if (finished["type"].AsString() != "Complete" || !end.has_value()) return;
    const std::optional<Time> last = StatusTime("lastSuccessfulTime");
    if (!last.has_value() || *last < *end)
      status_ = std::move(status_).Set("lastSuccessfulTime", FormatTime(*end));
  }

  // Active Jobs that the cache does not know are asked of the server. True if the pass has to wait
  // for that.
  bool AsksForMissing() {
    bool asks = false;
    const json::Array known = active_;
    for (const json::Value& ref : known) {
      const bool is_there = std::any_of(
          input_.jobs.begin(), input_.jobs.end(),
          [&ref](const json::Value& job) { return job["metadata"]["uid"] == ref["uid"]; });
      if (is_there) continue;
      const std::string name = ref["name"].Str();
      const auto live = observations_.find(name);
      if (live == observations_.end()) {
        out_.events.clear();  // the next pass tells all of it
        out_.Ask(name, {resources::kJobs, cron_job_["metadata"]["namespace"].Str(), name, ""});
        asks = true;
      } else if (live->second["metadata"]["uid"] != ref["uid"]) {
        Tell(client::EventType::kNormal, "MissingJob",
             fmt::format("Active job went missing: {}", name));
        RemoveFromActive(ref["uid"]);
      }
    }
    return asks;
  }

  // spec.timeZone, or what stands before the schedule, ; nullopt if it is unknown,
  // which is told.
  std::optional<TimeZone> Zone(const std::string& schedule) {
    std::string name = spec_["timeZone"].Str();
    Result<TimeZone> zone = TimeZone::Find(name);
    if (!zone) {
      Warn("UnknownTimeZone",
           fmt::format("invalid timeZone: {:?}: {}", name, zone.error().message()));
      return std::nullopt;
    }
    if (schedule.find("TZ") == schedule.npos) return *zone;
    Warn("UnsupportedSchedule",
         fmt::format("CRON_TZ or TZ used in schedule {:?} is not officially supported, see "
                     "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for "
                     "more details",
                     schedule));
    // An unknown one is left where it is: reading the schedule says so.
    for (const std::string_view prefix : {"TZ=", "CRON_TZ="}) {
      if (!schedule.starts_with(prefix)) continue;
      const size_t end = std::min(schedule.find(' '), schedule.size());
      name = schedule.substr(prefix.size(), end - prefix.size());
      if (const Result<TimeZone> own = TimeZone::Find(name)) zone = own;
    }
    return *zone;
  }

  void Schedule() {
    if (spec_["suspend"].AsBool()) return;
    const std::string text = spec_["schedule"].Str();
    const std::optional<TimeZone> zone = Zone(text);
    if (!zone.has_value()) return;
    const Result<schema::CronSchedule> schedule = schema::CronSchedule::Parse(text);
    if (!schedule) {
      return Warn("UnparseableSchedule",
                  fmt::format("unparseable schedule: {:?} : {}", spec_["schedule"].AsString(),
                              schedule.error().message()));
    }
    const Time made =
        ParseTime(cron_job_["metadata"]["creationTimestamp"].AsString()).value_or(now_);
    const Time since = StatusTime("lastScheduleTime").value_or(made);
    const Time not_before = spec_.Has("startingDeadlineSeconds") ? now_ - Deadline() : Time::min();
    const Result<DueStart> due = FindDueStart(*schedule, *zone, since, not_before, now_);
    if (!due) {
      return Warn("InvalidSchedule",
                  fmt::format("invalid schedule: {} : {}", spec_["schedule"].AsString(),
                              due.error().message()));
    }
    const bool too_late = due->at.has_value() && *due->at < not_before;
    if (due->next.has_value())
      out_.LookAgainAt(too_late ? *due->next : std::min(*due->next, now_ + kMaxCronSleep));
    if (too_late)
      return Warn("MissSchedule",
                  fmt::format("Missed scheduled time to start a job: {}", MailTime(*due->at)));
    if (!due->at.has_value()) return;
    if (due->missed > kMaxMissedStarts) {
      Warn("TooManyMissedTimes",
           "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
           "clock skew");
    }
    StartJob(*due->at, *zone);
  }

  Duration Deadline() const {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // of seconds: decades
    return seconds(std::min(spec_["startingDeadlineSeconds"].AsInt(), kMost));
  }

  void StartJob(Time start, const TimeZone& zone) {
    const std::string name = NameFor(start);
    if (input_.is_taken(name)) return;  // by ours of the same minute, or by a stranger
    const std::string_view policy = spec_["concurrencyPolicy"].AsString();
    if (policy == "Forbid" && !active_.empty()) {
      return Tell(client::EventType::kNormal, "JobAlreadyActive",
                  "Not starting job because prior execution is running and concurrency policy is "
                  "Forbid");
    }
    if (policy == "Replace") {
      for (const json::Value& ref : std::exchange(active_, {}))
        Delete(ref["name"].Str(), ref["uid"].Str());
    }
    const json::Value& job_template = spec_["jobTemplate"];
    const std::string ns = cron_job_["metadata"]["namespace"].Str();
    json::Value metadata = json::Obj({{"name", name},
                                      {"namespace", ns},
                                      {"annotations", job_template["metadata"]["annotations"].Set(
                                                          kScheduledAt, LocalTime(start, zone))},
                                      {"ownerReferences", ControlledByOnly(cron_job_)}});
    if (const json::Value& labels = job_template["metadata"]["labels"]; !labels.empty())
      metadata = std::move(metadata).Set("labels", labels);
    out_.Create({resources::kJobs, ns, name, ""}, json::Obj({{"apiVersion", "batch/v1"},
                                                             {"kind", "Job"},
                                                             {"metadata", std::move(metadata)},
                                                             {"spec", job_template["spec"]}}));
    Tell(client::EventType::kNormal, "SuccessfulCreate", fmt::format("Created job {}", name));
    MoveLastStart(start);
  }

  void Delete(const std::string& name, const std::string& uid) {
    client::DeleteOptions options;
    options.propagation_policy = "Background";
    options.precondition_uid = uid;
    out_.Delete({resources::kJobs, cron_job_["metadata"]["namespace"].Str(), name, ""},
                std::move(options));
    Tell(client::EventType::kNormal, "SuccessfulDelete", fmt::format("Deleted job {}", name));
  }

  void WriteStatus() {
    status_ = active_.empty() ? status_.Remove("active")
                              : std::move(status_).Set("active", json::Value(std::move(active_)));
    if (status_ == cron_job_["status"] || (status_.empty() && cron_job_["status"].empty())) return;
    const client::ObjectKey key = client::KeyOf(cron_job_);
    out_.UpdateStatus({resources::kCronJobs, key.ns, key.name, ""},
                      cron_job_.Set("status", std::move(status_)));
  }

  // The oldest of those that ended so, beyond the limit.
  void CleanUp(const char* limit, const char* condition) {
    const std::optional<int64_t> kept = spec_[limit].Int();
    if (!kept.has_value() || *kept < 0) return;
    std::vector<const json::Value*> jobs;
    for (const json::Value& job : input_.jobs) {
      if (FinishedCondition(job)["type"].AsString() == condition &&
          !job["metadata"].Has("deletionTimestamp"))
        jobs.push_back(&job);
    }
    const auto rank = [](const json::Value& job) {
      const json::Value& start = job["status"]["startTime"];
      return std::tuple(!start.IsString(), start.AsString(), job["metadata"]["name"].AsString());
    };
    std::sort(jobs.begin(), jobs.end(),
              [&rank](const json::Value* a, const json::Value* b) { return rank(*a) < rank(*b); });
    for (size_t i = 0; i + static_cast<size_t>(*kept) < jobs.size(); ++i)
      Delete((*jobs[i])["metadata"]["name"].Str(), (*jobs[i])["metadata"]["uid"].Str());
  }

  const CronJobInput& input_;
  const json::Value& cron_job_;
  const json::Value& spec_;
  const client::Observations& observations_;
  const Time now_;
  client::Reconciled& out_;
  json::Value status_;
  json::Array active_;
};

}  // namespace

Result<DueStart> FindDueStart(const schema::CronSchedule& schedule, const TimeZone& zone,
                              Time since, Time not_before, Time now) {
  DueStart out;
  const std::optional<Time> first = NextTime(schedule, zone, since);
  const std::optional<Time> second = first ? NextTime(schedule, zone, *first) : std::nullopt;
  if (!second) {
    return Error(Reason::kInternalError,
                 "time difference between two schedules is less than 1 second");
  }
  out.at = LastTime(schedule, zone, since, now);
  out.next = out.at ? NextTime(schedule, zone, *out.at) : first;
  if (out.at) out.missed = (now - std::max(*first, not_before)) / (*second - *first) + 1;
  return out;
}

void ReconcileCronJob(const CronJobInput& input, const client::Observations& observations, Time now,
                      client::Reconciled& out) {
  Pass(input, observations, now, out).Run();
}

}  // namespace muster::controllers
