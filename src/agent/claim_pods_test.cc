// Pods with claims, with real namespaces.

#include <signal.h>

#include "agent/pod_machine_test_support.h"
#include "agent/volumes/local_volumes.h"

namespace muster::agent {
namespace {

constexpr char kClaims[] = "/api/v1/persistentvolumeclaims";
constexpr char kVolumes[] = "/api/v1/persistentvolumes";

std::string Root(const Machine& m) { return LocalVolumesDir(m.data_dir); }

void PutVolume(Machine& m, const std::string& mode = "ReadWriteOnce") {
  m.api->Put(
      kVolumes,
      *json::Parse(R"({"metadata":{"name":"pv1","annotations":)"
                   R"({"pv.kubernetes.io/provisioned-by":"muster.dev/local-path"}},)"
                   R"("spec":{"accessModes":[")" +
                   mode + R"("],"local":{"path":")" + Root(m) +
                   R"(/pv1_d_data"},"claimRef":{"namespace":"d","name":"data","uid":"c1"}}})"));
}

void PutClaim(Machine& m, const std::string& phase) {
  m.api->Put(kClaims, *json::Parse(R"({"metadata":{"name":"data","namespace":"d","uid":"c1"},)"
                                   R"("spec":{"volumeName":"pv1"},"status":{"phase":")" +
                                   phase + R"("}})"));
}

std::string WithClaim(const std::string& name, const std::string& script,
                      const std::string& policy = "Never", const std::string& mount = "") {
  return OneContainer(name, script, policy,
                      R"(,"volumeMounts":[{"name":"v","mountPath":"/data")" + mount + "}]",
                      R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}],)");
}

std::string WaitingMessage(const Machine& m, const std::string& name) {
  return m.Status(name)["state"]["waiting"]["message"].Str();
}

TEST(ClaimPods, WaitForTheirClaimAndKeepWhatTheyWrote) {
  InNetworkNamespace([] {
    Machine m;
    PutClaim(m, "Pending");
    m.Create(WithClaim("a", "ls /data; echo of-a > /data/note; stat -c %a /data"));
    ASSERT_TRUE(m.Until([&] {
      return WaitingMessage(m, "a").find("error processing PVC d/data: PVC is not bound") !=
             std::string::npos;
    })) << json::WritePretty(m.Pod("a"));
    EXPECT_FALSE(m.ShimOf("a")) << "nothing is started";
    EXPECT_FALSE(PathExists(Root(m)));
    PutVolume(m);
    PutClaim(m, "Bound");
    ASSERT_TRUE(m.UntilPhase("a", "Succeeded"));
    EXPECT_EQ(m.Log("a"), "777\n");
    m.Create(
        WithClaim("b", "echo sub > /data/file; ls /data", "Never", R"(,"subPath":"dir/of-b")"));
    ASSERT_TRUE(m.UntilPhase("b", "Succeeded"));
    EXPECT_EQ(m.Log("b"), "file\n");
    m.Create(WithClaim(
        "c", "cat /data/note /data/dir/of-b/file; touch /data/x 2>/dev/null || echo refused",
        "Never", R"(,"readOnly":true)"));
    ASSERT_TRUE(m.UntilPhase("c", "Succeeded"));
    EXPECT_EQ(m.Log("c"), "of-a\nsub\nrefused\n");
    m.api->Remove(kPods, "d", "a");
    ASSERT_TRUE(m.Until([&] { return m.node->manager.size() == 2; }));
    EXPECT_EQ(ReadSmallFile(Root(m) + "/pv1_d_data/note").value_or(""), "of-a\n");
  });
}

TEST(ClaimPods, NothingIsMadeInAClaimThatIsReadOnly) {
  InNetworkNamespace([] {
    Machine m;
    PutVolume(m);
    PutClaim(m, "Bound");
    constexpr char kMount[] =
        R"(,"volumeMounts":[{"name":"v","mountPath":"/data","subPath":"no/where"}])";
    constexpr char kClaim[] =
        R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data","readOnly":true}}],)";
    m.Create(OneContainer("a", "true", "Never", kMount, kClaim));
    ASSERT_TRUE(m.UntilPhase("a", "Failed"));
    const json::Value end = m.Status("a")["state"]["terminated"];
    EXPECT_EQ(end["reason"].AsString(), "StartError");
    EXPECT_TRUE(end["message"].AsString().contains(
        R"(subPath "no/where" does not exist, and its volume is read-only)"))
        << json::Write(end);
    EXPECT_TRUE(PathExists(Root(m) + "/pv1_d_data"));
    EXPECT_FALSE(PathExists(Root(m) + "/pv1_d_data/no"));
  });
}

TEST(ClaimPods, RunOnWhateverBecomesOfTheirClaim) {
  InNetworkNamespace([] {
    Machine m;
    PutVolume(m);
    PutClaim(m, "Bound");
    const auto starts = [&] { return ReadSmallFile(Root(m) + "/pv1_d_data/starts").value_or(""); };
    m.Create(WithClaim("a", "echo x >> /data/starts; sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("a", "Running"));
    ASSERT_TRUE(m.Until([&] { return starts() == "x\n"; }));  // its shell comes to that later
    EXPECT_TRUE(m.node->context.volume_users.IsUsed("pv1"));
    m.RestartAgent([&] {
      m.api->Remove(kClaims, "d", "data");
      m.api->Remove(kVolumes, "", "pv1");
    });
    ASSERT_TRUE(m.Until([&] { return m.node->manager.size() == 1; }));
    EXPECT_TRUE(m.node->context.volume_users.IsUsed("pv1")) << "the next agent knows";
    kill(*m.ShimOf("a"), SIGKILL);
    ASSERT_TRUE(m.Until([&] {
      return m.Status("a")["restartCount"].AsInt() == 1 && m.Status("a")["state"].Has("running");
    })) << json::WritePretty(m.Pod("a"));
    EXPECT_TRUE(m.Until([&] { return starts() == "x\nx\n"; }));
    m.api->Remove(kPods, "d", "a");
    ASSERT_TRUE(m.Until([&] { return m.node->manager.size() == 0; }));
    EXPECT_FALSE(m.node->context.volume_users.IsUsed("pv1"));
  });
}

TEST(ClaimPods, AReadWriteOncePodVolumeIsForOne) {
  InNetworkNamespace([] {
    Machine m;
    PutVolume(m, "ReadWriteOncePod");
    PutClaim(m, "Bound");
    m.Create(WithClaim("a", "sleep 1000"));
    ASSERT_TRUE(m.UntilPhase("a", "Running"));
    m.Create(WithClaim("b", "echo mine"));
    ASSERT_TRUE(m.Until([&] {
      return WaitingMessage(m, "b").find("already in use by another pod") != std::string::npos;
    })) << json::WritePretty(m.Pod("b"));
    m.api->Remove(kPods, "d", "a");
    ASSERT_TRUE(m.UntilPhase("b", "Succeeded"));
    EXPECT_EQ(m.Log("b"), "mine\n");
  });
}

}  // namespace
}  // namespace muster::agent
