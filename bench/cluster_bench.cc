// bench/cluster_bench.cc
//
// Load on a running `muster up`, through its HTTPS port. bench/run starts the cluster, reads its
// memory and CPU from /proc, and prints what this program says beside the budgets.
//
//   cluster_bench DATA_DIR nodes COUNT            Node objects that no agent stands behind
//   cluster_bench DATA_DIR pods COUNT pending     pods that fit nowhere; ends when all say so
//   cluster_bench DATA_DIR pods COUNT bound       pods that get nodes; ends when all have theirs
//   cluster_bench DATA_DIR pods COUNT running     pods on simulated nodes; ends when all run
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

void CreateNodes(ClusterClient& cluster, int count) {
  cluster.CreateAll("/api/v1/nodes", count, [](int index) {
    const json::Value amounts = json::Obj(
        {{"cpu", "64"}, {"memory", "512Gi"}, {"ephemeral-storage", "1Ti"}, {"pods", "110"}});
    return json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", json::Obj({{"name", fmt::format("paper-{:05}", index)},
                                 {"labels", json::Obj({{"bench/kind", kPaper}})}})},
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
void CreatePods(ClusterClient& cluster, int count, std::string_view goal) {
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
  // Bound pods stay off the real node: starting them there is another bench.
  const std::string kind = goal == "pending" ? "none" : goal == "bound" ? kPaper : "";
  const double creating_s =
      cluster.CreateAll(kPods, count, [&](int index) { return TrainingPod(index, kind); });
  creating = false;
  if (there.size() < static_cast<size_t>(count)) cluster.loop.Run();
  fmt::print("creates_per_second {:.0f} 1/s\n", count / creating_s);
  fmt::print("{}_per_second {:.0f} 1/s\n", goal, count / Seconds(last - start));
}

int Run(int argc, char** argv) {
  if (argc < 4) return 2;
  ClusterClient cluster(argv[1]);
  const std::string_view what = argv[2];
  const int count = std::atoi(argv[3]);
  if (what == "nodes") {
    CreateNodes(cluster, count);
  } else if (what == "pods" && argc == 5) {
    CreatePods(cluster, count, argv[4]);
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
    fmt::print(stderr, "usage: cluster_bench DATA_DIR nodes|pods COUNT [pending|bound|running]\n");
  return code;
}
