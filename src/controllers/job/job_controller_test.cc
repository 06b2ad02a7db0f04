#include "controllers/job/job_controller.h"

#include "controllers/job/job_test_base.h"

namespace muster::controllers {
namespace {

using Strings = std::vector<std::string>;

TEST_F(JobTest, RunsToCompletion) {
  PutJob("  parallelism: 2\n  completions: 3");
  ASSERT_EQ(Pods().size(), 2u);
  const json::Value pod = Pods()[0];
  EXPECT_EQ(pod["metadata"]["labels"],
            Yaml("{batch.kubernetes.io/controller-uid: j1, job-name: train}"));
  EXPECT_EQ(pod["metadata"]["ownerReferences"], Yaml(R"(
- {apiVersion: batch/v1, kind: Job, name: train, uid: j1, controller: true,
   blockOwnerDeletion: true}
)"));
  EXPECT_EQ(pod["metadata"]["finalizers"], Yaml("[batch.kubernetes.io/job-tracking]"));
  EXPECT_EQ(pod["metadata"]["name"].Str().size(), std::string("train-abcde").size());
  EXPECT_TRUE(HasEvent("SuccessfulCreate Created pod: " + pod["metadata"]["name"].Str()));
  EXPECT_EQ(Status().Remove("startTime"),
            Yaml("{active: 2, ready: 0, terminating: 0, uncountedTerminatedPods: {}}"));
  EXPECT_TRUE(ParseTime(Status()["startTime"].AsString()).has_value());
  MakeReady(pod);
  Settle();
  EXPECT_EQ(Status()["ready"].AsInt(), 1);

  Succeed(Pods()[0]);
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(ActivePods().size(), 2u);
  EXPECT_EQ(Status()["succeeded"].AsInt(), 1);
  EXPECT_EQ(Tracked(), 2u);
  Succeed(ActivePods()[0]);
  EXPECT_EQ(ActivePods().size(), 1u);  // no more than what is missing
  EXPECT_FALSE(Status().Has("completionTime"));
  Succeed(ActivePods()[0]);
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(Status()["succeeded"].AsInt(), 3);
  EXPECT_FALSE(Status().Has("active"));
  EXPECT_EQ(Status()["uncountedTerminatedPods"], Yaml("{}"));
  EXPECT_EQ(Conditions(), (Strings{"SuccessCriteriaMet True CompletionsReached",
                                   "Complete True CompletionsReached"}));
  EXPECT_EQ(Condition("Complete")["message"].AsString(),
            "Reached expected number of succeeded pods");
  EXPECT_EQ(Status()["completionTime"], Condition("Complete")["lastTransitionTime"]);
  EXPECT_TRUE(HasEvent("Completed Job completed"));
  EXPECT_EQ(Tracked(), 0u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobTest, WithoutCompletionsTheFirstSuccessIsEnough) {
  PutJob("  parallelism: 3");
  ASSERT_EQ(ActivePods().size(), 3u);
  Succeed(ActivePods()[0]);
  EXPECT_EQ(ActivePods().size(), 2u);  // they may go on, and are not replaced
  EXPECT_TRUE(Condition("Complete").IsNull());
  Fail(ActivePods()[0]);
  Succeed(ActivePods()[0]);
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
  EXPECT_EQ(Status()["succeeded"].AsInt(), 2);
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
}

TEST_F(JobTest, NothingToDoIsDone) {
  PutJob("  parallelism: 1\n  completions: 0");
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
}

TEST_F(JobTest, WhatNeverStartedHasATimeNonetheless) {
  PutJob("  parallelism: 1\n  completions: 0\n  suspend: true");
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
  EXPECT_EQ(Status()["startTime"], Status()["completionTime"]);
}

// [sig-apps] Job should run a job to completion when tasks sometimes fail and are not locally
// restarted.
TEST_F(JobTest, FailuresAreReplacedAfterAWhile) {
  PutJob("  parallelism: 1\n  completions: 1\n  backoffLimit: 2");
  Fail(Pods()[0]);
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
  EXPECT_TRUE(ActivePods().empty());
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  loop_.RunFor(seconds(8));
  ASSERT_EQ(ActivePods().size(), 1u);  // 10 s after the first failure
  Fail(ActivePods()[0]);
  loop_.RunFor(seconds(15));
  EXPECT_TRUE(ActivePods().empty());
  loop_.RunFor(seconds(5));
  ASSERT_EQ(ActivePods().size(), 1u);  // 20 s after the second
  Succeed(ActivePods()[0]);
  EXPECT_EQ(Status()["failed"].AsInt(), 2);
  EXPECT_EQ(Status()["succeeded"].AsInt(), 1);
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
}

TEST_F(JobTest, TooManyFailuresEndIt) {
  PutJob("  parallelism: 2\n  completions: 5\n  backoffLimit: 0");
  ASSERT_EQ(ActivePods().size(), 2u);
  const std::string other = ActivePods()[1]["metadata"]["name"].Str();
  Fail(ActivePods()[0]);
  EXPECT_EQ(Pods().size(), 1u);  // the other one is gone
  EXPECT_TRUE(HasEvent("SuccessfulDelete Deleted pod: " + other));
  EXPECT_EQ(Conditions(), (Strings{"FailureTarget True BackoffLimitExceeded",
                                   "Failed True BackoffLimitExceeded"}));
  EXPECT_EQ(Condition("Failed")["message"].AsString(),
            "Job has reached the specified backoff limit");
  EXPECT_TRUE(HasEvent("BackoffLimitExceeded Job has reached the specified backoff limit"));
  EXPECT_EQ(Status()["failed"].AsInt(), 2);
  EXPECT_FALSE(Status().Has("completionTime"));
  EXPECT_EQ(Tracked(), 0u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobTest, RestartsWithinPodsCountToo) {
  PutJob("  parallelism: 2\n  completions: 2\n  backoffLimit: 3", "OnFailure");
  for (size_t i = 0; i < 2; ++i) {
    api_.Put(kPods, Pods()[i].Set("status", Yaml("{phase: Running, containerStatuses: "
                                                 "[{name: c, restartCount: 1}]}")));
  }
  Settle();
  EXPECT_TRUE(Condition("Failed").IsNull());
  api_.Put(kPods, Pods()[1].Set("status", Yaml("{phase: Running, containerStatuses: "
                                               "[{name: c, restartCount: 2}]}")));
  Settle();
  EXPECT_EQ(Condition("Failed")["reason"].AsString(), "BackoffLimitExceeded");
  EXPECT_TRUE(Pods().empty());
}

TEST_F(JobTest, ADeadlineEndsIt) {
  PutJob("  parallelism: 1\n  completions: 1\n  activeDeadlineSeconds: 60");
  loop_.RunFor(seconds(50));
  EXPECT_TRUE(Status()["conditions"].empty());
  loop_.RunFor(seconds(10));
  EXPECT_EQ(Conditions(),
            (Strings{"FailureTarget True DeadlineExceeded", "Failed True DeadlineExceeded"}));
  EXPECT_TRUE(HasEvent("DeadlineExceeded Job was active longer than specified deadline"));
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
}

TEST_F(JobTest, IsSuspendedAndResumed) {
  PutJob("  parallelism: 2\n  completions: 2\n  suspend: true\n  activeDeadlineSeconds: 30");
  EXPECT_TRUE(Pods().empty());
  EXPECT_FALSE(Status().Has("startTime"));
  EXPECT_EQ(Conditions(), (Strings{"Suspended True JobSuspended"}));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  SetSpec("suspend", false);
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_EQ(Conditions(), (Strings{"Suspended False JobResumed"}));
  SetSpec("suspend", true);
  EXPECT_TRUE(Pods().empty());
  EXPECT_FALSE(Status().Has("failed"));  // they were sent away
  EXPECT_TRUE(HasEvent("Suspended Job suspended"));
  EXPECT_TRUE(HasEvent("Resumed Job resumed"));
  const json::Value before = Status()["startTime"];
  loop_.RunFor(minutes(5));
  SetSpec("suspend", false);  // its deadline counts from now
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_NE(Status()["startTime"], before);
  loop_.RunFor(seconds(30));
  EXPECT_EQ(Condition("Failed")["reason"].AsString(), "DeadlineExceeded");
}

// [sig-apps] Job should create pods for an Indexed job with completion indexes and specified
// hostname.
TEST_F(JobTest, IndexedPodsKnowTheirIndex) {
  PutJob("  parallelism: 2\n  completions: 4\n  completionMode: Indexed");
  ASSERT_EQ(Pods().size(), 2u);
  const json::Value pod = PodOfIndex(1);
  EXPECT_TRUE(pod["metadata"]["name"].Str().starts_with("train-1-"));
  EXPECT_EQ(pod["spec"]["hostname"].AsString(), "train-1");
  EXPECT_EQ(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"].AsString(), "1");
  EXPECT_EQ(pod["spec"]["containers"].At(0)["env"], Yaml(R"(
- name: JOB_COMPLETION_INDEX
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}
)"));
  Succeed(pod);
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "1");
  EXPECT_FALSE(PodOfIndex(2).IsNull());
  Fail(PodOfIndex(0));
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
  loop_.RunFor(seconds(10));
  for (const int64_t index : {2, 0, 3}) Succeed(PodOfIndex(index));
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "0-3");
  EXPECT_EQ(Status()["succeeded"].AsInt(), 4);
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
  EXPECT_EQ(Tracked(), 0u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobTest, ElasticIndexedJobsGrowAndShrink) {
  PutJob("  parallelism: 2\n  completions: 2\n  completionMode: Indexed");
  Succeed(PodOfIndex(1));
  api_.Put(kJobs, Job().SetPath({"spec", "completions"}, 4).SetPath({"spec", "parallelism"}, 4));
  Settle();
  EXPECT_EQ(ActivePods().size(), 3u);
  Succeed(PodOfIndex(3));
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "1,3");
  api_.Put(kJobs, Job().SetPath({"spec", "completions"}, 2).SetPath({"spec", "parallelism"}, 2));
  Settle();
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "1");
  EXPECT_EQ(ActivePods().size(), 1u);
  EXPECT_FALSE(PodOfIndex(0).IsNull());
  EXPECT_FALSE(Status().Has("failed"));
  Succeed(PodOfIndex(0));
  EXPECT_EQ(Status()["succeeded"].AsInt(), 2);
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
}

TEST_F(JobTest, AnIndexIsHeldOnce) {
  PutJob("  parallelism: 1\n  completions: 1\n  completionMode: Indexed");
  json::Value twin =
      Pods()[0].SetPath({"metadata", "name"}, "twin").RemovePath({"metadata", "uid"});
  api_.Put(kPods, twin);
  api_.Put(kPods,
           twin.SetPath({"metadata", "name"}, "lost").RemovePath({"metadata", "annotations"}));
  Settle();
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_FALSE(Status().Has("failed"));
}

TEST_F(JobTest, LessParallelismSendsPodsAway) {
  PutJob("  parallelism: 3\n  completions: 3");
  MakeReady(Pods()[1]);
  Settle();
  const std::string kept = Pods()[1]["metadata"]["name"].Str();
  SetSpec("parallelism", 1);
  ASSERT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Pods()[0]["metadata"]["name"].AsString(), kept);
  EXPECT_FALSE(Status().Has("failed"));
  SetSpec("parallelism", 2);
  EXPECT_EQ(Pods().size(), 2u);
}

// [sig-apps] Job should adopt matching orphans and release non-matching pods.
TEST_F(JobTest, AClockThatIsSetBackDoesNotHoldUpReplacements) {
  PutJob("  completions: 1\n  parallelism: 1");
  Fail(Pods()[0]);
  loop_.JumpClock(-hours(1));
  loop_.RunFor(seconds(30));
  EXPECT_EQ(ActivePods().size(), 1u);
}

TEST_F(JobTest, EndsAlsoWhenTheClockWasSetBack) {
  PutJob("  completions: 1\n  parallelism: 1");
  loop_.JumpClock(-hours(1));
  Succeed(Pods()[0]);
  EXPECT_EQ(Status()["completionTime"], Status()["startTime"]);
}

TEST_F(JobTest, AdoptsAndReleases) {
  PutJob("  parallelism: 2\n  completions: 2");
  const std::string name = Pods()[0]["metadata"]["name"].Str();
  api_.Put(kPods, Get(kPods, "d", name).RemovePath({"metadata", "ownerReferences"}));
  Settle();
  EXPECT_EQ(client::ControllerOf(Get(kPods, "d", name))["uid"].AsString(), "j1");
  EXPECT_TRUE(IsTracked(Get(kPods, "d", name)));
  api_.Put(kPods, Get(kPods, "d", name).RemovePath({"metadata", "labels"}));
  Settle();
  EXPECT_TRUE(client::ControllerOf(Get(kPods, "d", name)).IsNull());
  EXPECT_FALSE(IsTracked(Get(kPods, "d", name)));
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// [sig-apps] Job should delete a job.
TEST_F(JobTest, PodsOfADeletedJobAreLetGo) {
  PutJob("  parallelism: 2\n  completions: 2");
  EXPECT_EQ(Tracked(), 2u);
  api_.Remove(kJobs, "d", "train");
  Settle();
  EXPECT_EQ(Tracked(), 0u);
}

TEST_F(JobTest, AJobThatIsOnlyMissingFromTheCacheKeepsItsPods) {
  PutJob("  parallelism: 1\n  completions: 1");
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "GET" || !request.target.ends_with("/jobs/other")) return true;
    net::Response response;
    response.body = R"({"metadata": {"name": "other", "uid": "j2"}})";
    writer->Send(std::move(response));
    return false;
  };
  Put(kPods, R"(
apiVersion: v1
kind: Pod
metadata:
  name: early
  namespace: d
  finalizers: [batch.kubernetes.io/job-tracking]
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: other, uid: j2, controller: true}]
)");
  Settle();
  EXPECT_TRUE(IsTracked(Get(kPods, "d", "early")));
}

TEST_F(JobTest, AJobOnItsWayOutMakesNoPods) {
  PutJob("  parallelism: 2\n  completions: 2\n  suspend: true");
  api_.Put(kJobs, Job()
                      .SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now()))
                      .SetPath({"metadata", "finalizers"}, Yaml("[foregroundDeletion]"))
                      .SetPath({"spec", "suspend"}, false));
  Settle();
  EXPECT_TRUE(Pods().empty());
}

TEST_F(JobTest, AFinishedJobIsDeletedAfterItsTime) {
  PutJob("  parallelism: 1\n  completions: 1\n  ttlSecondsAfterFinished: 60");
  Succeed(Pods()[0]);
  loop_.RunFor(seconds(50));
  EXPECT_FALSE(Job().IsNull());
  EXPECT_FALSE(Job()["metadata"].Has("deletionTimestamp"));
  SetSpec("ttlSecondsAfterFinished", 100);
  loop_.RunFor(seconds(30));
  EXPECT_FALSE(Job()["metadata"].Has("deletionTimestamp"));
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(Job()["metadata"].Has("deletionTimestamp"));
  EXPECT_EQ(Job()["metadata"]["finalizers"], Yaml("[foregroundDeletion]"));
}

TEST_F(JobTest, AJobOfAnotherManagerIsLeftAlone) {
  PutJob("  parallelism: 1\n  completions: 1\n  managedBy: kueue.x-k8s.io/multikueue");
  EXPECT_TRUE(Pods().empty());
  EXPECT_TRUE(Status().IsNull());
}

TEST_F(JobTest, OursByNameIsOurs) {
  PutJob("  parallelism: 1\n  completions: 1\n  managedBy: kubernetes.io/job-controller");
  EXPECT_EQ(Pods().size(), 1u);
}

TEST_F(JobTest, SaysWhyPodsCannotBeMade) {
  bool refuse = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!refuse || request.method != "POST" || request.target.find("/pods") == std::string::npos)
      return true;
    client::FakeApi::SendError(*writer, 403, "Forbidden", "exceeded quota: q");
    return false;
  };
  PutJob("  parallelism: 1\n  completions: 1");
  EXPECT_TRUE(HasEvent("FailedCreate Error creating: exceeded quota: q"));
  EXPECT_FALSE(Status().Has("active"));
  refuse = false;
  loop_.RunFor(seconds(30));
  EXPECT_EQ(Status()["active"].AsInt(), 1);
}

TEST_F(JobTest, APodThatCameLateDoesNotOutliveTheJob) {
  PutJob("  parallelism: 1\n  completions: 1");
  const json::Value pod = Pods()[0];
  Succeed(pod);
  ASSERT_EQ(Condition("Complete")["status"].AsString(), "True");
  api_.Put(kPods, pod.SetPath({"metadata", "name"}, "late").RemovePath({"metadata", "uid"}));
  Settle();
  EXPECT_EQ(Pods().size(), 1u);
}

TEST_F(JobTest, ManyEndsAreCountedInTurns) {
  PutJob("  parallelism: 700\n  completions: 700");
  loop_.RunFor(seconds(10));
  ASSERT_EQ(Pods().size(), 700u);
  size_t most = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr&) {
    if (request.target.ends_with("/status") || request.target.find("/status?") != std::string::npos)
      most = std::max(
          most, client::FakeApi::BodyOf(request)["status"]["uncountedTerminatedPods"]["succeeded"]
                    .size());
    return true;
  };
  for (const json::Value& pod : Pods())
    api_.Put(kPods, pod.Set("status", Yaml("{phase: Succeeded}")));
  loop_.RunFor(seconds(30));
  EXPECT_EQ(most, 500u);
  EXPECT_EQ(Status()["succeeded"].AsInt(), 700);
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
  EXPECT_EQ(Tracked(), 0u);
}

}  // namespace
}  // namespace muster::controllers
