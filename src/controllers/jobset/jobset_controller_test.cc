#include "controllers/jobset/jobset_controller.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

constexpr char kJobSets[] = "/apis/jobset.x-k8s.io/v1alpha2/jobsets";

using Names = std::vector<std::string>;

class JobSetTest : public ControllerTest {
 protected:
  JobSetTest() { Start(std::make_unique<JobSetController>()); }

  // A leader and two Jobs of workers with three pods each; as the API server has defaulted it.
  void PutJobSet(const std::string& spec = "", const std::string& workers = "",
                 const std::string& annotations = "{}") {
    Put(kJobSets, fmt::format(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: train, namespace: d, uid: s1, annotations: {2}}}
spec:
  network: {3}
  replicatedJobs:
  - name: leader
    groupName: default
    replicas: 1
    template:
      metadata: {{labels: {{app: t}}, annotations: {{note: x}}}}
      spec:
        completionMode: Indexed
        template:
          metadata: {{labels: {{app: p}}}}
          spec: {{restartPolicy: OnFailure, containers: [{{name: c, image: none}}]}}
  - name: workers
    groupName: default
    replicas: 2
    {1}
    template:
      spec:
        completions: 3
        parallelism: 3
        completionMode: Indexed
        template: {{spec: {{restartPolicy: OnFailure, containers: [{{name: c, image: none}}]}}}}
{0}
)",
                              spec, workers, annotations, network_));
    Settle();
  }
  std::string network_ = "{enableDNSHostnames: true, publishNotReadyAddresses: true}";

  void SetSpec(const char* field, json::Value value) {
    api_.Put(kJobSets, JobSet().SetPath({"spec", field}, std::move(value)));
    Settle();
  }
  json::Value JobSet() { return Get(kJobSets, "d", "train"); }
  json::Value Status() { return JobSet()["status"]; }
  json::Value Job(const std::string& name) { return Get(kJobs, "d", name); }
  Names JobNames() const {
    Names names;
    for (const json::Value& job : All(kJobs)) names.push_back(job["metadata"]["name"].Str());
    return names;
  }
  void SetStatus(const std::string& name, const std::string& yaml) {
    api_.Put(kJobs, Job(name).Set("status", Yaml(yaml)));
    Settle();
  }
  void Run(const std::string& name, int pods) {
    SetStatus(name, fmt::format("{{active: {0}, ready: {0}, startTime: "
                                "'2026-01-01T00:00:00Z'}}",
                                pods));
  }
  void Succeed(const std::string& name) {
    SetStatus(name, "{succeeded: 1, conditions: [{type: Complete, status: 'True'}]}");
  }
  void Fail(const std::string& name, const std::string& reason = "BackoffLimitExceeded",
            const std::string& at = "2026-01-01T00:00:10Z") {
    SetStatus(name, fmt::format("{{failed: 1, conditions: [{{type: Failed, status: 'True', reason: "
                                "{}, lastTransitionTime: '{}'}}]}}",
                                reason, at));
  }
  // The garbage collector is done with their pods.
  void FinishDeletions() {
    for (const json::Value& job : All(kJobs)) {
      if (job["metadata"].Has("deletionTimestamp"))
        api_.Remove(kJobs, "d", job["metadata"]["name"].Str());
    }
    Settle();
  }
  bool Goes(const std::string& name) { return Job(name)["metadata"].Has("deletionTimestamp"); }
  std::string Attempt(const std::string& name) {
    return Job(name)["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"].Str();
  }
  // "Completed True AllJobsCompleted", one for each.
  Names Conditions() {
    Names out;
    for (const json::Value& condition : Status()["conditions"].items()) {
      out.push_back(fmt::format("{} {} {}", condition["type"].AsString(),
                                condition["status"].AsString(), condition["reason"].AsString()));
    }
    return out;
  }
  bool HasEvent(const std::string& text) const {
    const Names events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }
  json::Value StateOf(const std::string& name) {
    for (const json::Value& state : Status()["replicatedJobsStatus"].items()) {
      if (state["name"].AsString() == name) return state.Remove("name");
    }
    return {};
  }
};

const Names kAllJobs = {"train-leader-0", "train-workers-0", "train-workers-1"};

TEST_F(JobSetTest, MakesJobsAndAService) {
  PutJobSet("  coordinator: {replicatedJob: workers, jobIndex: 1, podIndex: 2}");
  EXPECT_EQ(JobNames(), kAllJobs);
  const json::Value job = Job("train-workers-1");
  const json::Value marks = Yaml(R"(
jobset.sigs.k8s.io/jobset-name: train
jobset.sigs.k8s.io/jobset-uid: s1
jobset.sigs.k8s.io/replicatedjob-name: workers
jobset.sigs.k8s.io/restart-attempt: "0"
jobset.sigs.k8s.io/replicatedjob-replicas: "2"
jobset.sigs.k8s.io/global-replicas: "3"
jobset.sigs.k8s.io/job-index: "1"
jobset.sigs.k8s.io/job-key: 66ba3893f127939a3930b192c75dfb3fd221183b
jobset.sigs.k8s.io/job-global-index: "2"
jobset.sigs.k8s.io/group-name: default
jobset.sigs.k8s.io/group-replicas: "3"
jobset.sigs.k8s.io/job-group-index: "2"
jobset.sigs.k8s.io/coordinator: train-workers-1-2.train
)");
  EXPECT_EQ(job["metadata"]["labels"], marks);
  EXPECT_EQ(job["metadata"]["annotations"], marks);
  EXPECT_EQ(job["spec"]["template"]["metadata"]["labels"], marks);
  EXPECT_EQ(job["spec"]["template"]["metadata"]["annotations"], marks);
  EXPECT_EQ(job["spec"]["template"]["spec"]["subdomain"].AsString(), "train");
  EXPECT_FALSE(job["spec"]["suspend"].AsBool(true));
  EXPECT_EQ(job["metadata"]["ownerReferences"], Yaml(R"(
- {apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: s1, controller: true,
   blockOwnerDeletion: true}
)"));
  const json::Value leader = Job("train-leader-0");
  EXPECT_EQ(leader["metadata"]["labels"]["app"].AsString(), "t");
  EXPECT_EQ(leader["metadata"]["annotations"]["note"].AsString(), "x");
  EXPECT_EQ(leader["spec"]["template"]["metadata"]["labels"]["app"].AsString(), "p");
  const json::Value service = Get(kServices, "d", "train");
  EXPECT_EQ(service["spec"], Yaml(R"({clusterIP: None, publishNotReadyAddresses: true,
                                      selector: {jobset.sigs.k8s.io/jobset-name: train}})"));
  EXPECT_EQ(client::ControllerOf(service)["uid"].AsString(), "s1");
  EXPECT_TRUE(Conditions().empty());
  EXPECT_EQ(Status()["restarts"], json::Value(0));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, ServiceIsCalledAsTheSubdomain) {
  network_ = "{enableDNSHostnames: true, subdomain: net, publishNotReadyAddresses: false}";
  PutJobSet();
  EXPECT_EQ(All(kServices).size(), 1u);
  EXPECT_FALSE(Get(kServices, "d", "net")["spec"]["publishNotReadyAddresses"].AsBool(true));
  EXPECT_EQ(Job("train-leader-0")["spec"]["template"]["spec"]["subdomain"].AsString(), "net");
}

TEST_F(JobSetTest, AServiceOfOthersIsToldOfUnlessItServes) {
  const std::string told =
      "HeadlessServiceCreationFailed services \"train\" already exists, is not controlled by this "
      "JobSet, and is not a headless Service of its pods, so their host names do not resolve: "
      "delete that Service, or give the JobSet another network.subdomain";
  Put(kServices,
      "{apiVersion: v1, kind: Service, metadata: {name: train, namespace: d}, spec: {clusterIP: "
      "10.0.0.1, selector: {jobset.sigs.k8s.io/jobset-name: train}}}");
  PutJobSet();
  EXPECT_EQ(JobNames(), kAllJobs);
  EXPECT_TRUE(client::ControllerOf(Get(kServices, "d", "train")).IsNull());
  EXPECT_TRUE(HasEvent(told));
  // The one that goes leaves its name to ours.
  api_.Remove(kServices, "d", "train");
  loop_.RunFor(seconds(40));
  EXPECT_EQ(client::ControllerOf(Get(kServices, "d", "train"))["uid"].AsString(), "s1");
}

TEST_F(JobSetTest, AServiceThatAUserMadeForThePodsServes) {
  const auto put = [&](const std::string& selector) {
    Put(kServices, fmt::format("{{apiVersion: v1, kind: Service, metadata: {{name: train, "
                               "namespace: d}}, spec: {{clusterIP: None, selector: {}}}}}",
                               selector));
  };
  put("{jobset.sigs.k8s.io/jobset-name: train}");
  PutJobSet();
  EXPECT_TRUE(Events().empty());
  put("{app: p}");  // the leader alone
  loop_.RunFor(seconds(1));
  SetSpec("ttlSecondsAfterFinished", 7);
  EXPECT_FALSE(Events().empty());
}

TEST_F(JobSetTest, NoServiceWithoutHostNames) {
  network_ = "{enableDNSHostnames: false}";
  PutJobSet();
  EXPECT_EQ(JobNames(), kAllJobs);
  EXPECT_TRUE(All(kServices).empty());
  EXPECT_FALSE(Job("train-leader-0")["spec"]["template"]["spec"].Has("subdomain"));
}

TEST_F(JobSetTest, CountsJobsByState) {
  PutJobSet();
  Run("train-workers-0", 2);
  EXPECT_EQ(StateOf("workers"), Yaml("{ready: 0, succeeded: 0, failed: 0, active: 1, suspended: "
                                     "0}"));
  Run("train-workers-0", 3);
  Succeed("train-workers-1");
  EXPECT_EQ(StateOf("workers"), Yaml("{ready: 1, succeeded: 1, failed: 0, active: 1, suspended: "
                                     "0}"));
  EXPECT_EQ(StateOf("leader"), Yaml("{ready: 0, succeeded: 0, failed: 0, active: 0, suspended: "
                                    "0}"));
}

TEST_F(JobSetTest, SucceedsWhenAllHave) {
  PutJobSet();
  Succeed("train-leader-0");
  Succeed("train-workers-0");
  EXPECT_TRUE(Conditions().empty());
  Succeed("train-workers-1");
  EXPECT_EQ(Conditions(), Names{"Completed True AllJobsCompleted"});
  EXPECT_EQ(Status()["terminalState"].AsString(), "Completed");
  EXPECT_TRUE(HasEvent("AllJobsCompleted jobset completed successfully"));
  EXPECT_EQ(JobNames(), kAllJobs);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, SucceedsWithItsLeaderAndEndsTheRest) {
  PutJobSet("  successPolicy: {operator: All, targetReplicatedJobs: [leader]}");
  Succeed("train-workers-0");
  EXPECT_TRUE(Conditions().empty());
  Succeed("train-leader-0");
  EXPECT_EQ(Conditions(), Names{"Completed True AllJobsCompleted"});
  EXPECT_TRUE(Goes("train-workers-1"));  // it still ran
  EXPECT_FALSE(Goes("train-workers-0"));
  FinishDeletions();
  EXPECT_EQ(JobNames(), (Names{"train-leader-0", "train-workers-0"}));
}

TEST_F(JobSetTest, SucceedsWithAnyOne) {
  PutJobSet("  successPolicy: {operator: Any, targetReplicatedJobs: [workers]}");
  Succeed("train-leader-0");
  EXPECT_TRUE(Conditions().empty());
  Succeed("train-workers-1");
  EXPECT_EQ(Conditions(), Names{"Completed True AllJobsCompleted"});
}

TEST_F(JobSetTest, FailsWithTheFirstJobThatDoes) {
  PutJobSet();
  Fail("train-workers-1");
  EXPECT_EQ(Conditions(), Names{"Failed True FailedJobs"});
  EXPECT_EQ(Status()["terminalState"].AsString(), "Failed");
  EXPECT_TRUE(
      HasEvent("FailedJobs jobset failed due to one or more job failures (first failed job: "
               "train-workers-1)"));
  EXPECT_TRUE(Goes("train-leader-0"));
  EXPECT_FALSE(Goes("train-workers-1"));
  FinishDeletions();
  EXPECT_EQ(JobNames(), Names{"train-workers-1"});
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, BeginsAnewUntilItMayNot) {
  PutJobSet("  failurePolicy: {maxRestarts: 1, restartStrategy: Recreate}");
  Fail("train-workers-1", "BackoffLimitExceeded", "2026-01-01T00:00:09Z");
  EXPECT_EQ(Status()["restarts"], json::Value(1));
  EXPECT_EQ(Status()["restartsCountTowardsMax"], json::Value(1));
  EXPECT_TRUE(HasEvent(
      "RestartJobSetFailurePolicyAction applying RestartJobSet failure policy action (first failed "
      "job: train-workers-1)"));
  for (const std::string& name : kAllJobs) EXPECT_TRUE(Goes(name)) << name;
  api_.Remove(kJobs, "d", "train-leader-0");  // each comes anew when its former one is gone
  Settle();
  EXPECT_EQ(Attempt("train-leader-0"), "1");
  EXPECT_EQ(Attempt("train-workers-0"), "0");
  FinishDeletions();
  EXPECT_EQ(JobNames(), kAllJobs);
  for (const std::string& name : kAllJobs) EXPECT_EQ(Attempt(name), "1") << name;
  EXPECT_EQ(Status()["restarts"], json::Value(1));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);

  Fail("train-leader-0");
  EXPECT_EQ(Conditions(), Names{"Failed True ReachedMaxRestarts"});
  EXPECT_TRUE(HasEvent(
      "ReachedMaxRestarts jobset failed due to reaching max number of restarts (first failed job: "
      "train-leader-0)"));
  EXPECT_EQ(Status()["restarts"], json::Value(1));
}

TEST_F(JobSetTest, BlockingRecreateWaitsForAll) {
  PutJobSet("  failurePolicy: {maxRestarts: 1, restartStrategy: BlockingRecreate}");
  Fail("train-workers-1");
  api_.Remove(kJobs, "d", "train-leader-0");
  Settle();
  EXPECT_TRUE(Job("train-leader-0").IsNull());
  FinishDeletions();
  EXPECT_EQ(JobNames(), kAllJobs);
  EXPECT_EQ(Attempt("train-workers-1"), "1");
}

// One failure counts once, whoever loses the answer.
TEST_F(JobSetTest, ARestartThatWasNotAnsweredCountsOnce) {
  PutJobSet("  failurePolicy: {maxRestarts: 5, restartStrategy: Recreate}");
  bool lost = false;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr&) {
    if (request.method == "PUT" && !lost) {
      lost = true;
      // As if the write had come through from a process that is no more.
      api_.Put(
          kJobSets,
          JobSet().Set("status", json::Obj({{"restarts", 1}, {"restartsCountTowardsMax", 1}})));
    }
    return true;
  };
  Fail("train-workers-0");
  ASSERT_TRUE(lost);
  EXPECT_EQ(Status()["restarts"], json::Value(1));
  EXPECT_EQ(Status()["restartsCountTowardsMax"], json::Value(1));
}

TEST_F(JobSetTest, TheFirstRuleThatFitsDecides) {
  PutJobSet(R"(
  failurePolicy:
    maxRestarts: 0
    restartStrategy: Recreate
    rules:
    - {name: a, action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}
    - {name: b, action: RestartJobSetAndIgnoreMaxRestarts, targetReplicatedJobs: [workers]}
    - {name: c, action: FailJobSet}
)");
  Fail("train-workers-0");
  EXPECT_EQ(Status()["restarts"], json::Value(1));
  EXPECT_FALSE(Status().Has("restartsCountTowardsMax"));
  EXPECT_TRUE(
      HasEvent("RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction applying "
               "RestartJobSetAndIgnoreMaxRestarts failure policy action (first failed job: "
               "train-workers-0)"));
  FinishDeletions();
  Fail("train-workers-1", "PodFailurePolicy");
  EXPECT_EQ(Conditions(), Names{"Failed True FailJobSetFailurePolicyAction"});
  EXPECT_TRUE(HasEvent(
      "FailJobSetFailurePolicyAction applying FailJobSet failure policy action (first failed job: "
      "train-workers-1)"));
}

TEST_F(JobSetTest, ARuleIsForItsReplicatedJobs) {
  PutJobSet(R"(
  failurePolicy:
    maxRestarts: 3
    restartStrategy: Recreate
    rules:
    - {name: a, action: FailJobSet, targetReplicatedJobs: [leader]}
)");
  Fail("train-workers-0");  // no rule: RestartJobSet
  EXPECT_EQ(Status()["restartsCountTowardsMax"], json::Value(1));
  FinishDeletions();
  Fail("train-leader-0");
  EXPECT_EQ(Conditions(), Names{"Failed True FailJobSetFailurePolicyAction"});
}

TEST_F(JobSetTest, SuspendsAndResumes) {
  PutJobSet("  suspend: true");
  for (const std::string& name : kAllJobs) EXPECT_TRUE(Job(name)["spec"]["suspend"].AsBool());
  EXPECT_EQ(Conditions(), Names{"Suspended True SuspendedJobs"});
  EXPECT_TRUE(HasEvent("SuspendedJobs jobset is suspended"));
  EXPECT_EQ(StateOf("workers")["suspended"], json::Value(2));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  SetSpec("suspend", false);
  for (const std::string& name : kAllJobs) EXPECT_FALSE(Job(name)["spec"]["suspend"].AsBool(true));
  EXPECT_EQ(Conditions(), Names{"Suspended False ResumeJobs"});
  EXPECT_TRUE(HasEvent("ResumeJobs jobset is resumed"));
  Run("train-leader-0", 1);
  SetSpec("suspend", true);
  EXPECT_TRUE(Job("train-leader-0")["spec"]["suspend"].AsBool());
  EXPECT_EQ(Conditions(), Names{"Suspended True SuspendedJobs"});
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// Whoever admits the JobSet says where its pods may run.
TEST_F(JobSetTest, ResumesWithTheNewDirectives) {
  PutJobSet("  suspend: true");
  SetStatus("train-workers-0", "{startTime: '2026-01-01T00:00:00Z'}");
  json::Value replicated_jobs = JobSet()["spec"]["replicatedJobs"];
  json::Value workers = replicated_jobs.At(1);
  json::Value pod = workers["template"]["spec"]["template"];
  pod = pod.Set("metadata", Yaml("{labels: {a: b}, annotations: {c: d}}"))
            .SetPath({"spec", "nodeSelector"}, Yaml("{pool: x}"))
            .SetPath({"spec", "tolerations"}, Yaml("[{key: t, operator: Exists}]"));
  api_.Put(kJobSets, JobSet()
                         .SetPath({"spec", "replicatedJobs"},
                                  replicated_jobs.SetAt(
                                      1, workers.SetPath({"template", "spec", "template"}, pod)))
                         .SetPath({"spec", "suspend"}, false));
  Settle();
  const json::Value job = Job("train-workers-0");
  EXPECT_FALSE(job["spec"]["suspend"].AsBool(true));
  EXPECT_FALSE(job["status"].Has("startTime"));
  const json::Value& made = job["spec"]["template"];
  EXPECT_EQ(made["metadata"]["labels"]["a"].AsString(), "b");
  EXPECT_EQ(made["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"].AsString(), "train");
  EXPECT_EQ(made["metadata"]["annotations"]["c"].AsString(), "d");
  EXPECT_EQ(made["spec"]["nodeSelector"], Yaml("{pool: x}"));
  EXPECT_EQ(made["spec"]["tolerations"], Yaml("[{key: t, operator: Exists}]"));
  EXPECT_FALSE(Job("train-leader-0")["spec"]["template"]["spec"].Has("nodeSelector"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, StartsInOrder) {
  PutJobSet("  startupPolicy: {startupPolicyOrder: InOrder}");
  EXPECT_EQ(JobNames(), Names{"train-leader-0"});
  EXPECT_EQ(Conditions(), Names{"StartupPolicyInProgress True InOrderStartupPolicyInProgress"});
  Run("train-leader-0", 1);
  EXPECT_EQ(JobNames(), kAllJobs);
  Run("train-workers-0", 3);
  EXPECT_EQ(Conditions(), Names{"StartupPolicyInProgress True InOrderStartupPolicyInProgress"});
  Run("train-workers-1", 3);
  EXPECT_EQ(Conditions(), (Names{"StartupPolicyInProgress False InOrderStartupPolicyInProgress",
                                 "StartupPolicyCompleted True InOrderStartupPolicyCompleted"}));
  EXPECT_TRUE(HasEvent("InOrderStartupPolicyCompleted in order startup policy has completed"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, ResumesInOrder) {
  PutJobSet("  startupPolicy: {startupPolicyOrder: InOrder}\n  suspend: true");
  EXPECT_EQ(JobNames(), kAllJobs);
  SetSpec("suspend", false);
  EXPECT_FALSE(Job("train-leader-0")["spec"]["suspend"].AsBool(true));
  EXPECT_TRUE(Job("train-workers-0")["spec"]["suspend"].AsBool());
  Run("train-leader-0", 1);
  EXPECT_FALSE(Job("train-workers-0")["spec"]["suspend"].AsBool(true));
}

TEST_F(JobSetTest, WaitsForReadyOnes) {
  PutJobSet("", "dependsOn: [{name: leader, status: Ready}]");
  EXPECT_EQ(JobNames(), Names{"train-leader-0"});
  EXPECT_TRUE(Conditions().empty());
  Run("train-leader-0", 1);
  EXPECT_EQ(JobNames(), kAllJobs);
}

TEST_F(JobSetTest, WaitsForCompleteOnes) {
  PutJobSet("", "dependsOn: [{name: leader, status: Complete}]");
  Run("train-leader-0", 1);
  EXPECT_EQ(JobNames(), Names{"train-leader-0"});
  Succeed("train-leader-0");
  EXPECT_EQ(JobNames(), kAllJobs);
}

TEST_F(JobSetTest, IsDeletedWhenItsTimeHasCome) {
  PutJobSet("  ttlSecondsAfterFinished: 60");
  for (const std::string& name : kAllJobs) Succeed(name);
  ASSERT_EQ(Conditions(), Names{"Completed True AllJobsCompleted"});
  loop_.RunFor(seconds(50));
  EXPECT_FALSE(JobSet()["metadata"].Has("deletionTimestamp"));
  loop_.RunFor(seconds(15));
  EXPECT_TRUE(JobSet()["metadata"].Has("deletionTimestamp"));
  EXPECT_EQ(JobSet()["metadata"]["finalizers"], json::Strings({"foregroundDeletion"}));
}

TEST_F(JobSetTest, LeavesThoseOfOthersAlone) {
  PutJobSet("  managedBy: kueue.x-k8s.io/multikueue");
  EXPECT_TRUE(All(kJobs).empty());
  EXPECT_TRUE(JobSet()["status"].IsNull());
  api_.Remove(kJobSets, "d", "train");
  PutJobSet("  managedBy: jobset.sigs.k8s.io/jobset-controller");
  EXPECT_EQ(JobNames(), kAllJobs);
}

TEST_F(JobSetTest, AJobOfTheSameNameIsNotTouched) {
  Put(kJobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: train-workers-0, namespace: d}}");
  PutJobSet();
  EXPECT_EQ(JobNames(), kAllJobs);
  EXPECT_TRUE(client::ControllerOf(Job("train-workers-0")).IsNull());
  EXPECT_TRUE(HasEvent(
      "JobCreationFailed job \"train-workers-0\" creation failed with error: jobs.batch "
      "\"train-workers-0\" already exists and is not controlled by this JobSet: rename one of "
      "them, or delete that Job"));
  api_.Remove(kJobs, "d", "train-workers-0");
  loop_.RunFor(seconds(40));
  EXPECT_EQ(client::ControllerOf(Job("train-workers-0"))["uid"].AsString(), "s1");
}

// The Jobs of a JobSet that was deleted without them are nobody's.
TEST_F(JobSetTest, OrphansStayOrphans) {
  PutJobSet();
  for (const std::string& name : kAllJobs)
    api_.Put(kJobs, Job(name).RemovePath({"metadata", "ownerReferences"}));
  Settle();
  EXPECT_EQ(JobNames(), kAllJobs);
  for (const std::string& name : kAllJobs)
    EXPECT_TRUE(client::ControllerOf(Job(name)).IsNull()) << name;
}

TEST_F(JobSetTest, NothingIsMadeForOneThatGoes) {
  Put(kJobSets, R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: d, uid: s1, deletionTimestamp: '2026-01-01T00:00:00Z',
           finalizers: [foregroundDeletion]}
spec: {replicatedJobs: [{name: a, replicas: 1, template: {spec: {template: {spec: {}}}}}]}
)");
  Settle();
  EXPECT_TRUE(All(kJobs).empty());
}

TEST_F(JobSetTest, AMissingJobIsMadeAnew) {
  PutJobSet();
  api_.Remove(kJobs, "d", "train-workers-1");
  Settle();
  EXPECT_EQ(JobNames(), kAllJobs);
}

TEST_F(JobSetTest, ExclusivePlacementIsAffinity) {
  PutJobSet("", "", "{alpha.jobset.sigs.k8s.io/exclusive-topology: rack}");
  const json::Value job = Job("train-workers-1");
  EXPECT_EQ(
      job["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/exclusive-topology"].AsString(),
      "rack");
  const std::string key = job["metadata"]["labels"]["jobset.sigs.k8s.io/job-key"].Str();
  EXPECT_EQ(job["spec"]["template"]["spec"]["affinity"], Yaml(fmt::format(R"(
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
  - topologyKey: rack
    namespaceSelector: {{}}
    labelSelector:
      matchExpressions: [{{key: jobset.sigs.k8s.io/job-key, operator: In, values: [{0}]}}]
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
  - topologyKey: rack
    namespaceSelector: {{}}
    labelSelector:
      matchExpressions:
      - {{key: jobset.sigs.k8s.io/job-key, operator: Exists}}
      - {{key: jobset.sigs.k8s.io/job-key, operator: NotIn, values: [{0}]}}
)",
                                                                          key)));
}

TEST_F(JobSetTest, ExclusivePlacementOnLabelledNodes) {
  PutJobSet("", "",
            "{alpha.jobset.sigs.k8s.io/exclusive-topology: rack, "
            "alpha.jobset.sigs.k8s.io/node-selector: 'true'}");
  const json::Value pod = Job("train-workers-1")["spec"]["template"]["spec"];
  EXPECT_FALSE(pod.Has("affinity"));
  EXPECT_EQ(pod["nodeSelector"],
            Yaml("{alpha.jobset.sigs.k8s.io/namespaced-job: d_train-workers-1}"));
  EXPECT_EQ(pod["tolerations"], Yaml("[{key: alpha.jobset.sigs.k8s.io/no-schedule, operator: "
                                     "Exists, effect: NoSchedule}]"));
}

TEST_F(JobSetTest, AGangIsAPodGroup) {
  constexpr char kPodGroups[] = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
  PutJobSet("  failurePolicy: {maxRestarts: 1, restartStrategy: Recreate}", "",
            "{muster.dev/gang: 'true'}");
  const json::Value group = Get(kPodGroups, "d", "train");
  EXPECT_EQ(group["spec"]["minMember"], json::Value(7));
  EXPECT_EQ(client::ControllerOf(group)["uid"].AsString(), "s1");
  EXPECT_EQ(Job("train-workers-0")["spec"]["template"]["metadata"]["annotations"]
                                  ["scheduling.k8s.io/group-name"]
                                      .AsString(),
            "train");
  Fail("train-leader-0");  // never two attempts at once
  api_.Remove(kJobs, "d", "train-workers-0");
  Settle();
  EXPECT_TRUE(Job("train-workers-0").IsNull());
  FinishDeletions();
  EXPECT_EQ(JobNames(), kAllJobs);
  for (const std::string& name : kAllJobs) Succeed(name);
  EXPECT_TRUE(Get(kPodGroups, "d", "train").IsNull());
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, AGangDoesNotWaitForPodsThatHadSucceededAndWereEvicted) {
  constexpr char kPodGroups[] = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
  const auto members = [&] { return Get(kPodGroups, "d", "train")["spec"]["minMember"].AsInt(); };
  PutJobSet("", "", "{muster.dev/gang: 'true'}");
  for (const char* pod : {"a", "b"}) {
    Put(kPods, fmt::format(R"(
metadata:
  name: {}
  namespace: d
  labels: {{jobset.sigs.k8s.io/jobset-name: train, jobset.sigs.k8s.io/jobset-uid: s1}}
  annotations: {{scheduling.k8s.io/group-name: train}}
status: {{phase: Succeeded}}
)",
                           pod));
  }
  SetStatus("train-workers-0", "{succeeded: 2, active: 1, ready: 1}");
  EXPECT_EQ(members(), 7);  // they hold their places
  api_.Remove(kPods, "d", "a");
  Settle();
  EXPECT_EQ(members(), 6);
  api_.Remove(kPods, "d", "b");
  Settle();
  EXPECT_EQ(members(), 5);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(JobSetTest, NoGangUnlessAskedFor) {
  PutJobSet();
  EXPECT_TRUE(All("/apis/scheduling.volcano.sh/v1beta1/podgroups").empty());
  EXPECT_FALSE(Job("train-leader-0")["spec"]["template"]["metadata"]["annotations"].Has(
      "scheduling.k8s.io/group-name"));
}

TEST_F(JobSetTest, MakesManyJobsInSeveralPasses) {
  Put(kJobSets, R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: d, uid: s1}
spec:
  replicatedJobs: [{name: a, replicas: 1200, template: {spec: {template: {spec: {}}}}}]
)");
  loop_.RunFor(seconds(30));
  EXPECT_EQ(All(kJobs).size(), 1200u);
}

}  // namespace
}  // namespace muster::controllers
