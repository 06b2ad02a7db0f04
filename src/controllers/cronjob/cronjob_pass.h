// src/controllers/cronjob/cronjob_pass.h
//
// One pass over a CronJob: the Job that is due, those that are too many, its status. Source:
// k8s.io/kubernetes pkg/controller/cronjob.
//
// A Job's name says for which minute it is: no crash makes two of them. The status takes it in when
// it is seen, also one that a pass made which did not live to write the status.
//
// Thread: any (pure functions).

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "client/reconcile.h"
#include "controllers/cronjob/time_zone.h"
#include "json/value.h"
#include "schema/cron_schedule.h"

namespace muster::controllers {

// More missed starts than these are worth a warning.
inline constexpr int64_t kMaxMissedStarts = 100;
// A clock that jumps ahead is noticed after that.
inline constexpr Duration kMaxCronSleep = minutes(5);

struct CronJobInput {
  json::Value cron_job;
  std::vector<json::Value> jobs;                          // that it controls
  std::function<bool(const std::string& name)> is_taken;  // a Job has the name
};

// Adds to `out`.
void ReconcileCronJob(const CronJobInput& input, const client::Observations& observations, Time now,
                      client::Reconciled& out);

// The last start that is due and not done.
struct DueStart {
  std::optional<Time> at;    // none: nothing is due
  std::optional<Time> next;  // none: never
  // About how many starts there were, this one included, by the distance of the first two.
  int64_t missed = 0;
};
// `since`: the last start, or when the CronJob was made. Before `not_before` nothing is missed.
// InternalError for a schedule that means no time at all.
Result<DueStart> FindDueStart(const schema::CronSchedule& schedule, const TimeZone& zone,
                              Time since, Time not_before, Time now);

}  // namespace muster::controllers
