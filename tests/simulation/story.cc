#include "simulation/story.h"

#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "simulation/job_maker.h"
#include "simulation/trouble.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr const char* kNamespaces[] = {"default", "team-a", "team-b"};
constexpr char kJobs[] = "/registry/kubeflow.org/pytorchjobs/";
constexpr std::string_view kEndless = "story: endless job";
constexpr std::string_view kExpectedCounts[] = {
    "fault: late",
    "fault: timeout before",
    "fault: timeout after apply",
    "fault: conflict (409)",
    "fault: watch cut",
    "fault: watch expired (410)",
    "fault: watch event late",
    "fault: watch event twice",
    "fault: controllers crash",
    "fault: scheduler crash",
    "fault: API server stopped",
    "fault: store crash",
    "fault: death at a write",
    "fault: compaction",
    "fault: clock jumped on",
    "fault: clock jumped back",
    "fault: agent crash",
    "fault: node lost power",
    "fault: node removed",
    "story: suspend",
    "story: scale",
    "story: delete job (Background)",
    "story: delete job (Foreground)",
    "story: delete job (Orphan)",
    "story: delete pod",
    "story: delete namespace",
    "story: bind a pod again",
    "story: hopeless job",
    "story: endless job",
    "branch: job restarted",
    "branch: job succeeded",
    "branch: job failed",
    "branch: job suspended",
    "branch: job resumed",
    "branch: job deleted",
    "branch: pod exited with a code",
    "branch: pod evicted from a silent node",
    "branch: pod lost its node's power",
    "branch: node became unknown",
    "branch: why a pod waits was said",
    "branch: gang restarted for a lost pod",
    "branch: gang restarted for a new size",
    "branch: gang began to be bound",
    "branch: gang went on being bound",
    "branch: gang waits whole",
    "branch: plan dropped, the world had changed",
    "branch: binding refused",
    "branch: owner went after its dependents",
    "branch: owner let go of its dependents",
    "branch: writes lost with the store",
    "branch: the past was read",
    "oracle: acknowledged revision",
    "branch: job rests running",
    "branch: backoffLimit reached",
    "branch: activeDeadlineSeconds passed",
    "branch: elastic pod replaced",
    "branch: pass met a conflict",
    "branch: pass failed",
    "story: delete a pod that waits",
    "branch: pod nominated",
    "branch: bound where it was nominated",
    "branch: bound elsewhere than nominated",
    "branch: pod preempted",
    "branch: gang preempted whole",
    "branch: gang preempted in part",
    "branch: budget violated, there was no other way",
    "branch: waits though it may preempt",
    "oracle: eviction looked at for its need",
};
constexpr Duration kBeforeOrphansGo = seconds(60);

bool HasCondition(const json::Value& job, std::string_view type) {
  for (const json::Value& condition : job["status"]["conditions"].items()) {
    if (condition["type"].AsString() == type) return condition["status"].AsString() == "True";
  }
  return false;
}

// Hopeless jobs wait, endless ones run; suspended ones rest; all others end.
bool IsAtRest(const json::Value& job) {
  const std::string_view name = job["metadata"]["name"].AsString();
  if (name == "hopeless") return true;
  const json::Value& policy = job["spec"]["runPolicy"];
  if (HasCondition(job, "Succeeded") || HasCondition(job, "Failed"))
    return !policy.Has("ttlSecondsAfterFinished");
  if (policy["suspend"].AsBool()) return HasCondition(job, "Suspended");
  return name == "endless" && HasCondition(job, "Running");
}

class Story {
 public:
  Story(uint64_t seed, Counts& counts, bool verbose)
      : rng_(Hash64("story", seed)),
        counts_(counts),
        endless_(rng_.Chance(0.1)),
        // Three nodes hold every job.
        world_({.seed = seed,
                .nodes = rng_.Between(3, 5) + (endless_ ? 1 : 0),
                .max_commit_time = milliseconds(rng_.Chance(0.3) ? 100 : 5),
                .verbose = verbose},
               counts) {}

  Outcome Run() {
    MakeNamespaces();
    world_.SetNetwork(kBadNetwork);
    world_.Start();
    Plan();
    world_.RunFor(seconds(kStoryLengthSeconds));
    world_.Repair();
    world_.RunFor(kBeforeOrphansGo);
    DeleteOrphans();
    if (world_.Settle([this] { return AllJobsAtRest(); }, kTimeToSettle)) world_.Judge();
    return {world_.oracles().trace_hash(), world_.oracles().revisions(), world_.loop().steps(),
            world_.violations()};
  }

 private:
  void MakeNamespaces() {
    for (const char* ns : kNamespaces) {
      world_.user().Create({resources::kNamespaces, "", ns, ""},
                           json::Obj({{"apiVersion", "v1"},
                                      {"kind", "Namespace"},
                                      {"metadata", json::Obj({{"name", ns}})}}),
                           [](Result<json::Value>) {});
    }
    world_.RunFor(seconds(1));
  }

  void Plan() {
    const int64_t jobs = rng_.Between(4, 10);
    const bool rush = rng_.Chance(0.3);  // all at once
    for (int64_t i = 0; i < jobs; ++i)
      world_.At(rush ? trouble_.UpTo(2'000) : trouble_.Anytime(), [this, i] { MakeJob(i); });
    trouble_.Perhaps(0.3,
                     [this] { Make(HopelessJob("default", "hopeless"), "story: hopeless job"); });
    if (endless_)
      trouble_.Sometimes(1, 1, [this] { Make(EndlessJob("default", "endless"), kEndless); });
    trouble_.Sometimes(1, 5, [this] { ChangeAJob(); });
    trouble_.PlanCrashes();
    trouble_.Sometimes(0, 3, [this] { BindAgain(); });
    trouble_.Perhaps(0.3, [this] { world_.Compact(rng_); });
    trouble_.Perhaps(0.15, [this] { world_.JumpClock(hours(rng_.Chance(0.5) ? 1 : -1)); });
    trouble_.Perhaps(0.15, [this] { DeleteNamespace(); });
    trouble_.PlanDeaths();
  }

  void MakeJob(int64_t number) {
    const std::string ns = kNamespaces[rng_.Below(std::size(kNamespaces))];
    const std::string name = fmt::format("job-{}", number);
    world_.Tell("make job " + ns + "/" + name);
    world_.user().Create({resources::kPyTorchJobs, ns, name, ""}, RandomJob(rng_, ns, name),
                         [this, ns, name](Result<json::Value> reply) {
                           if (reply) {
                             jobs_.insert({ns, name});
                             if (rng_.Chance(0.2)) DisturbTheBirth({ns, name});
                           } else if (!namespace_deleted_ && world_.server_up() &&
                                      reply.error().reason() != Reason::kInternalError) {
                             world_.Violation("job refused: " + reply.error().ToString());
                           }
                         });
  }

  // While its pods are made, planned and bound.
  void DisturbTheBirth(const client::ObjectKey& job) {
    world_.At(trouble_.UpTo(1'500), [this, job] {
      if (rng_.Chance(0.5)) return DeleteAPod(job.ns);
      Suspend({resources::kPyTorchJobs, job.ns, job.name, ""});
    });
  }

  void Make(const json::Value& job, std::string_view story) {
    const client::ObjectKey key = client::KeyOf(job);
    world_.user().Create({resources::kPyTorchJobs, key.ns, key.name, ""}, job,
                         [this, story](Result<json::Value> reply) {
                           if (reply) counts_.Add(story);
                         });
  }

  void Patch(const client::Target& job, json::Value spec) {
    world_.user().Patch(job, client::PatchType::kMerge, json::Obj({{"spec", std::move(spec)}}),
                        [](Result<json::Value>) {});
  }

  void ChangeAJob() {
    if (jobs_.empty()) return;
    auto it = jobs_.begin();
    std::advance(it, static_cast<ptrdiff_t>(rng_.Below(jobs_.size())));
    const client::Target job{resources::kPyTorchJobs, it->ns, it->name, ""};
    const uint64_t change = rng_.Below(5);
    world_.Tell(fmt::format("change {} of job {}", change, it->ToString()));
    if (change == 0) {
      Suspend(job);
    } else if (change == 1) {
      Scale(job);
    } else if (change == 2) {
      constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
      const char* policy = kPolicies[rng_.Below(std::size(kPolicies))];
      counts_.Add(fmt::format("story: delete job ({})", policy));
      if (policy == std::string_view("Background"))
        world_.oracles().OnBackgroundDelete(it->ToString());
      world_.user().Delete(job, {.propagation_policy = policy}, [](Result<json::Value>) {});
    } else {
      DeleteAPod(it->ns);
    }
  }

  void Suspend(const client::Target& job) {
    const auto suspend = [](bool value) {
      return json::Obj({{"runPolicy", json::Obj({{"suspend", value}})}});
    };
    counts_.Add("story: suspend");
    Patch(job, suspend(true));
    world_.At(seconds(rng_.Between(1, 40)), [this, job, suspend] { Patch(job, suspend(false)); });
  }

  void Scale(const client::Target& job) {
    counts_.Add("story: scale");
    const int64_t workers = rng_.Between(1, 5);
    // Only a job that has workers: a merge patch would make a type without a template.
    world_.user().Get(job, [this, job, workers](Result<json::Value> reply) {
      if (!reply || !(*reply)["spec"]["pytorchReplicaSpecs"].Has("Worker")) return;
      const json::Value size = json::Obj({{"Worker", json::Obj({{"replicas", workers}})}});
      Patch(job, json::Obj({{"pytorchReplicaSpecs", size}}));
    });
  }

  void DeleteAPod(const std::string& ns) {
    counts_.Add("story: delete pod");
    world_.user().List(resources::kPods, ns, {}, [this](Result<json::Value> reply) {
      if (!reply || (*reply)["items"].empty()) return;
      Delete((*reply)["items"].At(rng_.Below((*reply)["items"].size())));
    });
  }

  void Delete(const json::Value& pod) {
    const client::ObjectKey key = client::KeyOf(pod);
    world_.user().Delete({resources::kPods, key.ns, key.name, ""}, {}, [](Result<json::Value>) {});
  }

  // Somebody else wants a pod that has its node.
  void BindAgain() {
    if (!world_.server_up()) return;
    for (const json::Value& pod : world_.FindAll("/registry/core/pods/")) {
      const std::string& node = world_.node_name(rng_.Below(world_.nodes()));
      const std::string_view bound = pod["spec"]["nodeName"].AsString();
      if (bound.empty() || bound == node) continue;
      counts_.Add("story: bind a pod again");
      const client::ObjectKey key = client::KeyOf(pod);
      world_.user().Create({resources::kPods, key.ns, key.name, "binding"},
                           json::Obj({{"metadata", json::Obj({{"name", key.name}})},
                                      {"target", json::Obj({{"kind", "Node"}, {"name", node}})}}),
                           [this](Result<json::Value> reply) {
                             if (reply) world_.Violation("a pod was bound twice");
                           });
      return;
    }
  }

  void DeleteNamespace() {
    counts_.Add("story: delete namespace");
    namespace_deleted_ = true;
    world_.user().Delete({resources::kNamespaces, "", "team-b", ""}, {},
                         [](Result<json::Value>) {});
  }

  // ---- the end ----

  bool AllJobsAtRest() const {
    const std::vector<json::Value> jobs = world_.FindAll(kJobs);
    return std::all_of(jobs.begin(), jobs.end(), IsAtRest);
  }

  // A job that was deleted with Orphan leaves pods that may restart for ever.
  void DeleteOrphans() {
    for (const json::Value& pod : world_.FindAll("/registry/core/pods/")) {
      if (pod["metadata"]["ownerReferences"].empty()) Delete(pod);
    }
  }

  Rng rng_;
  Counts& counts_;
  const bool endless_;
  World world_;
  Trouble trouble_{world_, rng_, counts_};
  std::set<client::ObjectKey> jobs_;
  bool namespace_deleted_ = false;
};

}  // namespace

Outcome RunSeed(uint64_t seed, Counts& counts, bool verbose) {
  return Story(seed, counts, verbose).Run();
}

const std::vector<std::string_view>& ExpectedCounts() {
  static const std::vector<std::string_view> kNames(std::begin(kExpectedCounts),
                                                    std::end(kExpectedCounts));
  return kNames;
}

}  // namespace muster::simulation
