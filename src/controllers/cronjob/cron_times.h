// src/controllers/cronjob/cron_times.h
//
// When a schedule (schema/cron_schedule.h) is due on the clocks of a zone. If both its days are
// limited, one of them is enough. A local time that a change of clocks skips is skipped, one that
// comes twice is due twice, as with github.com/robfig/cron.
//
// Thread: any (pure functions).

#pragma once

#include <optional>

#include "base/time.h"
#include "controllers/cronjob/time_zone.h"
#include "schema/cron_schedule.h"

namespace muster::controllers {

// The first time after `time`; nullopt if there is none within five years (February 30). "@every"
// counts from `time`.
std::optional<Time> NextTime(const schema::CronSchedule& schedule, const TimeZone& zone, Time time);

// The last time after `since` that is not after `now`; nullopt if there is none. "@every" counts
// from `since`.
std::optional<Time> LastTime(const schema::CronSchedule& schedule, const TimeZone& zone, Time since,
                             Time now);

}  // namespace muster::controllers
