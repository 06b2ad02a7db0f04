// Pods of a gang that share a sandbox, with real namespaces.

#include <signal.h>

#include "agent/pod_machine_test_support.h"

namespace muster::agent {
namespace {

// A pod of gang g: restarts for ever, so that it outlives its shim.
std::string Member(const std::string& name, const std::string& script,
                   const std::string& policy = "Never") {
  json::Value pod = *json::Parse(OneContainer(name, script, policy));
  return json::Write(
      pod.SetPath({"metadata", "labels", "scheduling.x-k8s.io/pod-group"}, "g")
          .SetPath({"metadata", "annotations", "muster.dev/gang-sandbox"}, "shared"));
}

std::string Namespace(const Machine& m, const std::string& name, const char* kind) {
  const auto shim = m.ShimOf(name);
  if (!shim) return "";
  char text[128] = {};
  (void)!readlink(fmt::format("/proc/{}/ns/{}", *shim, kind).c_str(), text, sizeof text - 1);
  return text;
}

TEST(GangPods, ShareNetworkAndMemoryAndNothingElse) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(Member("a",
                    "echo from-a > /dev/shm/note; hostname; echo $NCCL_HOSTID; "
                    "while [ ! -e /dev/shm/done ]; do sleep 0.01; done"));
    ASSERT_TRUE(m.UntilPhase("a", "Running"));
    m.Create(Member("b",
                    "while [ ! -e /dev/shm/note ]; do sleep 0.01; done; cat /dev/shm/note; "
                    "hostname; echo $NCCL_HOSTID; touch /dev/shm/done; sleep 0.3; ps -e | wc -l"));
    m.Create(OneContainer("c", "ls /dev/shm | wc -l; echo id=$NCCL_HOSTID"));
    ASSERT_TRUE(m.UntilPhase("a", "Succeeded"));
    ASSERT_TRUE(m.UntilPhase("b", "Succeeded"));
    ASSERT_TRUE(m.UntilPhase("c", "Succeeded"));
    EXPECT_EQ(m.Log("a"), "a\nd/g@n1\n");
    EXPECT_TRUE(m.Log("b").starts_with("from-a\nb\nd/g@n1\n")) << m.Log("b");
    EXPECT_EQ(m.Log("c"), "0\nid=\n") << "another pod has its own";
    EXPECT_EQ(m.Pod("a")["status"]["podIP"], m.Pod("b")["status"]["podIP"]);
    EXPECT_NE(m.Pod("a")["status"]["podIP"], m.Pod("c")["status"]["podIP"]);
  });
}

TEST(GangPods, TheSandboxOutlivesItsFirstPodAndGoesWithItsLast) {
  InNetworkNamespace([] {
    Machine m;
    const size_t free_before = m.node->addresses.Free();
    m.Create(Member("a", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("a", "Running"));
    m.Create(Member("b", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("b", "Running"));
    const std::string network = Namespace(m, "b", "net");
    EXPECT_EQ(Namespace(m, "a", "net"), network);
    for (const char* kind : {"uts", "ipc", "pid", "mnt"})
      EXPECT_NE(Namespace(m, "a", kind), Namespace(m, "b", kind)) << kind;
    EXPECT_EQ(m.node->addresses.Free(), free_before - 1) << "one address for both";

    // The pod whose sandbox made the namespace dies, and joins it again.
    const pid_t first = *m.ShimOf("a");
    kill(first, SIGKILL);
    ASSERT_TRUE(m.Until([&] {
      const auto now = m.ShimOf("a");
      return now && *now != first && m.Status("a")["restartCount"].AsInt() == 1 &&
             m.Status("a")["state"].Has("running");
    }));
    EXPECT_EQ(Namespace(m, "a", "net"), network);

    // The agent dies: the next one knows who belongs together, and a third pod joins.
    m.RestartAgent();
    m.Create(Member("c", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("c", "Running"));
    EXPECT_EQ(Namespace(m, "c", "net"), network);
    EXPECT_EQ(m.Pod("c")["status"]["podIP"], m.Pod("a")["status"]["podIP"]);

    for (const char* name : {"a", "b", "c"}) {
      EXPECT_EQ(m.node->addresses.Free(), free_before - 1) << "before the end of " << name;
      m.api->Remove(kPods, "d", name);
      ASSERT_TRUE(m.Until([&] { return m.node->manager.Find("d", name) == nullptr; }));
    }
    ASSERT_TRUE(m.Until([&] { return m.node->manager.size() == 0; }));
    EXPECT_EQ(m.node->addresses.Free(), free_before);
    // Its link goes with the namespace: two lines of headings, lo, and the bridge are left.
    EXPECT_TRUE(m.Until([] {
      const auto links = ReadSmallFile("/proc/self/net/dev");
      return links && SplitNonEmpty(*links, '\n').size() == 4;
    }));
  });
}

TEST(SharedGang, NeedsTheAnnotationAndAGang) {
  const json::Value pod = *json::Parse(Member("a", "true"))
                               .value()
                               .SetPath({"metadata", "namespace"}, "d")
                               .Find("metadata");
  const json::Value whole = json::Obj({{"metadata", pod}, {"spec", json::Obj()}});
  EXPECT_EQ(SharedGangOf(whole), "d/g");
  EXPECT_EQ(SharedGangOf(whole.SetPath({"spec", "hostNetwork"}, true)), "");
  EXPECT_EQ(SharedGangOf(whole.RemovePath({"metadata", "labels"})), "");
  EXPECT_EQ(SharedGangOf(whole.RemovePath({"metadata", "annotations"})), "");
  EXPECT_EQ(
      SharedGangOf(whole.SetPath({"metadata", "annotations", "muster.dev/gang-sandbox"}, "none")),
      "");
}

}  // namespace
}  // namespace muster::agent
