// Schedules as users write them, and rules of time zones: whatever is accepted says when something
// is due, and never before the time it was asked for.

#include <optional>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "controllers/cronjob/cron_times.h"

FUZZ_TARGET(cron, input) {
  muster::FuzzInput parts(input);
  const auto schedule = muster::schema::CronSchedule::Parse(parts.Line());
  const auto parsed = muster::controllers::TimeZone::Parse(parts.Rest());
  const muster::controllers::TimeZone zone = parsed ? *parsed : muster::controllers::TimeZone();
  const muster::Time start{muster::seconds(1'767'225'600)};
  const auto period = zone.At(start);
  CHECK(!period.until || *period.until > start);
  if (!schedule) return;
  const auto next = muster::controllers::NextTime(*schedule, zone, start);
  if (!next) return;
  CHECK(*next > start);
  CHECK(muster::controllers::LastTime(*schedule, zone, start, *next) == next);
}
