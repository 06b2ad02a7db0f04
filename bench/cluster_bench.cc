// bench/cluster_bench.cc
//
// Load on a running `muster up`, through its HTTPS port. bench/run starts the cluster, reads its
// memory and CPU from /proc, and prints what this program says beside the budgets.
//
//   cluster_bench DATA_DIR nodes COUNT            Node objects that no agent stands behind
//   cluster_bench DATA_DIR pods COUNT pending     pods that fit nowhere; ends when all say so
//   cluster_bench DATA_DIR pods COUNT bound       pods that get nodes; ends when all have theirs
//   cluster_bench DATA_DIR pods COUNT running     pods on simulated nodes; ends when all run
//   cluster_bench DATA_DIR shape NAME COUNT FIRST     as `bound`, of one of these shapes (after
//       upstream's scheduler_perf), pods FIRST to FIRST + COUNT - 1: basic, gpu, node_affinity,
//       pod_affinity, pod_anti_affinity (one on a node), topology_spread, gangs_of_3
//
// Prints `name value unit` lines.

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "base/log.h"
#include "client/watch_decoder.h"
#include "cluster_client.h"
#include "json/parse.h"

namespace muster::bench {
namespace {

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kPaper[] = "paper";  // the kind of node that CreateNodes makes
constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kGpu[] = "nvidia.com/gpu";
constexpr char kGroups[] = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";

void CreateNodes(ClusterClient& cluster, int count) {
  cluster.CreateAll("/api/v1/nodes", count, [](int index) {
    const json::Value amounts = json::Obj({{"cpu", "64"},
                                           {"memory", "512Gi"},
                                           {"ephemeral-storage", "1Ti"},
                                           {"pods", "110"},
                                           {kGpu, "8"}});
    return json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", json::Obj({{"name", fmt::format("paper-{:05}", index)},
                                 {"labels", json::Obj({{"bench/kind", kPaper},
                                                       {kZone, std::to_string(index % 10)}})}})},
         {"status", json::Obj({{"capacity", amounts},
                               {"allocatable", amounts},
                               {"conditions", json::List({json::Obj(
                                                  {{"type", "Ready"}, {"status", "True"}})})}})}});
  });
}

bool SaysUnschedulable(const json::Value& pod) {
  for (const json::Value& condition : pod.Path({"status", "conditions"}).items()) {
    if (condition["type"].AsString() == "PodScheduled")
      return condition["status"].AsString() == "False";
  }
  return false;
}

// When the pod has got where the run wants it.
std::function<bool(const json::Value&)> Arrived(std::string_view goal) {
  if (goal == "pending") return SaysUnschedulable;
  if (goal == "bound") {
    return [](const json::Value& pod) { return !pod["spec"]["nodeName"].AsString().empty(); };
  }
  CHECK(goal == "running");
  return [](const json::Value& pod) { return pod["status"]["phase"].AsString() == "Running"; };
}

// Creates the pods and follows them by one watch until all have arrived.
void CreatePods(ClusterClient& cluster, int count, std::string_view goal,
                const std::function<json::Value(int)>& pod_of) {
  const json::Value list =
      json::Parse(cluster.Fetch(std::string(kPods) + "?limit=1").body).value_or(json::Value());
  const auto arrived = Arrived(goal);
  std::unordered_set<std::string> there;
  client::WatchDecoder decoder;
  Duration last{};
  std::unique_ptr<net::ClientStream> watch;
  bool creating = true;
  cluster.loop.Post([&] {
    watch = cluster.http->Stream(
        cluster.endpoint,
        MakeRequest("GET", fmt::format("{}?watch=true&timeoutSeconds=600&resourceVersion={}", kPods,
                                       list["metadata"]["resourceVersion"].AsString())),
        {.on_head = [](int status, const net::Headers&) { CHECK(status == 200); },
         .on_data =
             [&](std::string_view bytes) {
               decoder.Feed(bytes);
               while (true) {
                 auto frame = decoder.Next();
                 CHECK_MSG(frame.has_value(), frame.has_value() ? "" : frame.error().message());
                 if (!frame->has_value()) break;
                 const json::Value& pod = (*frame)->object;
                 if (arrived(pod)) there.insert(pod["metadata"]["name"].Str());
               }
               last = RealClock().Monotonic();
               if (!creating && there.size() == static_cast<size_t>(count)) cluster.loop.Stop();
             },
         .on_end = [](Status status) { CHECK_MSG(false, status.message()); }});
  });
  const Duration start = RealClock().Monotonic();
  const double creating_s = cluster.CreateAll(kPods, count, pod_of);
  creating = false;
  if (there.size() < static_cast<size_t>(count)) cluster.loop.Run();
  fmt::print("creates_per_second {:.0f} 1/s\n", count / creating_s);
  fmt::print("{}_per_second {:.0f} 1/s\n", goal, count / Seconds(last - start));
}

// Bound pods stay off the real node: starting them there is another bench.
std::string NodeKindFor(std::string_view goal) {
  return goal == "pending" ? "none" : goal == "bound" ? kPaper : "";
}

json::Value Selector(std::string_view shape) {
  return json::Obj({{"matchLabels", json::Obj({{"shape", shape}})}});
}

json::Value PodTerms(std::string_view shape, const char* topology) {
  return json::Obj(
      {{"requiredDuringSchedulingIgnoredDuringExecution",
        json::List({json::Obj({{"labelSelector", Selector(shape)}, {"topologyKey", topology}})})}});
}

// The parts of a pod's spec that make the shape.
json::Value ShapeOf(std::string_view shape) {
  if (shape == "node_affinity") {
    const json::Value in_zones = json::Obj(
        {{"key", kZone}, {"operator", "In"}, {"values", json::List({"1", "3", "5", "7"})}});
    const json::Value terms =
        json::List({json::Obj({{"matchExpressions", json::List({in_zones})}})});
    const json::Value required = json::Obj({{"nodeSelectorTerms", terms}});
    return json::Obj(
        {{"affinity",
          json::Obj({{"nodeAffinity", json::Obj({{"requiredDuringSchedulingIgnoredDuringExecution",
                                                  required}})}})}});
  }
  if (shape == "pod_affinity")
    return json::Obj({{"affinity", json::Obj({{"podAffinity", PodTerms(shape, kZone)}})}});
  if (shape == "pod_anti_affinity") {
    const json::Value terms = PodTerms(shape, "kubernetes.io/hostname");
    return json::Obj({{"affinity", json::Obj({{"podAntiAffinity", terms}})}});
  }
  if (shape == "topology_spread") {
    return json::Obj({{"topologySpreadConstraints",
                       json::List({json::Obj({{"maxSkew", 1},
                                              {"topologyKey", kZone},
                                              {"whenUnsatisfiable", "DoNotSchedule"},
                                              {"labelSelector", Selector(shape)}})})}});
  }
  CHECK(shape == "basic" || shape == "gpu" || shape == "gangs_of_3");
  return json::Obj();
}

std::string GangOf(int index) { return fmt::format("gang-{}", index / 3); }

json::Value ShapedPod(std::string_view shape, int index) {
  const json::Value training = TrainingPod(index, kPaper);
  json::Value metadata = training["metadata"];
  metadata = metadata.Set("labels", metadata["labels"].Set("shape", shape));
  if (shape == "gangs_of_3") {
    metadata = metadata.Set(
        "annotations", metadata["annotations"].Set("scheduling.k8s.io/group-name", GangOf(index)));
  }
  json::Value container = training.Path({"spec", "containers"}).items()[0];
  // Small: what is measured is the number of pods.
  json::Value amounts = json::Obj({{"cpu", "100m"}, {"memory", "100Mi"}});
  if (shape == "gpu") amounts = amounts.Set(kGpu, "1");
  container = container.Set("resources", json::Obj({{"requests", amounts}, {"limits", amounts}}));
  json::Value spec = training["spec"].Set("containers", json::List({container}));
  const json::Value parts = ShapeOf(shape);
  for (const auto& [field, value] : parts.members()) spec = spec.Set(field, value);
  return training.Set("metadata", metadata).Set("spec", spec);
}

void CreateShape(ClusterClient& cluster, std::string_view shape, int count, int first) {
  if (shape == "gangs_of_3") {
    CHECK(count % 3 == 0 && first % 3 == 0);
    cluster.CreateAll(kGroups, count / 3, [&](int index) {
      return json::Obj({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                        {"kind", "PodGroup"},
                        {"metadata", json::Obj({{"name", GangOf(first + 3 * index)}})},
                        {"spec", json::Obj({{"minMember", 3}})}});
    });
  }
  CreatePods(cluster, count, "bound", [&](int index) { return ShapedPod(shape, first + index); });
}

int Run(int argc, char** argv) {
  if (argc < 4) return 2;
  ClusterClient cluster(argv[1]);
  const std::string_view what = argv[2];
  const int count = std::atoi(argv[3]);
  if (what == "shape" && argc == 6) {
    CreateShape(cluster, argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
  } else if (what == "nodes") {
    CreateNodes(cluster, count);
  } else if (what == "pods" && argc == 5) {
    const std::string kind = NodeKindFor(argv[4]);
    CreatePods(cluster, count, argv[4], [&](int index) { return TrainingPod(index, kind); });
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
               "usage: cluster_bench DATA_DIR nodes COUNT\n"
               "       cluster_bench DATA_DIR pods COUNT pending|bound|running\n"
               "       cluster_bench DATA_DIR shape NAME COUNT FIRST\n");
  return code;
}
