// Real pods: the spawner, the shims and the pod workers together, against a fake API server, in a
// network namespace of their own.

#include <poll.h>
#include <signal.h>

#include <deque>

#include "agent/agent.h"
#include "agent/pod_machine_test_support.h"

namespace muster::agent {
namespace {

// Never a group of processes, whatever a broken test hands over.
void Signal(pid_t pid, int number) {
  ASSERT_GT(pid, 1);
  ASSERT_EQ(kill(pid, number), 0);
}

// A folder of the node, visible in the pod, in which a file says when to go on. Beside the data
// folder, which no pod sees; gone with the test that removes it.
std::string GoFolder(const Machine& m) {
  return R"("volumes":[{"name":"go","hostPath":{"path":")" + m.data_dir + R"(-go"}}],)";
}

TEST(ProcessPods, RunsAPodToItsEndWithLogsAndAddress) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer(
        "hello", "echo out; echo err >&2; hostname; cat /etc/hosts; ip -4 addr show eth0 || true"));
    ASSERT_TRUE(m.UntilPhase("hello", "Succeeded"));
    const std::string log = m.Log("hello");
    EXPECT_NE(log.find("out\n"), std::string::npos) << log;
    EXPECT_NE(log.find("err\n"), std::string::npos);
    EXPECT_NE(log.find("10.42.0.2\thello"), std::string::npos) << log;
    const json::Value state = m.Status("hello")["state"]["terminated"];
    EXPECT_EQ(state["exitCode"].AsInt(-1), 0);
    EXPECT_EQ(state["reason"].AsString(), "Completed");
    EXPECT_EQ(m.Pod("hello")["status"]["podIP"].AsString(), "10.42.0.2");
    EXPECT_EQ(m.Pod("hello")["status"]["hostIP"].AsString(), "192.168.7.7");
    EXPECT_TRUE(m.Until([&] { return !PathExists(m.PodDirectory("hello")); }));
  });
}

TEST(ProcessPods, PassesOnTheExitCode) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("bad", "echo no > /dev/termination-log; exit 7"));
    ASSERT_TRUE(m.UntilPhase("bad", "Failed"));
    EXPECT_EQ(m.Status("bad")["state"]["terminated"]["exitCode"].AsInt(), 7);
    EXPECT_EQ(m.Status("bad")["state"]["terminated"]["reason"].AsString(), "Error");
    EXPECT_EQ(m.Status("bad")["state"]["terminated"]["message"].AsString(), "no\n");
  });
}

TEST(ProcessPods, TakesTheEndOfTheLogForAMessageWhenAsked) {
  InNetworkNamespace([] {
    Machine m;
    const std::string policy = R"(,"terminationMessagePolicy":"FallbackToLogsOnError")";
    m.Create(OneContainer("bad", "seq 1 200; echo why >&2; exit 1", "Never", policy));
    m.Create(OneContainer("said", "echo log; echo mine > /dev/termination-log; exit 1", "Never",
                          policy));
    m.Create(OneContainer("good", "echo fine", "Never", policy));
    m.Create(OneContainer("plain", "echo log; exit 1"));
    for (const char* name : {"bad", "said", "plain"}) ASSERT_TRUE(m.UntilPhase(name, "Failed"));
    ASSERT_TRUE(m.UntilPhase("good", "Succeeded"));
    const auto message = [&m](const char* name) {
      return m.Status(name)["state"]["terminated"]["message"].Str();
    };
    EXPECT_TRUE(message("bad").ends_with("\n199\n200\nwhy\n")) << message("bad");
    EXPECT_TRUE(message("bad").starts_with("122\n")) << "80 lines";
    EXPECT_EQ(message("said"), "mine\n");
    EXPECT_EQ(message("good"), "");
    EXPECT_EQ(message("plain"), "");
  });
}

TEST(ProcessPods, RestartsAtOnceAndThenBacksOff) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("flaky", "exit 1", "OnFailure"));
    ASSERT_TRUE(m.Until([&] {
      return m.Status("flaky")["state"]["waiting"]["reason"].AsString() == "CrashLoopBackOff";
    })) << json::WritePretty(m.Pod("flaky"));
    EXPECT_EQ(m.Status("flaky")["restartCount"].AsInt(), 1);
    EXPECT_NE(m.Status("flaky")["state"]["waiting"]["message"].AsString().find(
                  "back-off 10s restarting failed"),
              std::string::npos);
    EXPECT_EQ(m.Status("flaky")["lastState"]["terminated"]["exitCode"].AsInt(), 1);
    EXPECT_EQ(m.Phase("flaky"), "Running");
  });
}

TEST(ProcessPods, SaysWhenTheProgramDoesNotExist) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"Never","containers":[
        {"name":"main","command":["no-such-program"]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Failed"));
    const json::Value state = m.Status("p")["state"]["terminated"];
    EXPECT_EQ(state["exitCode"].AsInt(), 128);
    EXPECT_EQ(state["reason"].AsString(), "StartError");
    EXPECT_NE(state["message"].AsString().find("executable file not found in $PATH"),
              std::string::npos);
  });
}

TEST(ProcessPods, WaitsWithoutACommand) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","image":"none"}]}})");
    ASSERT_TRUE(m.Until([&] {
      return m.Status("p")["state"]["waiting"]["reason"].AsString() == "CreateContainerError";
    }));
    EXPECT_NE(m.Status("p")["state"]["waiting"]["message"].AsString().find("set `command`"),
              std::string::npos);
  });
}

TEST(ProcessPods, RunsInitContainersInOrderAndSharesVolumes) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"Never",
      "volumes":[{"name":"work","emptyDir":{}},{"name":"ram","emptyDir":{"medium":"Memory",)"
             R"("sizeLimit":"1Mi"}}],
      "initContainers":[
        {"name":"one","command":["sh","-c","echo 1 >> /work/list"],)"
             R"("volumeMounts":[{"name":"work","mountPath":"/work"}]},
        {"name":"two","command":["sh","-c","echo 2 >> /work/list"],)"
             R"("volumeMounts":[{"name":"work","mountPath":"/work"}]}],
      "containers":[{"name":"main","command":["sh","-c","cat /work/list; stat -f -c %T /ram;)"
             R"( df -k /ram | tail -1 | awk '{print $2}'"],
        "volumeMounts":[{"name":"work","mountPath":"/work","readOnly":true},{"name":"ram",)"
             R"("mountPath":"/ram"}]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p"), "1\n2\ntmpfs\n1024\n");
    EXPECT_EQ(m.Pod("p")["status"]["initContainerStatuses"].size(), 2u);
  });
}

// "token-N" for the Nth question; its service account has a name.
void ServeTokens(Machine& m, int& asked) {
  m.api->before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!request.target.starts_with("/api/v1/namespaces/d/serviceaccounts/default/token"))
      return true;
    net::Response response;
    response.status = 201;
    response.body = json::Write(client::FakeApi::BodyOf(request).Set(
        "status", json::Obj({{"token", fmt::format("token-{}", ++asked)},
                             {"expirationTimestamp", FormatTime(m.loop.Now() + hours(1))}})));
    writer->Send(std::move(response));
    return false;
  };
}

TEST(ProcessPods, ProjectsTokensAndRenewsThemAfterARestart) {
  InNetworkNamespace([] {
    Machine m;
    int asked = 0;
    ServeTokens(m, asked);
    m.api->Put("/api/v1/configmaps",
               *json::Parse(R"({"metadata":{"name":"kube-root-ca.crt","namespace":"d"},)"
                            R"("data":{"ca.crt":"pem"}})"));
    m.Create(OneContainer("p",
                          "cd /token; cat ns ca.crt token; echo; ls -A | grep -vc ^[.][.]m;"
                          "while grep -q token-1 token; do sleep 0.01; done; cat token",
                          "Never", R"(,"volumeMounts":[{"name":"t","mountPath":"/token"}])",
                          R"("volumes":[{"name":"t","projected":{"sources":[
        {"serviceAccountToken":{"path":"token","expirationSeconds":3607}},
        {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
        {"downwardAPI":{"items":[{"path":"ns",
          "fieldRef":{"fieldPath":"metadata.namespace"}}]}}]}}],)"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p").find('4') != std::string::npos; }))
        << json::WritePretty(m.Pod("p"));
    EXPECT_EQ(m.Log("p"), "dpemtoken-1\n4\n") << "..data and three files";
    // The agent that comes has no token: what it gets is in the pod at once.
    m.RestartAgent();
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(asked, 2);
  });
}

TEST(ProcessPods, GivesConfigMapsSecretsAndTheDownwardApi) {
  InNetworkNamespace([] {
    Machine m;
    m.api->Put(
        "/api/v1/configmaps",
        *json::Parse(R"({"metadata":{"name":"cm","namespace":"d"},"data":{"train.py":"print(1)\n",)"
                     R"("MODE":"fast"}})"));
    m.api->Put("/api/v1/secrets", *json::Parse(R"({"metadata":{"name":"s","namespace":"d"},)"
                                               R"("data":{"token":"c2VjcmV0"}})"));
    m.Create(R"({"metadata":{"name":"p","labels":{"app":"x"}},)"
             R"("spec":{"restartPolicy":"Never",
      "volumes":[{"name":"c","configMap":{"name":"cm","items":[{"key":"train.py",)"
             R"("path":"sub/train.py","mode":256}]}},
                 {"name":"s","secret":{"secretName":"s","defaultMode":384}},
                 {"name":"d","downwardAPI":{"items":[{"path":"labels",)"
             R"("fieldRef":{"fieldPath":"metadata.labels"}}]}}],
      "containers":[{"name":"main","workingDir":"/made/for/me",
        "command":["sh","-c","pwd; cat /c/sub/train.py; stat -Lc %a /c/sub/train.py )"
             R"(/s/token; cat /s/token /d/labels; echo; echo $MODE $WHO $IP $(EXPANDED) $$CPU )"
             R"('$$(NOT)'"],
        "env":[{"name":"WHO","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
               {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
               {"name":"EXPANDED","value":"$(WHO)-1"},
               {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu",)"
             R"("divisor":"1m"}}}],
        "envFrom":[{"configMapRef":{"name":"cm"}}],
        "volumeMounts":[{"name":"c","mountPath":"/c"},{"name":"s","mountPath":"/s",)"
             R"("readOnly":true},{"name":"d","mountPath":"/d"}]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(
        m.Log("p"),
        "/made/for/me\nprint(1)\n400\n600\nsecretapp=\"x\"\nfast p 10.42.0.2 p-1 2000 $(NOT)\n");
  });
}

TEST(ProcessPods, WaitsForAMissingConfigMap) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "cat /c/k", "Never",
                          R"(,"volumeMounts":[{"name":"c","mountPath":"/c"}])",
                          R"("volumes":[{"name":"c","configMap":{"name":"late"}}],)"));
    ASSERT_TRUE(m.Until([&] {
      return m.Status("p")["state"]["waiting"]["message"].AsString().find(
                 "configmap \"late\" not found") != std::string::npos;
    }));
    EXPECT_EQ(m.Status("p")["state"]["waiting"]["reason"].AsString(), "ContainerCreating");
    m.api->Put("/api/v1/configmaps",
               *json::Parse(R"({"metadata":{"name":"late","namespace":"d"},"data":{"k":"v"}})"));
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p"), "v\n");
  });
}

TEST(ProcessPods, KeepsThePodAwayFromTheNode) {
  InNetworkNamespace([] {
    Machine m;
    const std::string secret = m.data_dir + "/ca.key";
    ASSERT_TRUE(WriteFile(secret, "top secret").ok());
    const std::string marker = m.data_dir + "-marker";
    ASSERT_TRUE(WriteFile(marker, "before").ok());
    // Every line that succeeds in doing harm prints BAD.
    m.Create(OneContainer(
        "evil",
        "exec 2>/dev/null; cat " + secret +
            " 2>/dev/null && echo BAD data;"
            "ls -A " +
            m.data_dir +
            " 2>/dev/null | grep . && echo BAD list;"
            "[ -z \"$(ls -A /root)\" ] || echo BAD root; [ -z \"$(ls -A /home)\" ] || echo BAD "
            "home;"
            "cat " +
            marker +
            " 2>/dev/null && echo BAD tmp;"
            "echo changed > /usr/bin/agent-test-evil && echo wrote; echo x > /etc/agent-test-evil;"
            "mount -t tmpfs none /mnt 2>/dev/null && echo BAD mount;"
            "mknod /tmp/disk b 254 0 2>/dev/null && echo BAD mknod;"
            "echo 1 > /proc/sys/kernel/panic 2>/dev/null && echo BAD sysctl;"
            "echo b > /proc/sysrq-trigger 2>/dev/null && echo BAD sysrq;"
            "head -c 1 /proc/kcore 2>/dev/null | grep -q . && echo BAD kcore;"
            "echo 0 > /sys/kernel/mm/ksm/run 2>/dev/null && echo BAD sys;"
            "grep -q '^root:[^*!:]' /etc/shadow && echo BAD shadow;"
            "[ \"$(ls /proc | grep -c '^[0-9]')\" -lt 10 ] || echo BAD processes;"
            "ls /proc/1/root/ >/dev/null && cat /proc/1/root" +
            secret +
            " 2>/dev/null && echo BAD root link;"
            "kill -9 -1 2>/dev/null; nsenter -t 1 -m true 2>/dev/null && echo BAD nsenter;"
            "echo done"));
    ASSERT_TRUE(m.UntilPhase("evil", "Succeeded"));
    EXPECT_EQ(m.Log("evil"), "wrote\ndone\n");
    EXPECT_FALSE(PathExists("/usr/bin/agent-test-evil"));
    EXPECT_FALSE(PathExists("/etc/agent-test-evil"));
    unlink(marker.c_str());
  });
}

TEST(ProcessPods, RefusesAHostPathInsideTheDataFolderAndHidesItInsideOthers) {
  InNetworkNamespace([] {
    Machine m;
    ASSERT_TRUE(WriteFile(m.data_dir + "/ca.key", "top secret").ok());
    m.Create(OneContainer(
        "in", "true", "Never", R"(,"volumeMounts":[{"name":"v","mountPath":"/v"}])",
        R"("volumes":[{"name":"v","hostPath":{"path":")" + m.data_dir + R"(/pods"}}],)"));
    m.Create(OneContainer("above", "ls -A /v" + m.data_dir.substr(4) + " && echo listed", "Never",
                          R"(,"volumeMounts":[{"name":"v","mountPath":"/v"}])",
                          R"("volumes":[{"name":"v","hostPath":{"path":"/tmp",)"
                          R"("type":"Directory"}}],)"));
    ASSERT_TRUE(m.UntilPhase("above", "Succeeded"));
    EXPECT_EQ(m.Log("above"), "listed\n");
    EXPECT_NE(
        m.Status("in")["state"]["waiting"]["message"].AsString().find("muster's own data folder"),
        std::string::npos);
  });
}

TEST(ProcessPods, ReportsOutOfMemory) {
  if (!Cgroups::DetectSystem().CanLimitMemory()) GTEST_SKIP() << "no memory cgroup here";
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("hungry", "exec python3 -c 'x = bytearray(200 << 20); print(len(x))'",
                          "Never", R"(,"resources":{"limits":{"memory":"32Mi"}})"));
    ASSERT_TRUE(m.UntilPhase("hungry", "Failed"));
    EXPECT_EQ(m.Status("hungry")["state"]["terminated"]["reason"].AsString(), "OOMKilled");
    EXPECT_EQ(m.Status("hungry")["state"]["terminated"]["exitCode"].AsInt(), 137);
  });
}

TEST(ProcessPods, EndsADeletedPodGracefullyAndThenDeletesTheObject) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer(
        "p", "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.05; done", "Always"));
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n"; }));
    const std::string dir = m.PodDirectory("p");
    const json::Value pod = m.Pod("p");
    m.api->Put(kPods, pod.SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")
                          .SetPath({"metadata", "deletionGracePeriodSeconds"}, 30)
                          .SetPath({"metadata", "finalizers"}, json::List({"keep"})));
    ASSERT_TRUE(m.Until([&] { return m.Phase("p") == "Succeeded" && !PathExists(dir); }));
    EXPECT_EQ(m.Log("p"), "up\nbye\n");
    const auto deleted = [&] {
      for (const std::string& request : m.api->requests) {
        if (request.starts_with("DELETE /api/v1/namespaces/d/pods/p")) return true;
      }
      return false;
    };
    EXPECT_TRUE(m.Until(deleted));
  });
}

TEST(ProcessPods, KillsWhatDoesNotEndInTime) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "trap '' TERM; echo up; while true; do sleep 0.05; done", "Always"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n" && m.Phase("p") == "Running"; }));
    m.api->Put(kPods, m.Pod("p")
                          .SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")
                          .SetPath({"metadata", "deletionGracePeriodSeconds"}, 1)
                          .SetPath({"metadata", "finalizers"}, json::List({"keep"})));
    ASSERT_TRUE(m.UntilPhase("p", "Failed"));
    EXPECT_EQ(m.Status("p")["state"]["terminated"]["exitCode"].AsInt(), 137);
  });
}

TEST(ProcessPods, OutliveTheAgentAndLoseNothing) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(
        OneContainer("short", "echo a; while [ ! -e /go/on ]; do sleep 0.01; done; echo b; exit 5",
                     "Never", R"(,"volumeMounts":[{"name":"go","mountPath":"/go"}])", GoFolder(m)));
    m.Create(OneContainer("long", "sleep 1000", "Always"));
    m.Create(OneContainer("gone", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("short", "Running"));
    ASSERT_TRUE(m.UntilPhase("long", "Running"));
    ASSERT_TRUE(m.UntilPhase("gone", "Running"));
    const std::string gone_dir = m.PodDirectory("gone");
    m.RestartAgent([&] {
      ASSERT_TRUE(WriteFile(m.data_dir + "-go/on", "").ok());
      m.api->Remove(kPods, "d", "gone");
    });
    ASSERT_TRUE(m.UntilPhase("short", "Failed"));
    EXPECT_EQ(m.Status("short")["state"]["terminated"]["exitCode"].AsInt(), 5);
    EXPECT_EQ(m.Log("short"), "a\nb\n");
    EXPECT_EQ(m.Phase("long"), "Running");
    EXPECT_EQ(m.Status("long")["restartCount"].AsInt(), 0);
    EXPECT_TRUE(m.Until([&] { return !PathExists(gone_dir); })) << "an orphan must be ended";
    EXPECT_TRUE(RemoveTree(m.data_dir + "-go").ok());
  });
}

TEST(ProcessPods, RestartOrFailByPolicyWhenEverythingWasKilled) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("always", "sleep 1000", "Always"));
    m.Create(OneContainer("never", "sleep 1000", "Never"));
    ASSERT_TRUE(m.UntilPhase("always", "Running"));
    ASSERT_TRUE(m.UntilPhase("never", "Running"));
    m.RestartAgent([&] {
      // The shims, and with them all processes of the pods; the next agent finds their folders
      // only.
      const Cgroups cgroups = Cgroups::DetectSystem();
      for (const char* name : {"always", "never"}) {
        ASSERT_TRUE(m.ShimOf(name).has_value());
        Signal(m.ShimOf(name).value_or(0), SIGKILL);
      }
    });
    ASSERT_TRUE(m.UntilPhase("never", "Failed"));
    EXPECT_EQ(m.Status("never")["state"]["terminated"]["reason"].AsString(),
              "ContainerStatusUnknown");
    EXPECT_EQ(m.Status("never")["state"]["terminated"]["exitCode"].AsInt(), 137);
    ASSERT_TRUE(m.Until([&] {
      return m.Phase("always") == "Running" && m.Status("always")["restartCount"].AsInt() == 1 &&
             m.Status("always")["state"].Has("running");
    })) << json::WritePretty(m.Pod("always")["status"]);
  });
}

TEST(ProcessPods, LeavesThePodsAloneThatEndedBeforeItCame) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("done", "exit 4"));
    ASSERT_TRUE(m.UntilPhase("done", "Failed"));
    ASSERT_TRUE(m.Until([&] { return !PathExists(m.PodDirectory("done")); }));
    const json::Value before = m.Pod("done");
    m.RestartAgent();
    // One that comes later is through: the finished one had its turn.
    m.Create(OneContainer("next", "true"));
    ASSERT_TRUE(m.UntilPhase("next", "Succeeded"));
    EXPECT_EQ(m.Pod("done"), before);
  });
}

TEST(SpawnerClient, ReplacesADeadSpawnerAndAsksItAgain) {
  InNetworkNamespace([] {
    Machine m;
    const pid_t pid = m.spawners.front().pid();
    SpawnerClient client(m.loop, *m.NextSpawner()(), m.NextSpawner());
    std::vector<std::string> told;
    client.OnState([&](const Status& status) { told.push_back(status.message()); });
    // Stopped it cannot answer; it dies with the requests.
    Signal(pid, SIGSTOP);
    int answers = 0;
    for (int i = 0; i < 5; ++i) {
      client.Call("removeSandbox", json::Obj({{"podDir", "/nowhere"}, {"cgroup", "muster/podx"}}),
                  [&](Result<json::Value> answer) { answers += answer ? 1 : 100; });
    }
    Signal(pid, SIGKILL);
    ASSERT_TRUE(m.Until([&] { return answers >= 5; }));
    EXPECT_EQ(answers, 5);
    EXPECT_EQ(told, std::vector<std::string>{""});
  });
}

TEST(SpawnerClient, FailsTheRequestThatKillsSpawners) {
  InNetworkNamespace([] {
    Machine m;
    // They are stopped: each gets the request, does not answer, and is killed.
    for (const SpawnerHandle& handle : m.spawners) Signal(handle.pid(), SIGSTOP);
    SpawnerClient client(m.loop, *m.NextSpawner()(), m.NextSpawner());
    Status failed;
    int started = 0;
    client.OnState([&](const Status&) {
      if (++started < kMaxSpawnerLosses) Signal(client.pid(), SIGKILL);
    });
    client.Call("setupNetwork", json::Obj(), [&](Result<json::Value> answer) {
      failed = answer ? Status::Ok() : answer.error();
    });
    Signal(client.pid(), SIGKILL);
    ASSERT_TRUE(m.Until([&] { return !failed.ok(); }));
    EXPECT_NE(failed.message().find("3 spawners died"), std::string::npos) << failed.message();
    EXPECT_TRUE(m.Until([&] { return started == kMaxSpawnerLosses; }));
    // Two are left and stopped: they must be able to end.
    Signal(client.pid(), SIGKILL);
    for (const SpawnerHandle& handle : m.spawners) Signal(handle.pid(), SIGKILL);
  });
}

TEST(SpawnerClient, SaysWhenNoSpawnerCanBeStarted) {
  InNetworkNamespace([] {
    Machine m;
    std::vector<std::string> told;
    bool possible = false;
    SpawnerClient client(m.loop, *m.NextSpawner()(), [&]() -> Result<SpawnerHandle> {
      if (!possible) return Error(Reason::kInternalError, "no memory");
      return m.NextSpawner()();
    });
    client.OnState([&](const Status& status) {
      told.push_back(status.message());
      possible = true;
    });
    Signal(client.pid(), SIGKILL);
    ASSERT_TRUE(m.Until([&] { return told.size() == 2; }));
    EXPECT_EQ(told, (std::vector<std::string>{"no memory", ""}));
  });
}

TEST(ProcessPods, LoseNothingWhenTheSpawnerDies) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("before", "while [ ! -e /go/on ]; do sleep 0.01; done; exit 3", "Never",
                          R"(,"volumeMounts":[{"name":"go","mountPath":"/go"}])", GoFolder(m)));
    ASSERT_TRUE(m.UntilPhase("before", "Running"));
    Signal(m.node->spawner.pid(), SIGKILL);
    m.Create(OneContainer("after", "exit 4"));
    ASSERT_TRUE(m.UntilPhase("after", "Failed"));
    EXPECT_EQ(m.Status("after")["state"]["terminated"]["exitCode"].AsInt(), 4);
    ASSERT_TRUE(WriteFile(m.data_dir + "-go/on", "").ok());
    ASSERT_TRUE(m.UntilPhase("before", "Failed"));
    EXPECT_EQ(m.Status("before")["state"]["terminated"]["exitCode"].AsInt(), 3);
    EXPECT_TRUE(RemoveTree(m.data_dir + "-go").ok());
  });
}

// The shim writes an exit down before it tells; killed in between it must not be lost.
TEST(ProcessPods, KeepTheExitsThatAKilledShimHadWrittenDown) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"Never","containers":[
      {"name":"main","command":["sh","-c","exit 5"]},
      {"name":"other","command":["sleep","1000"]}]}})");
    // One may end before the other starts.
    ASSERT_TRUE(m.Until([&] {
      return m.Status("p")["state"].Has("terminated") && m.Status("p", 1)["state"].Has("running");
    }));
    // As if the agent had not heard of it: a second one starts from what it finds.
    m.RestartAgent([&] { Signal(m.ShimOf("p").value_or(0), SIGKILL); });
    ASSERT_TRUE(m.UntilPhase("p", "Failed"));
    EXPECT_EQ(m.Status("p")["state"]["terminated"]["exitCode"].AsInt(), 5);
    const json::Value other = m.Status("p", 1)["state"]["terminated"];
    EXPECT_EQ(other["exitCode"].AsInt(), 137);
    EXPECT_EQ(other["reason"].AsString(), "ContainerStatusUnknown");
  });
}

// The agent is busy (it does not read) while the container ends and the shim is killed.
TEST(ProcessPods, ReadTheFolderWhenTheShimIsKilled) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "while [ ! -e /go/on ]; do sleep 0.01; done; exit 6", "OnFailure",
                          R"(,"volumeMounts":[{"name":"go","mountPath":"/go"}])", GoFolder(m)));
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    const std::string dir = m.PodDirectory("p");
    const pid_t shim = m.ShimOf("p").value_or(0);
    // Its socket is full of nothing that we read: drop what it tells by looking away until both
    // have happened. The loop runs only inside Until().
    ASSERT_TRUE(WriteFile(m.data_dir + "-go/on", "").ok());
    while (!PathExists(dir + "/containers/main/0.exit")) poll(nullptr, 0, 1);
    Signal(shim, SIGKILL);
    ASSERT_TRUE(m.Until([&] { return m.Status("p")["restartCount"].AsInt() == 1; }));
    EXPECT_EQ(m.Status("p")["lastState"]["terminated"]["exitCode"].AsInt(), 6);
    EXPECT_TRUE(RemoveTree(m.data_dir + "-go").ok());
  });
}

// As after the machine was switched off: counts and logs go on, and Never is never.
TEST(ProcessPods, GoOnAfterDownAndUp) {
  InNetworkNamespace([] {
    Machine m;
    // Ends once, then runs. Once it has spoken it has no children, whose end it would see.
    m.Create(OneContainer("p",
                          "echo run >> /e/runs; n=$(wc -l < /e/runs); echo $n; [ $n = 1 ] && "
                          "exit 3; exec sleep 1000",
                          "Always", R"(,"volumeMounts":[{"name":"e","mountPath":"/e"}])",
                          R"("volumes":[{"name":"e","emptyDir":{}}],)"));
    m.Create(OneContainer("once", "echo ran; exec sleep 1000"));
    ASSERT_TRUE(m.UntilPhase("once", "Running"));
    ASSERT_TRUE(m.Until([&] {
      return m.Status("p")["restartCount"].AsInt() == 1 && m.Log("p", "main", 1) == "2\n";
    })) << json::WritePretty(m.Pod("p"));
    const std::string folder = m.PodDirectory("p") + "/containers/main";
    ASSERT_TRUE(PathExists(folder + "/1"));
    m.RestartAgent([&] {
      ASSERT_TRUE(TearDownNode(m.data_dir).ok());
      EXPECT_FALSE(PathExists(folder + "/1")) << "what it wrote outside of volumes";
      EXPECT_TRUE(PathExists(folder + "/1.start"));
    });
    ASSERT_TRUE(m.Until([&] { return m.Log("p", "main", 2) == "3\n"; }))
        << json::WritePretty(m.Pod("p"));
    EXPECT_EQ(m.Log("p", "main", 1), "2\n") << "the log before, which `logs --previous` reads";
    ASSERT_TRUE(m.Until([&] { return m.Status("p")["restartCount"].AsInt() == 2; }));
    EXPECT_EQ(m.Status("p")["lastState"]["terminated"]["exitCode"].AsInt(), 137);
    ASSERT_TRUE(m.UntilPhase("once", "Failed"));
    EXPECT_EQ(m.Status("once")["state"]["terminated"]["reason"].AsString(),
              "ContainerStatusUnknown");
    EXPECT_EQ(m.Log("once"), "ran\n");
  });
}

// What an init container made is gone with the sandbox.
TEST(ProcessPods, InitContainersRunAgainInANewSandbox) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"OnFailure",
      "volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}],
      "initContainers":[{"name":"init","command":["touch","/v/made"],
                         "volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "containers":[{"name":"main","command":["sh","-c","ls /v; exec sleep 1000"],
                     "volumeMounts":[{"name":"v","mountPath":"/v"}]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "made\n"; }));
    std::vector<std::string> phases;
    Signal(m.ShimOf("p").value_or(0), SIGKILL);
    ASSERT_TRUE(m.Until([&] {
      phases.push_back(m.Phase("p"));
      return !m.Log("p", "main", 1).empty();
    }));
    EXPECT_EQ(m.Log("p", "main", 1), "made\n");
    ASSERT_TRUE(m.Until([&] { return m.Status("p")["restartCount"].AsInt() == 1; }));
    const json::Value init = m.Pod("p")["status"]["initContainerStatuses"].At(0);
    EXPECT_EQ(init["restartCount"].AsInt(), 1);
    EXPECT_EQ(init["state"]["terminated"]["exitCode"].AsInt(-1), 0);
    for (const std::string& phase : phases) EXPECT_EQ(phase, "Running");
  });
}

TEST(ProcessPods, EndAShimThatHangs) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    const pid_t shim = m.ShimOf("p").value_or(0);
    const std::string dir = m.PodDirectory("p");
    Signal(shim, SIGSTOP);
    m.api->Remove(kPods, "d", "p");
    EXPECT_TRUE(m.Until([&] { return m.node->manager.size() == 0; }));
    EXPECT_FALSE(PathExists(dir));
    EXPECT_FALSE(PathExists(fmt::format("/proc/{}/root", shim)));
  });
}

TEST(ProcessPods, GiveNoAddressTwiceAfterARestart) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("old", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("old", "Running"));
    // "new" comes first in the informer's list.
    m.RestartAgent([&] { m.Create(OneContainer("new", "sleep 1000", "Always")); });
    ASSERT_TRUE(m.UntilPhase("new", "Running"));
    EXPECT_EQ(m.Pod("old")["status"]["podIP"].AsString(), "10.42.0.2");
    EXPECT_EQ(m.Pod("new")["status"]["podIP"].AsString(), "10.42.0.3");
  });
}

TEST(ProcessPods, SweepWhatNoPodOwns) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("kept", "echo kept"));
    ASSERT_TRUE(m.UntilPhase("kept", "Succeeded"));
    const std::string logs = PodLogsDir(m.data_dir) + "/d_gone_11111111-2222";
    const std::string pods = PodsDir(m.data_dir) + "/.removed-11111111-2222";
    m.RestartAgent([&] {
      ASSERT_TRUE(MakeDirs(logs + "/main").ok());
      ASSERT_TRUE(MakeDirs(pods + "/containers").ok());
    });
    EXPECT_TRUE(m.Until([&] { return !PathExists(logs) && !PathExists(pods); }));
    EXPECT_EQ(m.Log("kept"), "kept\n");
  });
}

TEST(ProcessPods, NamesTheDevices) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p","annotations":{"muster.dev/assigned-devices":
      "{\"main\":{\"nvidia.com/gpu\":[\"GPU-sim-0\"]}}"}},"spec":{"restartPolicy":"Never",)"
             R"("containers":[
      {"name":"main","command":["sh","-c","echo $NVIDIA_VISIBLE_DEVICES"],)"
             R"("resources":{"limits":{"nvidia.com/gpu":"1"}}},
      {"name":"side","command":["sh","-c","echo $NVIDIA_VISIBLE_DEVICES"]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p", "main"), "GPU-sim-0\n");
    EXPECT_EQ(m.Log("p", "side"), "void\n");
  });
}

TEST(ProcessPods, TellHowTheirDevicesDo) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "sleep 1000", "Always",
                          R"(,"resources":{"limits":{"nvidia.com/gpu":"1"}})"));
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    const auto tells = [&](const std::string& text) {
      const auto now = [&] { return json::Write(m.Status("p")["allocatedResourcesStatus"]); };
      EXPECT_TRUE(m.Until([&] { return now() == text; })) << now();
    };
    const std::string fine = R"([{"name":"nvidia.com/gpu","resources":[{"resourceID":"GPU-sim-0",)"
                             R"("health":"Healthy"}]}])";
    tells(fine);
    cluster::Device gpu = m.node->devices.devices()[0];
    const auto becomes = [&](const std::string& why, bool unknown) {
      gpu.unhealthy = why;
      gpu.health_unknown = unknown;
      m.node->devices.SetDevices({gpu}, {});
      m.node->manager.DevicesChanged();
    };
    becomes("the driver did not answer", true);
    tells(R"([{"name":"nvidia.com/gpu","resources":[{"resourceID":"GPU-sim-0","health":"Unknown",)"
          R"("message":"the driver did not answer"}]}])");
    becomes("XID 79: gone", false);
    tells(R"([{"name":"nvidia.com/gpu","resources":[{"resourceID":"GPU-sim-0","health":)"
          R"("Unhealthy","message":"XID 79: gone"}]}])");
    EXPECT_EQ(m.Phase("p"), "Running");
    // The next agent knows better.
    m.RestartAgent();
    m.node->manager.DevicesChanged();
    tells(fine);
    m.node->devices.SetDevices({}, {});
    m.node->manager.DevicesChanged();
    EXPECT_TRUE(m.Until([&] {
      return m.Status("p")["allocatedResourcesStatus"].At(0)["resources"].At(0)["health"].Str() ==
             "Unknown";
    }));
  });
}

TEST(ProcessPods, TwoPodsTalkOverTheBridge) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(
        OneContainer("server",
                     "exec python3 -c \"import socket as s; l=s.create_server(('0.0.0.0',7000)); "
                     "c,_=l.accept(); c.sendall(b'hi from '+s.gethostname().encode())\""));
    ASSERT_TRUE(m.UntilPhase("server", "Running"));
    m.Create(
        OneContainer("client",
                     "exec python3 -c \"import socket as s,time\nfor i in range(200):\n try: "
                     "print(s.create_connection(('10.42.0.2',7000)).recv(99).decode()); break\n "
                     "except OSError: time.sleep(0.02)\""));
    ASSERT_TRUE(m.UntilPhase("client", "Succeeded"));
    EXPECT_EQ(m.Log("client"), "hi from server\n");
  });
}

}  // namespace
}  // namespace muster::agent
