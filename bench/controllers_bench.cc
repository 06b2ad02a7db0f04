// bench/controllers_bench.cc
//
// What the controllers of a running `muster up` with simulated nodes do under load, through its
// HTTPS port.
//
//   controllers_bench DATA_DIR PID deployment REPLICAS   0 -> REPLICAS available, and back to none
//   controllers_bench DATA_DIR PID jobs COUNT            of one pod of one second, until complete
//   controllers_bench DATA_DIR PID node-loss PODS        nodes with PODS pods (100 each) go out of
//                                                        service: until as many run elsewhere
//   controllers_bench DATA_DIR PID services COUNT        that select the same ten pods, until each
//                                                        has its EndpointSlice
//   controllers_bench DATA_DIR PID growth COUNT          CPU of the whole process for a change of
//                                                        one Deployment, less what an idle one
//                                                        takes, beside COUNT pods of others
//
// PID is the server's; PID,PID that of the server and of a controller manager beside it, whose CPU
// is added. Prints `name value unit` lines.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "bare_writer.h"
#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "cluster_client.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::bench {
namespace {

constexpr char kDeployments[] = "/apis/apps/v1/namespaces/default/deployments";
constexpr char kReplicaSets[] = "/apis/apps/v1/namespaces/default/replicasets";
constexpr char kServices[] = "/api/v1/namespaces/default/services";
constexpr char kSlices[] = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
constexpr char kJobs[] = "/apis/batch/v1/namespaces/default/jobs";
constexpr char kMergePatch[] = "application/merge-patch+json";
constexpr Duration kPoll = milliseconds(20);
constexpr Duration kPatience = seconds(600);
constexpr Duration kIdle = seconds(5);
constexpr int kChanges = 100;
constexpr int kSetSize = 500;
constexpr int kPodsOfServices = 10;
constexpr int kPodsPerNode = 100;  // and room for a few more
constexpr char kSimulated[] = "muster.dev/simulated";
constexpr char kLost[] = "bench/lost";

json::Value OnNodesWith(const char* label) {
  return json::Obj({{"nodeSelector", json::Obj({{label, "true"}})}});
}
json::Value OnSimulated() { return OnNodesWith(kSimulated); }

json::Value Template(const std::string& app, json::Value annotations, json::Value more) {
  const json::Value container =
      json::Obj({{"name", "main"},
                 {"image", "registry.example.com/web:1"},
                 {"resources", json::Obj({{"requests", json::Obj({{"cpu", "1m"}})}})}});
  json::Value spec = json::Obj({{"containers", json::List({container})}});
  for (const auto& [field, value] : more.members()) spec = spec.Set(field, value);
  return json::Obj({{"metadata", json::Obj({{"labels", json::Obj({{"app", app}})},
                                            {"annotations", std::move(annotations)}})},
                    {"spec", std::move(spec)}});
}

json::Value Replicated(const char* kind, const std::string& name, int replicas, json::Value more) {
  const json::Value labels = json::Obj({{"app", name}});
  return json::Obj({{"apiVersion", "apps/v1"},
                    {"kind", kind},
                    {"metadata", json::Obj({{"name", name}})},
                    {"spec", json::Obj({{"replicas", replicas},
                                        {"selector", json::Obj({{"matchLabels", labels}})},
                                        {"template", Template(name, json::Obj(), more)}})}});
}

class Bench {
 public:
  Bench(const std::string& data_dir, std::vector<int> pids)
      : cluster_(data_dir), pids_(std::move(pids)) {}

  void Deployment(int replicas) {
    Create(kDeployments, Replicated("Deployment", "large", 0, OnSimulated()));
    const std::string large = std::string(kDeployments) + "/large";
    const double up = Scale(large, replicas);
    fmt::print("deployment_up_seconds {:.3f} s\n", up);
    fmt::print("deployment_pods_per_second {:.0f} 1/s\n", replicas / up);
    fmt::print("deployment_down_seconds {:.3f} s\n", Scale(large, 0));
    Delete(kDeployments, "large");
  }

  void Jobs(int count) {
    const Duration start = RealClock().Monotonic();
    cluster_.CreateAll(kJobs, count, [](int index) {
      const json::Value annotations = json::Obj({{"muster.dev/simulated-duration", "1s"}});
      const json::Value once = OnSimulated().Set("restartPolicy", "Never");
      return json::Obj({{"apiVersion", "batch/v1"},
                        {"kind", "Job"},
                        {"metadata", json::Obj({{"name", fmt::format("one-{}", index)}})},
                        {"spec", json::Obj({{"template", Template("one", annotations, once)}})}});
    });
    const double created = Seconds(RealClock().Monotonic() - start);
    WaitUntil([&] {
      return Get(std::string(kJobs) + "?limit=1&fieldSelector=status.successful=0")["items"]
          .empty();
    });
    const double done = Seconds(RealClock().Monotonic() - start);
    fmt::print("jobs_created_seconds {:.3f} s\njobs_seconds {:.3f} s\n", created, done);
    fmt::print("jobs_per_second {:.0f} 1/s\n", count / done);
  }

  void NodeLoss(int pods) {
    // 110 pods fit on a node.
    std::vector<std::string> lost;
    const json::Value nodes =
        Get(fmt::format("/api/v1/nodes?labelSelector={}%3Dtrue&limit={}", kSimulated,
                        (pods + kPodsPerNode - 1) / kPodsPerNode));
    for (const json::Value& node : nodes["items"].items()) {
      lost.push_back("/api/v1/nodes/" + node["metadata"]["name"].Str());
      Patch(lost.back(),
            json::Obj({{"metadata", json::Obj({{"labels", json::Obj({{kLost, "true"}})}})}}));
    }
    const json::Value there = OnNodesWith(kLost);
    const std::string moving = std::string(kReplicaSets) + "/moving";
    Create(kReplicaSets, Replicated("ReplicaSet", "moving", pods, there));
    WaitForAvailable(moving, pods);
    const json::Value selector = json::Obj({{kLost, json::Value()}, {kSimulated, "true"}});
    const json::Value anywhere =
        json::Obj({{"spec", json::Obj({{"nodeSelector", std::move(selector)}})}});
    Patch(moving, json::Obj({{"spec", json::Obj({{"template", anywhere}})}}));
    const double cpu = CpuSeconds();
    const Duration start = RealClock().Monotonic();
    const json::Value taint = json::Obj({{"key", "node.kubernetes.io/out-of-service"},
                                         {"value", "nodeshutdown"},
                                         {"effect", "NoExecute"}});
    for (const std::string& node : lost)
      Patch(node, json::Obj({{"spec", json::Obj({{"taints", json::List({taint})}})}}));
    WaitUntil([&] {
      for (const std::string& node : lost) {
        const std::string name = node.substr(node.rfind('/') + 1);
        if (!Get("/api/v1/pods?limit=1&fieldSelector=spec.nodeName=" + name)["items"].empty())
          return false;
      }
      return Available(moving) == pods;
    });
    fmt::print("node_loss_seconds {:.3f} s\n", Seconds(RealClock().Monotonic() - start));
    fmt::print("node_loss_cpu_ms_per_pod {:.3f} ms\n", 1000 * (CpuSeconds() - cpu) / pods);
    Delete(kReplicaSets, "moving");
  }

  void Services(int count) {
    Create(kReplicaSets, Replicated("ReplicaSet", "web", kPodsOfServices, OnSimulated()));
    WaitForAvailable(std::string(kReplicaSets) + "/web", kPodsOfServices);
    const double cpu = CpuSeconds();
    const Duration start = RealClock().Monotonic();
    cluster_.CreateAll(kServices, count, [](int index) {
      return json::Obj({{"metadata", json::Obj({{"name", fmt::format("web-{}", index)}})},
                        {"spec", json::Obj({{"clusterIP", "None"},
                                            {"selector", json::Obj({{"app", "web"}})},
                                            {"ports", json::List({json::Obj({{"port", 80}})})}})}});
    });
    const std::string made = fmt::format(
        "{}?labelSelector=endpointslice.kubernetes.io/managed-by%3Dendpointslice-controller.k8s.io"
        "&limit={}",
        kSlices, count + 1);
    WaitUntil([&] {
      const json::Value list = Get(made);
      return std::ranges::count_if(list["items"].items(), [](const json::Value& slice) {
               return slice["endpoints"].items().size() == kPodsOfServices;
             }) == count;
    });
    const double passed = Seconds(RealClock().Monotonic() - start);
    fmt::print("services_seconds {:.3f} s\nservices_cpu_ms {:.3f} ms\n", passed,
               1000 * (CpuSeconds() - cpu) / count);
  }

  void Growth(int count) {
    const auto name = [](int i) { return fmt::format("others-{}", i); };
    const auto size = [count](int i) { return std::min(kSetSize, count - i * kSetSize); };
    const int sets = (count + kSetSize - 1) / kSetSize;
    for (int i = 0; i < sets; ++i)
      Create(kReplicaSets, Replicated("ReplicaSet", name(i), size(i), OnSimulated()));
    for (int i = 0; i < sets; ++i)
      WaitForAvailable(fmt::format("{}/{}", kReplicaSets, name(i)), size(i));
    Create(kDeployments, Replicated("Deployment", "small", 1, OnSimulated()));
    const std::string small = std::string(kDeployments) + "/small";
    WaitForAvailable(small, 1);
    // Leases of nodes cost something whether anything changes or not.
    const Duration before = RealClock().Monotonic();
    const double idle_cpu = CpuSeconds();
    Wait(kIdle);
    const double cpu = CpuSeconds();
    const Duration start = RealClock().Monotonic();
    const double idle = (cpu - idle_cpu) / Seconds(start - before);
    std::vector<double> times;
    for (int i = 0; i < kChanges; ++i) times.push_back(Scale(small, i % 2 == 0 ? 2 : 1));
    const double passed = Seconds(RealClock().Monotonic() - start);
    const double used = CpuSeconds() - cpu - idle * passed;
    fmt::print("change_cpu_ms {:.3f} ms\n", 1000 * used / kChanges);
    fmt::print("change_p50_ms {:.1f} ms\n", 1000 * Percentile(times, 0.5));
    Delete(kDeployments, "small");
  }

 private:
  double CpuSeconds() const {
    double sum = 0;
    for (int pid : pids_) sum += ProcessCpuSeconds(pid);
    return sum;
  }
  void Create(const std::string& collection, const json::Value& object) {
    cluster_.CreateAll(collection, 1, [&](int) { return object; });
  }
  void Call(const net::Request& request) {
    cluster_.SendAll(
        1, 1, [&](int) { return request; },
        [](int, const net::Response& answer) { CHECK_MSG(answer.status == 200, answer.body); });
  }
  void Delete(const std::string& collection, const std::string& name) {
    Call(MakeRequest("DELETE", collection + "/" + name));
  }
  void Patch(const std::string& target, const json::Value& patch) {
    Call(MakeRequest("PATCH", target, json::Write(patch), kMergePatch));
  }
  json::Value Get(const std::string& target) {
    const net::Response answer = cluster_.Fetch(target);
    CHECK_MSG(answer.status == 200, answer.body);
    return json::Parse(answer.body).value_or(json::Value());
  }
  int64_t Available(const std::string& target) {
    return Get(target)["status"]["availableReplicas"].AsInt();
  }
  void WaitForAvailable(const std::string& target, int replicas) {
    WaitUntil([&] { return Available(target) == replicas; });
  }
  void Wait(Duration duration) {
    cluster_.loop.After(duration, [this] { cluster_.loop.Stop(); });
    cluster_.loop.Run();
    cluster_.loop.Restart();
  }
  void WaitUntil(const std::function<bool()>& holds) {
    const Duration start = RealClock().Monotonic();
    while (!holds()) {
      CHECK_MSG(RealClock().Monotonic() - start < kPatience, "what is waited for does not come");
      Wait(kPoll);
    }
  }
  // Seconds until so many replicas are available, and no others are there.
  double Scale(const std::string& target, int replicas) {
    const Duration start = RealClock().Monotonic();
    Patch(target, json::Obj({{"spec", json::Obj({{"replicas", replicas}})}}));
    WaitUntil([&] {
      const json::Value status = Get(target)["status"];
      return status["availableReplicas"].AsInt() == replicas &&
             status["replicas"].AsInt() == replicas;
    });
    return Seconds(RealClock().Monotonic() - start);
  }

  ClusterClient cluster_;
  const std::vector<int> pids_;
};

int Run(int argc, char** argv) {
  if (argc != 5) return 2;
  std::vector<int> pids;
  for (std::string_view pid : Split(argv[2], ','))
    pids.push_back(std::atoi(std::string(pid).c_str()));
  Bench bench(argv[1], std::move(pids));
  const std::string_view what = argv[3];
  const int count = std::atoi(argv[4]);
  if (what == "deployment") {
    bench.Deployment(count);
  } else if (what == "jobs") {
    bench.Jobs(count);
  } else if (what == "node-loss") {
    bench.NodeLoss(count);
  } else if (what == "services") {
    bench.Services(count);
  } else if (what == "growth") {
    bench.Growth(count);
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::SetLogLevel(muster::LogLevel::kWarn);
  const int code = muster::bench::Run(argc, argv);
  if (code == 2)
    fmt::print(stderr,
               "usage: controllers_bench DATA_DIR PID[,PID] "
               "deployment|jobs|node-loss|services|growth COUNT\n");
  return code;
}
