#include "ray/pods.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "json/write.h"
#include "ray/autoscaler.h"
#include "ray/start_command.h"
#include "ray/test_objects.h"

namespace muster::ray {
namespace {

const json::Value& EnvOf(const json::Value& container, std::string_view name) {
  static const json::Value kNone;
  for (const json::Value& entry : container["env"].items())
    if (entry["name"].AsString() == name) return entry;
  return kNone;
}

json::Value Named(const json::Value& list, std::string_view name) {
  for (const json::Value& entry : list.items())
    if (entry["name"].AsString() == name) return entry;
  return nullptr;
}

TEST(StartCommand, SortsFlagsAndKnowsSwitches) {
  const json::Value params = json::Obj({{"num-cpus", "2"},
                                        {"block", "True"},
                                        {"no-monitor", "false"},
                                        {"include-dashboard", "false"},
                                        {"address", "x:1"}});
  EXPECT_EQ(FlagsOf(params), "--address=x:1 --block --include-dashboard=false --num-cpus=2");
  EXPECT_EQ(FlagsOf(nullptr), "");
}

// kuberay controllers/ray/common/pod_test.go: what Ray is told follows the limits.
TEST(StartCommand, TellsRayWhatTheContainerMayUse) {
  const Cluster cluster = ParseCluster(TwoWorkers());
  const json::Value& head = cluster.head["template"]["spec"]["containers"].At(0);
  EXPECT_EQ(HeadCommand(cluster, head),
            "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ray start --head --block "
            "--dashboard-agent-listen-port=52365 --dashboard-host=0.0.0.0 --memory=1073741824 "
            "--metrics-export-port=8080 --num-cpus=0");
  const json::Value& worker = cluster.groups[0].pod_template["spec"]["containers"].At(0);
  EXPECT_EQ(WorkerCommand(cluster, nullptr, worker),
            "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ray start "
            "--address=c-head-svc.d.svc.cluster.local:6379 --block "
            "--dashboard-agent-listen-port=52365 --metrics-export-port=8080 --num-cpus=2 "
            "--num-gpus=1");
  Cluster other = ParseCluster(
      TwoWorkers().SetPath({"spec", "headGroupSpec", "rayStartParams", "port"}, "7000"));
  EXPECT_NE(WorkerCommand(other, nullptr, worker).find(":7000 "), std::string::npos);
  other.autoscaling = true;
  EXPECT_NE(HeadCommand(other, head).find(" --no-monitor "), std::string::npos);
}

TEST(Pods, AHeadHasItsNameLabelsCommandEnvironmentAndMemory) {
  const Cluster cluster = ParseCluster(TwoWorkers());
  const json::Value pod = MakeHeadPod(cluster, "c-head-abcde");
  const json::Value& labels = pod["metadata"]["labels"];
  EXPECT_EQ(labels["ray.io/cluster"].AsString(), "c");
  EXPECT_EQ(labels["ray.io/node-type"].AsString(), "head");
  EXPECT_EQ(labels["ray.io/group"].AsString(), "headgroup");
  EXPECT_EQ(labels["ray.io/identifier"].AsString(), "c-head");
  EXPECT_EQ(labels["ray.io/is-ray-node"].AsString(), "yes");
  EXPECT_EQ(labels["app.kubernetes.io/created-by"].AsString(), "kuberay-operator");
  EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"].AsString(), "ray-c-pg");
  const json::Value& container = pod["spec"]["containers"].At(0);
  EXPECT_EQ(container["command"], json::Strings({"/bin/bash", "-c", "--"}));
  EXPECT_EQ(EnvOf(container, "RAY_ADDRESS")["value"].AsString(), "127.0.0.1:6379");
  EXPECT_EQ(EnvOf(container, "KUBERAY_GEN_RAY_START_CMD")["value"], container["args"].At(0));
  EXPECT_TRUE(EnvOf(container, "FQ_RAY_IP").IsNull());
  EXPECT_EQ(container["readinessProbe"]["httpGet"]["path"].AsString(), "/api/gcs_healthz");
  EXPECT_EQ(container["volumeMounts"].At(0)["mountPath"].AsString(), "/dev/shm");
  EXPECT_EQ(pod["spec"]["volumes"].At(0)["emptyDir"]["medium"].AsString(), "Memory");
  EXPECT_FALSE(pod["spec"].Has("initContainers"));
}

TEST(Pods, AWorkerWaitsForTheHeadAndFindsIt) {
  const Cluster cluster = ParseCluster(TwoWorkers());
  const json::Value pod = MakeWorkerPod(cluster, cluster.groups[0], "c-small-worker-abcde");
  EXPECT_EQ(pod["metadata"]["labels"]["ray.io/group"].AsString(), "small");
  const json::Value& container = pod["spec"]["containers"].At(0);
  EXPECT_EQ(EnvOf(container, "FQ_RAY_IP")["value"].AsString(), "c-head-svc.d.svc.cluster.local");
  EXPECT_EQ(EnvOf(container, "RAY_ADDRESS")["value"].AsString(),
            "c-head-svc.d.svc.cluster.local:6379");
  EXPECT_EQ(container["readinessProbe"]["httpGet"]["port"].AsInt(), 52365);
  EXPECT_EQ(Named(pod["spec"]["volumes"], "shared-mem")["emptyDir"]["sizeLimit"].AsString(), "1Gi");
  const json::Value& wait = pod["spec"]["initContainers"].At(0);
  EXPECT_EQ(wait["name"].AsString(), "wait-gcs-ready");
  EXPECT_NE(wait["args"].At(0).AsString().find("/dev/tcp/c-head-svc.d.svc.cluster.local/6379"),
            std::string::npos);
}

TEST(Pods, WhatTheUserSetStays) {
  json::Value object = TwoWorkers();
  json::Value spec = object["spec"]["headGroupSpec"]["template"]["spec"];
  spec = spec.Set("containers", json::List({Yaml(R"(
name: ray-head
image: i
env: [{name: RAY_PORT, value: "1"}]
livenessProbe: {exec: {command: ["true"]}}
command: [sleep]
args: ["1"]
volumeMounts: [{name: mine, mountPath: /dev/shm}]
)")}));
  object = object.SetPath({"spec", "headGroupSpec", "template", "spec"}, spec);
  const json::Value pod = MakeHeadPod(ParseCluster(object), "c-head-x");
  const json::Value& container = pod["spec"]["containers"].At(0);
  EXPECT_EQ(EnvOf(container, "RAY_PORT")["value"].AsString(), "1");
  EXPECT_TRUE(container["livenessProbe"].Has("exec"));
  EXPECT_TRUE(container["args"].At(0).AsString().ends_with(" && sleep 1"));
  EXPECT_FALSE(pod["spec"].Has("volumes"));
  object = object.SetPath(
      {"spec", "headGroupSpec", "template", "metadata", "annotations", kOwnCommandAnnotation},
      "true");
  EXPECT_EQ(MakeHeadPod(ParseCluster(object), "x")["spec"]["containers"].At(0)["command"],
            json::Strings({"sleep"}));
}

TEST(Pods, TheHeadsServiceHasRaysPortsAndTheUsers) {
  json::Value object = TwoWorkers();
  const auto ports_of = [](const json::Value& cluster) {
    std::string text;
    const json::Value service = MakeHeadService(ParseCluster(cluster));
    for (const json::Value& port : service["spec"]["ports"].items())
      text += fmt::format("{}={} ", port["name"].AsString(), port["port"].AsInt());
    return text;
  };
  EXPECT_EQ(ports_of(object),
            "gcs-server=6379 dashboard=8265 client=10001 metrics=8080 serve=8000 ");
  json::Value spec = object["spec"]["headGroupSpec"]["template"]["spec"];
  const json::Value container = spec["containers"].At(0).Set(
      "ports",
      Yaml("[{containerPort: 8265}, {containerPort: 9000}, {name: ui, containerPort: 8000}]"));
  object = object.SetPath({"spec", "headGroupSpec", "template", "spec", "containers"},
                          json::List({container}));
  EXPECT_EQ(ports_of(object),
            "dashboard=8265 9000-port=9000 ui=8000 gcs-server=6379 client=10001 metrics=8080 ");
  EXPECT_EQ(MakeHeadService(ParseCluster(object))["spec"]["clusterIP"].AsString(), "None");
  object = object.SetPath({"spec", "headGroupSpec", "serviceType"}, "NodePort");
  EXPECT_EQ(MakeHeadService(ParseCluster(object))["spec"]["type"].AsString(), "NodePort");
}

TEST(Pods, TheGangIsAllPodsOrWhatTheAutoscalerLeaves) {
  json::Value object = TwoWorkers();
  EXPECT_EQ(PodGroupSpec(ParseCluster(object))["minMember"].AsInt(), 3);
  object = object.SetPath({"spec", "enableInTreeAutoscaling"}, true);
  EXPECT_EQ(PodGroupSpec(ParseCluster(object))["minMember"].AsInt(), 2);
}

TEST(Pods, TheHashFollowsTheTemplateNotTheNumber) {
  const json::Value object = TwoWorkers();
  const Cluster before = ParseCluster(object);
  Cluster after = before;
  after.groups[0].replicas = 4;
  EXPECT_EQ(WorkerHash(before, before.groups[0]), WorkerHash(after, after.groups[0]));
  after.groups[0].start_params = json::Obj({{"num-cpus", "1"}});
  EXPECT_NE(WorkerHash(before, before.groups[0]), WorkerHash(after, after.groups[0]));
  EXPECT_EQ(HeadHash(before), HeadHash(after));
}

TEST(Autoscaler, StandsBesideTheHeadWithItsOwnAccountAndSharedLogs) {
  const json::Value object = TwoWorkers()
                                 .SetPath({"spec", "enableInTreeAutoscaling"}, true)
                                 .SetPath({"spec", "autoscalerOptions"}, Yaml(R"(
resources: {limits: {cpu: 1}}
env: [{name: A, value: b}]
volumeMounts: [{name: v, mountPath: /v}]
)"));
  const json::Value pod = MakeHeadPod(ParseCluster(object), "c-head-x");
  EXPECT_EQ(pod["spec"]["serviceAccountName"].AsString(), "c");
  ASSERT_EQ(pod["spec"]["containers"].size(), 2u);
  const json::Value& container = pod["spec"]["containers"].At(1);
  EXPECT_EQ(container["name"].AsString(), "autoscaler");
  EXPECT_EQ(container["image"].AsString(), "i");
  EXPECT_EQ(container["args"].At(0).AsString(),
            "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace "
            "$(RAY_CLUSTER_NAMESPACE)");
  EXPECT_EQ(EnvOf(container, "KUBERAY_CRD_VER")["value"].AsString(), "v1");
  EXPECT_EQ(EnvOf(container, "A")["value"].AsString(), "b");
  EXPECT_EQ(container["resources"]["limits"]["cpu"].AsInt(), 1);
  EXPECT_EQ(container["volumeMounts"].size(), 2u);
  for (const json::Value& each : pod["spec"]["containers"].items()) {
    EXPECT_EQ(Named(each["volumeMounts"], "ray-logs")["mountPath"].AsString(), "/tmp/ray");
  }
  EXPECT_FALSE(pod["spec"].Has("restartPolicy"));
  const json::Value second = object.SetPath({"spec", "autoscalerOptions", "version"}, "v2");
  EXPECT_EQ(MakeHeadPod(ParseCluster(second), "x")["spec"]["restartPolicy"].AsString(), "Never");
}

TEST(Autoscaler, MayReadPodsAndPatchItsCluster) {
  json::Value object = TwoWorkers().SetPath({"spec", "enableInTreeAutoscaling"}, true);
  const auto account = AutoscalerAccount(ParseCluster(object));
  ASSERT_EQ(account.size(), 3u);
  EXPECT_EQ(account[0].object["kind"].AsString(), "ServiceAccount");
  EXPECT_EQ(json::Write(account[1].object["rules"].At(2)),
            R"({"apiGroups":["ray.io"],"resources":["rayclusters"],"verbs":["get","patch"]})");
  EXPECT_EQ(account[2].object["subjects"].At(0)["name"].AsString(), "c");
  object =
      object.SetPath({"spec", "headGroupSpec", "template", "spec", "serviceAccountName"}, "mine");
  const auto theirs = AutoscalerAccount(ParseCluster(object));
  ASSERT_EQ(theirs.size(), 2u) << "the account is the user's";
  EXPECT_EQ(theirs[1].object["subjects"].At(0)["name"].AsString(), "mine");
}

}  // namespace
}  // namespace muster::ray
