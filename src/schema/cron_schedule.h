// src/schema/cron_schedule.h
//
// CronSchedule: what CronJob.spec.schedule says, with the messages of github.com/robfig/cron v3
// ParseStandard: "*/5 8-17 * jan-jun mon", "@daily", "@every 1h30m".
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace muster::schema {

struct CronSchedule {
  // Bit n stands for the number n: minutes 0-59, hours 0-23, days 1-31, months 1-12, weekdays 0-6
  // from Sunday on.
  uint64_t minutes = 0, hours = 0, days = 0, months = 0, weekdays = 0;
  // Was it "*" or "?"? If neither was, a day needs to fit one of the two only.
  bool any_day = false, any_weekday = false;
  Duration every{};  // of "@every", whole seconds; zero: the bits count

  static Result<CronSchedule> Parse(std::string_view text);
};

}  // namespace muster::schema
