#include "controllers/job/job_policies.h"

#include "controllers/job/job_test_base.h"

namespace muster::controllers {
namespace {

using Strings = std::vector<std::string>;

json::Value FailedPod(int exit_code, const std::string& conditions = "[]") {
  return Yaml(fmt::format(R"(
metadata: {{name: p, namespace: d}}
status:
  phase: Failed
  conditions: {}
  initContainerStatuses: [{{name: i, state: {{terminated: {{exitCode: 0}}}}}}]
  containerStatuses: [{{name: s, state: {{running: {{}}}}}},
                      {{name: c, state: {{terminated: {{exitCode: {}}}}}}}]
)",
                          conditions, exit_code));
}

TEST(JudgeFailure, TheFirstRuleThatFitsDecides) {
  const json::Value policy = Yaml(R"(
rules:
- {action: FailJob, onExitCodes: {containerName: c, operator: In, values: [42, 43]}}
- {action: FailJob, onExitCodes: {containerName: other, operator: In, values: [7]}}
- {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}
- {action: FailIndex, onExitCodes: {operator: In, values: [7]}}
- {action: FailJob, onPodConditions: [{type: ConfigIssue, status: 'False'}]}
- {action: Count, onExitCodes: {operator: NotIn, values: [1, 9]}}
- {action: Ignore, onExitCodes: {operator: In, values: [9]}}
)");
  struct Row {
    int exit_code;
    const char* conditions;
    bool counts, fails_index;
    const char* fails_job;
  };
  const Row rows[] = {
      {42, "[]", true, false,
       "Container c for pod d/p failed with exit code 42 matching FailJob rule at index 0"},
      {7, "[]", true, true, ""},
      {7, "[{type: DisruptionTarget, status: 'True'}]", false, false, ""},
      {7, "[{type: DisruptionTarget, status: 'False'}]", true, true, ""},
      {5, "[{type: ConfigIssue, status: 'False'}]", true, false,
       "Pod d/p has condition ConfigIssue matching FailJob rule at index 4"},
      {5, "[]", true, false, ""},
      {9, "[]", false, false, ""},
      {1, "[]", true, false, ""},  // of no rule
      {0, "[]", true, false, ""}};
  for (const Row& row : rows) {
    const PodFailureVerdict verdict =
        JudgeFailure(policy, FailedPod(row.exit_code, row.conditions));
    EXPECT_EQ(verdict.counts, row.counts) << row.exit_code << row.conditions;
    EXPECT_EQ(verdict.fails_index, row.fails_index) << row.exit_code << row.conditions;
    EXPECT_EQ(verdict.fails_job, row.fails_job) << row.exit_code << row.conditions;
  }
  EXPECT_TRUE(JudgeFailure(json::Value(), FailedPod(1)).counts);
}

TEST(MetSuccessRule, Rows) {
  const json::Value policy = Yaml(R"(
rules:
- {succeededIndexes: "0,5"}
- {succeededIndexes: "1-4", succeededCount: 2}
- {succeededIndexes: "90-99"}
- {succeededCount: 4}
)");
  struct Row {
    const char* succeeded;
    const char* met;
  };
  const Row rows[] = {{"", ""},
                      {"0,1", ""},
                      {"0,5", "Matched rules at index 0"},
                      {"1,3", "Matched rules at index 1"},
                      {"0,6-7", ""},
                      {"6-9", "Matched rules at index 3"}};
  for (const Row& row : rows) {
    EXPECT_EQ(MetSuccessRule(policy, 10, IndexSet::Parse(row.succeeded, 10)).value_or(""), row.met)
        << row.succeeded;
  }
  EXPECT_FALSE(MetSuccessRule(json::Value(), 10, IndexSet::Parse("0-9", 10)).has_value());
}

TEST(BackoffEnds, Doubles) {
  const Time last = *ParseTime("2026-01-01T00:00:00Z");
  EXPECT_LE(BackoffEnds(0, last, last), last);
  const int64_t rows[][2] = {{1, 10}, {2, 20}, {3, 40}, {6, 320}, {7, 600}, {1000000000, 600}};
  for (const auto& [failures, wait] : rows)
    EXPECT_EQ(BackoffEnds(failures, last, last), last + seconds(wait)) << failures;
  EXPECT_EQ(BackoffEnds(1, last, last - hours(1)), Time{}) << "the clock was set back";
}

TEST(BackoffEnds, CountsSinceTheLastSuccess) {
  const JobSpec spec{json::Value()};
  const auto pod = [](const char* phase, const char* end, const char* metadata = "{}") {
    return Yaml(
        fmt::format("{{metadata: {}, status: {{phase: {}, containerStatuses: [{{state: "
                    "{{terminated: {{finishedAt: '2026-01-01T00:0{}:00Z'}}}}}}]}}}}",
                    metadata, phase, end));
  };
  const auto at = [](const char* time) { return *ParseTime(time); };
  const Time now = at("2026-01-01T00:09:00Z");
  std::vector<json::Value> pods = {pod("Failed", "1"), pod("Succeeded", "2"), pod("Failed", "3"),
                                   pod("Failed", "4"), pod("Running", "9")};
  EXPECT_EQ(BackoffEnds(pods, spec, now), at("2026-01-01T00:04:20Z"));
  pods.push_back(pod("Failed", "8", "{deletionTimestamp: '2026-01-01T00:08:00Z'}"));
  EXPECT_EQ(BackoffEnds(pods, spec, now), at("2026-01-01T00:04:20Z"));  // sent away
  pods.push_back(pod("Succeeded", "5"));
  EXPECT_EQ(BackoffEnds(pods, spec, now), Time{});
}

TEST(FinishedAt, TheBestThatIsKnown) {
  struct Row {
    const char* pod;
    const char* at;
  };
  const Row rows[] = {
      {"{status: {containerStatuses: [{state: {terminated: {finishedAt: '2026-01-01T00:01:00Z'}}}, "
       "{state: {terminated: {finishedAt: '2026-01-01T00:02:00Z'}}}]}}",
       "2026-01-01T00:02:00Z"},
      {"{spec: {initContainers: [{name: s, restartPolicy: Always}]}, status: {containerStatuses: "
       "[{state: {terminated: {finishedAt: '2026-01-01T00:01:00Z'}}}], initContainerStatuses: "
       "[{name: s, state: {terminated: {finishedAt: '2026-01-01T00:03:00Z'}}}]}}",
       "2026-01-01T00:03:00Z"},
      {"{status: {containerStatuses: [{state: {running: {}}}], conditions: [{type: Ready, status: "
       "'False', lastTransitionTime: '2026-01-01T00:04:00Z'}]}}",
       "2026-01-01T00:04:00Z"},
      {"{metadata: {deletionTimestamp: '2026-01-01T00:06:00Z', deletionGracePeriodSeconds: 60}}",
       "2026-01-01T00:05:00Z"},
      {"{metadata: {creationTimestamp: '2026-01-01T00:07:00Z'}}", "2026-01-01T00:07:00Z"}};
  for (const Row& row : rows) EXPECT_EQ(FormatTime(FinishedAt(Yaml(row.pod))), row.at) << row.pod;
}

TEST(IndexedNameBase, KeepsTheIndex) {
  EXPECT_EQ(IndexedNameBase("train", 7), "train-7");
  const std::string base = IndexedNameBase(std::string(63, 'x'), 1234);
  EXPECT_EQ(base, std::string(52, 'x') + "-1234");
  EXPECT_EQ(base.size() + 1, 58u);  // with the hyphen
}

// [sig-apps] Job should allow to use the pod failure policy on exit code to fail the job early.
TEST_F(JobTest, AnExitCodeFailsTheJob) {
  PutJob(R"(  parallelism: 2
  completions: 2
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}])");
  const json::Value pod = Pods()[0];
  Fail(pod, 42);
  EXPECT_EQ(Conditions(),
            (Strings{"FailureTarget True PodFailurePolicy", "Failed True PodFailurePolicy"}));
  EXPECT_EQ(Condition("Failed")["message"].AsString(),
            fmt::format("Container c for pod d/{} failed with exit code 42 matching FailJob rule "
                        "at index 0",
                        pod["metadata"]["name"].AsString()));
  EXPECT_EQ(Status()["failed"].AsInt(), 2);
  EXPECT_TRUE(ActivePods().empty());
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// [sig-apps] Job should allow to use a pod failure policy to ignore failure matching on
// DisruptionTarget condition.
TEST_F(JobTest, DisruptionsDoNotCount) {
  PutJob(R"(  parallelism: 1
  completions: 1
  backoffLimit: 0
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}])");
  api_.Put(kPods, Pods()[0].Set("status", Yaml("{phase: Failed, conditions: [{type: "
                                               "DisruptionTarget, status: 'True'}]}")));
  loop_.RunFor(seconds(15));
  EXPECT_EQ(Tracked(), 1u);
  ASSERT_EQ(ActivePods().size(), 1u);
  EXPECT_FALSE(Status().Has("failed"));
  Succeed(ActivePods()[0]);
  EXPECT_EQ(Condition("Complete")["status"].AsString(), "True");
}

TEST_F(JobTest, EachIndexHasItsLimit) {
  PutJob(R"(  parallelism: 2
  completions: 2
  completionMode: Indexed
  backoffLimit: 2147483647
  backoffLimitPerIndex: 1)");
  EXPECT_EQ(Status()["failedIndexes"], json::Value(""));
  const auto count = [](const json::Value& pod) {
    return pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"].Str();
  };
  EXPECT_EQ(count(PodOfIndex(0)), "0");
  Fail(PodOfIndex(0));
  EXPECT_EQ(Tracked(), 2u);  // it waits for its replacement
  loop_.RunFor(seconds(10));
  EXPECT_EQ(count(PodOfIndex(0)), "1");
  EXPECT_EQ(Tracked(), 2u);
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
  Fail(PodOfIndex(0));
  EXPECT_EQ(Status()["failedIndexes"].AsString(), "0");
  EXPECT_TRUE(Condition("Failed").IsNull());  // the other index goes on
  loop_.RunFor(minutes(2));
  EXPECT_TRUE(PodOfIndex(0).IsNull());
  Succeed(PodOfIndex(1));
  EXPECT_EQ(Conditions(),
            (Strings{"FailureTarget True FailedIndexes", "Failed True FailedIndexes"}));
  EXPECT_EQ(Condition("Failed")["message"].AsString(), "Job has failed indexes");
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "1");
  EXPECT_EQ(Status()["failed"].AsInt(), 2);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// The pod is sent away by a user, which fails its index; but it succeeds after all.
TEST_F(JobTest, AnIndexThatFailedStaysFailed) {
  PutJob(R"(  parallelism: 2
  completions: 2
  completionMode: Indexed
  backoffLimit: 2147483647
  backoffLimitPerIndex: 0)");
  const json::Value pod = PodOfIndex(0);
  bool refuse = true;  // so that it bears its finalizer still
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!refuse || request.method != "PATCH") return true;
    client::FakeApi::SendError(*writer, 500, "InternalError", "try again");
    return false;
  };
  api_.Put(kPods, pod.SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now())));
  Settle();
  EXPECT_EQ(Status()["failedIndexes"].AsString(), "0");
  Succeed(Get(kPods, "d", pod["metadata"]["name"].Str()));
  refuse = false;
  loop_.RunFor(seconds(30));
  EXPECT_EQ(Status()["failedIndexes"].AsString(), "0");
  EXPECT_FALSE(Status().Has("completedIndexes"));
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
  EXPECT_EQ(Tracked(), 1u);
}

TEST_F(JobTest, TooManyFailedIndexesEndIt) {
  PutJob(R"(  parallelism: 3
  completions: 3
  completionMode: Indexed
  backoffLimit: 2147483647
  backoffLimitPerIndex: 0
  maxFailedIndexes: 1)");
  Fail(PodOfIndex(0));
  EXPECT_TRUE(Condition("Failed").IsNull());
  Fail(PodOfIndex(2));
  EXPECT_EQ(Condition("Failed")["reason"].AsString(), "MaxFailedIndexesExceeded");
  EXPECT_EQ(Status()["failedIndexes"].AsString(), "0,2");
  EXPECT_TRUE(ActivePods().empty());
}

TEST_F(JobTest, AnExitCodeFailsTheIndex) {
  PutJob(R"(  parallelism: 2
  completions: 2
  completionMode: Indexed
  backoffLimit: 2147483647
  backoffLimitPerIndex: 5
  podFailurePolicy:
    rules: [{action: FailIndex, onExitCodes: {operator: In, values: [42]}},
            {action: Ignore, onExitCodes: {operator: In, values: [43]}}])");
  Fail(PodOfIndex(0), 42);
  EXPECT_EQ(Status()["failedIndexes"].AsString(), "0");
  Fail(PodOfIndex(1), 43);
  loop_.RunFor(seconds(10));
  const json::Value annotations = PodOfIndex(1)["metadata"]["annotations"];
  EXPECT_EQ(annotations["batch.kubernetes.io/job-index-failure-count"].AsString(), "0");
  EXPECT_EQ(annotations["batch.kubernetes.io/job-index-ignored-failure-count"].AsString(), "1");
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
}

TEST_F(JobTest, SuccessOfSomeIsEnough) {
  PutJob(R"(  parallelism: 3
  completions: 3
  completionMode: Indexed
  successPolicy: {rules: [{succeededIndexes: "0"}]})");
  Succeed(PodOfIndex(0));
  EXPECT_EQ(Conditions(),
            (Strings{"SuccessCriteriaMet True SuccessPolicy", "Complete True SuccessPolicy"}));
  EXPECT_EQ(Condition("Complete")["message"].AsString(), "Matched rules at index 0");
  EXPECT_EQ(Pods().size(), 1u);  // the others were sent away
  EXPECT_FALSE(Status().Has("failed"));
  EXPECT_EQ(Status()["succeeded"].AsInt(), 1);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// The pod ends slowly: another finalizer holds it, as its agent would.
TEST_F(JobTest, ReplacesAtOnceOrWhenItHasEnded) {
  for (const bool waits : {false, true}) {
    PutJob(fmt::format("  parallelism: 1\n  completions: 1\n  podReplacementPolicy: {}",
                       waits ? "Failed" : "TerminatingOrFailed"));
    ASSERT_EQ(ActivePods().size(), 1u);
    const json::Value pod = ActivePods()[0];
    api_.Put(kPods, pod.SetPath({"metadata", "finalizers"},
                                pod["metadata"]["finalizers"].Append("example.com/agent"))
                        .SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now())));
    loop_.RunFor(seconds(15));
    EXPECT_EQ(Status()["terminating"].AsInt(), 1);
    EXPECT_EQ(ActivePods().size(), waits ? 0u : 1u);
    EXPECT_EQ(Status()["failed"].AsInt(), waits ? 0 : 1);
    Fail(Get(kPods, "d", pod["metadata"]["name"].Str()));
    loop_.RunFor(seconds(15));
    EXPECT_EQ(ActivePods().size(), 1u);
    EXPECT_EQ(Status()["failed"].AsInt(), 1);
    api_.Remove(kJobs, "d", "train");
    for (const json::Value& left : Pods()) api_.Remove(kPods, "d", left["metadata"]["name"].Str());
    Settle();
  }
}

// A Job is over when its pods are, not before.
TEST_F(JobTest, WaitsForThoseThatEnd) {
  PutJob("  parallelism: 1\n  completions: 1\n  activeDeadlineSeconds: 10");
  const json::Value pod = Pods()[0];
  api_.Put(kPods, pod.SetPath({"metadata", "finalizers"},
                              pod["metadata"]["finalizers"].Append("example.com/agent")));
  loop_.RunFor(seconds(20));
  EXPECT_EQ(Conditions(), (Strings{"FailureTarget True DeadlineExceeded"}));
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
  EXPECT_EQ(Status()["terminating"].AsInt(), 1);
  api_.Remove(kPods, "d", pod["metadata"]["name"].Str());
  Settle();
  EXPECT_EQ(Conditions(),
            (Strings{"FailureTarget True DeadlineExceeded", "Failed True DeadlineExceeded"}));
}

}  // namespace
}  // namespace muster::controllers
