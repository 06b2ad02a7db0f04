// src/agent/pod_machine_test_support.h
//
// For tests with real pods: one node (spawner, shims, pod workers) against a fake API server. To be
// used inside InNetworkNamespace(), which skips where namespaces cannot be made.
//
// Thread: the test's; it is the loop thread while Until() runs.

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/cgroups/cgroups.h"
#include "agent/network/netns_test_support.h"
#include "agent/pod_workers/container_builder.h"
#include "agent/pod_workers/pod_manager.h"
#include "agent/probes/node_handler_runner.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/process_runtime.h"
#include "agent/shim/shim.h"
#include "agent/spawner/spawner_client.h"
#include "base/strings.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "json/write.h"
#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "loop/thread_pool.h"

namespace muster::agent {

inline constexpr const char* kPods = "/api/v1/pods";

// A node: everything that a restart of the agent makes anew. The API server is outside.
struct Node {
  Node(const std::string& data_dir, AsioLoop& loop, Pool& pool, client::FakeApi& api,
       const SpawnerClient::Respawn& next_spawner)
      : transport(loop, api, {"", "system:node:n1", {"system:masters"}}),
        client(loop, transport, "agent-test"),
        informers(client),
        pods(informers.Get(client::resources::kPods, json::Fields::Whole(), "spec.nodeName=n1")),
        events(client, "kubelet", "n1"),
        spawner(loop, *next_spawner(), next_spawner),
        runtime(data_dir, loop, pool, spawner),
        addresses(*Ipv4Prefix::Parse("10.42.0.0/24")),
        handlers(loop, io, runtime),
        devices(std::vector<cluster::Device>{{"nvidia.com/gpu", "GPU-sim-0", 0, "Simulated-GPU"}}),
        context{.loop = loop,
                .pool = pool,
                .client = client,
                .events = events,
                .runtime = runtime,
                .services = informers.Get(client::resources::kServices, json::Fields::Whole()),
                .addresses = addresses,
                .devices = devices,
                .gangs = gangs,
                .handlers = handlers},
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
  net::IoThreads io{1};
  NodeHandlerRunner handlers;
  DeviceAllocator devices;
  GangSandboxes gangs{addresses};
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
    for (int i = 0; i < kSpawners; ++i) spawners.push_back(*SpawnerProcess::Fork({}));
    pool = std::make_unique<ThreadPool>("test", 2);
    api = std::make_unique<client::FakeApi>(loop);
    node = std::make_unique<Node>(data_dir, loop, *pool, *api, NextSpawner());
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
    node = std::make_unique<Node>(data_dir, loop, *pool, *api, NextSpawner());
  }

  SpawnerClient::Respawn NextSpawner() {
    return [this]() -> Result<SpawnerHandle> {
      if (spawners.empty()) return Error(Reason::kInternalError, "no spawner is left");
      SpawnerHandle next = std::move(spawners.front());
      spawners.pop_front();
      return next;
    };
  }

  bool Until(const std::function<bool()>& done, Duration limit = seconds(20)) {
    return RunUntil(loop, done, limit);
  }

  void Create(const std::string& text) {
    json::Value pod = *json::Parse(text);
    pod = pod.SetPath({"metadata", "namespace"}, "d").SetPath({"spec", "nodeName"}, "n1");
    // Its cgroup is the machine's: another run of the tests must not have the same.
    if (!pod["metadata"].Has("uid")) {
      pod = pod.SetPath({"metadata", "uid"},
                        fmt::format("{}-{}", data_dir.substr(data_dir.size() - 6), ++created));
    }
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
  std::optional<pid_t> ShimOf(const std::string& name) const {
    return ProcessLockHolder(PodDirectory(name) + "/" + kShimLockName);
  }
  std::string PodDirectory(const std::string& name) const {
    return PodDir(data_dir, Pod(name)["metadata"]["uid"].Str());
  }

  std::string data_dir;
  int created = 0;
  static constexpr int kSpawners = 6;
  std::deque<SpawnerHandle> spawners;  // not in use yet; a program of tests cannot execute itself
  AsioLoop loop;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<client::FakeApi> api;
  std::unique_ptr<Node> node;
};

inline std::string OneContainer(const std::string& name, const std::string& script,
                                const std::string& policy = "Never", const std::string& more = "",
                                const std::string& more_spec = "") {
  std::string quoted;
  json::AppendString(quoted, script);
  return R"({"metadata":{"name":")" + name + R"("},"spec":{"restartPolicy":")" + policy + R"(",)" +
         more_spec + R"("containers":[{"name":"main","image":"x","command":["sh","-c",)" + quoted +
         "]" + more + "}]}}";
}

}  // namespace muster::agent
