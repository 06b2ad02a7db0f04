#include "schema/advice.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

// A job of one master and `workers` workers, whose pods are made of `pod`.
std::vector<std::string> Told(const std::string& pod, int workers) {
  const std::string text = R"({"spec":{"pytorchReplicaSpecs":{"Master":{"template":)" + pod +
                           R"(},"Worker":{"replicas":)" + std::to_string(workers) +
                           R"(,"template":)" + pod + "}}}}";
  Kind kind;
  kind.group = "kubeflow.org";
  kind.kind = "PyTorchJob";
  return Advise(kind, *json::Parse(text));
}

std::string Pod(const std::string& gpus, const std::string& metadata = "{}",
                const std::string& more = "") {
  return R"({"metadata":)" + metadata + R"(,"spec":{)" + more +
         R"("containers":[{"resources":{"limits":{"nvidia.com/gpu":)" + gpus + "}}}]}}";
}

TEST(Advice, OneGpuPodsOfAGangDoNotReachNvlink) {
  const auto told = Told(Pod("1"), 3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("spec.pytorchReplicaSpecs: 4 pods with one GPU each")) << told[0];
  EXPECT_NE(told[0].find("muster.dev/gang-sandbox: shared"), std::string::npos);
  EXPECT_EQ(Told(Pod(R"("1")"), 1).size(), 1u);
}

TEST(Advice, ALoadBalancerIsNotMade) {
  Kind kind;
  kind.kind = "Service";
  const auto told = Advise(kind, *json::Parse(R"({"spec":{"type":"LoadBalancer"}})"));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("at its node ports"), std::string::npos) << told[0];
  EXPECT_TRUE(Advise(kind, *json::Parse(R"({"spec":{"type":"NodePort"}})")).empty());
}

TEST(Advice, OfHintsTheNewerFieldAloneCounts) {
  Kind kind;
  kind.kind = "Service";
  const auto told = [&](const std::string& annotations) {
    return Advise(kind, *json::Parse(R"({"metadata":{"annotations":)" + annotations + "}}"));
  };
  EXPECT_EQ(told(R"({"service.kubernetes.io/topology-mode":"Auto"})"),
            std::vector<std::string>{
                "metadata.annotations[service.kubernetes.io/topology-mode] is not acted on yet: "
                "spec.trafficDistribution: PreferSameZone keeps requests in their zone, too"});
  EXPECT_EQ(told(R"({"service.kubernetes.io/topology-aware-hints":"auto"})").size(), 1u);
  // The former name counts only without the present one.
  EXPECT_TRUE(told(R"({"service.kubernetes.io/topology-mode":"Disabled",
                       "service.kubernetes.io/topology-aware-hints":"Auto"})")
                  .empty());
}

TEST(Advice, MoreMinAvailableThanReplicasNeverStarts) {
  Kind kind;
  kind.group = "kubeflow.org";
  kind.kind = "PyTorchJob";
  const auto told = [&](const std::string& min_available) {
    return Advise(kind, *json::Parse(R"({"spec": {"pytorchReplicaSpecs": {"Master": {}, "Worker":
      {"replicas": 3}}, "runPolicy": {"schedulingPolicy": {"minAvailable": )" +
                                     min_available + "}}}}"));
  };
  EXPECT_EQ(told("5"), std::vector<std::string>{
                           "spec.runPolicy.schedulingPolicy.minAvailable: 5 pods must be there "
                           "before any starts, and the job has 4: it waits for ever"});
  EXPECT_TRUE(told("4").empty());
}

std::vector<std::string> ToldOf(const char* group, const char* name, const std::string& text) {
  Kind kind;
  kind.group = group;
  kind.kind = name;
  return Advise(kind, *json::Parse(text));
}

TEST(Advice, AnElasticJobNeedsARendezvousAndAsManyPodsAsItsBounds) {
  const auto told = [](const std::string& policy) {
    return ToldOf("kubeflow.org", "PyTorchJob",
                  R"({"spec": {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 3}},
                      "elasticPolicy": )" +
                      policy + "}}");
  };
  EXPECT_TRUE(told(R"({"minReplicas": 2, "maxReplicas": 8})").empty());
  const auto etcd = told(R"({"rdzvBackend": "etcd", "rdzvHost": "etcd-service"})");
  ASSERT_EQ(etcd.size(), 1u);
  EXPECT_TRUE(etcd[0].starts_with("spec.elasticPolicy.rdzvBackend: etcd needs an etcd")) << etcd[0];
  EXPECT_EQ(told(R"({"minReplicas": 5})"),
            std::vector<std::string>{
                "spec.elasticPolicy.minReplicas: torchrun waits for 5 pods, and the job has 4"});
  EXPECT_EQ(told(R"({"maxReplicas": 3})"),
            std::vector<std::string>{"spec.elasticPolicy.maxReplicas: torchrun lets 3 pods train; "
                                     "1 of the job's 4 wait for one of them to leave"});
}

TEST(Advice, AnElasticJobIsNotToldAFixedNumberOfNodes) {
  const auto told = [](const std::string& container,
                       const std::string& policy = R"("elasticPolicy": {},)") {
    const std::string template_text = R"({"spec": {"containers": [)" + container + "]}}";
    return ToldOf("kubeflow.org", "PyTorchJob",
                  R"({"spec": {)" + policy + R"("pytorchReplicaSpecs": {"Master": {"template": )" +
                      template_text + "}}}}");
  };
  const std::vector<std::string> fixed = {
      "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]: --nnodes=4 goes before "
      "PET_NNODES, which has the bounds of elasticPolicy: with any other number of pods torchrun "
      "fails; leave it out"};
  EXPECT_EQ(told(R"({"command": ["torchrun", "--nnodes=4", "train.py"]})"), fixed);
  EXPECT_EQ(told(R"({"command": ["torchrun", "--nnodes", "4"]})"), fixed);
  EXPECT_EQ(told(R"({"command": ["sh", "-c"], "args": ["exec torchrun --nnodes 4 train.py"]})"),
            fixed);
  for (const char* fine : {R"(["torchrun", "--nnodes=2:8"])", R"(["torchrun", "--nnodes=$N"])",
                           R"(["torchrun", "--nnodes"])", R"(["torchrun", "train.py"])"}) {
    EXPECT_TRUE(told(R"({"command": )" + std::string(fine) + "}").empty()) << fine;
  }
  // One that is not elastic needs it.
  EXPECT_TRUE(told(R"({"command": ["torchrun", "--nnodes=4"]})", "").empty());
}

TEST(Advice, TheGpuOperatorIsNotNeeded) {
  constexpr char kDeployment[] = R"({"spec": {"template": {"spec": {
      "containers": [{"image": "nvcr.io/nvidia/gpu-operator:v24.9.0"}]}}}})";
  const std::vector<std::string> told = ToldOf("apps", "Deployment", kDeployment);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("spec.replicas: kept at 0: muster's nodes offer")) << told[0];
}

TEST(Advice, NamesOfPodsBecomeHostNames) {
  for (const auto& [group, kind] :
       {std::pair("apps", "Deployment"), std::pair("apps", "ReplicaSet"), std::pair("batch", "Job"),
        std::pair("batch", "CronJob")}) {
    const auto told = ToldOf(group, kind, R"({"metadata":{"name":"a.b"}})");
    EXPECT_EQ(told, std::vector<std::string>{
                        "metadata.name: this is used in Pod names and hostnames, which can result "
                        "in surprising behavior; a DNS label is recommended: [must not contain "
                        "dots]"});
    EXPECT_TRUE(ToldOf(group, kind, R"({"metadata":{"name":"a-b"}})").empty());
    EXPECT_TRUE(ToldOf(group, kind, R"({"metadata":{"generateName":"a"}})").empty());
  }
  EXPECT_TRUE(ToldOf("", "ConfigMap", R"({"metadata":{"name":"a.b"}})").empty());
}

TEST(Advice, TooManyIndexesAtOnceCannotBeListed) {
  const auto spec = [](const char* mode, int completions, int parallelism) {
    return fmt::format(R"({{"spec":{{"completionMode":"{}","completions":{},"parallelism":{}}}}})",
                       mode, completions, parallelism);
  };
  EXPECT_EQ(ToldOf("batch", "Job", spec("Indexed", 100'001, 10'001)).size(), 1u);
  EXPECT_TRUE(ToldOf("batch", "Job", spec("Indexed", 100'001, 10'000)).empty());
  EXPECT_TRUE(ToldOf("batch", "Job", spec("Indexed", 100'000, 10'001)).empty());
  EXPECT_TRUE(ToldOf("batch", "Job", spec("NonIndexed", 100'001, 10'001)).empty());
  EXPECT_EQ(ToldOf("batch", "CronJob",
                   R"({"spec":{"jobTemplate":)" + spec("Indexed", 100'001, 10'001) + "}}")
                .size(),
            1u);
}

TEST(Advice, AQuotaOfDevicesMustSayRequests) {
  const std::vector<std::string> told =
      ToldOf("", "ResourceQuota",
             R"({"spec":{"hard":{"limits.nvidia.com/gpu":"1","requests.nvidia.com/gpu":"1","pods":
                "1","count/jobs.batch":"1","gold.storageclass.storage.k8s.io/requests.storage":
                "1Gi"}}})");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0],
            "spec.hard[limits.nvidia.com/gpu]: nothing counts this name, so nothing is limited; "
            "devices and other extended resources are limited as requests.nvidia.com/gpu");
}

TEST(Advice, CudaKnowsNoAll) {
  const std::string pod = R"("spec":{"containers":[{"env":[]},{"env":[{"name":"A","value":"all"},)"
                          R"({"name":"CUDA_VISIBLE_DEVICES","value":"all"}]}]})";
  const auto fields = [](const std::vector<std::string>& told) {
    return told.size() == 1 ? told[0].substr(0, told[0].find(": ")) : "";
  };
  EXPECT_EQ(fields(ToldOf("", "Pod", "{" + pod + "}")), "spec.containers[1].env[1].value");
  const std::string in_template = R"({"spec":{"template":{)" + pod + "}}}";
  EXPECT_EQ(fields(ToldOf("batch", "Job", in_template)),
            "spec.template.spec.containers[1].env[1].value");
  EXPECT_EQ(fields(ToldOf("batch", "CronJob", R"({"spec":{"jobTemplate":)" + in_template + "}}")),
            "spec.jobTemplate.spec.template.spec.containers[1].env[1].value");
  EXPECT_TRUE(
      ToldOf("", "Pod",
             R"({"spec":{"containers":[{"env":[{"name":"CUDA_VISIBLE_DEVICES","value":"0"}]}]}})")
          .empty());
}

TEST(Advice, NoPodsAreMadeOfNvidiasDevicePlugin) {
  const std::string plugin = R"({"spec":{"template":{"spec":{
      "containers":[{"image":"nvcr.io/nvidia/k8s-device-plugin:v1"}],
      "volumes":[{"hostPath":{"path":"/var/lib/kubelet/device-plugins"}}]}}}})";
  EXPECT_EQ(ToldOf("apps", "DaemonSet", plugin),
            std::vector<std::string>{"spec.template.spec: muster offers nvidia.com/gpu itself and "
                                     "makes no pods of NVIDIA's device plugin"});
  EXPECT_TRUE(ToldOf("apps", "Deployment", plugin).empty());
}

TEST(Advice, NoPodsAreMadeOfDcgmExporter) {
  const std::string exporter = R"({"spec":{"template":{"spec":{
      "containers":[{"image":"nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2"}]}}}})";
  EXPECT_EQ(ToldOf("apps", "DaemonSet", exporter),
            std::vector<std::string>{
                "spec.template.spec: muster's nodes have the metrics DCGM_FI_DEV_* themselves and "
                "no pods of dcgm-exporter are made: scrape /api/v1/nodes/NODE/proxy/metrics"});
  EXPECT_TRUE(ToldOf("apps", "Deployment", exporter).empty());
}

TEST(Advice, OthersAreFine) {
  EXPECT_TRUE(Told(Pod("1"), 0).empty()) << "a master alone";
  EXPECT_TRUE(Told(Pod("8"), 3).empty());
  EXPECT_TRUE(Told(Pod("0"), 3).empty());
  EXPECT_TRUE(Told(Pod("\"x\""), 3).empty());
  EXPECT_TRUE(Told(Pod("1", R"({"annotations":{"muster.dev/gang-sandbox":"shared"}})"), 3).empty());
  EXPECT_TRUE(Told(Pod("1", "{}", R"("hostNetwork":true,)"), 3).empty());
  EXPECT_TRUE(Advise(Kind(), *json::Parse(Pod("1"))).empty()) << "of another kind";
}

TEST(Advice, OnSpotNodesWorkIsLostWithoutAVolumeThatOutlivesThem) {
  const std::string spot = R"("nodeSelector":{"karpenter.sh/capacity-type":"spot"},)";
  const auto told = Told(Pod("2", "{}", spot), 1);
  ASSERT_EQ(told.size(), 2u);  // of each role
  EXPECT_TRUE(
      told[0].starts_with("spec.pytorchReplicaSpecs.Master.template.spec: nodes with "
                          "karpenter.sh/capacity-type=spot are taken back"))
      << told[0];
  const auto with = [&](const std::string& volume) {
    return Told(Pod("2", "{}", spot + R"("volumes":[{"name":"v",)" + volume + "}],"), 1).size();
  };
  EXPECT_EQ(with(R"("emptyDir":{})"), 2u);
  EXPECT_EQ(with(R"("hostPath":{"path":"/data"})"), 2u);
  EXPECT_EQ(with(R"("persistentVolumeClaim":{"claimName":"c"})"), 0u);
  EXPECT_EQ(with(R"("nfs":{"server":"s","path":"/"})"), 0u);
  EXPECT_TRUE(Told(Pod("2"), 1).empty());

  Kind kind;
  kind.group = "batch";
  kind.kind = "Job";
  const json::Value job =
      *json::Parse(R"({"spec":{"template":{"spec":{"nodeSelector":{"karpenter.sh/capacity-type":)"
                   R"("spot"}}}}})");
  ASSERT_EQ(Advise(kind, job).size(), 1u);
  EXPECT_TRUE(Advise(kind, job)[0].starts_with("spec.template.spec: nodes with"));
  // A pod of somebody who has been told.
  kind.group = "";
  kind.kind = "Pod";
  const json::Value pod = json::Obj({{"spec", job["spec"]["template"]["spec"]}});
  EXPECT_EQ(Advise(kind, pod).size(), 1u);
  EXPECT_TRUE(Advise(kind, pod.SetPath({"metadata", "ownerReferences"}, json::List({json::Obj()})))
                  .empty());
}

TEST(Advice, SaysThatATrainingWithoutAProgramLearnsNothingOfUse) {
  Kind kind;
  kind.group = "ml.example.com";
  kind.kind = "DistributedTraining";
  const auto told = Advise(kind, *json::Parse(R"({"spec": {"modelType": "transformer"}})"));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("a small reference model"), std::string::npos);
  EXPECT_TRUE(Advise(kind, *json::Parse(R"({"spec": {"template": {"spec": {}}}})")).empty());
}

TEST(AdviceTest, SaysThatANodePoolWithoutLimitsHasNone) {
  const auto told = ToldOf("karpenter.sh", "NodePool", R"({"spec": {"template": {}}})");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("spec.limits: there are none"));
  EXPECT_TRUE(
      ToldOf("karpenter.sh", "NodePool", R"({"spec": {"limits": {"cpu": "10"}}})").empty());
}

TEST(AdviceTest, SaysWhatWaitsInNoQueue) {
  const char* labelled = R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"team"}}})";
  const auto told = ToldOf("apps", "StatefulSet", labelled);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with(
      "metadata.labels[kueue.x-k8s.io/queue-name] is not acted on yet for a StatefulSet"));
  EXPECT_TRUE(ToldOf("batch", "Job", labelled).empty());
  EXPECT_TRUE(ToldOf("", "ConfigMap", labelled).empty());
  EXPECT_TRUE(ToldOf("apps", "StatefulSet", "{}").empty());
  EXPECT_EQ(
      ToldOf("", "Pod", R"({"metadata":{"labels":{"kueue.x-k8s.io/pod-group-name":"g"}}})").size(),
      1u);
}

}  // namespace
}  // namespace muster::schema
