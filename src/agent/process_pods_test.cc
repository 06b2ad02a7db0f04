// Real pods: the spawner, the shims and the pod workers together, against a fake API server, in a
// network namespace of their own. Skipped where namespaces cannot be made.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/cgroups/cgroups.h"
#include "agent/network/netns_test_support.h"
#include "agent/pod_workers/container_builder.h"
#include "agent/pod_workers/pod_manager.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "agent/spawner/spawner_client.h"
#include "base/strings.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "json/write.h"
#include "loop/asio_loop.h"
#include "loop/thread_pool.h"

namespace muster::agent {
namespace {

constexpr const char* kPods = "/api/v1/pods";

// A node: everything that a restart of the agent makes anew. The API server is outside.
struct Node {
  Node(const std::string& data_dir, AsioLoop& loop, Pool& pool, client::FakeApi& api,
       SpawnerHandle handle)
      : transport(loop, api, {"", "system:node:n1", {"system:masters"}}),
        client(loop, transport, "agent-test"),
        informers(client),
        pods(informers.Get(client::resources::kPods, "spec.nodeName=n1")),
        events(client, "kubelet", "n1"),
        spawner(loop, std::move(handle)),
        runtime(data_dir, loop, pool, spawner),
        addresses(*Ipv4Prefix::Parse("10.42.0.0/24")),
        devices(std::vector<cluster::Device>{{"nvidia.com/gpu", "GPU-sim-0", 0, "Simulated-GPU"}}),
        context{.loop = loop,
                .pool = pool,
                .client = client,
                .events = events,
                .runtime = runtime,
                .services = informers.Get(client::resources::kServices),
                .addresses = addresses,
                .devices = devices},
        manager(context, pods) {
    context.data_dir = data_dir;
    context.node_name = "n1";
    context.host_ip = "192.168.7.7";
    context.bridge = "muster0";
    context.cluster_domain = "cluster.local";
    context.dns_address = Ipv4::Parse("10.42.0.1").value();
    context.node_allocatable = json::Obj({{"cpu", "2"}, {"memory", "4Gi"}});
    context.on_addresses_changed = [] {};
    runtime.Recover(
        [this](std::vector<RecoveredPod> recovered) { manager.Start(std::move(recovered)); });
    informers.Start();
  }

  client::InProcessTransport transport;
  client::ApiClient client;
  client::InformerSet informers;
  client::Informer& pods;
  client::EventRecorder events;
  SpawnerClient spawner;
  ProcessRuntime runtime;
  IpAllocator addresses;
  DeviceAllocator devices;
  PodWorkerContext context;
  PodManager manager;
};

// One test's machine.
struct Machine {
  Machine() {
    char path[] = "/tmp/agent-test-XXXXXX";
    data_dir = mkdtemp(path);
    CHECK(MakeDirs(data_dir + "/pods", 0700).ok());
    Result<Netlink> netlink = Netlink::Open();
    CHECK(netlink.has_value());
    CHECK(netlink->EnsureBridge("muster0", *Ipv4Prefix::Parse("10.42.0.1/24")).ok());
    // A pod's address has no network around it: pods reach each other through the node.
    CHECK(WriteFile("/proc/sys/net/ipv4/ip_forward", "1").ok());
    // Before the loop and the pool have threads.
    first_spawner = std::make_unique<SpawnerHandle>(*SpawnerProcess::Fork());
    second_spawner = std::make_unique<SpawnerHandle>(*SpawnerProcess::Fork());
    pool = std::make_unique<ThreadPool>("test", 2);
    api = std::make_unique<client::FakeApi>(loop);
    node = std::make_unique<Node>(data_dir, loop, *pool, *api, std::move(*first_spawner));
  }
  ~Machine() {
    for (auto& [key, object] : std::map(api->objects)) {
      if (key.starts_with(kPods)) api->Remove(kPods, "d", object["metadata"]["name"].Str());
    }
    Until([this] { return node->manager.size() == 0; }, seconds(10));
    node.reset();
    pool.reset();
    (void)Cgroups::DetectSystem().RemoveIfEmpty("muster");
    EXPECT_TRUE(RemoveTree(data_dir).ok());
  }

  // The agent dies and another one comes.
  void RestartAgent(const std::function<void()>& meanwhile = [] {}) {
    node.reset();
    meanwhile();
    node = std::make_unique<Node>(data_dir, loop, *pool, *api, std::move(*second_spawner));
  }

  bool Until(const std::function<bool()>& done, Duration limit = seconds(20)) {
    bool ok = false;
    const Time deadline = RealClock().Wall() + limit;
    std::function<void()> look = [&] {
      ok = done();
      if (ok || RealClock().Wall() > deadline) return loop.Stop();
      loop.After(milliseconds(2), [&look] { look(); });
    };
    loop.Post([&look] { look(); });
    loop.Restart();
    loop.Run();
    return ok;
  }

  void Create(const std::string& text) {
    json::Value pod = *json::Parse(text);
    pod = pod.SetPath({"metadata", "namespace"}, "d").SetPath({"spec", "nodeName"}, "n1");
    api->Put(kPods, pod);
  }
  json::Value Pod(const std::string& name) const {
    const json::Value* pod = api->Find(kPods, "d", name);
    return pod == nullptr ? json::Value() : *pod;
  }
  std::string Phase(const std::string& name) const { return Pod(name)["status"]["phase"].Str(); }
  bool UntilPhase(const std::string& name, const std::string& phase) {
    const bool ok = Until([&] { return Phase(name) == phase; });
    EXPECT_TRUE(ok) << name << " is " << json::WritePretty(Pod(name)["status"]);
    return ok;
  }
  json::Value Status(const std::string& name, size_t container = 0) const {
    return Pod(name)["status"]["containerStatuses"].At(container);
  }
  std::string Log(const std::string& name, const std::string& container = "main",
                  int attempt = 0) const {
    const auto text = ReadSmallFile(ContainerLogPath(data_dir, Pod(name), container, attempt));
    std::string out;
    if (!text) return out;
    for (std::string_view line : SplitNonEmpty(*text, '\n')) {
      const size_t tag = line.find(" F ");
      out += std::string(line.substr(tag == std::string_view::npos ? 0 : tag + 3)) + "\n";
    }
    return out;
  }
  std::string PodDirectory(const std::string& name) const {
    return PodDir(data_dir, Pod(name)["metadata"]["uid"].Str());
  }

  std::string data_dir;
  std::unique_ptr<SpawnerHandle> first_spawner, second_spawner;
  AsioLoop loop;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<client::FakeApi> api;
  std::unique_ptr<Node> node;
};

std::string OneContainer(const std::string& name, const std::string& script,
                         const std::string& policy = "Never", const std::string& more = "",
                         const std::string& more_spec = "") {
  std::string quoted;
  json::AppendString(quoted, script);
  return R"({"metadata":{"name":")" + name + R"("},"spec":{"restartPolicy":")" + policy + R"(",)" +
         more_spec + R"("containers":[{"name":"main","image":"x","command":["sh","-c",)" + quoted +
         "]" + more + "}]}}";
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

TEST(ProcessPods, WaitsWithImageUnavailableWithoutACommand) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(
        R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","image":"nginx"}]}})");
    ASSERT_TRUE(m.Until([&] {
      return m.Status("p")["state"]["waiting"]["reason"].AsString() == "ImageUnavailable";
    }));
    EXPECT_NE(m.Status("p")["state"]["waiting"]["message"].AsString().find("set `command`"),
              std::string::npos);
  });
}

TEST(ProcessPods, RunsInitContainersInOrderAndSharesVolumes) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"Never",
      "volumes":[{"name":"work","emptyDir":{}},{"name":"ram","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}}],
      "initContainers":[
        {"name":"one","command":["sh","-c","echo 1 >> /work/list"],"volumeMounts":[{"name":"work","mountPath":"/work"}]},
        {"name":"two","command":["sh","-c","echo 2 >> /work/list"],"volumeMounts":[{"name":"work","mountPath":"/work"}]}],
      "containers":[{"name":"main","command":["sh","-c","cat /work/list; stat -f -c %T /ram; df -k /ram | tail -1 | awk '{print $2}'"],
        "volumeMounts":[{"name":"work","mountPath":"/work","readOnly":true},{"name":"ram","mountPath":"/ram"}]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p"), "1\n2\ntmpfs\n1024\n");
    EXPECT_EQ(m.Pod("p")["status"]["initContainerStatuses"].size(), 2u);
  });
}

TEST(ProcessPods, GivesConfigMapsSecretsAndTheDownwardApi) {
  InNetworkNamespace([] {
    Machine m;
    m.api->Put(
        "/api/v1/configmaps",
        *json::Parse(
            R"({"metadata":{"name":"cm","namespace":"d"},"data":{"train.py":"print(1)\n","MODE":"fast"}})"));
    m.api->Put(
        "/api/v1/secrets",
        *json::Parse(R"({"metadata":{"name":"s","namespace":"d"},"data":{"token":"c2VjcmV0"}})"));
    m.Create(R"({"metadata":{"name":"p","labels":{"app":"x"}},"spec":{"restartPolicy":"Never",
      "volumes":[{"name":"c","configMap":{"name":"cm","items":[{"key":"train.py","path":"sub/train.py","mode":256}]}},
                 {"name":"s","secret":{"secretName":"s","defaultMode":384}},
                 {"name":"d","downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}],
      "containers":[{"name":"main","workingDir":"/made/for/me",
        "command":["sh","-c","pwd; cat /c/sub/train.py; stat -Lc %a /c/sub/train.py /s/token; cat /s/token /d/labels; echo; echo $MODE $WHO $IP $(EXPANDED) $$CPU '$$(NOT)'"],
        "env":[{"name":"WHO","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
               {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
               {"name":"EXPANDED","value":"$(WHO)-1"},
               {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1m"}}}],
        "envFrom":[{"configMapRef":{"name":"cm"}}],
        "volumeMounts":[{"name":"c","mountPath":"/c"},{"name":"s","mountPath":"/s","readOnly":true},{"name":"d","mountPath":"/d"}]}]}})");
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
    ASSERT_TRUE(WriteFile("/tmp/agent-test-marker", "before").ok());
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
            "cat /tmp/agent-test-marker 2>/dev/null && echo BAD tmp;"
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
    unlink("/tmp/agent-test-marker");
  });
}

TEST(ProcessPods, RefusesAHostPathInsideTheDataFolderAndHidesItInsideOthers) {
  InNetworkNamespace([] {
    Machine m;
    ASSERT_TRUE(WriteFile(m.data_dir + "/ca.key", "top secret").ok());
    m.Create(OneContainer(
        "in", "true", "Never", R"(,"volumeMounts":[{"name":"v","mountPath":"/v"}])",
        R"("volumes":[{"name":"v","hostPath":{"path":")" + m.data_dir + R"(/pods"}}],)"));
    m.Create(
        OneContainer("above", "ls -A /v" + m.data_dir.substr(4) + " && echo listed", "Never",
                     R"(,"volumeMounts":[{"name":"v","mountPath":"/v"}])",
                     R"("volumes":[{"name":"v","hostPath":{"path":"/tmp","type":"Directory"}}],)"));
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
                     "Never", R"(,"volumeMounts":[{"name":"go","mountPath":"/go"}])",
                     R"("volumes":[{"name":"go","hostPath":{"path":"/tmp/agent-test-go"}}],)"));
    m.Create(OneContainer("long", "sleep 1000", "Always"));
    m.Create(OneContainer("gone", "sleep 1000", "Always"));
    ASSERT_TRUE(m.UntilPhase("short", "Running"));
    ASSERT_TRUE(m.UntilPhase("long", "Running"));
    ASSERT_TRUE(m.UntilPhase("gone", "Running"));
    const std::string gone_dir = m.PodDirectory("gone");
    m.RestartAgent([&] {
      ASSERT_TRUE(WriteFile("/tmp/agent-test-go/on", "").ok());
      m.api->Remove(kPods, "d", "gone");
    });
    ASSERT_TRUE(m.UntilPhase("short", "Failed"));
    EXPECT_EQ(m.Status("short")["state"]["terminated"]["exitCode"].AsInt(), 5);
    EXPECT_EQ(m.Log("short"), "a\nb\n");
    EXPECT_EQ(m.Phase("long"), "Running");
    EXPECT_EQ(m.Status("long")["restartCount"].AsInt(), 0);
    EXPECT_TRUE(m.Until([&] { return !PathExists(gone_dir); })) << "an orphan must be ended";
    EXPECT_TRUE(RemoveTree("/tmp/agent-test-go").ok());
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
        const std::string pid = ReadSmallFile(m.PodDirectory(name) + "/shim.pid").value_or("");
        ASSERT_FALSE(pid.empty());
        kill(static_cast<pid_t>(*ParseInt(pid)), SIGKILL);
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

TEST(ProcessPods, NamesTheDevices) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(R"({"metadata":{"name":"p","annotations":{"muster.dev/assigned-devices":
      "{\"main\":{\"nvidia.com/gpu\":[\"GPU-sim-0\"]}}"}},"spec":{"restartPolicy":"Never","containers":[
      {"name":"main","command":["sh","-c","echo $NVIDIA_VISIBLE_DEVICES"],"resources":{"limits":{"nvidia.com/gpu":"1"}}},
      {"name":"side","command":["sh","-c","echo $NVIDIA_VISIBLE_DEVICES"]}]}})");
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p", "main"), "GPU-sim-0\n");
    EXPECT_EQ(m.Log("p", "side"), "void\n");
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
