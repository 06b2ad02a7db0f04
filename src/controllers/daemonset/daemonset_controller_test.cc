#include "controllers/daemonset/daemonset_controller.h"

#include <algorithm>
#include <string>

#include "controllers/controller_test_base.h"
#include "controllers/daemonset/daemon_pods.h"
#include "controllers/history/history.h"
#include "controllers/pods/pod_facts.h"

namespace muster::controllers {
namespace {

class DaemonSetTest : public ControllerTest {
 protected:
  DaemonSetTest() { Start(std::make_unique<DaemonSetController>()); }

  void PutNode(const std::string& name, const std::string& labels = "{}",
               const std::string& taints = "[]") {
    Put(kNodes, fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {}}}, "
                            "spec: {{taints: {}}}}}",
                            name, labels, taints));
  }
  void PutSet(const std::string& pace = "maxUnavailable: 1, maxSurge: 0",
              const std::string& pod_spec = "") {
    Put(kDaemonSets, fmt::format(R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: d, uid: s1, generation: 1}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{{}}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec: {{containers: [{{name: c, image: v1}}]{}}}
)",
                                 pace, pod_spec));
    Settle();
  }
  void SetImage(const std::string& image) {
    api_.Put(kDaemonSets, Get(kDaemonSets, "d", "agent")
                              .SetPath({"spec", "template", "spec", "containers"},
                                       json::List({json::Obj({{"name", "c"}, {"image", image}})})));
    Settle();
  }
  // What the scheduler and the agents would do: every pod goes where it is meant to go.
  void ComeUp() {
    for (const json::Value& pod : All(kPods)) {
      if (IsReady(pod)) continue;
      MakeReady(pod.SetPath({"spec", "nodeName"}, NodeOfDaemonPod(pod)));
    }
    Settle();
  }
  // "n1:v1* n2:v2": sorted by node, a star where one is ready.
  std::string Pods() const {
    std::vector<std::string> texts;
    for (const json::Value& pod : All(kPods)) {
      texts.push_back(fmt::format("{}:{}{}", NodeOfDaemonPod(pod),
                                  pod["spec"]["containers"].At(0)["image"].AsString(),
                                  IsReady(pod) ? "*" : ""));
    }
    std::sort(texts.begin(), texts.end());
    std::string out;
    for (const std::string& text : texts) out += (out.empty() ? "" : " ") + text;
    return out;
  }
  json::Value Status() { return Get(kDaemonSets, "d", "agent")["status"]; }
};

TEST_F(DaemonSetTest, NoPodsOfNvidiasDevicePlugin) {
  PutNode("n1");
  PutSet("maxUnavailable: 1",
         ", volumes: [{name: p, hostPath: {path: /var/lib/kubelet/device-plugins}}]");
  EXPECT_EQ(Pods(), "n1:v1") << "of another plugin";
  const auto told = [this] {
    const std::vector<std::string> events = Events();
    return std::count_if(events.begin(), events.end(), [](const std::string& event) {
      return event.starts_with("DevicePluginNotNeeded ");
    });
  };
  EXPECT_EQ(told(), 0);
  api_.Put(kDaemonSets, Get(kDaemonSets, "d", "agent").SetPath({"metadata", "generation"}, 2));
  SetImage("nvcr.io/nvidia/k8s-device-plugin:v0.15.0");
  EXPECT_EQ(Pods(), "");
  PutNode("n2");
  Settle();
  EXPECT_EQ(Pods(), "");
  EXPECT_EQ(told(), 1) << "once for a state of the spec";
}

TEST_F(DaemonSetTest, NoPodsOfDcgmExporter) {
  PutNode("n1");
  PutSet("maxUnavailable: 1");
  EXPECT_EQ(Pods(), "n1:v1") << "of another exporter";
  api_.Put(kDaemonSets, Get(kDaemonSets, "d", "agent").SetPath({"metadata", "generation"}, 2));
  SetImage("nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.0-distroless");
  EXPECT_EQ(Pods(), "");
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const std::string& event) {
                            return event.starts_with("DcgmExporterNotNeeded ");
                          }),
            1);
}

TEST_F(DaemonSetTest, APodOnEachNodeThatSuitsIt) {
  PutNode("n1");
  PutNode("n2", "{gpu: 'yes'}");
  PutNode("n3", "{gpu: 'yes'}", "[{key: k, effect: NoSchedule}]");
  PutNode("n4", "{gpu: 'yes'}", "[{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]");
  PutSet("maxUnavailable: 1", ", nodeSelector: {gpu: 'yes'}");
  EXPECT_EQ(Pods(), "n2:v1 n4:v1");
  ComeUp();
  EXPECT_EQ(Status(), Yaml("{currentNumberScheduled: 2, numberMisscheduled: 0, "
                           "desiredNumberScheduled: 2, numberReady: 2, observedGeneration: 1, "
                           "updatedNumberScheduled: 2, numberAvailable: 2}"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  // A node that comes, one that goes, one whose labels change.
  PutNode("n5", "{gpu: 'yes'}");
  PutNode("n1", "{gpu: 'yes'}");
  PutNode("n2");
  Settle();
  EXPECT_EQ(Pods(), "n1:v1 n4:v1* n5:v1");
}

TEST_F(DaemonSetTest, ATaintKeepsPodsAwayOrEndsThem) {
  PutNode("n1");
  PutNode("n2");
  PutSet();
  ComeUp();
  PutNode("n1", "{}", "[{key: k, effect: NoSchedule}]");
  PutNode("n2", "{}", "[{key: k, effect: NoExecute}]");
  Settle();
  EXPECT_EQ(Pods(), "n1:v1*");
  EXPECT_EQ(Status()["numberMisscheduled"].AsInt(), 1);
  EXPECT_EQ(Status()["desiredNumberScheduled"].AsInt(), 0);
}

TEST_F(DaemonSetTest, ThePodOfANode) {
  PutNode("n1");
  PutSet();
  const json::Value pod = All(kPods).at(0);
  EXPECT_EQ(pod["spec"]["affinity"], Yaml(R"(
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
)"));
  EXPECT_EQ(pod["spec"]["tolerations"].size(), 6u);
  const json::Value revision = All(kRevisions).at(0);
  EXPECT_EQ(pod["metadata"]["labels"][kRevisionHashLabel],
            revision["metadata"]["labels"][kRevisionHashLabel]);
  EXPECT_EQ("agent-" + pod["metadata"]["labels"][kRevisionHashLabel].Str(), NameOf(revision));
}

TEST_F(DaemonSetTest, ReplacesThoseThatFail) {
  PutNode("n1");
  PutSet();
  ComeUp();
  api_.Put(kPods, All(kPods).at(0).SetPath({"status", "phase"}, "Failed"));
  Settle();
  EXPECT_EQ(Pods(), "n1:v1");
  const std::vector<std::string> events = Events();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const std::string& event) {
    return event.starts_with("FailedDaemonPod Found failed daemon pod d/agent-") &&
           event.ends_with(" on node n1, will try to kill it");
  }));
}

TEST_F(DaemonSetTest, RollsNodeByNode) {
  for (const char* node : {"n1", "n2", "n3"}) PutNode(node);
  PutSet();
  ComeUp();
  SetImage("v2");
  EXPECT_EQ(Pods(), "n1:v2 n2:v1* n3:v1*");
  Settle();
  EXPECT_EQ(Pods(), "n1:v2 n2:v1* n3:v1*");
  ComeUp();
  EXPECT_EQ(Pods(), "n1:v2* n2:v2 n3:v1*");
  ComeUp();
  ComeUp();
  EXPECT_EQ(Pods(), "n1:v2* n2:v2* n3:v2*");
  EXPECT_EQ(Status()["updatedNumberScheduled"].AsInt(), 3);
  // Back again: the first revision becomes the newest.
  SetImage("v1");
  EXPECT_EQ(All(kRevisions).size(), 2u);
  // A pod that is not available goes at once, beside the one that the bound allows.
  EXPECT_EQ(Pods(), "n1:v1 n2:v2* n3:v2*");
}

TEST_F(DaemonSetTest, GoingBackRestartsNobodyWithoutNeed) {
  for (const char* node : {"n1", "n2", "n3"}) PutNode(node);
  PutSet();
  ComeUp();
  for (const json::Value& pod : All(kPods))
    api_.Put(kPods, pod.SetPath({"metadata", "annotations"}, json::Obj({{"from", "before"}})));
  SetImage("broken");
  EXPECT_EQ(Pods(), "n1:broken n2:v1* n3:v1*");
  SetImage("v1");
  ComeUp();
  EXPECT_EQ(Pods(), "n1:v1* n2:v1* n3:v1*");
  for (const json::Value& pod : All(kPods)) {
    const std::string node = NodeOfDaemonPod(pod);
    EXPECT_EQ(pod["metadata"]["annotations"].Has("from"), node != "n1") << node;
  }
}

TEST_F(DaemonSetTest, WithSurgeTheNewPodComesFirst) {
  for (const char* node : {"n1", "n2"}) PutNode(node);
  PutSet("maxUnavailable: 0, maxSurge: 1");
  ComeUp();
  SetImage("v2");
  EXPECT_EQ(Pods(), "n1:v1* n1:v2 n2:v1*");
  ComeUp();
  EXPECT_EQ(Pods(), "n1:v2* n2:v1* n2:v2");
  ComeUp();
  EXPECT_EQ(Pods(), "n1:v2* n2:v2*");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(DaemonSetTest, OnDeleteWaitsForSomebodyToDelete) {
  PutNode("n1");
  PutSet();
  ComeUp();
  api_.Put(
      kDaemonSets,
      Get(kDaemonSets, "d", "agent").SetPath({"spec", "updateStrategy"}, Yaml("{type: OnDelete}")));
  SetImage("v2");
  EXPECT_EQ(Pods(), "n1:v1*");
  api_.Remove(kPods, "d", NameOf(All(kPods).at(0)));
  Settle();
  EXPECT_EQ(Pods(), "n1:v2");
}

TEST_F(DaemonSetTest, PodsOfANodeThatIsGoneAndThatNeverCameThereGo) {
  PutNode("n1");
  PutSet();
  EXPECT_EQ(Pods(), "n1:v1");
  api_.Remove(kNodes, "", "n1");
  Settle();
  EXPECT_EQ(Pods(), "");
}

TEST_F(DaemonSetTest, ASetThatGoesMakesNoHistory) {
  PutNode("n1");
  PutSet();
  api_.Put(kDaemonSets,
           Get(kDaemonSets, "d", "agent")
               .SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")
               .SetPath({"metadata", "finalizers"}, json::List({"foregroundDeletion"})));
  Settle();
  api_.Remove(kRevisions, "d", NameOf(All(kRevisions)[0]));
  Settle();
  EXPECT_TRUE(All(kRevisions).empty());
}

TEST_F(DaemonSetTest, AdoptsItsHistory) {
  PutNode("n1");
  PutSet();
  ComeUp();
  for (const json::Value& revision : All(kRevisions))
    api_.Put(kRevisions, revision.RemovePath({"metadata", "ownerReferences"}));
  Settle();
  ASSERT_EQ(All(kRevisions).size(), 1u);
  EXPECT_EQ(client::ControllerOf(All(kRevisions)[0])["uid"].AsString(), "s1");
  EXPECT_EQ(All(kRevisions)[0]["revision"].AsInt(), 1);
}

}  // namespace
}  // namespace muster::controllers
