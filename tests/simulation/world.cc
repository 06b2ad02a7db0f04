#include "simulation/world.h"

#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "simulation/control_plane.h"
#include "simulation/fake_node.h"
#include "simulation/job_maker.h"
#include "simulation/oracles.h"
#include "store/memory_store.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr const char* kNamespaces[] = {"default", "team-a", "team-b"};
constexpr int kDevicesPerNode = 4;
// More tasks than this without time passing: something answers itself for ever.
constexpr uint64_t kMaxStepsPerInstant = 200'000;

struct NodePart {
  std::unique_ptr<Machine> machine;
  std::unique_ptr<NodeAgent> agent;
};

class World {
 public:
  World(uint64_t seed, Counts& counts, bool verbose)
      : rng_(seed), counts_(counts), verbose_(verbose) {
    store_ = store::OpenMemoryStore(loop_, apiserver::MakeDecorator());
    oracles_ = std::make_unique<Oracles>(loop_, *store_, counts_,
                                         [this](const std::string& what) { Violation(what); });
    StartServer();
    RunFor(seconds(1));
  }

  Outcome Run() {
    MakeNamespaces();
    rates_ = BadNetwork();
    StartControllers();
    StartScheduler();
    const int64_t nodes = rng_.Between(3, 5);  // three hold every job
    for (int64_t i = 0; i < nodes; ++i) AddNode(i);
    PlanStory();
    RunFor(seconds(kStoryLengthSeconds));
    Repair();
    Settle();
    if (!stuck_) Judge();
    return {oracles_->trace_hash(), oracles_->revisions(), loop_.steps(), violations_};
  }

 private:
  static FaultRates BadNetwork() {
    return {.late = 0.2,
            .timeout_before = 0.02,
            .timeout_after = 0.02,
            .conflict = 0.02,
            .watch_cut = 0.005,
            .watch_expired = 0.1,
            .watch_late = 0.05,
            .watch_twice = 0.02};
  }

  void Violation(const std::string& what) {
    violations_.push_back(fmt::format("{} {}", FormatNanoTime(loop_.Now()), what));
  }

  void Tell(const std::string& what) {
    if (verbose_)
      std::fprintf(stderr, "%s %s\n", FormatNanoTime(loop_.Now()).c_str(), what.c_str());
  }

  // Like SimLoop::RunFor, but notices when time stands still; then the run is over.
  void RunFor(Duration duration) {
    const Time end = loop_.Now() + duration;
    uint64_t steps_now = 0;
    while (!stuck_) {
      const std::optional<Time> due = loop_.NextDue();
      if (!due || *due > end) break;
      steps_now = *due > loop_.Now() ? 0 : steps_now + 1;
      loop_.Step();
      if (steps_now < kMaxStepsPerInstant) continue;
      stuck_ = true;
      Violation("time stands still: tasks make tasks for ever");
    }
    if (!stuck_) loop_.RunFor(end - loop_.Now());
  }

  // ---- the parts ----

  void StartServer() {
    apiserver::ServerOptions options;
    options.seed = rng_.Next();
    server_ = std::make_unique<apiserver::ApiServer>(loop_, *store_, std::move(options));
    server_->Start([this](Status status) {
      if (!status.ok()) Violation("the API server does not start: " + status.ToString());
    });
    gate_.Open(server_.get());
  }

  void StartControllers() {
    controllers_ =
        std::make_unique<ControllerManager>(loop_, gate_, rates_, Rng(rng_.Next()), counts_);
  }

  void StartScheduler() {
    scheduler_ =
        std::make_unique<SchedulerPart>(loop_, gate_, pool_, rates_, Rng(rng_.Next()), counts_);
  }

  void StartAgent(NodePart& node) {
    node.agent = std::make_unique<NodeAgent>(loop_, gate_, *node.machine, kDevicesPerNode, rates_,
                                             Rng(rng_.Next()), counts_);
  }

  void AddNode(int64_t number) {
    NodePart& node = nodes_.emplace_back();
    node.machine = std::make_unique<Machine>(loop_, fmt::format("node-{}", number),
                                             [this](const std::string& what) { Violation(what); });
    StartAgent(node);
  }

  // ---- the story ----

  void At(Duration delay, std::function<void()> step) { loop_.After(delay, std::move(step)); }
  Duration Anytime() { return milliseconds(rng_.Between(0, kStoryLengthSeconds * 1000)); }

  void MakeNamespaces() {
    for (const char* ns : kNamespaces) {
      user_.Create({resources::kNamespaces, "", ns, ""},
                   json::Obj({{"apiVersion", "v1"},
                              {"kind", "Namespace"},
                              {"metadata", json::Obj({{"name", ns}})}}),
                   [](Result<json::Value>) {});
    }
    RunFor(seconds(1));
  }

  void PlanStory() {
    const int64_t jobs = rng_.Between(4, 10);
    for (int64_t i = 0; i < jobs; ++i) At(Anytime(), [this, i] { MakeJob(i); });
    if (rng_.Chance(0.3)) At(Anytime(), [this] { MakeHopelessJob(); });
    for (int64_t i = rng_.Between(1, 5); i > 0; --i) At(Anytime(), [this] { ChangeAJob(); });
    for (int64_t i = rng_.Between(0, 3); i > 0; --i) At(Anytime(), [this] { CrashControllers(); });
    for (int64_t i = rng_.Between(0, 3); i > 0; --i) At(Anytime(), [this] { CrashScheduler(); });
    for (int64_t i = rng_.Between(0, 2); i > 0; --i) At(Anytime(), [this] { RestartServer(); });
    for (int64_t i = rng_.Between(0, 4); i > 0; --i) At(Anytime(), [this] { HurtANode(); });
    if (rng_.Chance(0.15)) At(Anytime(), [this] { DeleteNamespace(); });
  }

  void MakeJob(int64_t number) {
    const std::string ns = kNamespaces[rng_.Below(std::size(kNamespaces))];
    const std::string name = fmt::format("job-{}", number);
    Tell("make job " + ns + "/" + name);
    user_.Create({resources::kPyTorchJobs, ns, name, ""}, RandomJob(rng_, ns, name),
                 [this, ns, name](Result<json::Value> reply) {
                   if (reply) {
                     jobs_.insert({ns, name});
                   } else if (!namespace_deleted_ && server_ != nullptr) {
                     Violation("job refused: " + reply.error().ToString());
                   }
                 });
  }

  void MakeHopelessJob() {
    user_.Create({resources::kPyTorchJobs, "default", "hopeless", ""},
                 HopelessJob("default", "hopeless"), [this](Result<json::Value> reply) {
                   if (reply) counts_.Add("story: hopeless job");
                 });
  }

  void ChangeAJob() {
    if (jobs_.empty()) return;
    auto it = jobs_.begin();
    std::advance(it, static_cast<ptrdiff_t>(rng_.Below(jobs_.size())));
    const client::ObjectKey job = *it;
    const client::Target target{resources::kPyTorchJobs, job.ns, job.name, ""};
    const uint64_t change = rng_.Below(5);
    Tell(fmt::format("change {} of job {}", change, job.ToString()));
    const auto patch = [&](json::Value spec) {
      user_.Patch(target, client::PatchType::kMerge, json::Obj({{"spec", std::move(spec)}}),
                  [](Result<json::Value>) {});
    };
    const auto suspend = [](bool value) {
      return json::Obj({{"runPolicy", json::Obj({{"suspend", value}})}});
    };
    if (change == 0) {
      counts_.Add("story: suspend");
      patch(suspend(true));
      At(seconds(rng_.Between(1, 40)), [this, target, suspend] {
        user_.Patch(target, client::PatchType::kMerge, json::Obj({{"spec", suspend(false)}}),
                    [](Result<json::Value>) {});
      });
    } else if (change == 1) {
      counts_.Add("story: scale");
      const int64_t workers = rng_.Between(1, 5);
      // Only a job that has workers: a merge patch would make a type without a template.
      user_.Get(target, [this, target, workers](Result<json::Value> reply) {
        if (!reply || !(*reply)["spec"]["pytorchReplicaSpecs"].Has("Worker")) return;
        const json::Value size = json::Obj({{"Worker", json::Obj({{"replicas", workers}})}});
        user_.Patch(target, client::PatchType::kMerge,
                    json::Obj({{"spec", json::Obj({{"pytorchReplicaSpecs", size}})}}),
                    [](Result<json::Value>) {});
      });
    } else if (change == 2) {
      constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
      const char* policy = kPolicies[rng_.Below(std::size(kPolicies))];
      counts_.Add(fmt::format("story: delete job ({})", policy));
      user_.Delete(target, {.propagation_policy = policy}, [](Result<json::Value>) {});
    } else {
      counts_.Add("story: delete pod");
      user_.List(resources::kPods, job.ns, {}, [this](Result<json::Value> reply) {
        if (!reply || (*reply)["items"].empty()) return;
        const json::Value& pod = (*reply)["items"].At(rng_.Below((*reply)["items"].size()));
        const client::ObjectKey key = client::KeyOf(pod);
        user_.Delete({resources::kPods, key.ns, key.name, ""}, {}, [](Result<json::Value>) {});
      });
    }
  }

  void DeleteNamespace() {
    counts_.Add("story: delete namespace");
    namespace_deleted_ = true;
    user_.Delete({resources::kNamespaces, "", "team-b", ""}, {}, [](Result<json::Value>) {});
  }

  void CrashControllers() {
    if (controllers_ == nullptr) return;
    Tell("controllers crash");
    counts_.Add("fault: controllers crash");
    controllers_.reset();
    At(milliseconds(rng_.Between(0, 20'000)), [this] {
      if (controllers_ == nullptr) StartControllers();
    });
  }

  void CrashScheduler() {
    if (scheduler_ == nullptr) return;
    Tell("scheduler crashes");
    counts_.Add("fault: scheduler crash");
    scheduler_.reset();
    At(milliseconds(rng_.Between(0, 20'000)), [this] {
      if (scheduler_ == nullptr) StartScheduler();
    });
  }

  void RestartServer() {
    if (server_ == nullptr) return;
    Tell("API server crashes");
    counts_.Add("fault: API server crash");
    gate_.Open(nullptr);
    server_.reset();
    At(milliseconds(rng_.Between(0, 5'000)), [this] {
      if (server_ == nullptr) StartServer();
    });
  }

  void HurtANode() {
    NodePart& node = nodes_[rng_.Below(nodes_.size())];
    if (node.agent == nullptr) return;
    node.agent.reset();
    const bool power_cut = rng_.Chance(0.5);
    if (power_cut) node.machine->PowerCut();
    counts_.Add(power_cut ? "fault: node lost power" : "fault: agent crash");
    Tell(fmt::format("{} of {}", power_cut ? "power cut" : "agent crash", node.machine->name()));
    if (power_cut && rng_.Chance(0.5)) {
      counts_.Add("fault: node removed");
      At(milliseconds(rng_.Between(0, 5'000)), [this, name = node.machine->name()] {
        user_.Delete({resources::kNodes, "", name, ""}, {}, [](Result<json::Value>) {});
      });
    }
    // Some stay away long enough to be evicted.
    const Duration away =
        rng_.Chance(0.2) ? Duration(seconds(400)) : Duration(milliseconds(rng_.Between(0, 60'000)));
    At(away, [this, &node] {
      if (node.agent == nullptr) StartAgent(node);
    });
  }

  // ---- the end ----

  void Repair() {
    Tell("all is repaired");
    rates_ = FaultRates{};
    if (server_ == nullptr) StartServer();
    if (controllers_ == nullptr) StartControllers();
    if (scheduler_ == nullptr) StartScheduler();
  }

  bool AllIdle() const {
    if (!controllers_->Idle() || !scheduler_->scheduler.Idle()) return false;
    for (const NodePart& node : nodes_) {
      if (node.agent == nullptr || !node.agent->Idle()) return false;
    }
    return true;
  }

  bool HasCondition(const json::Value& job, std::string_view type) const {
    for (const json::Value& condition : job["status"]["conditions"].items()) {
      if (condition["type"].AsString() == type) return condition["status"].AsString() == "True";
    }
    return false;
  }

  bool AllJobsEnded() const {
    const client::Informer* jobs = controllers_->link.informers.Find(resources::kPyTorchJobs);
    for (const auto& [key, job] : jobs->objects()) {
      if (key.name == "hopeless") continue;
      if (job["spec"]["runPolicy"]["suspend"].AsBool() && HasCondition(job, "Suspended")) continue;
      if (job["spec"]["runPolicy"].Has("ttlSecondsAfterFinished")) return false;
      if (!HasCondition(job, "Succeeded") && !HasCondition(job, "Failed")) return false;
    }
    return true;
  }

  // A job that was deleted with Orphan leaves pods that may restart for ever.
  void DeleteOrphans() {
    user_.List(resources::kPods, "", {}, [this](Result<json::Value> reply) {
      if (!reply) return Violation("cannot list pods: " + reply.error().ToString());
      for (const json::Value& pod : (*reply)["items"].items()) {
        if (!pod["metadata"]["ownerReferences"].empty()) continue;
        const client::ObjectKey key = client::KeyOf(pod);
        user_.Delete({resources::kPods, key.ns, key.name, ""}, {}, [](Result<json::Value>) {});
      }
    });
  }

  void Settle() {
    const Time end = loop_.Now() + seconds(kTimeToSettleSeconds);
    RunFor(seconds(60));
    DeleteOrphans();
    while (loop_.Now() < end && !stuck_) {
      RunFor(seconds(5));
      if (AllIdle() && AllJobsEnded()) {
        // Whatever was under way is done; what now still changes changes for ever.
        RunFor(seconds(40));
        if (AllIdle() && AllJobsEnded()) return;
      }
    }
    if (stuck_) return;
    Violation("no rest within the time to settle");
    DescribeUnrest();
  }

  void DescribeUnrest() {
    Violation(fmt::format("controllers idle: {}, scheduler idle: {}", controllers_->Idle(),
                          scheduler_->scheduler.Idle()));
    const client::Informer* jobs = controllers_->link.informers.Find(resources::kPyTorchJobs);
    for (const auto& [key, job] : jobs->objects()) {
      const json::Value& conditions = job["status"]["conditions"];
      Violation(fmt::format("job {} is {}", key.ToString(),
                            conditions.At(conditions.size() - 1)["type"].AsString("new")));
    }
    const client::Informer* pods = controllers_->link.informers.Find(resources::kPods);
    for (const auto& [key, pod] : pods->objects()) {
      if (key.name.starts_with("hopeless")) continue;
      Violation(fmt::format("pod {} {} node={} deleting={}", key.ToString(),
                            pod["status"]["phase"].AsString(), pod["spec"]["nodeName"].AsString(),
                            pod["metadata"].Has("deletionTimestamp")));
    }
  }

  void Judge() {
    oracles_->CheckFixpoint();
    for (const client::Resource& resource :
         {resources::kPods, resources::kPyTorchJobs, resources::kPodGroups, resources::kServices,
          resources::kNodes, resources::kEndpointSlices}) {
      oracles_->CheckInformer(*controllers_->link.informers.Find(resource));
    }
    for (const std::string& line : controllers_->runtime.WritesOfExtraPass()) {
      Violation("an extra pass would write: " + line);
    }
  }

  SimLoop loop_;
  SimPool pool_;
  Rng rng_;
  Counts& counts_;
  const bool verbose_;
  FaultRates rates_;
  std::vector<std::string> violations_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Oracles> oracles_;
  Gate gate_;
  std::unique_ptr<apiserver::ApiServer> server_;
  client::InProcessTransport user_transport_{loop_, gate_, {"", "user", {"system:masters"}}};
  client::ApiClient user_{loop_, user_transport_, "user"};
  std::unique_ptr<ControllerManager> controllers_;
  std::unique_ptr<SchedulerPart> scheduler_;
  std::vector<NodePart> nodes_;
  std::set<client::ObjectKey> jobs_;
  bool namespace_deleted_ = false;
  bool stuck_ = false;
};

}  // namespace

Outcome RunSeed(uint64_t seed, Counts& counts, bool verbose) {
  return World(seed, counts, verbose).Run();
}

const std::vector<std::string_view>& ExpectedCounts() {
  static const std::vector<std::string_view> kNames = {
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
      "fault: API server crash",
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
      "story: hopeless job",
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
      "branch: gang waits whole",
      "branch: backoffLimit reached",
      "branch: activeDeadlineSeconds passed",
      "branch: elastic pod replaced",
      "branch: pass met a conflict",
      "branch: pass failed",
  };
  return kNames;
}

}  // namespace muster::simulation
