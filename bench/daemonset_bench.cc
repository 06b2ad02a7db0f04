// bench/daemonset_bench.cc
//
// What one change costs the DaemonSet controller beside 5,000 nodes: the controller with its
// runtime and informers on a small API server in the same thread.
//
//   daemonset_bench       Prints `name value unit` lines:
//
//   daemonset_rollout     a pod on each of 5,000 nodes, all ready: wall time
//   daemonset_pod         a pod's status changes, its readiness does not
//   daemonset_ready       a pod becomes ready or not, and the set says so
//   daemonset_node        a node's taints change
//   daemonset_heartbeat   a node's status changes
//   daemonset_stranger    a pod changes that no set has: what the rest of the bench costs

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/time.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "controllers/daemonset/daemon_pods.h"
#include "controllers/daemonset/daemonset_controller.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::controllers {
namespace {

constexpr int kNodes = 5'000;
constexpr int kChanges = 200;
constexpr char kNodeCollection[] = "/api/v1/nodes";
constexpr char kPodCollection[] = "/api/v1/pods";
constexpr char kSetCollection[] = "/apis/apps/v1/daemonsets";

json::Value Yaml(const std::string& text) {
  const auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

json::Value WithReadiness(const json::Value& pod, bool ready) {
  const json::Value condition = json::Obj({{"type", "Ready"},
                                           {"status", ready ? "True" : "False"},
                                           {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
  return pod.Set("status",
                 json::Obj({{"phase", "Running"}, {"conditions", json::List({condition})}}));
}

double SecondsOf(Duration duration) { return std::chrono::duration<double>(duration).count(); }

class Bench {
 public:
  Bench() {
    for (int i = 0; i < kNodes; ++i) {
      api_.Put(kNodeCollection,
               Yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: n{}, labels: "
                                "{{kubernetes.io/hostname: n{}}}}}, spec: {{}}}}",
                                i, i)));
    }
    api_.Put(kPodCollection, Yaml("{apiVersion: v1, kind: Pod, metadata: {name: stranger, "
                                  "namespace: d}, spec: {nodeName: n0}}"));
    api_.Put(kSetCollection, Yaml(R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: d, uid: s1, generation: 1}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: v1}]}
)"));
    runtime_.Add(std::make_unique<DaemonSetController>());
    runtime_.Start();
    informers_.Start();
  }

  void Run() {
    Rollout();
    const auto pod = [this](int i) -> const json::Value& {
      return *Find(kPodCollection, pods_.at(i));
    };
    Each("daemonset_pod", [&](int i) {
      api_.Put(kPodCollection, pod(i).SetPath({"status", "message"}, fmt::format("at {}", i)));
    });
    Each("daemonset_ready",
         [&](int i) { api_.Put(kPodCollection, WithReadiness(pod(i / 2), i % 2 == 1)); });
    Each("daemonset_node", [&](int i) {
      const json::Value taints = json::List({json::Obj(
          {{"key", "slow"}, {"value", fmt::format("{}", i)}, {"effect", "PreferNoSchedule"}})});
      api_.Put(kNodeCollection,
               Find(kNodeCollection, Key("", i))->SetPath({"spec", "taints"}, taints));
    });
    Each("daemonset_heartbeat", [&](int i) {
      api_.Put(kNodeCollection, Find(kNodeCollection, Key("", i))
                                    ->SetPath({"status", "at"}, fmt::format("second {}", i)));
    });
    Each("daemonset_stranger", [&](int i) {
      api_.Put(kPodCollection, Find(kPodCollection, {"d", "stranger"})
                                   ->SetPath({"status", "message"}, fmt::format("at {}", i)));
    });
  }

 private:
  static client::ObjectKey Key(const std::string& ns, int i) { return {ns, fmt::format("n{}", i)}; }
  const json::Value* Find(const char* collection, const client::ObjectKey& key) {
    const json::Value* object = api_.Find(collection, key.ns, key.name);
    CHECK(object != nullptr);
    return object;
  }
  int64_t ReadyNumber() {
    return (*Find(kSetCollection, {"d", "agent"}))["status"]["numberReady"].AsInt();
  }

  void Rollout() {
    const Duration start = RealClock().Monotonic();
    while (api_.objects.size() < 2 * kNodes) loop_.RunFor(milliseconds(100));
    std::vector<json::Value> pods;
    for (const auto& [key, object] : api_.objects) {
      if (!key.starts_with(fmt::format("{}|d/agent-", kPodCollection))) continue;
      pods.push_back(object);
      pods_.push_back(client::KeyOf(object));
    }
    CHECK(pods.size() == size_t{kNodes});
    for (const json::Value& pod : pods) {
      api_.Put(kPodCollection,
               WithReadiness(pod.SetPath({"spec", "nodeName"}, NodeOfDaemonPod(pod)), true));
    }
    loop_.RunFor(seconds(5));
    CHECK(ReadyNumber() == kNodes);
    fmt::print("daemonset_rollout {:.3f} s\n", SecondsOf(RealClock().Monotonic() - start));
  }

  void Each(const char* name, const std::function<void(int)>& change) {
    const Duration start = RealClock().Monotonic();
    for (int i = 0; i < kChanges; ++i) {
      change(i);
      loop_.RunFor(milliseconds(100));
    }
    const double spent = SecondsOf(RealClock().Monotonic() - start);
    CHECK(ReadyNumber() == kNodes);
    fmt::print("{} {:.4f} ms\n", name, spent * 1000 / kChanges);
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {}};
  client::ApiClient client_{loop_, transport_, "bench"};
  client::InformerSet informers_{client_};
  client::Runtime runtime_{client_, informers_, Rng(1)};
  std::vector<client::ObjectKey> pods_;  // of the set
};

}  // namespace
}  // namespace muster::controllers

int main() { muster::controllers::Bench().Run(); }
