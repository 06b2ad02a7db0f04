// What `muster explain` says of whatever waits, and of a node, as people and as programs read it.

#include "cli/explanation.h"

#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "json/write.h"

namespace muster::cli {
namespace {

constexpr const char* kGroups = "/apis/scheduling.volcano.sh/v1beta1/podgroups";

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() {
    cluster_.api.static_answers["/apis"] = Yaml(
        "{groups: [{name: kubeflow.org, versions: [{version: v1}], preferredVersion: {version: "
        "v1}}, {name: scheduling.volcano.sh, versions: [{version: v1beta1}], preferredVersion: "
        "{version: v1beta1}}]}");
    cluster_.api.static_answers["/apis/scheduling.volcano.sh/v1beta1"] = Yaml(
        "{resources: [{name: podgroups, kind: PodGroup, singularName: podgroup, namespaced: "
        "true}]}");
    for (const char* name : {"n0", "n1"}) {
      cluster_.api.Put(
          "/api/v1/nodes",
          Yaml(std::string("{metadata: {name: ") + name +
               ", labels: {nvidia.com/gpu.product: H100}, annotations: "
               "{muster.dev/devices: '{\"nvidia.com/gpu\": [{\"id\": \"GPU-0\", \"index\": 0}, "
               "{\"id\": \"GPU-1\", \"index\": 1}]}'}}, status: {conditions: [{type: "
               "Ready, status: 'True'}], allocatable: {cpu: '8', memory: 16Gi, pods: "
               "'10', nvidia.com/gpu: '2'}}}"));
    }
  }
  // `spec` is more of the pod's, `gpus` its request, "" for none.
  void PutPod(const std::string& name, const std::string& node, const std::string& gpus,
              const std::string& spec = "", const std::string& metadata = "") {
    const std::string limits = gpus.empty() ? "{}" : "{limits: {nvidia.com/gpu: '" + gpus + "'}}";
    cluster_.api.Put("/api/v1/pods",
                     Yaml("{metadata: {name: " + name + ", namespace: default" + metadata +
                          "}, spec: {" + (node.empty() ? "" : "nodeName: " + node + ", ") +
                          "containers: [{name: c, resources: " + limits + "}]" + spec +
                          "}, status: {phase: " + (node.empty() ? "Pending" : "Running") + "}}"));
  }
  std::string Text(const std::vector<std::string>& words) {
    const Outcome outcome = cluster_.Run("explain", words);
    return outcome.out + outcome.err;
  }
  json::Value Json(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", "json"});
    return *json::Parse(cluster_.Run("explain", words).out);
  }
  FakeCluster cluster_;
};

TEST_F(ExplainTest, APodThatWaitsReadsTheDetailOfAPlan) {
  PutPod("a", "n0", "2");
  PutPod("b", "n1", "1");
  PutPod("p", "", "2");
  EXPECT_EQ(Text({"pod", "p"}),
            "Pod p waits: not looked at by the scheduler yet\n"
            "  as of now: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu. Waits for 2 "
            "nvidia.com/gpu: 1 of 4 free (2 held by pod default/a, 1 held by pod default/b); fits "
            "when pod default/b ends.\n"
            "  2 x 2 GPU H100: Insufficient nvidia.com/gpu, 1 free at most on one\n"
            "  2 nodes would take it but for one rule: Insufficient nvidia.com/gpu\n"
            "  lacks 1 nvidia.com/gpu of H100\n"
            "  fits with 1 more node like n0 (2 GPU H100)\n"
            "  fits when pod default/b ends\n");
  const json::Value facts = Json({"pod", "p"});
  EXPECT_EQ(facts["state"].AsString(), "Waiting");
  EXPECT_EQ(facts["scheduling"]["why"].AsString(), "NoFit");
  EXPECT_EQ(facts["scheduling"]["nodeKinds"].At(0)["kind"].AsString(), "2 GPU H100");
  EXPECT_EQ(facts["scheduling"]["fitsWhenTheseEnd"].At(0)["holder"].AsString(), "pod default/b");
}

TEST_F(ExplainTest, NodePoolsSayWhatTheyWouldAddAndAtWhatPrice) {
  PutPod("p", "", "4");
  PutPod("small", "", "16");
  cluster_.api.Put("/apis/karpenter.sh/v1/nodepools",
                   Yaml("{metadata: {name: gpu}, spec: {template: {spec: {requirements: [{key: "
                        "karpenter.k8s.aws/instance-family, operator: In, values: [g5]}]}}}}"));
  const std::string said = Text({"pod", "p"});
  EXPECT_TRUE(said.contains("\n  NodePool gpu adds g5.12xlarge (on-demand, 5.672 USD/h)\n"))
      << said;
  EXPECT_TRUE(Text({"pod", "small"})
                  .contains("no node is added: NodePool gpu: the pod wants 16 nvidia.com/gpu, and "
                            "its largest type has 8"));
  // Prices of one's own.
  cluster_.api.Put("/api/v1/configmaps",
                   Yaml("{metadata: {name: muster-instance-types, namespace: kube-system}, data: "
                        "{types.yaml: 'types: [{name: g5.lab, cpu: 64, memory: 256Gi, gpus: 4, "
                        "gpuProduct: X, price: 1.5}]'}}"));
  EXPECT_EQ(Json({"pod", "p"})["nodePools"].AsString(),
            "NodePool gpu adds g5.lab (on-demand, 1.5 USD/h)");
  // What is coming is not asked for twice.
  cluster_.api.Put("/apis/karpenter.sh/v1/nodeclaims",
                   Yaml("{metadata: {name: gpu-x, labels: {karpenter.sh/nodepool: gpu, "
                        "karpenter.sh/capacity-type: on-demand, node.kubernetes.io/instance-type: "
                        "g5.12xlarge}}, spec: {}}"));
  EXPECT_EQ(Json({"pod", "p"})["nodePools"].AsString(),
            "it fits with nodes that are coming: nodeclaim/gpu-x (g5.12xlarge)");
}

// What is free does not depend on which of the gang's pods were tried before.
TEST_F(ExplainTest, WhatIsFreeIsFreeForTheWholeGang) {
  cluster_.api.Put(kGroups,
                   Yaml("{metadata: {name: g, namespace: default}, spec: {minMember: 2}}"));
  PutPod("b", "n1", "1");
  for (const char* name : {"g-0", "g-1"})
    PutPod(name, "", "2", "", ", annotations: {scheduling.k8s.io/group-name: g}");
  const std::string text = Text({"gang", "g"});
  EXPECT_NE(text.find("3 of 4 free (1 held by pod default/b); fits when"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  2 x 2 GPU H100: Insufficient nvidia.com/gpu beside 1 pod of the gang, 2 "
                      "free at most on one\n"),
            std::string::npos)
      << text;
  const json::Value kind = Json({"gang", "g"})["scheduling"]["nodeKinds"].At(0);
  EXPECT_EQ(kind["free"].AsString(), "3");
  EXPECT_EQ(kind["mostFreeOnANode"].AsString(), "2");
}

TEST_F(ExplainTest, SaysWhereAPodWouldGoThatNobodyHasBound) {
  PutPod("a", "n0", "2");
  PutPod("p", "", "2");
  EXPECT_EQ(Text({"pod", "p"}),
            "Pod p waits: not looked at by the scheduler yet\n"
            "  it fits now, on n1: the scheduler will bind it, if one runs\n");
  EXPECT_EQ(json::Write(Json({"pod", "p"})["fitsNowOn"]), R"(["n1"])");
}

// There is room, and somebody at the server says no: that is not "the scheduler will bind it".
TEST_F(ExplainTest, SaysThatTheBindingIsRefused) {
  PutPod("p", "", "2");
  json::Value pod = *cluster_.api.Find("/api/v1/pods", "default", "p");
  const char* refusal =
      "the binding was refused: admission webhook \"no.example.com\" denied the request: not "
      "today; "
      "next try in 2 s";
  cluster_.api.Put("/api/v1/pods", pod.SetPath({"status", "conditions"},
                                               json::List({json::Obj({{"type", "PodScheduled"},
                                                                      {"status", "False"},
                                                                      {"reason", "SchedulerError"},
                                                                      {"message", refusal}})})));
  EXPECT_EQ(Text({"pod", "p"}),
            fmt::format("Pod p waits: {}\n"
                        "  there is room on n0, but the binding is refused: whoever refuses it, "
                        "often an admission webhook for pods/binding, has to let it pass; it is "
                        "tried again\n",
                        refusal));
  const json::Value facts = Json({"pod", "p"});
  EXPECT_EQ(facts["bindingRefused"].AsString(), refusal);
  EXPECT_FALSE(facts.Has("fitsNowOn"));
}

// A quota or a webhook that refuses its pods, and a rollout that does not get on.
TEST_F(ExplainTest, ADeploymentSaysWhyItsPodsCannotBeMade) {
  cluster_.api.static_answers["/apis"] =
      Yaml("{groups: [{name: apps, versions: [{version: v1}]}]}");
  cluster_.api.static_answers["/apis/apps/v1"] = Yaml(
      "{resources: [{name: deployments, kind: Deployment, singularName: deployment, namespaced: "
      "true}]}");
  cluster_.api.Put("/apis/apps/v1/deployments", Yaml(R"(
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}
status:
  readyReplicas: 1
  conditions:
  - {type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'exceeded quota: q'}
  - {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: 'has timed out'}
)"));
  PutPod("web-1", "n0", "", "", ", labels: {app: web}");
  EXPECT_EQ(Text({"deployment", "web"}),
            "Deployment web has 1 of 3 pods ready\n"
            "  ReplicaFailure: FailedCreate: exceeded quota: q\n"
            "  Progressing: ProgressDeadlineExceeded: has timed out\n"
            "  web-1: runs on node n0\n");
  const auto& requests = cluster_.api.requests;
  EXPECT_TRUE(std::any_of(requests.begin(), requests.end(), [](const std::string& request) {
    return request.find("/pods?labelSelector=app%3Dweb") != std::string::npos;
  })) << requests.back();
  EXPECT_EQ(json::Write(Json({"deployment", "web"})["replicaFailure"]),
            R"({"reason":"FailedCreate","message":"exceeded quota: q"})");
}

TEST_F(ExplainTest, NamesGatesAndForeignSchedulers) {
  PutPod("gated", "", "", ", schedulingGates: [{name: a/b}, {name: quota}]");
  EXPECT_EQ(Text({"pod", "gated"}),
            "Pod gated waits: its scheduling gates are not removed\n"
            "  scheduling gates: a/b, quota; whoever set them must remove them first\n");
  PutPod("foreign", "", "", ", schedulerName: kai");
  EXPECT_EQ(Text({"pod", "foreign"}),
            "Pod foreign waits: no scheduler has looked at it; its schedulerName is \"kai\", and "
            "muster serves default-scheduler, volcano, muster, muster-spread\n");
  EXPECT_TRUE(Json({"pod", "foreign"})["scheduling"].IsNull());
}

TEST_F(ExplainTest, AGangIsFoundByItsPodGroup) {
  cluster_.api.Put(kGroups,
                   Yaml("{metadata: {name: g, namespace: default}, spec: {minMember: 3}}"));
  for (const char* name : {"g-0", "g-1"})
    PutPod(name, "", "2", "", ", annotations: {scheduling.k8s.io/group-name: g}");
  const std::string text =
      "PodGroup g is not looked at by the scheduler yet: 0 running, 0 succeeded, 0 failed, of at "
      "least 3\n"
      "  as of now: 2/3 pods of the gang exist: gang g waits for 1 more.\n"
      "  g-0, g-1: waits with its gang\n";
  EXPECT_EQ(Text({"gang", "g"}), text);
  EXPECT_EQ(Text({"podgroup", "default/g"}), text);
  EXPECT_EQ(Text({"gang/default/g"}), text);
  PutPod("g-2", "", "2", "", ", annotations: {scheduling.k8s.io/group-name: g}");
  EXPECT_NE(
      Text({"gang", "g"})
          .find("gang g: 3 pods x 2 nvidia.com/gpu need 6 at once, the cluster offers 4; it does "
                "not fit even an empty cluster: it needs 2 more nvidia.com/gpu, as of 1 more node "
                "like n0 (2 GPU H100)."),
      std::string::npos)
      << Text({"gang", "g"});
  const json::Value facts = Json({"gang", "g"});
  EXPECT_EQ(facts["kind"].AsString(), "PodGroup");
  EXPECT_EQ(facts["scheduling"]["why"].AsString(), "NeverFits");
  EXPECT_EQ(facts["scheduling"]["fitsWithNodes"]["count"].AsInt(), 1);
  EXPECT_EQ(facts["pods"].size(), 3u);
}

TEST_F(ExplainTest, APodWithoutItsPodGroupSaysSo) {
  PutPod("p", "", "1", "", ", annotations: {scheduling.k8s.io/group-name: g}");
  EXPECT_NE(Text({"pod", "p"})
                .find("PodGroup \"g\", to which the pod says it belongs, does not "
                      "exist in its namespace."),
            std::string::npos)
      << Text({"pod", "p"});
}

TEST_F(ExplainTest, ANodeSaysWhoseItsGpusAre) {
  PutPod("a", "n0", "1", "",
         ", annotations: {muster.dev/assigned-devices: '{\"c\": {\"nvidia.com/gpu\": "
         "[\"GPU-1\"]}}'}");
  PutPod("hog", "n0", "", ", overhead: {cpu: '8'}");
  EXPECT_EQ(Text({"node", "n0"}),
            "Node n0 is Ready\n"
            "  free: 0 of 8 cpu\n"
            "  free: 16Gi of 16Gi memory\n"
            "  free: 1 of 2 nvidia.com/gpu\n"
            "  free: 8 of 10 pods\n"
            "  the largest pod that fits: 1 nvidia.com/gpu, 16Gi memory\n"
            "  1 free GPU is stranded: no cpu is free beside it\n"
            "  nvidia.com/gpu 0: free\n"
            "  nvidia.com/gpu 1: pod default/a\n"
            "  pod default/a has 1 pod with 1 nvidia.com/gpu\n"
            "  pod default/hog has 1 pod with 8 cpu\n");
  EXPECT_EQ(json::Write(Json({"node", "n0"})),
            json::Write(*json::Parse(
                R"({"kind":"Node","name":"n0","nodeKind":"2 GPU H100","message":"is Ready",
"takesPods":true,"closedBy":[],
"amounts":[{"resource":"cpu","free":"0","allocatable":"8"},
 {"resource":"memory","free":"16Gi","allocatable":"16Gi"},
 {"resource":"nvidia.com/gpu","free":"1","allocatable":"2"},
 {"resource":"pods","free":"8","allocatable":"10"}],
"largestPod":{"nvidia.com/gpu":"1","memory":"16Gi"},"strandedGpus":1,
"devices":[{"resource":"nvidia.com/gpu","index":0,"id":"GPU-0","model":""},
 {"resource":"nvidia.com/gpu","index":1,"id":"GPU-1","model":"","pod":"default/a"}],
"pods":[{"namespace":"default","name":"a","holder":"pod default/a",
  "requests":{"nvidia.com/gpu":"1","pods":"1"}},
 {"namespace":"default","name":"hog","holder":"pod default/hog",
  "requests":{"cpu":"8","pods":"1"}}]})")));
}

TEST_F(ExplainTest, APodWhoseClaimGetsNoVolumeDoesNotFit) {
  cluster_.api.Put("/apis/storage.k8s.io/v1/storageclasses",
                   Yaml("{metadata: {name: lp}, provisioner: muster.dev/local-path, "
                        "volumeBindingMode: WaitForFirstConsumer}"));
  const auto put_claim = [&](const std::string& metadata) {
    cluster_.api.Put("/api/v1/persistentvolumeclaims",
                     Yaml("{metadata: {name: data, namespace: default, uid: c1" + metadata +
                          "}, spec: {storageClassName: lp, accessModes: [ReadWriteOnce], "
                          "resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}"));
  };
  const auto put_event = [&](const char* name, const char* type, const char* text) {
    cluster_.api.Put(
        "/api/v1/events",
        Yaml(fmt::format("{{metadata: {{name: e{0}, namespace: default}}, "
                         "involvedObject: {{kind: PersistentVolumeClaim, name: data}}, "
                         "type: {1}, lastTimestamp: '2026-01-01T00:00:0{0}Z', {2}}}",
                         name, type, text)));
  };
  put_claim("");
  PutPod("p", "", "1", ", volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]");
  put_event("1", "Normal", "reason: WaitForFirstConsumer, message: waiting");
  EXPECT_NE(Text({"pod", "p"}).find("it fits now, on n0"), std::string::npos)
      << "nothing was tried yet: " << Text({"pod", "p"});
  put_claim(", annotations: {volume.kubernetes.io/selected-node: n0}");
  put_event("2", "Warning", "reason: ProvisioningFailed, message: no block volumes");
  put_event("3", "Normal", "reason: WaitForPodScheduled, message: waiting");
  // The fake server does not select events by their object: others follow.
  EXPECT_TRUE(Text({"pod", "p"})
                  .starts_with("Pod p waits: not looked at by the scheduler yet\n"
                               "  claim data has no volume yet: ProvisioningFailed: no block "
                               "volumes\n"
                               "  it is bound to its place as soon as its claims have volumes\n"))
      << Text({"pod", "p"});
  const json::Value facts = Json({"pod", "p"});
  EXPECT_FALSE(facts.Has("fitsNowOn"));
  EXPECT_EQ(json::Write(facts["claims"]),
            R"([{"name":"data","message":"ProvisioningFailed: no block volumes"}])");
}

TEST_F(ExplainTest, AJobSetSaysWhatItsJobsDo) {
  cluster_.api.static_answers["/apis"] = Yaml(
      "{groups: [{name: jobset.x-k8s.io, versions: [{version: v1alpha2}], preferredVersion: "
      "{version: v1alpha2}}]}");
  cluster_.api.static_answers["/apis/jobset.x-k8s.io/v1alpha2"] =
      Yaml("{resources: [{name: jobsets, kind: JobSet, singularName: jobset, namespaced: true}]}");
  const auto put = [&](const std::string& status) {
    cluster_.api.Put(
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        Yaml("{metadata: {name: t, namespace: default}, spec: {replicatedJobs: [{name: "
             "a, replicas: 2}, {name: b}]}, status: {" +
             status + "}}"));
  };
  put("");
  EXPECT_EQ(Text({"jobset", "t"}), "JobSet t of 3 Jobs: none is active yet\n");
  PutPod("t-a-0", "", "9", "", ", labels: {jobset.sigs.k8s.io/jobset-name: t}");
  put("replicatedJobsStatus: [{name: a, active: 2, ready: 1}, {name: b, succeeded: 1}]");
  EXPECT_EQ(Text({"jobset", "t"}),
            "JobSet t of 3 Jobs: 2 active, 1 ready, 1 succeeded\n"
            "  t-a-0: waits: not looked at by the scheduler yet\n");
  put("conditions: [{type: Completed, status: 'True', message: jobset completed successfully}]");
  EXPECT_TRUE(
      Text({"jobset", "t"}).starts_with("JobSet t completed: jobset completed successfully\n"))
      << Text({"jobset", "t"});
}

TEST_F(ExplainTest, AJobIsFoundOfWhateverKind) {
  cluster_.api.static_answers["/apis"] = Yaml(
      "{groups: [{name: kubeflow.org, versions: [{version: v1}]}, {name: batch, versions: "
      "[{version: v1}]}, {name: jobset.x-k8s.io, versions: [{version: v1alpha2}]}]}");
  const auto serve = [&](const std::string& path, const std::string& plural,
                         const std::string& kind) {
    cluster_.api.static_answers[path] =
        Yaml("{resources: [{name: " + plural + ", kind: " + kind + ", namespaced: true}]}");
  };
  serve("/apis/kubeflow.org/v1", "pytorchjobs", "PyTorchJob");
  serve("/apis/batch/v1", "jobs", "Job");
  EXPECT_EQ(
      Text({"job", "j"}),
      "Error from server (NotFound): no pytorchjob.kubeflow.org, job.batch \"j\" in namespace "
      "default");
  serve("/apis/jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet");
  cluster_.api.Put("/apis/jobset.x-k8s.io/v1alpha2/jobsets",
                   Yaml("{metadata: {name: j, namespace: other}, spec: {replicatedJobs: [{}]}}"));
  EXPECT_EQ(Text({"job", "other/j"}), "JobSet j of 1 Job: none is active yet\n");
  cluster_.api.Put("/apis/batch/v1/jobs",
                   Yaml("{metadata: {name: j, namespace: other}, status: {active: 1}}"));
  EXPECT_EQ(Text({"job", "other/j"}),
            "Job j runs\n"
            "  of that name there is another one: muster explain jobset.jobset.x-k8s.io other/j\n");
  EXPECT_EQ(Text({"jobset.jobset.x-k8s.io", "other/j"}), "JobSet j of 1 Job: none is active yet\n");
}

TEST_F(ExplainTest, AJobRunsIfItsPodsDo) {
  cluster_.api.static_answers["/apis"] =
      Yaml("{groups: [{name: batch, versions: [{version: v1}]}]}");
  cluster_.api.static_answers["/apis/batch/v1"] =
      Yaml("{resources: [{name: jobs, kind: Job, namespaced: true}]}");
  cluster_.api.Put("/apis/batch/v1/jobs",
                   Yaml("{metadata: {name: j, namespace: default}, status: {active: 2}}"));
  const auto put = [&](const std::string& name, const std::string& status) {
    cluster_.api.Put("/api/v1/pods", Yaml("{metadata: {name: " + name +
                                          ", namespace: default, labels: "
                                          "{batch.kubernetes.io/job-name: j}}, spec: {nodeName: "
                                          "n0, containers: [{name: c}]}, status: " +
                                          status + "}"));
  };
  const auto first_line = [&] {
    const std::string text = Text({"job", "j"});
    return text.substr(0, text.find('\n'));
  };
  const std::string creating =
      "{phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ErrImagePull}}}]}";
  const std::string runs = "{phase: Running, containerStatuses: [{name: c, state: {running: {}}}]}";
  const std::string crashes =
      "{phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: "
      "CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}";
  put("a", creating);
  put("b", creating);
  EXPECT_EQ(first_line(), "Job j has not started");
  put("b", runs);
  EXPECT_EQ(first_line(), "Job j has 1 of 2 pods running");
  put("b", crashes);
  EXPECT_EQ(Text({"job", "j"}),
            "Job j does not run at the moment: its 2 pods wait\n"
            "  a: waits: container c: ErrImagePull\n"
            "  b: waits: container c: CrashLoopBackOff; it ended with exit code 1 (Error)\n");
  put("a", "{phase: Failed}");
  EXPECT_EQ(first_line(), "Job j does not run at the moment: its pod waits");
  put("b", runs);
  EXPECT_EQ(first_line(), "Job j runs") << "what is over is not waited for";
}

TEST_F(ExplainTest, AGangIsFoundByEitherPodGroup) {
  cluster_.api.static_answers["/apis"] = Yaml(
      "{groups: [{name: scheduling.volcano.sh, versions: [{version: v1beta1}]}, {name: "
      "scheduling.x-k8s.io, versions: [{version: v1alpha1}]}]}");
  cluster_.api.static_answers["/apis/scheduling.x-k8s.io/v1alpha1"] = Yaml(
      "{resources: [{name: podgroups, kind: PodGroup, singularName: podgroup, namespaced: "
      "true}]}");
  cluster_.api.Put("/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
                   Yaml("{metadata: {name: g, namespace: default}, spec: {minMember: 2}, status: "
                        "{phase: Running, running: 2}}"));
  const std::string text =
      "PodGroup g is Running: 2 running, 0 succeeded, 0 failed, of at least 2\n";
  EXPECT_EQ(Text({"gang", "g"}), text);
  EXPECT_EQ(Text({"PodGroup", "g"}), text);
}

TEST_F(ExplainTest, AShareOfAGpuIsNoPartOfTheLargestPod) {
  cluster_.api.Put(
      "/api/v1/nodes",
      Yaml(
          "{metadata: {name: n0, annotations: {muster.dev/devices: '{\"nvidia.com/gpu\": [{\"id\": "
          "\"GPU-0\"}, {\"id\": \"GPU-1\", \"index\": 1}]}'}}, status: {allocatable: {cpu: '8', "
          "pods: '10', nvidia.com/gpu: '2', muster.dev/gpu-milli: 2k}}}"));
  const auto share = [&](const std::string& name, const std::string& milli) {
    cluster_.api.Put("/api/v1/pods",
                     Yaml("{metadata: {name: " + name +
                          ", namespace: default, annotations: {muster.dev/assigned-devices: "
                          "'{\"c\": {\"nvidia.com/gpu\": [\"GPU-0\"]}}'}}, spec: {nodeName: n0, "
                          "containers: [{name: c, resources: {limits: {muster.dev/gpu-milli: " +
                          milli + "}}}]}}"));
  };
  share("a", "300");
  EXPECT_NE(Text({"node", "n0"}).find("free: 1700 of 2000 muster.dev/gpu-milli\n"),
            std::string::npos);
  EXPECT_NE(Text({"node", "n0"})
                .find("  the largest pod that fits: 1 nvidia.com/gpu, 8 cpu\n"
                      "  the largest share of a GPU that fits: 1000 muster.dev/gpu-milli\n"),
            std::string::npos)
      << Text({"node", "n0"});
  PutPod("whole", "n0", "1", "",
         ", annotations: {muster.dev/assigned-devices: '{\"c\": {\"nvidia.com/gpu\": "
         "[\"GPU-1\"]}}'}");
  const json::Value facts = Json({"node", "n0"});
  EXPECT_EQ(json::Write(facts["largestPod"]), R"({"cpu":"8"})");
  EXPECT_EQ(facts["largestShare"].AsString(), "700");
  EXPECT_NE(Text({"node", "n0"}).find("free: 700 of 2000 muster.dev/gpu-milli\n"),
            std::string::npos);
}

TEST_F(ExplainTest, OtherKindsSayWhatTheirStatusSays) {
  cluster_.api.static_answers["/api/v1"] = Yaml(
      "{resources: [{name: persistentvolumeclaims, kind: PersistentVolumeClaim, singularName: "
      "persistentvolumeclaim, shortNames: [pvc], namespaced: true}, {name: serviceaccounts, kind: "
      "ServiceAccount, singularName: serviceaccount, shortNames: [sa], namespaced: true}]}");
  const std::string known =
      "  what waits for which reason, and what would change that, is known of pods, gangs, jobs "
      "and "
      "nodes\n";
  cluster_.api.Put("/api/v1/persistentvolumeclaims",
                   Yaml("{metadata: {name: data, namespace: default}, status: {phase: Pending, "
                        "conditions: [{type: Resizing, status: 'True', message: soon}]}}"));
  cluster_.api.Put("/api/v1/events",
                   Yaml("{metadata: {name: e, namespace: default}, involvedObject: {kind: "
                        "PersistentVolumeClaim, name: data}, type: Normal, reason: "
                        "WaitForFirstConsumer, message: waiting for first consumer}"));
  EXPECT_EQ(Text({"pvc", "data"}),
            "PersistentVolumeClaim data is Pending\n"
            "  Resizing is True: soon\n"
            "  event WaitForFirstConsumer: waiting for first consumer\n" +
                known);
  EXPECT_EQ(Json({"pvc", "data"})["events"].At(0)["reason"].Str(), "WaitForFirstConsumer");
  cluster_.api.Put("/api/v1/serviceaccounts", Yaml("{metadata: {name: me, namespace: default}}"));
  EXPECT_EQ(Text({"sa", "me"}),
            "ServiceAccount me exists; its status has neither a phase nor conditions\n" + known);
}

// Reading pods and nodes may be forbidden; then the condition is all there is.
TEST_F(ExplainTest, SaysWhyThereIsNoDetail) {
  PutPod("p", "", "1");
  cluster_.api.before_handle = [](const net::Request& request,
                                  const net::ResponseWriterPtr& writer) {
    if (request.target != "/api/v1/nodes") return true;
    net::Response response;
    response.status = 403;
    response.body =
        R"({"kind":"Status","status":"Failure","reason":"Forbidden","message":"no nodes for you"})";
    writer->Send(std::move(response));
    return false;
  };
  EXPECT_EQ(Text({"pod", "p"}),
            "Pod p waits: not looked at by the scheduler yet\n"
            "  no detail: Error from server (Forbidden): no nodes for you\n");
}

}  // namespace
}  // namespace muster::cli
