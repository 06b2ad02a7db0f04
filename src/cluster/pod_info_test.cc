#include "cluster/pod_info.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"

namespace muster::cluster {
namespace {

json::Value Yaml(std::string_view text) {
  const Result<std::vector<json::Value>> parsed = json::ParseYaml(text);
  EXPECT_TRUE(parsed.has_value());
  return parsed.has_value() && !parsed->empty() ? parsed->front() : json::Value();
}

int64_t Requested(std::string_view spec, std::string_view resource) {
  return AmountOf(PodRequests(json::Obj({{"spec", Yaml(spec)}})), resource);
}

TEST(PodRequests, SumsContainersAndCountsOnePod) {
  const char* spec = R"(
containers:
- resources: {requests: {cpu: 100m, memory: 1Gi}}
- resources: {requests: {cpu: "1"}}
)";
  EXPECT_EQ(Requested(spec, "cpu"), 1100);
  EXPECT_EQ(Requested(spec, "memory"), int64_t{1} << 30);
  EXPECT_EQ(Requested(spec, "pods"), 1);
}

TEST(PodRequests, TakesTheLargestInitContainerIfItExceedsTheSum) {
  const char* spec = R"(
initContainers:
- resources: {requests: {cpu: "3"}}
- resources: {requests: {cpu: "1", memory: 2Gi}}
containers:
- resources: {requests: {cpu: "1", memory: 1Gi}}
- resources: {requests: {cpu: "1"}}
)";
  EXPECT_EQ(Requested(spec, "cpu"), 3000);
  EXPECT_EQ(Requested(spec, "memory"), int64_t{2} << 30);
}

TEST(PodRequests, CountsSidecarsFromTheirPlaceInTheOrder) {
  const char* before = R"(
initContainers:
- {restartPolicy: Always, resources: {requests: {cpu: "1"}}}
- resources: {requests: {cpu: "5"}}
containers:
- resources: {requests: {cpu: "2"}}
)";
  EXPECT_EQ(Requested(before, "cpu"), 6000);
  const char* after = R"(
initContainers:
- resources: {requests: {cpu: "5"}}
- {restartPolicy: Always, resources: {requests: {cpu: "1"}}}
containers:
- resources: {requests: {cpu: "2"}}
)";
  EXPECT_EQ(Requested(after, "cpu"), 5000);
  const char* small_init = R"(
initContainers:
- {restartPolicy: Always, resources: {requests: {cpu: "1"}}}
containers:
- resources: {requests: {cpu: "2"}}
)";
  EXPECT_EQ(Requested(small_init, "cpu"), 3000);
}

TEST(PodRequests, AddsOverhead) {
  EXPECT_EQ(
      Requested("{containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m}}", "cpu"),
      1250);
}

TEST(PodRequests, TakesALimitWithoutARequestAsTheRequest) {
  const char* spec =
      "{containers: [{resources: {limits: {nvidia.com/gpu: 2, cpu: 4}, requests: {cpu: 1}}}]}";
  EXPECT_EQ(Requested(spec, "nvidia.com/gpu"), 2);
  EXPECT_EQ(Requested(spec, "cpu"), 1000);
}

TEST(Resources, NegativeAmountsCountAsNothingAndHugeOnesAsTheLargest) {
  const ResourceList list =
      ToResourceList(Yaml("{cpu: -1, memory: 8Ei, nvidia.com/gpu: oops, pods: 0}"));
  EXPECT_EQ(list, (ResourceList{{"memory", kMaxAmount}}));
}

TEST(Resources, TellsExtendedNamesFromNativeOnes) {
  EXPECT_TRUE(IsExtendedResource("nvidia.com/gpu"));
  EXPECT_TRUE(IsExtendedResource("example.com/foo"));
  EXPECT_FALSE(IsExtendedResource("cpu"));
  EXPECT_FALSE(IsExtendedResource("hugepages-2Mi"));
  EXPECT_FALSE(IsExtendedResource("kubernetes.io/batch-cpu"));
  EXPECT_FALSE(IsExtendedResource("requests.nvidia.com/gpu"));
}

TEST(PodInfo, ReadsWhatSchedulingNeeds) {
  const PodInfo pod = ToPodInfo(Yaml(R"(
metadata:
  namespace: default
  name: a-worker-0
  uid: u1
  creationTimestamp: "2026-01-02T03:04:05Z"
  annotations: {scheduling.k8s.io/group-name: a}
  labels: {scheduling.x-k8s.io/pod-group: other}
  ownerReferences:
  - {kind: Something, name: no, controller: false}
  - {kind: PyTorchJob, name: a, controller: true}
spec:
  schedulerName: volcano
  priority: 7
  preemptionPolicy: Never
  schedulingGates: [{name: g}]
status: {phase: Running, startTime: "2026-01-02T03:04:06Z", nominatedNodeName: n1}
)"));
  EXPECT_EQ(pod.group, "a");
  EXPECT_EQ(pod.holder, "pytorchjob default/a");
  EXPECT_EQ(pod.scheduler_name, "volcano");
  EXPECT_EQ(pod.priority, 7);
  EXPECT_FALSE(pod.may_preempt);
  EXPECT_EQ(pod.nominated_node, "n1");
  EXPECT_EQ(FormatTime(pod.started), "2026-01-02T03:04:06Z");
  EXPECT_TRUE(pod.gated);
  EXPECT_FALSE(pod.deleting);
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(FormatTime(pod.created), "2026-01-02T03:04:05Z");
}

TEST(PodInfo, FallsBackToTheLabelAndToThePodItself) {
  const PodInfo pod = ToPodInfo(Yaml(R"(
metadata:
  namespace: d
  name: p
  labels: {scheduling.x-k8s.io/pod-group: g}
  deletionTimestamp: "2026-01-01T00:00:00Z"
spec: {}
)"));
  EXPECT_EQ(pod.group, "g");
  EXPECT_EQ(pod.holder, "pod d/p");
  EXPECT_EQ(pod.scheduler_name, "default-scheduler");
  EXPECT_TRUE(pod.deleting);
}

TEST(PodInfo, TheSchedulerNameIsTheProfile) {
  const auto make = [](std::string_view spec) {
    return ToPodInfo(json::Obj({{"metadata", Yaml(R"(
{namespace: d, name: p, labels: {app: x, pod-template-hash: abc, apps.kubernetes.io/pod-index: "1"}}
)")},
                                {"spec", Yaml(spec)}}));
  };
  EXPECT_EQ(make("{schedulerName: muster}").constraints.profile, Profile::kPack);
  EXPECT_TRUE(make("{schedulerName: muster}").constraints.relations.IsTrivial());
  const PodConstraints spreads = make("{schedulerName: muster-spread}").constraints;
  EXPECT_EQ(spreads.profile, Profile::kSpread);
  ASSERT_EQ(spreads.relations.preferred_spread.size(), 2u);
  const SpreadConstraint& hosts = spreads.relations.preferred_spread[0];
  EXPECT_EQ(hosts.term.topology_key, kHostnameLabel);
  EXPECT_EQ(hosts.term.pods.labels.ToString(), "app=x") << "replicas of any revision";
  EXPECT_TRUE(hosts.is_default);
  const char* own = R"(
schedulerName: muster-spread
topologySpreadConstraints:
- topologyKey: rack
  maxSkew: 2
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {matchLabels: {app: x}}
)";
  const std::vector<SpreadConstraint> stated = make(own).constraints.relations.preferred_spread;
  ASSERT_EQ(stated.size(), 1u) << "own constraints take the place of the profile's";
  EXPECT_EQ(stated[0].term.topology_key, "rack");
  EXPECT_FALSE(stated[0].is_default);
}

TEST(Images, AreKnownByTheirFullNames) {
  EXPECT_EQ(HashOfImage("reg:5000/a"), HashOfImage("reg:5000/a:latest"));
  EXPECT_NE(HashOfImage("a:1"), HashOfImage("a"));
  const json::Value node = Yaml(R"(
status:
  images:
  - {names: ["a:1", "a@sha256:0"], sizeBytes: 1000}
  - {names: ["b:latest"], sizeBytes: 9223372036854775807}
  - {names: ["c:1"], sizeBytes: -5}
)");
  const std::vector<NodeImage> images = NodeImages(node);
  EXPECT_EQ(BytesOf(images, HashOfImage("a:1")), 1000);
  EXPECT_EQ(BytesOf(images, HashOfImage("a@sha256:0")), 1000);
  EXPECT_EQ(BytesOf(images, HashOfImage("b")), kMaxImageBytes);
  EXPECT_EQ(BytesOf(images, HashOfImage("c:1")), 0);
  EXPECT_EQ(BytesOf(images, HashOfImage("d")), 0);
  const json::Value heavy = Yaml(R"(
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 999999, preference: {}}]
)");
  EXPECT_EQ(ToNodeAffinity(heavy).preferred.at(0).weight, kMaxPreferenceWeight);
  EXPECT_EQ(PodImages(Yaml("{initContainers: [{image: a}], containers: [{image: a}, {}]}")).size(),
            2u);
}

TEST(NodeInfo, KeepsTheHostnameApartFromTheOtherLabels) {
  const NodeInfo node = ToNodeInfo(Yaml(R"(
metadata:
  name: n1
  labels: {kubernetes.io/hostname: host-1, zone: a}
  annotations:
    muster.dev/devices: '{"nvidia.com/gpu":[{"id":"g1","index":1},{"id":"g0","index":0}]}'
spec: {unschedulable: true, taints: [{key: k, value: v, effect: NoExecute}]}
status: {allocatable: {cpu: 1500m, nvidia.com/gpu: 2}, capacity: {cpu: 2}}
)"));
  EXPECT_EQ(node.labels, (Labels{{"zone", "a"}}));
  EXPECT_EQ(node.hostname, "host-1");
  EXPECT_TRUE(node.unschedulable);
  EXPECT_EQ(node.taints, (std::vector<Taint>{{"k", "v", TaintEffect::kNoExecute}}));
  EXPECT_EQ(AmountOf(node.allocatable, "cpu"), 1500);
  ASSERT_EQ(node.devices.size(), 2u);
  EXPECT_EQ(node.devices[0].id, "g0");
}

TEST(NodeInfo, OffersNoMoreDevicesThanTheLimit) {
  json::Array devices;
  for (size_t i = 0; i < kMaxDevicesPerNode + 5; ++i) {
    devices.push_back(
        json::Obj({{"id", "d" + std::to_string(i)}, {"index", static_cast<int64_t>(i)}}));
  }
  const json::Value list = json::Obj({{"x.com/d", json::Value(devices)}});
  const json::Value node = json::Obj(
      {{"metadata", json::Obj({{"annotations", json::Obj({{std::string(kDevicesAnnotation),
                                                           json::Write(list)}})}})}});
  EXPECT_EQ(NodeDevices(node).size(), kMaxDevicesPerNode);
}

TEST(NodeInfo, ReadsABrokenDeviceAnnotationAsNoDevices) {
  EXPECT_TRUE(
      NodeDevices(Yaml("{metadata: {annotations: {muster.dev/devices: '{oops'}}}")).empty());
  EXPECT_TRUE(NodeDevices(Yaml("{metadata: {annotations: {muster.dev/devices: '[1]'}}}")).empty());
}

TEST(Taints, AreToleratedByKeyValueOperatorAndEffect) {
  struct Row {
    const char* toleration;
    bool tolerates;
  };
  const Taint taint{"k", "v", TaintEffect::kNoSchedule};
  const Row rows[] = {
      {"{key: k, value: v}", true},
      {"{key: k, operator: Equal, value: v, effect: NoSchedule}", true},
      {"{key: k, value: w}", false},
      {"{key: k, operator: Exists}", true},
      {"{key: k, operator: Exists, effect: NoExecute}", false},
      {"{operator: Exists}", true},
      {"{operator: Exists, effect: NoSchedule}", true},
      {"{key: other, operator: Exists}", false},
      {"{}", false},
  };
  for (const Row& row : rows) {
    const std::vector<Toleration> tolerations = ToTolerations(json::List({Yaml(row.toleration)}));
    EXPECT_EQ(Tolerates(tolerations, taint), row.tolerates) << row.toleration;
  }
}

TEST(Taints, OnlyPreferringTaintsKeepNobodyAway) {
  const std::vector<Taint> taints = {{"soft", "", TaintEffect::kPreferNoSchedule},
                                     {"hard", "", TaintEffect::kNoExecute}};
  ASSERT_NE(FirstUntolerated(taints, {}), nullptr);
  EXPECT_EQ(FirstUntolerated(taints, {})->key, "hard");
  EXPECT_EQ(FirstUntolerated({taints[0]}, {}), nullptr);
}

bool MatchesNode(std::string_view pod_spec) {
  static const Labels kLabels{{"zone", "a"}, {"cores", "16"}, {"empty", ""}};
  return Matches(ToNodeAffinity(Yaml(pod_spec)), {kLabels, "host-1", true, "node-1"});
}

bool MatchesTerm(const std::string& term) {
  return MatchesNode(
      "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
      "{nodeSelectorTerms: [" +
      term + "]}}}}");
}

TEST(NodeAffinity, SelectorNeedsEveryLabel) {
  EXPECT_TRUE(MatchesNode("{}"));
  EXPECT_TRUE(MatchesNode("{nodeSelector: {zone: a, cores: '16'}}"));
  EXPECT_FALSE(MatchesNode("{nodeSelector: {zone: a, cores: '8'}}"));
  EXPECT_TRUE(MatchesNode("{nodeSelector: {kubernetes.io/hostname: host-1}}"));
  EXPECT_FALSE(MatchesNode("{nodeSelector: {kubernetes.io/hostname: node-1}}"));
}

TEST(NodeAffinity, EvaluatesEveryOperator) {
  struct Row {
    const char* requirement;
    bool holds;
  };
  const Row rows[] = {
      {"{key: zone, operator: In, values: [b, a]}", true},
      {"{key: zone, operator: In, values: [b]}", false},
      {"{key: none, operator: In, values: [a]}", false},
      {"{key: zone, operator: NotIn, values: [b]}", true},
      {"{key: zone, operator: NotIn, values: [a]}", false},
      {"{key: none, operator: NotIn, values: [a]}", true},
      {"{key: empty, operator: Exists}", true},
      {"{key: none, operator: Exists}", false},
      {"{key: none, operator: DoesNotExist}", true},
      {"{key: zone, operator: DoesNotExist}", false},
      {"{key: cores, operator: Gt, values: ['8']}", true},
      {"{key: cores, operator: Gt, values: ['16']}", false},
      {"{key: cores, operator: Lt, values: ['17']}", true},
      {"{key: cores, operator: Lt, values: ['16']}", false},
      {"{key: zone, operator: Gt, values: ['1']}", false},
      {"{key: cores, operator: Gt, values: [x]}", false},
      {"{key: none, operator: Lt, values: ['1']}", false},
      {"{key: zone, operator: Near, values: [a]}", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(MatchesTerm("{matchExpressions: [" + std::string(row.requirement) + "]}"), row.holds)
        << row.requirement;
  }
}

TEST(NodeAffinity, NeedsOneTermWithAllItsRequirements) {
  const std::string yes = "{key: zone, operator: In, values: [a]}";
  const std::string no = "{key: zone, operator: In, values: [b]}";
  EXPECT_FALSE(MatchesTerm("{matchExpressions: [" + yes + "," + no + "]}"));
  EXPECT_TRUE(MatchesTerm("{matchExpressions: [" + no + "]}, {matchExpressions: [" + yes + "]}"));
  EXPECT_FALSE(MatchesTerm("{}"));
  EXPECT_FALSE(MatchesTerm(""));
}

TEST(NodeAffinity, MatchesTheNameField) {
  EXPECT_TRUE(MatchesTerm("{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}"));
  EXPECT_FALSE(
      MatchesTerm("{matchFields: [{key: metadata.name, operator: In, values: [host-1]}]}"));
  EXPECT_FALSE(MatchesTerm("{matchFields: [{key: metadata.uid, operator: In, values: [node-1]}]}"));
}

TEST(NodeAffinity, KnowsWhenItNamesNodes) {
  EXPECT_FALSE(ToNodeAffinity(Yaml("{nodeSelector: {zone: a}}")).NamesNodes());
  EXPECT_TRUE(ToNodeAffinity(Yaml("{nodeSelector: {kubernetes.io/hostname: a}}")).NamesNodes());
}

TEST(Devices, SetsChooseTheLowestPositions) {
  DeviceSet set;
  for (const size_t position : {3u, 64u, 5u, 127u}) set.Add(position);
  EXPECT_EQ(set.Count(), 4);
  EXPECT_EQ(set.Lowest(3).Positions(), (std::vector<size_t>{3, 5, 64}));
  set.Remove(set.Lowest(3));
  EXPECT_EQ(set.Positions(), (std::vector<size_t>{127}));
}

TEST(Devices, AreSharedOutToContainersAndLentToInitContainers) {
  const json::Value pod = Yaml(R"(
spec:
  initContainers:
  - {name: early, resources: {limits: {nvidia.com/gpu: 1}}}
  - {name: side, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}
  - {name: late, resources: {limits: {nvidia.com/gpu: 2}}}
  containers:
  - {name: a, resources: {limits: {nvidia.com/gpu: 1}}}
  - {name: none}
  - {name: b, resources: {requests: {nvidia.com/gpu: 1}}}
)");
  ASSERT_EQ(AmountOf(PodRequests(pod), "nvidia.com/gpu"), 3);
  const AssignedDevices out = ShareOutDevices(pod, {{"nvidia.com/gpu", {"g0", "g1", "g2"}}});
  using Ids = std::vector<std::string>;
  EXPECT_EQ(out.at("early").at("nvidia.com/gpu"), (Ids{"g0"}));
  EXPECT_EQ(out.at("side").at("nvidia.com/gpu"), (Ids{"g0"}));
  EXPECT_EQ(out.at("late").at("nvidia.com/gpu"), (Ids{"g1", "g2"}));
  EXPECT_EQ(out.at("a").at("nvidia.com/gpu"), (Ids{"g1"}));
  EXPECT_EQ(out.at("b").at("nvidia.com/gpu"), (Ids{"g2"}));
  EXPECT_FALSE(out.contains("none"));
}

TEST(Devices, AnnotationReadsBackAsWritten) {
  const AssignedDevices assigned{{"main", {{"nvidia.com/gpu", {"g0", "g1"}}}}};
  const std::string text = WriteAssignedDevices(assigned);
  EXPECT_EQ(text, R"({"main":{"nvidia.com/gpu":["g0","g1"]}})");
  const json::Value pod = json::Obj(
      {{"metadata", json::Obj({{"annotations",
                                json::Obj({{std::string(kAssignedDevicesAnnotation), text}})}})}});
  EXPECT_EQ(PodAssignedDevices(pod), assigned);
}

TEST(Devices, TheNodeSaysWhichItGave) {
  json::Value pod = Yaml(R"(
metadata: {name: p}
spec: {nodeName: n1, containers: [{name: main}, {name: none}]}
status:
  initContainerStatuses:
    - name: init
      allocatedResourcesStatus: [{name: nvidia.com/gpu, resources: [{resourceID: g1}]}]
  containerStatuses:
    - {name: none, ready: true}
    - name: main
      allocatedResourcesStatus:
        - {name: nvidia.com/gpu, resources: [{resourceID: g1, health: Healthy}, {resourceID: g2}]}
)");
  const AssignedDevices given{{"init", {{"nvidia.com/gpu", {"g1"}}}},
                              {"main", {{"nvidia.com/gpu", {"g1", "g2"}}}}};
  EXPECT_EQ(ToPodInfo(pod).assigned_devices, given);
  EXPECT_EQ(ToPodInfo(PodInfoFields().Project(pod)).assigned_devices, given);
  // Before it says so, the scheduler's choice holds.
  const json::Value chosen = json::Obj(
      {{std::string(kAssignedDevicesAnnotation), R"({"main":{"nvidia.com/gpu":["g3"]}})"}});
  pod = pod.Set("metadata", json::Obj({{"annotations", chosen}}));
  EXPECT_EQ(ToPodInfo(pod).assigned_devices, given);
  EXPECT_EQ(ToPodInfo(pod.Remove("status")).assigned_devices,
            (AssignedDevices{{"main", {{"nvidia.com/gpu", {"g3"}}}}}));
}

TEST(PodGroupInfo, ReadsMinimaAndLeavesTermsOfQuotasOut) {
  const PodGroupInfo info = ToPodGroupInfo(Yaml(R"(
metadata: {name: g, namespace: d}
spec:
  minMember: 4
  minTaskMember: {worker: 3, ps: 1, evaluator: 0}
  minResources: {cpu: 2500m, nvidia.com/gpu: "4", requests.cpu: "9", limits.cpu: "9",
                 requests.nvidia.com/gpu: "9", count/pods: "9"}
)"),
                                           GroupApi::kVolcano);
  EXPECT_EQ(info.min_member, 4);
  EXPECT_EQ(info.min_task_member, (std::vector<TaskMinimum>{{"ps", 1}, {"worker", 3}}));
  EXPECT_EQ(info.min_resources, (ResourceList{{"cpu", 2500}, {"nvidia.com/gpu", 4}}));
}

// Volcano's own jobs write the replicas of every task, whatever minAvailable says.
TEST(PodGroupInfo, MinimaOfTasksCountOnlyIfMinMemberCoversThem) {
  const auto tasks = [](const char* spec) {
    return ToPodGroupInfo(json::Obj({{"spec", Yaml(spec)}}), GroupApi::kVolcano).min_task_member;
  };
  EXPECT_EQ(tasks("{minMember: 3, minTaskMember: {a: 1, b: 2}}").size(), 2u);
  EXPECT_TRUE(tasks("{minMember: 2, minTaskMember: {a: 1, b: 2}}").empty());
}

TEST(PodGroupInfo, NumbersThatNoServerTakesCountAsTheNearest) {
  const auto read = [](const char* spec) {
    return ToPodGroupInfo(json::Obj({{"spec", Yaml(spec)}}), GroupApi::kSchedulerPlugins);
  };
  EXPECT_EQ(read("{}").min_member, 1);
  EXPECT_EQ(read("{minMember: -7}").min_member, 0);
  EXPECT_EQ(read("{minMember: 9223372036854775807}").min_member, 2147483647);
  EXPECT_EQ(read("{minMember: many}").min_member, 1);
  const PodGroupInfo absurd = read(
      "{minMember: 2147483647, minTaskMember: {a: -1, b: 9223372036854775807}, minResources: "
      "{cpu: '1e300', memory: '-5', nvidia.com/gpu: lots}}");
  EXPECT_EQ(absurd.min_task_member, (std::vector<TaskMinimum>{{"b", 2147483647}}));
  EXPECT_EQ(absurd.min_resources, (ResourceList{{"cpu", kMaxAmount}}));
}

TEST(PodInfo, ATaskIsOneOfAGang) {
  json::Value pod = Yaml("{metadata: {name: p, annotations: {volcano.sh/task-spec: ps}}}");
  EXPECT_EQ(ToPodInfo(pod).task, "");
  pod = pod.SetPath({"metadata", "annotations", kGroupNameAnnotation}, "g");
  EXPECT_EQ(ToPodInfo(pod).task, "ps");
}

}  // namespace
}  // namespace muster::cluster
