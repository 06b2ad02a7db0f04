#include "schema/cron_schedule.h"

#include <gtest/gtest.h>

#include "schema/time_zones.h"

namespace muster::schema {
namespace {

uint64_t Bits(std::initializer_list<int> numbers) {
  uint64_t bits = 0;
  for (const int n : numbers) bits |= uint64_t{1} << n;
  return bits;
}

CronSchedule Parsed(std::string_view text) {
  const Result<CronSchedule> schedule = CronSchedule::Parse(text);
  EXPECT_TRUE(schedule.has_value()) << text << ": " << schedule.error().message();
  return schedule.value_or(CronSchedule());
}

TEST(CronScheduleTest, ListsRangesAndSteps) {
  const CronSchedule schedule = Parsed("1,3-5,50/4 */8 1-31/10 jan-mar,DEC 5");
  EXPECT_EQ(schedule.minutes, Bits({1, 3, 4, 5, 50, 54, 58}));
  EXPECT_EQ(schedule.hours, Bits({0, 8, 16}));
  EXPECT_EQ(schedule.days, Bits({1, 11, 21, 31}));
  EXPECT_EQ(schedule.months, Bits({1, 2, 3, 12}));
  EXPECT_EQ(schedule.weekdays, Bits({5}));
  EXPECT_EQ(schedule.every, Duration::zero());
}

TEST(CronScheduleTest, AStepBeyondTheEndLeavesTheFirst) {
  EXPECT_EQ(Parsed("* * * * */100").weekdays, Bits({0}));
  EXPECT_EQ(Parsed("7/9223372036854775807 * * * *").minutes, Bits({7}));
}

TEST(CronScheduleTest, AnyDayIsAStarWithoutAStep) {
  const auto any = [](std::string_view text) {
    const CronSchedule schedule = Parsed(text);
    return std::pair(schedule.any_day, schedule.any_weekday);
  };
  EXPECT_EQ(any("0 0 * * 1"), std::pair(true, false));
  EXPECT_EQ(any("0 0 1 * ?"), std::pair(false, true));
  EXPECT_EQ(any("0 0 */2 * *"), std::pair(false, true));
  EXPECT_EQ(any("0 0 1,* * */1"), std::pair(true, true));
}

TEST(CronScheduleTest, Words) {
  const CronSchedule weekly = Parsed("@weekly");
  EXPECT_EQ(weekly.minutes, Bits({0}));
  EXPECT_EQ(weekly.hours, Bits({0}));
  EXPECT_EQ(weekly.weekdays, Bits({0}));
  EXPECT_TRUE(weekly.any_day);
  EXPECT_EQ(Parsed("@hourly").minutes, Bits({0}));
  EXPECT_EQ(Parsed("TZ=Asia/Tokyo @yearly").months, Bits({1}));
}

TEST(CronScheduleTest, EveryIsWholeSecondsAndAtLeastOne) {
  EXPECT_EQ(Parsed("@every 1h30m").every, minutes(90));
  EXPECT_EQ(Parsed("@every 1.5s").every, seconds(1));
  EXPECT_EQ(Parsed("@every 2500ms").every, seconds(2));
  EXPECT_EQ(Parsed("@every 0").every, seconds(1));
  EXPECT_EQ(Parsed("@every -5m").every, seconds(1));
  EXPECT_FALSE(CronSchedule::Parse("@every 9999999h").has_value());
  EXPECT_FALSE(CronSchedule::Parse("@every 1..5s").has_value());
  EXPECT_FALSE(CronSchedule::Parse("@every ").has_value());
}

TEST(TimeZonesTest, NamesHaveTheRuleOfToday) {
  EXPECT_EQ(PosixTimeZone("Europe/Berlin"), "CET-1CEST,M3.5.0,M10.5.0/3");
  EXPECT_EQ(PosixTimeZone("Asia/Kolkata"), "IST-5:30");
  EXPECT_EQ(PosixTimeZone("US/Pacific"), PosixTimeZone("America/Los_Angeles"));
  EXPECT_EQ(PosixTimeZone("UTC"), "UTC0");
  for (const char* unknown : {"", " ", "europe/berlin", "Europe", "Factory", "posix/UTC"})
    EXPECT_EQ(PosixTimeZone(unknown), "") << unknown;
}

TEST(TimeZonesTest, EveryNameStandsOnce) {
  size_t names = 0;
  for (const TimeZoneRule& row : kTimeZoneRules) {
    EXPECT_FALSE(row.rule.empty());
    std::string_view rest = row.names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      EXPECT_EQ(PosixTimeZone(name), row.rule) << name;
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      ++names;
    }
  }
  EXPECT_GT(names, 500u);
}

}  // namespace
}  // namespace muster::schema
