#include "controllers/cronjob/cron_times.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "schema/time_zones.h"

namespace muster::controllers {
namespace {

TimeZone ZoneOf(const std::string& rule) {
  const Result<TimeZone> zone = TimeZone::Parse(rule);
  EXPECT_TRUE(zone.has_value()) << rule;
  return zone ? *zone : TimeZone();
}

Time At(const char* text) { return *ParseTime(text); }

std::string NextOf(const std::string& schedule, const char* after, const TimeZone& zone = {}) {
  const auto parsed = schema::CronSchedule::Parse(schedule);
  if (!parsed) return parsed.error().message();
  const std::optional<Time> next = NextTime(*parsed, zone, At(after));
  return next ? FormatTime(*next) : "never";
}

TEST(CronTimes, Next) {
  struct Row {
    const char* schedule;
    const char* after;
    const char* next;
  };
  const Row rows[] = {
      {"* * * * *", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"},
      {"* * * * *", "2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z"},
      {"*/15 * * * *", "2026-01-02T03:45:00Z", "2026-01-02T04:00:00Z"},
      {"5/15 * * * *", "2026-01-02T03:21:00Z", "2026-01-02T03:35:00Z"},
      {"20-35/15 * * * *", "2026-01-02T03:36:00Z", "2026-01-02T04:20:00Z"},
      {"0 0,12 * * *", "2026-01-02T03:04:05Z", "2026-01-02T12:00:00Z"},
      {"30 4 1 1 ?", "2026-01-02T03:04:05Z", "2027-01-01T04:30:00Z"},
      {"0 0 29 2 *", "2025-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
      {"59 23 31 dec *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},
      {"0 9 * * MON-fri", "2026-01-02T09:00:00Z", "2026-01-05T09:00:00Z"},  // from a Friday
      {"0 0 * * 0", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
      {"0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},  // one of them
      {"0 0 13 * *", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z"},
      {"0 0 */2 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},  // a step limits
      {"0 0 */1 * fri", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"},
      {"0 0 30 2 *", "2026-01-01T00:00:00Z", "never"},
      {"59 23 31 2 *", "2026-01-01T00:00:00Z", "never"},
      {"@hourly", "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"},
      {"@daily", "2026-01-02T03:04:05Z", "2026-01-03T00:00:00Z"},
      {"@midnight", "2026-01-02T03:04:05Z", "2026-01-03T00:00:00Z"},
      {"@weekly", "2026-01-02T03:04:05Z", "2026-01-04T00:00:00Z"},
      {"@monthly", "2026-01-02T03:04:05Z", "2026-02-01T00:00:00Z"},
      {"@yearly", "2026-01-02T03:04:05Z", "2027-01-01T00:00:00Z"},
      {"@annually", "2026-01-02T03:04:05Z", "2027-01-01T00:00:00Z"},
      {"@every 1h30m", "2026-01-02T03:04:05Z", "2026-01-02T04:34:05Z"},
      {"@every 1.5s", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"},
      {"@every 50000h", "2026-01-02T03:04:05Z", "never"},
      {"@every 1ms", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"},
      {"  0\t0  * * * ", "2026-01-02T03:04:05Z", "2026-01-03T00:00:00Z"}};
  for (const Row& row : rows) EXPECT_EQ(NextOf(row.schedule, row.after), row.next) << row.schedule;
}

TEST(CronTimes, ClocksThatChange) {
  const TimeZone new_york = ZoneOf("EST5EDT,M3.2.0,M11.1.0");
  struct Row {
    const char* schedule;
    const char* after;
    const char* next;
  };
  const Row rows[] = {
      {"0 9 * * *", "2026-01-02T00:00:00Z", "2026-01-02T14:00:00Z"},
      {"0 9 * * *", "2026-07-02T00:00:00Z", "2026-07-02T13:00:00Z"},
      // 2026-03-08 has no 02:30, so that day is left out.
      {"30 2 * * *", "2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z"},
      {"0 * * * *", "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z"},  // 01:00, then 03:00
      // 2026-11-01 has 01:30 twice.
      {"30 1 * * *", "2026-11-01T04:00:00Z", "2026-11-01T05:30:00Z"},
      {"30 1 * * *", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
      {"30 1 * * *", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"},
      {"0 0 * * *", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}};
  for (const Row& row : rows)
    EXPECT_EQ(NextOf(row.schedule, row.after, new_york), row.next) << row.schedule << row.after;
}

TEST(TimeZone, RulesOfMoreKinds) {
  struct Row {
    const char* rule;
    const char* at;
    int64_t offset;
    const char* until;
  };
  const Row rows[] = {
      {"<+0530>-5:30", "2026-01-01T00:00:00Z", 19800, ""},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-01-01T00:00:00Z", 3600, "2026-03-29T01:00:00Z"},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T01:00:00Z", 7200, "2026-10-25T01:00:00Z"},
      {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-01-01T00:00:00Z", 39600, "2026-04-04T16:00:00Z"},
      {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-12-31T23:00:00Z", 39600, "2027-04-03T16:00:00Z"},
      {"AAA3BBB,J60/0,J300/0", "2024-02-29T12:00:00Z", -10800, "2024-03-01T03:00:00Z"},
      {"AAA3BBB,59/0,300/0", "2024-02-28T12:00:00Z", -10800, "2024-02-29T03:00:00Z"},
      {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-01-01T00:00:00Z", -7200, "2026-03-29T01:00:00Z"}};
  for (const Row& row : rows) {
    const TimeZone::Period period = ZoneOf(row.rule).At(At(row.at));
    EXPECT_EQ(period.offset.count(), row.offset) << row.rule;
    EXPECT_EQ(period.until ? FormatTime(*period.until) : "", row.until) << row.rule;
  }
}

TEST(TimeZone, RefusesWhatIsNoRule) {
  for (const char* rule :
       {"", "E5", "EST", "EST99", "EST5EDT", "EST5EDT,M3.2.0", "EST5EDT,M13.2.0,M11.1.0",
        "EST5EDT,M3.6.0,M11.1.0", "EST5EDT,M3.2.0,M11.1.0,", "EST5EDT,J0,J5", "EST5EDT,366,5",
        "EST5EDT,M3.2.0/168,M11.1.0", "<x5", "EST5 "})
    EXPECT_FALSE(TimeZone::Parse(rule).has_value()) << rule;
}

TEST(TimeZone, EveryNameHasAnOffset) {
  size_t names = 0;
  for (const schema::TimeZoneRule& row : schema::kTimeZoneRules) {
    for (const std::string_view name : SplitNonEmpty(row.names, ' ')) {
      EXPECT_TRUE(TimeZone::Find(name).has_value()) << name;
      ++names;
    }
  }
  EXPECT_GT(names, 500u);
  EXPECT_EQ(TimeZone::Find("Asia/Kolkata")->At(At("2026-01-01T00:00:00Z")).offset, seconds(19800));
  EXPECT_EQ(TimeZone::Find("UTC")->At(At("2026-01-01T00:00:00Z")).offset, seconds(0));
  EXPECT_EQ(TimeZone::Find("")->At(At("2026-01-01T00:00:00Z")).offset, seconds(0));
  EXPECT_EQ(TimeZone::Find("Mars/Base").error().message(), "unknown time zone Mars/Base");
}

}  // namespace
}  // namespace muster::controllers
