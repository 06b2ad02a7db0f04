#include "simulation/workload_story.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/strings.h"
#include "json/write.h"
#include "schema/conditions.h"
#include "simulation/trouble.h"
#include "simulation/user_requests.h"
#include "simulation/workload_maker.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr const char* kNamespaces[] = {"default", "team-a"};
constexpr char kPods[] = "/registry/core/pods/";

class WorkloadStory {
 public:
  WorkloadStory(uint64_t seed, Counts& counts, bool verbose)
      : rng_(Hash64("workloads", seed)),
        counts_(counts),
        world_({.seed = seed, .nodes = rng_.Between(3, 5), .verbose = verbose}, counts) {}

  Outcome Run() {
    Make({resources::kNamespaces, json::Obj({{"apiVersion", "v1"},
                                             {"kind", "Namespace"},
                                             {"metadata", json::Obj({{"name", "team-a"}})}})});
    world_.RunFor(seconds(1));
    world_.SetNetwork(kBadNetwork);
    world_.Start();
    Plan();
    world_.RunFor(seconds(kStoryLengthSeconds));
    world_.Repair();
    EndWhatNeverEnds();
    if (world_.Settle([this] { return Restless().empty(); }, kTimeToSettle)) {
      world_.Judge();
    } else {
      for (const std::string& object : Restless()) world_.Violation("not at rest: " + object);
    }
    return {world_.oracles().trace_hash(), world_.oracles().revisions(), world_.loop().steps(),
            world_.violations()};
  }

 private:
  // ---- what is told ----

  void Plan() {
    const auto some = [this](int64_t least, int64_t most, auto make) {
      for (int64_t i = rng_.Between(least, most); i > 0; --i) {
        world_.At(trouble_.UpTo(40'000), [this, make] {
          const std::string ns = kNamespaces[rng_.Chance(0.2) ? 1 : 0];
          MakeKnown(make(ns, fmt::format("w{}", ++made_)));
        });
      }
    };
    using Name = const std::string&;
    some(1, 3, [this](Name ns, Name name) { return RandomDeployment(rng_, ns, name); });
    some(0, 2, [this](Name ns, Name name) { return RandomStatefulSet(rng_, ns, name); });
    some(0, 1, [this](Name ns, Name name) { return RandomDaemonSet(rng_, ns, name); });
    some(0, 3, [this](Name ns, Name name) { return RandomBatchJob(rng_, ns, name); });
    some(0, 1, [this](Name ns, Name name) { return RandomCronJob(rng_, ns, name); });
    // Their selectors overlap, with each other and with pods of nobody.
    some(0, 2, [this](Name ns, Name name) { return RandomReplicaSet(rng_, ns, name, "shared"); });
    some(0, 2, [](Name ns, Name name) { return LonelyPod(ns, name, "shared"); });
    trouble_.Sometimes(4, 12, [this] { Change(); });
    trouble_.Sometimes(0, 3, [this] { DeletePod(); });
    trouble_.Sometimes(0, 2, [this] { Relabel(); });
    trouble_.Sometimes(0, 1, [this] { Drain(); });
    trouble_.Sometimes(0, 1, [this] { Taint(); });
    trouble_.Perhaps(0.1, [this] { DeleteNamespace(); });
    trouble_.Perhaps(0.15, [this] { world_.JumpClock(hours(rng_.Chance(0.5) ? 1 : -1)); });
    trouble_.PlanCrashes();
    trouble_.PlanDeaths();
  }

  void Make(const Workload& workload) {
    const client::ObjectKey key = client::KeyOf(workload.object);
    world_.user().Create({workload.resource, key.ns, key.name, ""}, workload.object,
                         [this, workload](Result<json::Value> reply) {
                           if (!reply && reply.error().reason() == Reason::kInvalid)
                             world_.Violation("refused: " + reply.error().ToString());
                         });
  }

  void MakeKnown(const Workload& workload) {
    world_.Tell("make " + client::KeyOf(workload.object).ToString());
    Make(workload);
    const client::ObjectKey key = client::KeyOf(workload.object);
    if (workload.resource == resources::kPods) return;
    known_.push_back(workload);
    if (rng_.Chance(0.2)) Make(RandomBudget(rng_, key.ns, key.name));
  }

  // Until the server takes it. `change` gives the new object; null: nothing is to be done. What the
  // story wanted of a workload does not come after what its end wants.
  void Edit(const client::Target& target, std::function<json::Value(json::Value)> change) {
    const bool late = !ends_ && target.resource != resources::kNodes;
    EditUntilTaken(world_, target, [this, late, change = std::move(change)](json::Value object) {
      return late && ends_ ? json::Value() : change(std::move(object));
    });
  }

  void Set(const Workload& workload, std::string_view story, std::vector<std::string> path,
           json::Value value) {
    counts_.Add(story);
    const client::ObjectKey key = client::KeyOf(workload.object);
    world_.Tell(fmt::format("{} {}", story, key.ToString()));
    Edit({workload.resource, key.ns, key.name, ""},
         [path = std::move(path), value = std::move(value)](json::Value object) {
           std::vector<std::string_view> parts(path.begin(), path.end());
           return SetAt(object, parts, value);
         });
  }

  static json::Value SetAt(const json::Value& object, std::vector<std::string_view> path,
                           const json::Value& value) {
    const std::string_view first = path.front();
    path.erase(path.begin());
    return object.Set(first, path.empty() ? value : SetAt(object[first], path, value));
  }

  void Change() {
    if (known_.empty()) return;
    const Workload workload = known_[rng_.Below(known_.size())];
    const client::Resource& resource = workload.resource;
    if (rng_.Chance(0.15)) return Delete(workload);
    if (resource == resources::kCronJobs)
      return Set(workload, "story: suspend a CronJob", {"spec", "suspend"}, rng_.Chance(0.5));
    if (resource == resources::kJobs) {
      if (rng_.Chance(0.5))
        return Set(workload, "story: change a parallelism", {"spec", "parallelism"},
                   rng_.Between(0, 5));
      return Set(workload, "story: suspend a Job", {"spec", "suspend"}, rng_.Chance(0.5));
    }
    const bool scales = resource != resources::kDaemonSets;
    if (scales && rng_.Chance(0.4))
      return Set(workload, "story: scale a workload", {"spec", "replicas"}, rng_.Between(0, 7));
    if (resource == resources::kDeployments && rng_.Chance(0.2))
      return Set(workload, "story: pause", {"spec", "paused"}, rng_.Chance(0.5));
    // Few images: some changes go back to a former one.
    Set(workload, "story: change a template", {"spec", "template", "spec", "containers"},
        json::List(
            {json::Obj({{"name", "main"}, {"image", fmt::format("v{}", rng_.Between(1, 3))}})}));
  }

  void Delete(const Workload& workload) {
    constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
    const char* policy = kPolicies[rng_.Below(std::size(kPolicies))];
    const client::ObjectKey key = client::KeyOf(workload.object);
    counts_.Add(fmt::format("story: delete a workload ({})", policy));
    world_.Tell(fmt::format("delete {} ({})", key.ToString(), policy));
    world_.user().Delete({workload.resource, key.ns, key.name, ""}, {.propagation_policy = policy},
                         [](Result<json::Value>) {});
    // What was orphaned is adopted again.
    if (!rng_.Chance(0.6)) return;
    world_.At(trouble_.UpTo(20'000), [this, workload] {
      if (!ends_) Make(workload);
    });
  }

  json::Value AnyPod() {
    if (!world_.server_up()) return {};
    const std::vector<json::Value> pods = world_.FindAll(kPods);
    return pods.empty() ? json::Value() : pods[rng_.Below(pods.size())];
  }

  void DeletePod() {
    const json::Value pod = AnyPod();
    if (pod.IsNull()) return;
    counts_.Add("story: delete a workload's pod");
    EndPod(pod, "");
  }

  // `subresource`: "eviction" or none.
  void EndPod(const json::Value& pod, const std::string& subresource) {
    const client::ObjectKey key = client::KeyOf(pod);
    world_.Tell(fmt::format("end {} {}", key.ToString(), subresource));
    world_.oracles().workloads().Excuse(pod["metadata"]["uid"].Str());
    const client::Target target{resources::kPods, key.ns, key.name, subresource};
    const auto ignore = [](Result<json::Value>) {};
    if (subresource.empty()) return world_.user().Delete(target, {}, ignore);
    world_.user().Create(target,
                         json::Obj({{"apiVersion", "policy/v1"},
                                    {"kind", "Eviction"},
                                    {"metadata", json::Obj({{"name", key.name}})}}),
                         ignore);
  }

  // It is released, and another one is made (of a StatefulSet that would have the same name).
  void Relabel() {
    const json::Value pod = AnyPod();
    if (pod["metadata"]["ownerReferences"].At(0)["kind"].AsString() != "ReplicaSet") return;
    counts_.Add("story: take a pod's label away");
    const client::ObjectKey key = client::KeyOf(pod);
    world_.user().Patch(
        {resources::kPods, key.ns, key.name, ""}, client::PatchType::kMerge,
        json::Obj({{"metadata", json::Obj({{"labels", json::Obj({{"app", nullptr}})}})}}),
        [](Result<json::Value>) {});
  }

  client::Target AnyNode() {
    return {resources::kNodes, "", world_.node_name(rng_.Below(world_.nodes())), ""};
  }

  void Drain() {
    const client::Target node = AnyNode();
    counts_.Add("story: drain a node");
    Edit(node, [](json::Value object) { return object.SetPath({"spec", "unschedulable"}, true); });
    for (int64_t round = 0; round < 3; ++round) {
      world_.At(seconds(2 + 5 * round), [this, node] {
        if (!world_.server_up()) return;
        for (const json::Value& pod : world_.FindAll(kPods)) {
          if (pod["spec"]["nodeName"].AsString() == node.name) EndPod(pod, "eviction");
        }
      });
    }
    world_.At(seconds(30), [this, node] {
      Edit(node, [](json::Value object) { return object.RemovePath({"spec", "unschedulable"}); });
    });
  }

  void Taint() {
    const client::Target node = AnyNode();
    counts_.Add("story: taint a node");
    const json::Value taint = json::Obj({{"key", "maintenance"}, {"effect", "NoExecute"}});
    Edit(node, [taint](json::Value object) {
      return object.SetPath({"spec", "taints"}, object["spec"]["taints"].Append(taint));
    });
    world_.At(seconds(30), [this, node] {
      Edit(node, [](json::Value object) {
        json::Array others;
        for (const json::Value& each : object["spec"]["taints"].items()) {
          if (each["key"].AsString() != "maintenance") others.push_back(each);
        }
        return object.SetPath({"spec", "taints"}, json::Value(std::move(others)));
      });
    });
  }

  void DeleteNamespace() {
    counts_.Add("story: delete a namespace of workloads");
    world_.user().Delete({resources::kNamespaces, "", "team-a", ""}, {},
                         [](Result<json::Value>) {});
  }

  // ---- the end ----

  void EndWhatNeverEnds() {
    ends_ = true;
    for (const Workload& workload : known_) {
      const client::ObjectKey key = client::KeyOf(workload.object);
      const client::Target target{workload.resource, key.ns, key.name, ""};
      if (workload.resource == resources::kCronJobs)
        Edit(target, [](json::Value object) { return object.SetPath({"spec", "suspend"}, true); });
      if (workload.resource == resources::kJobs)
        Edit(target, [](json::Value object) {
          return object["spec"]["parallelism"].AsInt(1) > 0
                     ? json::Value()
                     : object.SetPath({"spec", "parallelism"}, 1);
        });
    }
  }

  // Those that are not as they are wanted.
  std::vector<std::string> Restless() const {
    std::vector<std::string> restless;
    const auto look = [&](const char* prefix, auto rests) {
      for (const json::Value& object : world_.FindAll(prefix)) {
        if (!object["metadata"].Has("deletionTimestamp") && rests(object)) continue;
        restless.push_back(prefix + client::KeyOf(object).ToString() + " " +
                           json::Write(object["spec"].Remove("template")) + " " +
                           json::Write(object["status"].Remove("conditions")));
      }
    };
    const auto ready = [](const json::Value& object) {
      return object["status"]["readyReplicas"].AsInt() == object["spec"]["replicas"].AsInt(1);
    };
    look("/registry/apps/replicasets/", ready);
    look("/registry/apps/statefulsets/", ready);
    look("/registry/apps/deployments/", [](const json::Value& object) {
      return object["spec"]["paused"].AsBool() ||
             object["status"]["updatedReplicas"].AsInt() == object["spec"]["replicas"].AsInt();
    });
    look("/registry/apps/daemonsets/", [](const json::Value& object) {
      const json::Value& status = object["status"];
      return status["numberReady"] == status["desiredNumberScheduled"] &&
             status["updatedNumberScheduled"].AsInt() == status["desiredNumberScheduled"].AsInt();
    });
    look("/registry/batch/jobs/", [](const json::Value& job) {
      const json::Value& conditions = job["status"]["conditions"];
      return schema::ConditionHolds(conditions, "Complete") ||
             schema::ConditionHolds(conditions, "Failed") ||
             schema::ConditionHolds(conditions, "Suspended");
    });
    return restless;
  }

  Rng rng_;
  Counts& counts_;
  World world_;
  Trouble trouble_{world_, rng_, counts_};
  std::vector<Workload> known_;
  int64_t made_ = 0;
  bool ends_ = false;
};

}  // namespace

Outcome RunWorkloadSeed(uint64_t seed, Counts& counts, bool verbose) {
  return WorkloadStory(seed, counts, verbose).Run();
}

const std::vector<std::string_view>& ExpectedWorkloadCounts() {
  static const std::vector<std::string_view> kNames = {
      "story: suspend a CronJob",
      "story: suspend a Job",
      "story: change a parallelism",
      "story: scale a workload",
      "story: pause",
      "story: change a template",
      "story: delete a workload (Background)",
      "story: delete a workload (Foreground)",
      "story: delete a workload (Orphan)",
      "story: delete a workload's pod",
      "story: take a pod's label away",
      "story: drain a node",
      "story: taint a node",
      "story: delete a namespace of workloads",
      "oracle: replica ended in its turn",
      "oracle: replicas ended together",
      "oracle: replica made in order",
      "oracle: pod of a Deployment ended",
      "oracle: ReplicaSet of a Deployment grew",
      "oracle: Job completed",
      "oracle: Job of a CronJob",
  };
  return kNames;
}

}  // namespace muster::simulation
