#include "ray/job_pass.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "json/write.h"
#include "ray/submission.h"
#include "ray/test_objects.h"

namespace muster::ray {
namespace {

const Time kNow = Time(seconds(1'700'000'000));

json::Value Job() {
  return Yaml(R"(
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: j, namespace: d, uid: j1, generation: 1, resourceVersion: "7"}
spec:
  entrypoint: python x.py
  submissionMode: K8sJobMode
  backoffLimit: 0
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: head, image: i}]}}}
)");
}

class JobPassTest : public testing::Test {
 protected:
  // One pass; the status that it wrote is the object's from then on.
  std::vector<std::string> Run() {
    pass_ = ReconcileJob(job_, children_, observations_, now_, 1);
    if (const json::Value status = StatusOf(pass_); !status.IsNull())
      job_ = job_.Set("status", status);
    std::vector<std::string> writes = WritesOf(pass_);
    std::erase(writes, "update rayjobs j/status");
    return writes;
  }
  std::string Status(std::string_view member) { return job_["status"][member].Str(); }
  std::string State() { return Status("jobDeploymentStatus"); }
  void Set(std::string_view member, json::Value value) {
    job_ = job_.SetPath({"spec", member}, std::move(value));
  }
  json::Value Owned(json::Value object) {
    return object.SetPath({"metadata", "uid"}, "o")
        .SetPath({"metadata", "ownerReferences"},
                 Yaml("[{kind: RayJob, uid: j1, controller: true}]"));
  }
  void MakeCluster(bool ready) {
    children_.cluster = Owned(json::Obj(
        {{"metadata", json::Obj({{"name", Status("rayClusterName")}, {"namespace", "d"}})},
         {"spec", job_["spec"]["rayClusterSpec"]},
         {"status", json::Obj({{"state", ready ? "ready" : ""}})}}));
  }
  void MakeSubmitter(const char* condition = nullptr) {
    children_.submitter = Owned(Yaml("{metadata: {name: j}}"));
    if (condition == nullptr) return;
    children_.submitter = children_.submitter.SetPath(
        {"status", "conditions"},
        json::List({json::Obj({{"type", condition}, {"status", "True"}})}));
  }
  void RaySays(std::string_view status) {
    observations_["job"] =
        json::Obj({{"status", status}, {"message", "so"}, {"start_time", 1'699'999'000'000}});
  }
  // On its way, the submitter there.
  void Start() {
    Run();
    MakeCluster(true);
    Run();
    MakeSubmitter();
    Run();
    ASSERT_EQ(State(), "Running");
  }

  json::Value job_ = Job();
  JobChildren children_;
  client::Observations observations_;
  client::Reconciled pass_;
  Time now_ = kNow;
};

TEST_F(JobPassTest, MakesAClusterSubmitsAndFollowsWhatRaySays) {
  EXPECT_TRUE(Run().empty()) << "names first";
  EXPECT_EQ(State(), "Initializing");
  EXPECT_EQ(Status("jobId"), Status("rayClusterName"));
  const std::string cluster = Status("rayClusterName");
  EXPECT_TRUE(cluster.starts_with("j-")) << cluster;
  EXPECT_EQ(Run(), (std::vector<std::string>{"create rayclusters " + cluster}));
  const json::Value& labels = pass_.writes.back().body["metadata"]["labels"];
  EXPECT_EQ(labels["ray.io/originated-from-crd"].AsString(), "RayJob");
  MakeCluster(false);
  EXPECT_TRUE(Run().empty()) << "it is not ready";
  MakeCluster(true);
  EXPECT_EQ(Run(), (std::vector<std::string>{"create jobs j"}));
  MakeSubmitter();
  Run();
  EXPECT_EQ(State(), "Running");
  EXPECT_EQ(Status("dashboardURL"), cluster + "-head-svc.d.svc.cluster.local:8265");
  Run();
  ASSERT_EQ(pass_.probes.size(), 1u);
  EXPECT_EQ(pass_.probes[0].path, "/api/v1/namespaces/d/services/" + cluster +
                                      "-head-svc%3A8265/proxy/api/jobs/" + cluster);
  RaySays("RUNNING");
  Run();
  EXPECT_EQ(Status("jobStatus"), "RUNNING");
  EXPECT_TRUE(pass_.probes.empty()) << "this pass has the answer";
  EXPECT_EQ(pass_.look_again_at, kNow + kJobPeriod);
  RaySays("SUCCEEDED");
  Run();
  EXPECT_EQ(State(), "Running") << "the submitter has not shown the whole log";
  MakeSubmitter("Complete");
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(State(), "Complete");
  EXPECT_EQ(Status("jobStatus"), "SUCCEEDED");
  EXPECT_EQ(job_["status"]["succeeded"].AsInt(), 1);
  EXPECT_EQ(job_["status"]["rayJobInfo"]["startTime"].AsString(), "2023-11-14T21:56:40Z");
}

TEST_F(JobPassTest, ASubmitterThatHangsIsNotWaitedForLong) {
  Start();
  RaySays("SUCCEEDED");
  observations_["job"] = observations_["job"].Set("end_time", 1'700'000'000'000);
  Run();
  EXPECT_EQ(State(), "Running");
  now_ = kNow + kMaxLogPatience;
  Run();
  EXPECT_EQ(State(), "Complete");
}

// kuberay#3860, #4217: what cannot come is not waited for.
TEST_F(JobPassTest, ASubmitterThatFailedFailsTheJob) {
  Start();
  MakeSubmitter("Failed");
  observations_["job"] = client::FailureOf(Error(Reason::kNotFound, "the server answered 404: no"));
  Run();
  EXPECT_EQ(State(), "Failed");
  EXPECT_EQ(Status("reason"), "SubmissionFailed");
}

TEST_F(JobPassTest, AClusterThatIsGoneOrHasForgottenItFailsTheJob) {
  Start();
  MakeSubmitter("Complete");
  const json::Value before = job_;
  observations_["job"] = client::FailureOf(Error(Reason::kNotFound, "the server answered 404: no"));
  Run();
  EXPECT_EQ(Status("reason"), "AppFailed");
  job_ = before;
  observations_["job"] =
      client::FailureOf(Error(Reason::kServiceUnavailable, "no endpoints available"));
  Run();
  EXPECT_EQ(State(), "Running") << "a dashboard that cannot be reached says nothing";
  children_.cluster = nullptr;
  Run();
  EXPECT_EQ(State(), "Failed");
}

TEST_F(JobPassTest, OverHttpTheJobIsPostedUnlessItIsThere) {
  Set("submissionMode", "HTTPMode");
  Set("runtimeEnvYAML", "env_vars: {A: b}");
  Run();
  MakeCluster(true);
  EXPECT_TRUE(Run().empty());
  ASSERT_EQ(pass_.probes.size(), 1u) << "asked first";
  observations_["job"] = client::FailureOf(Error(Reason::kNotFound, "services \"x\" not found"));
  EXPECT_TRUE(Run().empty()) << "that is not Ray's answer";
  observations_["job"] = client::FailureOf(Error(Reason::kNotFound, "the server answered 404: no"));
  const std::string id = Status("jobId");
  EXPECT_EQ(Run(), (std::vector<std::string>{
                       fmt::format("create services {}-head-svc:8265/proxy/api/jobs/", id)}));
  EXPECT_EQ(json::Write(pass_.writes.back().body),
            fmt::format(R"({{"entrypoint":"python x.py","submission_id":"{}","runtime_env":)"
                        R"({{"env_vars":{{"A":"b"}}}}}})",
                        id));
  RaySays("PENDING");
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(State(), "Running");
  RaySays("FAILED");
  Run();
  EXPECT_EQ(State(), "Failed");
  EXPECT_EQ(Status("reason"), "AppFailed");
  EXPECT_EQ(Status("message"), "so");
}

TEST_F(JobPassTest, EachNewTryHasANewCluster) {
  Set("backoffLimit", 1);
  Start();
  const std::string first = Status("rayClusterName");
  RaySays("FAILED");
  MakeSubmitter("Complete");
  Run();
  EXPECT_EQ(State(), "Retrying");
  EXPECT_EQ(job_["status"]["failed"].AsInt(), 1);
  observations_.clear();
  EXPECT_EQ(Run(), (std::vector<std::string>{"delete rayclusters " + first, "delete jobs j"}));
  children_ = {};
  Run();
  EXPECT_EQ(State(), "");
  Run();
  EXPECT_EQ(State(), "Initializing");
  EXPECT_NE(Status("rayClusterName"), first);
  MakeCluster(true);
  Run();
  MakeSubmitter("Complete");
  Run();
  RaySays("FAILED");
  Run();
  EXPECT_EQ(State(), "Failed") << "one was allowed";
  EXPECT_EQ(job_["status"]["failed"].AsInt(), 2);
}

TEST_F(JobPassTest, SuspendRemovesAndResumeBeginsAnew) {
  Start();
  const std::string first = Status("rayClusterName");
  Set("suspend", true);
  EXPECT_EQ(Run(), (std::vector<std::string>{"delete rayclusters " + first, "delete jobs j"}));
  EXPECT_EQ(State(), "Suspending");
  children_ = {};
  Run();
  EXPECT_EQ(State(), "Suspended");
  EXPECT_EQ(Status("rayClusterName"), "");
  EXPECT_TRUE(Run().empty());
  Set("suspend", false);
  Run();
  Run();
  EXPECT_EQ(State(), "Initializing");
}

TEST_F(JobPassTest, DeadlinesEndIt) {
  Set("activeDeadlineSeconds", 100);
  Set("preRunningDeadlineSeconds", 10);
  Run();
  Run();
  EXPECT_EQ(pass_.look_again_at, kNow + seconds(10));
  now_ = kNow + seconds(10);
  Run();
  EXPECT_EQ(Status("reason"), "PreRunningDeadlineExceeded");
  job_ = Job();
  Set("activeDeadlineSeconds", 100);
  Set("backoffLimit", 5);
  now_ = kNow;
  Start();
  now_ = kNow + seconds(100);
  Run();
  EXPECT_EQ(State(), "Failed") << "no other try after its time";
  EXPECT_EQ(Status("reason"), "DeadlineExceeded");
}

TEST_F(JobPassTest, TheClusterGoesWithTheJobIfToldSo) {
  Set("shutdownAfterJobFinishes", true);
  Set("ttlSecondsAfterFinished", 30);
  Start();
  RaySays("SUCCEEDED");
  MakeSubmitter("Complete");
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(pass_.look_again_at, kNow + seconds(2)) << "the earliest";
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(pass_.look_again_at, kNow + seconds(30));
  now_ = kNow + seconds(30);
  EXPECT_EQ(Run(), (std::vector<std::string>{"delete rayclusters " + Status("rayClusterName")}));
}

TEST_F(JobPassTest, AClusterThatWasThereStays) {
  Set("clusterSelector", Yaml("{ray.io/cluster: mine}"));
  Run();
  EXPECT_EQ(Status("rayClusterName"), "mine");
  EXPECT_TRUE(Run().empty()) << "it may come";
  EXPECT_EQ(pass_.look_again_at, kNow + kJobPeriod);
  MakeCluster(false);
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(pass_.look_again_at, kNow + kJobPeriod) << "nobody tells when it is ready";
  MakeCluster(true);
  EXPECT_EQ(Run(), (std::vector<std::string>{"create jobs j"}));
}

TEST_F(JobPassTest, RefusesModesThatItDoesNotHave) {
  Set("submissionMode", "SidecarMode");
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(State(), "ValidationFailed");
  EXPECT_NE(Status("message").find("SidecarMode is not acted on yet"), std::string::npos);
  EXPECT_TRUE(Run().empty());
}

TEST(Submission, TheScriptQuotesWhatIsNotTheEntrypoint) {
  const json::Value job = Job()
                              .SetPath({"spec", "metadata"}, json::Obj({{"who", "it's me"}}))
                              .SetPath({"spec", "entrypointNumCpus"}, 0.5)
                              .SetPath({"spec", "entrypointResources"}, R"({"x": 1})");
  const std::string script = SubmitScript(job, {"id", "host:8265", "i"});
  EXPECT_NE(script.find(R"(--metadata-json '{"who":"it'\''s me"}' --entrypoint-num-cpus 0.5 )"
                        R"(--entrypoint-resources '{"x":1}' -- python x.py; fi; ray job logs)"),
            std::string::npos)
      << script;
  EXPECT_TRUE(script.starts_with("if ! ray job status --address http://$RAY_DASHBOARD_ADDRESS "));
}

TEST(Submission, ASubmitterIsAJobWithTheHeadsImageOrTheUsersTemplate) {
  const json::Value made = MakeSubmitter(Job(), {"id", "host:8265", "image"});
  EXPECT_EQ(made["spec"]["backoffLimit"].AsInt(), 2);
  const json::Value& pod = made["spec"]["template"]["spec"];
  EXPECT_EQ(pod["restartPolicy"].AsString(), "Never");
  EXPECT_EQ(pod["containers"].At(0)["image"].AsString(), "image");
  EXPECT_EQ(json::Write(pod["containers"].At(0)["env"].At(1)),
            R"({"name":"RAY_DASHBOARD_ADDRESS","value":"host:8265"})");
  const json::Value mine = Job()
                               .SetPath({"spec", "submitterConfig"}, Yaml("{backoffLimit: 5}"))
                               .SetPath({"spec", "submitterPodTemplate"},
                                        Yaml("{spec: {containers: [{name: s, image: x, command: "
                                             "[mine]}]}}"));
  const json::Value theirs = MakeSubmitter(mine, {"id", "host:8265", "image"});
  EXPECT_EQ(theirs["spec"]["backoffLimit"].AsInt(), 5);
  EXPECT_EQ(theirs["spec"]["template"]["spec"]["containers"].At(0)["command"],
            json::Strings({"mine"}));
}

}  // namespace
}  // namespace muster::ray
