#include "controllers/cronjob/cronjob_controller.h"

#include <algorithm>
#include <memory>

#include "controllers/controller_test_base.h"
#include "controllers/cronjob/cronjob_pass.h"

namespace muster::controllers {
namespace {

class CronJobTest : public ControllerTest {
 protected:
  CronJobTest() { Start(std::make_unique<CronJobController>()); }

  // Made now; time starts at 2026-01-01T00:00:00Z, Settle() takes three seconds of it.
  void PutCronJob(const std::string& schedule, const std::string& spec = "") {
    Put(kCronJobs, fmt::format(R"(
apiVersion: batch/v1
kind: CronJob
metadata: {{name: tidy, namespace: d, uid: c1, creationTimestamp: '{}'}}
spec:
  schedule: "{}"
  jobTemplate:
    metadata: {{labels: {{app: tidy}}, annotations: {{note: x}}}}
    spec: {{template: {{spec: {{containers: [{{name: c, image: none}}]}}}}}}
{}
)",
                               FormatTime(loop_.Now()), schedule, spec));
    Settle();
  }
  void RunUntil(const char* time) { loop_.RunFor(*ParseTime(time) - loop_.Now()); }
  void SetSpec(const char* field, json::Value value) {
    api_.Put(kCronJobs, CronJob().SetPath({"spec", field}, std::move(value)));
    Settle();
  }
  json::Value CronJob() { return Get(kCronJobs, "d", "tidy"); }
  json::Value Status() { return CronJob()["status"]; }
  std::vector<json::Value> Jobs() const { return All(kJobs); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const json::Value& job : Jobs()) names.push_back(job["metadata"]["name"].Str());
    return names;
  }
  void End(const json::Value& job, const char* condition) {
    json::Value status = json::Obj(
        {{"startTime", job["metadata"]["creationTimestamp"]},
         {"conditions", json::List({json::Obj({{"type", condition}, {"status", "True"}})})}});
    if (std::string_view(condition) == "Complete")
      status = status.Set("completionTime", FormatTime(loop_.Now()));
    api_.Put(kJobs, job.Set("status", status));
    Settle();
  }
  bool HasEvent(const std::string& text) const {
    const std::vector<std::string> events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }
};

// 2026-01-01T00:00:00Z is minute 29453760.
TEST_F(CronJobTest, StartsJobsWhenTheyAreDue) {
  PutCronJob("*/5 * * * *");
  EXPECT_TRUE(Jobs().empty());
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  RunUntil("2026-01-01T00:05:02Z");
  ASSERT_EQ(Names(), std::vector<std::string>{"tidy-29453765"});
  const json::Value job = Jobs()[0];
  EXPECT_EQ(job["metadata"]["labels"], Yaml("{app: tidy}"));
  EXPECT_EQ(job["metadata"]["annotations"],
            Yaml("{note: x, batch.kubernetes.io/cronjob-scheduled-timestamp: "
                 "'2026-01-01T00:05:00Z'}"));
  EXPECT_EQ(job["metadata"]["ownerReferences"], Yaml(R"(
- {apiVersion: batch/v1, kind: CronJob, name: tidy, uid: c1, controller: true,
   blockOwnerDeletion: true}
)"));
  EXPECT_EQ(job["spec"], Yaml("{template: {spec: {containers: [{name: c, image: none}]}}}"));
  EXPECT_EQ(Status()["lastScheduleTime"].AsString(), "2026-01-01T00:05:00Z");
  ASSERT_EQ(Status()["active"].size(), 1u);
  EXPECT_EQ(Status()["active"].At(0)["uid"], job["metadata"]["uid"]);
  EXPECT_TRUE(HasEvent("SuccessfulCreate Created job tidy-29453765"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);

  End(job, "Complete");
  EXPECT_FALSE(Status().Has("active"));
  EXPECT_EQ(Status()["lastSuccessfulTime"].AsString(), "2026-01-01T00:05:02Z");
  EXPECT_TRUE(HasEvent("SawCompletedJob Saw completed job: tidy-29453765, condition: Complete"));
  RunUntil("2026-01-01T00:10:02Z");
  EXPECT_EQ(Jobs().size(), 2u);
  End(Jobs()[1], "Failed");
  EXPECT_EQ(Status()["lastSuccessfulTime"].AsString(), "2026-01-01T00:05:02Z");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// [sig-apps] CronJob should schedule multiple jobs concurrently.
TEST_F(CronJobTest, AllowsManyAtOnce) {
  PutCronJob("* * * * *", "  concurrencyPolicy: Allow");
  RunUntil("2026-01-01T00:03:02Z");
  EXPECT_EQ(Jobs().size(), 3u);
  EXPECT_EQ(Status()["active"].size(), 3u);
}

// [sig-apps] CronJob should not schedule new jobs when ForbidConcurrent.
TEST_F(CronJobTest, ForbidsASecondOne) {
  PutCronJob("* * * * *", "  concurrencyPolicy: Forbid");
  RunUntil("2026-01-01T00:03:02Z");
  ASSERT_EQ(Names(), std::vector<std::string>{"tidy-29453761"});
  EXPECT_TRUE(
      HasEvent("JobAlreadyActive Not starting job because prior execution is running and "
               "concurrency policy is Forbid"));
  End(Jobs()[0], "Complete");  // the last start that was held up comes now
  EXPECT_EQ(Names(), (std::vector<std::string>{"tidy-29453761", "tidy-29453763"}));
}

// [sig-apps] CronJob should replace jobs when ReplaceConcurrent.
TEST_F(CronJobTest, ReplacesTheOneThatRuns) {
  PutCronJob("* * * * *", "  concurrencyPolicy: Replace");
  RunUntil("2026-01-01T00:02:02Z");
  EXPECT_EQ(Names(), std::vector<std::string>{"tidy-29453762"});
  EXPECT_TRUE(HasEvent("SuccessfulDelete Deleted job tidy-29453761"));
  ASSERT_EQ(Status()["active"].size(), 1u);
  EXPECT_EQ(Status()["active"].At(0)["name"].AsString(), "tidy-29453762");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// [sig-apps] CronJob should not schedule jobs when suspended.
TEST_F(CronJobTest, StartsNothingWhenSuspended) {
  PutCronJob("* * * * *", "  suspend: true");
  RunUntil("2026-01-01T00:10:02Z");
  EXPECT_TRUE(Jobs().empty());
  SetSpec("suspend", false);  // the last start that was due
  EXPECT_EQ(Names(), std::vector<std::string>{"tidy-29453770"});
}

// [sig-apps] CronJob should delete successful/failed finished jobs with limit of one job.
TEST_F(CronJobTest, KeepsSomeHistory) {
  PutCronJob("* * * * *", "  successfulJobsHistoryLimit: 1\n  failedJobsHistoryLimit: 0");
  RunUntil("2026-01-01T00:04:02Z");
  ASSERT_EQ(Jobs().size(), 4u);
  for (const auto& [name, condition] :
       {std::pair{"tidy-29453762", "Complete"}, {"tidy-29453761", "Complete"}})
    End(Get(kJobs, "d", name), condition);
  EXPECT_TRUE(Get(kJobs, "d", "tidy-29453761").IsNull());  // the older one
  EXPECT_TRUE(HasEvent("SuccessfulDelete Deleted job tidy-29453761"));
  End(Get(kJobs, "d", "tidy-29453763"), "Failed");
  EXPECT_EQ(Names(), (std::vector<std::string>{"tidy-29453762", "tidy-29453764"}));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// [sig-apps] CronJob should remove from active list jobs that have been deleted.
TEST_F(CronJobTest, AJobThatWentMissingIsNotActive) {
  PutCronJob("0 * * * *");
  RunUntil("2026-01-01T01:00:02Z");
  ASSERT_EQ(Status()["active"].size(), 1u);
  api_.Remove(kJobs, "d", Names()[0]);
  Settle();
  EXPECT_FALSE(Status().Has("active"));
  EXPECT_TRUE(HasEvent("MissingJob Active job went missing: tidy-29453820"));
  EXPECT_TRUE(Jobs().empty());  // and not started again
}

TEST_F(CronJobTest, AJobThatTheServerHasIsNotMissing) {
  PutCronJob("0 * * * *");
  RunUntil("2026-01-01T01:00:02Z");
  const std::string uid = Jobs()[0]["metadata"]["uid"].Str();
  // Still there, but released.
  api_.Put(kJobs, Jobs()[0].RemovePath({"metadata", "ownerReferences"}));
  Settle();
  ASSERT_EQ(Status()["active"].size(), 1u);
  EXPECT_EQ(Status()["active"].At(0)["uid"].AsString(), uid);
}

TEST_F(CronJobTest, ToldOfJobsThatItDidNotMake) {
  PutCronJob("0 * * * *");
  Put(kJobs, R"(
apiVersion: batch/v1
kind: Job
metadata:
  name: by-hand
  namespace: d
  annotations: {cronjob.kubernetes.io/instantiate: manual}
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: tidy, uid: c1, controller: true}]
)");
  Settle();
  EXPECT_TRUE(
      HasEvent("UnexpectedJob Saw a job that the controller did not create or forgot: by-hand"));
  EXPECT_FALSE(Status().Has("active"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(CronJobTest, LeavesAStrangersJobAlone) {
  Put(kJobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: tidy-29453765, namespace: d}}");
  PutCronJob("*/5 * * * *");
  RunUntil("2026-01-01T00:06:00Z");
  EXPECT_EQ(Jobs().size(), 1u);
  EXPECT_TRUE(client::ControllerOf(Jobs()[0]).IsNull());
  RunUntil("2026-01-01T00:10:02Z");
  EXPECT_EQ(Names(), (std::vector<std::string>{"tidy-29453765", "tidy-29453770"}));
}

TEST_F(CronJobTest, SaysWhatIsWrongWithItsTimes) {
  struct Row {
    const char* schedule;
    const char* spec;
    const char* event;
  };
  const Row rows[] = {
      {"0 * * * *", "  timeZone: Mars/Base",
       "UnknownTimeZone invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base"},
      {"0 * * *", "",
       "UnparseableSchedule unparseable schedule: \"0 * * *\" : expected exactly 5 fields, found "
       "4: [0 * * *]"},
      {"59 23 31 2 *", "",
       "InvalidSchedule invalid schedule: 59 23 31 2 * : time difference between two schedules is "
       "less than 1 second"},
      {"TZ=Mars/Base 0 * * * *", "",
       "UnparseableSchedule unparseable schedule: \"TZ=Mars/Base 0 * * * *\" : provided bad "
       "location Mars/Base: unknown time zone Mars/Base"}};
  for (const Row& row : rows) {
    PutCronJob(row.schedule, row.spec);
    EXPECT_TRUE(HasEvent(row.event)) << row.schedule;
  }
  RunUntil("2026-01-01T02:00:00Z");
  EXPECT_TRUE(Jobs().empty());
  PutCronJob("CRON_TZ=UTC 0 * * * *");
  EXPECT_TRUE(HasEvent(
      "UnsupportedSchedule CRON_TZ or TZ used in schedule \"CRON_TZ=UTC 0 * * * *\" is not "
      "officially supported, see "
      "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"));
  RunUntil("2026-01-01T03:00:02Z");
  EXPECT_EQ(Jobs().size(), 1u);
}

TEST_F(CronJobTest, WhatIsTooLateIsNotStarted) {
  PutCronJob("*/10 * * * *", "  suspend: true\n  startingDeadlineSeconds: 60");
  RunUntil("2026-01-01T00:12:00Z");
  SetSpec("suspend", false);
  EXPECT_TRUE(Jobs().empty());
  EXPECT_TRUE(HasEvent(
      "MissSchedule Missed scheduled time to start a job: Thu, 01 Jan 2026 00:10:00 +0000"));
  RunUntil("2026-01-01T00:20:02Z");
  EXPECT_EQ(Names(), std::vector<std::string>{"tidy-29453780"});
}

TEST_F(CronJobTest, ManyMissedStartsAreOneJobAndAWarning) {
  PutCronJob("* * * * *", "  suspend: true");
  RunUntil("2026-01-01T01:41:30Z");
  const std::string warning =
      "TooManyMissedTimes too many missed start times. Set or decrease "
      ".spec.startingDeadlineSeconds or check clock skew";
  SetSpec("startingDeadlineSeconds", 600);
  SetSpec("suspend", false);
  EXPECT_EQ(Names(), std::vector<std::string>{"tidy-29453861"});
  EXPECT_FALSE(HasEvent(warning));
  api_.Remove(kJobs, "d", "tidy-29453861");
  PutCronJob("* * * * *", "  suspend: true");
  loop_.RunFor(minutes(102));
  SetSpec("suspend", false);
  EXPECT_EQ(Jobs().size(), 1u);
  EXPECT_TRUE(HasEvent(warning));
}

TEST_F(CronJobTest, AClockThatJumpsAheadIsNoticed) {
  PutCronJob("0 12 * * *");
  loop_.JumpClock(hours(13));
  loop_.RunFor(kMaxCronSleep + seconds(1));
  EXPECT_EQ(Jobs().size(), 1u);
  // And one that jumps back starts nothing twice.
  loop_.JumpClock(-hours(13));
  loop_.RunFor(hours(13));
  EXPECT_EQ(Jobs().size(), 1u);
}

TEST_F(CronJobTest, KnowsTheClocksOfOtherPlaces) {
  PutCronJob("0 6 * * *", "  timeZone: Asia/Kolkata");
  RunUntil("2026-01-01T00:30:02Z");
  ASSERT_EQ(Jobs().size(), 1u);
  EXPECT_EQ(Jobs()[0]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
                .AsString(),
            "2026-01-01T06:00:00+05:30");
  EXPECT_EQ(Status()["active"].size(), 1u);
}

TEST_F(CronJobTest, OnItsWayOutItStartsNothing) {
  PutCronJob("* * * * *");
  api_.Put(kCronJobs, CronJob()
                          .SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now()))
                          .SetPath({"metadata", "finalizers"}, Yaml("[foregroundDeletion]")));
  RunUntil("2026-01-01T00:02:00Z");
  EXPECT_TRUE(Jobs().empty());
}

TEST_F(CronJobTest, SaysWhyAJobCannotBeMade) {
  bool refuse = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!refuse || request.method != "POST" || request.target.find("/jobs") == std::string::npos)
      return true;
    client::FakeApi::SendError(*writer, 403, "Forbidden", "exceeded quota: q");
    return false;
  };
  PutCronJob("*/30 * * * *");
  RunUntil("2026-01-01T00:30:10Z");
  EXPECT_TRUE(HasEvent("FailedCreate Error creating: exceeded quota: q"));
  EXPECT_FALSE(Status().Has("lastScheduleTime"));
  refuse = false;
  loop_.RunFor(seconds(60));
  EXPECT_EQ(Names(), std::vector<std::string>{"tidy-29453790"});
}

// The Job is made; whether its answer is lost, or the status is not written, it is made once and
// known.
TEST_F(CronJobTest, AStartIsMadeOnce) {
  for (const char* lost : {"POST", "PUT"}) {
    int left = 3;
    api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
      if (left == 0 || request.method != lost ||
          request.target.find("/events") != request.target.npos)
        return true;
      --left;
      if (request.method == "POST") {
        json::Value job = client::FakeApi::BodyOf(request);
        if (Get(kJobs, "d", job["metadata"]["name"].Str()).IsNull()) api_.Put(kJobs, job);
      }
      client::FakeApi::SendError(*writer, 504, "Timeout", "lost");
      return false;
    };
    PutCronJob("*/30 * * * *");
    loop_.RunFor(minutes(30));
    EXPECT_EQ(left, lost == std::string_view("POST") ? 2 : 0);
    ASSERT_EQ(Jobs().size(), 1u) << lost;
    ASSERT_EQ(Status()["active"].size(), 1u) << lost;
    EXPECT_EQ(Status()["active"].At(0)["uid"], Jobs()[0]["metadata"]["uid"]);
    EXPECT_TRUE(Status().Has("lastScheduleTime"));
    EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
    api_.before_handle = nullptr;
    api_.Remove(kJobs, "d", Names()[0]);
    api_.Remove(kCronJobs, "d", "tidy");
    Settle();
  }
}

TEST(FindDueStart, Rows) {
  struct Row {
    const char* schedule;
    const char* since;
    const char* now;
    const char* at;
    const char* next;
    int64_t missed;
  };
  const Row rows[] = {
      {"0 * * * *", "2026-01-01T00:10:00Z", "2026-01-01T00:59:59Z", "", "2026-01-01T01:00:00Z", 0},
      {"0 * * * *", "2026-01-01T00:10:00Z", "2026-01-01T01:00:00Z", "2026-01-01T01:00:00Z",
       "2026-01-01T02:00:00Z", 1},
      {"0 * * * *", "2026-01-01T00:10:00Z", "2026-01-03T05:30:00Z", "2026-01-03T05:00:00Z",
       "2026-01-03T06:00:00Z", 53},
      // Unequal distances: the last one is found all the same.
      {"0,1 0 * * *", "2026-01-01T12:00:00Z", "2026-01-02T20:00:00Z", "2026-01-02T00:01:00Z",
       "2026-01-03T00:00:00Z", 1201},
      {"30 6-16/4 * * 1-5", "2026-01-01T12:00:00Z", "2026-01-04T00:00:00Z", "2026-01-02T14:30:00Z",
       "2026-01-05T06:30:00Z", 4},
      {"@every 90m", "2026-01-01T00:10:00Z", "2026-01-01T12:00:00Z", "2026-01-01T10:40:00Z",
       "2026-01-01T12:10:00Z", 7},
      // The clock went back, or the CronJob comes from a server that is ahead.
      {"0 * * * *", "2026-01-05T00:00:00Z", "2026-01-01T00:00:00Z", "", "2026-01-05T01:00:00Z", 0},
      {"* * * * *", "1996-01-01T00:00:00Z", "2026-01-01T00:00:30Z", "2026-01-01T00:00:00Z",
       "2026-01-01T00:01:00Z", 15779520}};
  for (const Row& row : rows) {
    const auto due = FindDueStart(*schema::CronSchedule::Parse(row.schedule), TimeZone(),
                                  *ParseTime(row.since), Time::min(), *ParseTime(row.now));
    ASSERT_TRUE(due.has_value()) << row.schedule;
    EXPECT_EQ(due->at ? FormatTime(*due->at) : "", row.at) << row.schedule << row.now;
    EXPECT_EQ(due->next ? FormatTime(*due->next) : "", row.next) << row.schedule << row.now;
    EXPECT_EQ(due->missed, row.missed) << row.schedule << row.now;
  }
}

}  // namespace
}  // namespace muster::controllers
