#include "simulation/preemption_story.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "json/parse.h"
#include "simulation/disruption_budgets.h"
#include "simulation/job_maker.h"
#include "simulation/trouble.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr char kPods[] = "/registry/core/pods/";
constexpr std::string_view kPriorities[] = {"low", "middle", "high", "polite"};

class PreemptionStory {
 public:
  PreemptionStory(uint64_t seed, Counts& counts, bool verbose)
      : rng_(Hash64("preemption", seed)),
        counts_(counts),
        world_({.seed = seed, .nodes = rng_.Between(2, 4), .verbose = verbose}, counts) {}

  Outcome Run() {
    MakePriorities(world_);
    world_.RunFor(seconds(1));
    world_.SetNetwork(kBadNetwork);
    world_.Start();
    Plan();
    world_.RunFor(seconds(kStoryLengthSeconds));
    world_.Repair();
    if (world_.Settle([this] { return OnlyEndlessPodsRun(); }, kTimeToSettle)) world_.Judge();
    return {world_.oracles().trace_hash(), world_.oracles().revisions(), world_.loop().steps(),
            world_.violations()};
  }

 private:
  void Plan() {
    for (const char* app : {"a", "b"}) {
      if (rng_.Chance(0.7)) MakeBudget(world_, app, rng_.Between(0, 3));
    }
    // The cluster is full of what may go.
    for (int64_t i = rng_.Between(4, 12); i > 0; --i)
      world_.At(trouble_.UpTo(5'000), [this] { MakePod("low", true); });
    trouble_.Sometimes(5, 15, [this] { MakePod(AnyPriority(), rng_.Chance(0.4)); });
    trouble_.Sometimes(1, 4, [this] { MakeGang(); });
    trouble_.Sometimes(0, 2, [this] { MakeJob(); });
    trouble_.Sometimes(0, 3, [this] { DeleteOneThatWaits(); });
    trouble_.PlanCrashes();
    trouble_.PlanDeaths();
  }

  void Create(const client::Resource& resource, const json::Value& object) {
    const client::ObjectKey key = client::KeyOf(object);
    world_.user().Create({resource, key.ns, key.name, ""}, object, [](Result<json::Value>) {});
  }

  std::string_view AnyPriority() { return kPriorities[rng_.Below(std::size(kPriorities))]; }
  std::string NextName(std::string_view kind) { return fmt::format("{}-{}", kind, ++made_); }

  json::Value Pod(const std::string& name, std::string_view priority, int64_t devices,
                  bool endless) {
    constexpr const char* kApps[] = {"a", "b", "none"};
    const std::string runs_for =
        endless ? std::string(kForEverMs) : std::to_string(rng_.Between(5'000, 40'000));
    json::Value pod = json::ParseYaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: default
  labels: {{app: {}}}
  annotations: {{{}: "{}"}}
spec:
  priorityClassName: {}
  restartPolicy: Never
  containers:
  - {{name: main, image: train, resources: {{limits: {{nvidia.com/gpu: "{}"}}}}}}
)",
                                                  name, kApps[rng_.Below(std::size(kApps))],
                                                  kRunsForAnnotation, runs_for, priority, devices))
                          ->at(0);
    return pod;
  }

  void MakePod(std::string_view priority, bool endless) {
    constexpr int64_t kDevices[] = {1, 1, 2, 2, 4};
    Create(resources::kPods,
           Pod(NextName("pod"), priority, kDevices[rng_.Below(std::size(kDevices))], endless));
  }

  // Pods that nobody makes anew.
  void MakeGang() {
    const std::string name = NextName("gang");
    const std::string_view priority = AnyPriority();
    const int64_t pods = rng_.Between(2, 5);
    const int64_t minimum = rng_.Chance(0.5) ? pods : rng_.Between(1, pods);
    const int64_t devices = rng_.Between(1, 2);
    const bool endless = rng_.Chance(0.6);
    Create(resources::kPodGroups, json::ParseYaml(fmt::format(R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {}, namespace: default}}
spec: {{minMember: {}, priorityClassName: {}}}
)",
                                                              name, minimum, priority))
                                      ->at(0));
    for (int64_t i = 0; i < pods; ++i) {
      json::Value pod = Pod(fmt::format("{}-{}", name, i), priority, devices, endless);
      Create(resources::kPods,
             pod.SetPath({"metadata", "annotations", "scheduling.k8s.io/group-name"}, name));
    }
  }

  // A gang that comes back whole when some of it has to go.
  void MakeJob() {
    const std::string_view priority = AnyPriority();
    Create(resources::kPyTorchJobs,
           WithPriority(EndlessJob("default", NextName("job")), std::string(priority)));
  }

  // Then those who go for it may stay, unless they are told already.
  void DeleteOneThatWaits() {
    if (!world_.server_up()) return;
    for (const json::Value& pod : world_.FindAll(kPods)) {
      if (!pod["spec"]["nodeName"].AsString().empty()) continue;
      if (!pod["metadata"]["ownerReferences"].empty()) continue;
      counts_.Add("story: delete a pod that waits");
      const client::ObjectKey key = client::KeyOf(pod);
      world_.user().Delete({resources::kPods, key.ns, key.name, ""}, {},
                           [](Result<json::Value>) {});
      return;
    }
  }

  bool OnlyEndlessPodsRun() const {
    const std::vector<json::Value> pods = world_.FindAll(kPods);
    return std::all_of(pods.begin(), pods.end(), [](const json::Value& pod) {
      const std::string_view phase = pod["status"]["phase"].AsString();
      return pod["spec"]["nodeName"].AsString().empty() || phase == "Succeeded" ||
             phase == "Failed" ||
             pod["metadata"]["annotations"][kRunsForAnnotation].AsString() == kForEverMs;
    });
  }

  Rng rng_;
  Counts& counts_;
  World world_;
  Trouble trouble_{world_, rng_, counts_};
  int64_t made_ = 0;
};

}  // namespace

Outcome RunPreemptionSeed(uint64_t seed, Counts& counts, bool verbose) {
  return PreemptionStory(seed, counts, verbose).Run();
}

}  // namespace muster::simulation
