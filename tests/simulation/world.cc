#include "simulation/world.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "controllers/endpointslice/service_pods.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

// More tasks than this without time passing: something answers itself for ever.
constexpr uint64_t kMaxStepsPerInstant = 200'000;
// How often the oracles look at the time, and read the past.
constexpr Duration kTick = seconds(5);
constexpr Duration kQuiet = seconds(40);  // whatever still changes after this changes for ever
constexpr Duration kLook = seconds(5);

}  // namespace

World::World(WorldOptions options, Counts& counts)
    : options_(std::move(options)),
      rng_(options_.seed),
      counts_(counts),
      network_{loop_, gate_, rates_, counts_,
               [this](const net::Request&, const net::Response& response) {
                 oracles_->OnAcknowledged(response);
               }},
      perfect_network_{loop_, gate_, perfect_, counts_, network_.on_acknowledged},
      user_transport_(perfect_network_, "user", Rng(rng_.Next()), nullptr),
      user_(loop_, user_transport_, "user") {
  std::function<void(const std::string&)> tell;
  if (options_.verbose) tell = [this](const std::string& what) { Tell(what); };
  oracles_ = std::make_unique<Oracles>(
      loop_, counts_, [this](const std::string& what) { Violation(what); }, std::move(tell));
  for (int64_t i = 0; i < options_.nodes; ++i) {
    nodes_.emplace_back().machine =
        std::make_unique<Machine>(loop_, fmt::format("node-{}", i), options_.fate,
                                  [this](const std::string& what) { Violation(what); });
  }
  for (const std::string& part : Parts()) {
    crash_points_[part].kill = [this, part] { loop_.Post([this, part] { KillPart(part); }); };
  }
  disk_.crash = &crash_points_.at("store");
  StartServer();
  RunFor(seconds(1));
}

void World::Violation(const std::string& what) {
  violations_.push_back(fmt::format("{} {}", FormatNanoTime(loop_.Now()), what));
  if (options_.verbose) Tell("VIOLATION " + what);
}

void World::Tell(const std::string& what) const {
  if (options_.verbose) std::printf("%s %s\n", FormatNanoTime(loop_.Now()).c_str(), what.c_str());
}

// ---- the parts ----

std::vector<std::string> World::Parts() const {
  std::vector<std::string> parts = {"controllers", "scheduler", "store"};
  for (size_t i = 0; i < nodes_.size(); ++i) parts.push_back(fmt::format("agent-{}", i));
  return parts;
}

CrashPoint& World::CrashPointOf(const std::string& part) { return crash_points_.at(part); }

void World::Start() {
  StartControllers();
  StartScheduler();
  for (size_t i = 0; i < nodes_.size(); ++i) StartAgent(i);
}

void World::StartServer() {
  store_ = OpenStore(loop_, disk_, apiserver::MakeDecorator(), Rng(rng_.Next()),
                     options_.max_commit_time);
  oracles_->Attach(store_.get());
  apiserver::ServerOptions options;
  options.seed = rng_.Next();
  // The kinds of the stories. A server of this world starts often, and each definition costs it.
  options.own_groups = {"jobset.x-k8s.io", "kubeflow.org", "scheduling.volcano.sh",
                        "scheduling.x-k8s.io"};
  server_ = std::make_unique<apiserver::ApiServer>(loop_, *store_, std::move(options));
  server_->Start([this](Status status) {
    if (!status.ok()) Violation("the API server does not start: " + status.ToString());
  });
  gate_.Open(server_.get());
}

void World::StartControllers() {
  CrashPoint& crash = crash_points_.at("controllers");
  crash.dead = false;
  controllers_ = std::make_unique<ControllerManager>(network_, Rng(rng_.Next()), &crash);
}

void World::StartScheduler() {
  CrashPoint& crash = crash_points_.at("scheduler");
  crash.dead = false;
  scheduler_ = std::make_unique<SchedulerPart>(network_, Rng(rng_.Next()), &crash);
}

void World::StartAgent(size_t node) {
  CrashPoint& crash = crash_points_.at(fmt::format("agent-{}", node));
  crash.dead = false;
  const NodeAgent::Options options{kDevicesPerNode, options_.keeps_volumes};
  nodes_[node].agent = std::make_unique<NodeAgent>(network_, *nodes_[node].machine, options,
                                                   Rng(rng_.Next()), &crash);
}

// ---- the faults ----

void World::CrashControllers(Duration away) {
  if (controllers_ == nullptr) return;
  Tell("controllers crash");
  counts_.Add("fault: controllers crash");
  controllers_.reset();
  At(away, [this] {
    if (controllers_ == nullptr) StartControllers();
  });
}

void World::CrashScheduler(Duration away) {
  if (scheduler_ == nullptr) return;
  Tell("scheduler crashes");
  counts_.Add("fault: scheduler crash");
  scheduler_.reset();
  At(away, [this] {
    if (scheduler_ == nullptr) StartScheduler();
  });
}

void World::StopServer(bool crash, Duration away) {
  if (server_ == nullptr) return;
  Tell(crash ? "API server and store crash" : "API server and store stop");
  counts_.Add(crash ? "fault: store crash" : "fault: API server stopped");
  gate_.Open(nullptr);
  server_.reset();
  oracles_->Attach(nullptr);
  if (crash) Kill(disk_);
  store_.reset();  // writes what is pending; a disk that was killed does not take it
  counts_.Add("branch: writes lost with the store",
              static_cast<int64_t>(std::exchange(disk_.lost, 0)));
  At(away, [this] {
    if (server_ == nullptr) StartServer();
  });
}

bool World::StopAgent(size_t node, Duration away) {
  if (nodes_[node].agent == nullptr) return false;
  nodes_[node].agent.reset();
  At(away, [this, node] {
    if (nodes_[node].agent == nullptr) StartAgent(node);
  });
  return true;
}

void World::CrashAgent(size_t node, Duration away) {
  if (!StopAgent(node, away)) return;
  Tell("agent crash of " + node_name(node));
  counts_.Add("fault: agent crash");
}

void World::PowerCut(size_t node, Duration away) {
  if (!StopAgent(node, away)) return;
  Tell("power cut of " + node_name(node));
  counts_.Add("fault: node lost power");
  nodes_[node].machine->PowerCut();
}

void World::KillPart(const std::string& part) {
  if (part == "controllers") return CrashControllers(options_.back_after);
  if (part == "scheduler") return CrashScheduler(options_.back_after);
  if (part == "store") {
    if (options_.store_takes_all) CrashControllers(options_.back_after);
    if (options_.store_takes_all) CrashScheduler(options_.back_after);
    return StopServer(true, options_.back_after);
  }
  CrashAgent(static_cast<size_t>(ParseInt(Split(part, '-').back()).value_or(0)),
             options_.back_after);
}

void World::Compact(Rng& rng) {
  if (store_ == nullptr) return;
  const store::Revision at = rng.Between(store_->CompactedRevision(), store_->CommittedRevision());
  counts_.Add("fault: compaction");
  if (const Status status = store_->Compact(at); !status.ok())
    Violation("cannot compact: " + status.ToString());
}

void World::JumpClock(Duration by) {
  Tell(fmt::format("the clock jumps by {} s", by / seconds(1)));
  counts_.Add(by > Duration::zero() ? "fault: clock jumped on" : "fault: clock jumped back");
  loop_.JumpClock(by);
}

// ---- time ----

// Like SimLoop::RunFor, but notices when time stands still; then the run is over.
void World::RunFor(Duration duration) {
  const Time end = loop_.Steady() + duration;
  Time tick = loop_.Steady() + kTick;
  uint64_t steps_now = 0;
  while (!stuck_) {
    const std::optional<Time> due = loop_.NextDue();
    if (!due || *due > end) break;
    steps_now = *due > loop_.Steady() ? 0 : steps_now + 1;
    loop_.Step();
    if (loop_.Steady() >= tick) {
      oracles_->Tick();
      if (rng_.Chance(0.1)) oracles_->CheckPast(rng_);
      tick = loop_.Steady() + kTick;
    }
    if (steps_now < kMaxStepsPerInstant) continue;
    stuck_ = true;
    Violation("time stands still: tasks make tasks for ever");
  }
  if (!stuck_) loop_.RunFor(end - loop_.Steady());
}

void World::Repair() {
  Tell("all is repaired");
  rates_ = FaultRates{};
  for (auto& [part, crash] : crash_points_) crash.when = CrashPoint::When::kNever;
  if (server_ == nullptr) StartServer();
  if (controllers_ == nullptr) StartControllers();
  if (scheduler_ == nullptr) StartScheduler();
}

bool World::AllIdle() const {
  if (server_ == nullptr || controllers_ == nullptr || scheduler_ == nullptr) return false;
  if (!controllers_->Idle() || !scheduler_->scheduler.Idle()) return false;
  return std::all_of(nodes_.begin(), nodes_.end(), [](const NodePart& node) {
    return node.agent != nullptr && node.agent->Idle();
  });
}

bool World::Settle(const std::function<bool()>& over, Duration limit) {
  const Time end = loop_.Steady() + limit;
  while (loop_.Steady() < end && !stuck_) {
    RunFor(kLook);
    if (!AllIdle() || !over()) continue;
    RunFor(kQuiet);
    if (AllIdle() && over()) return true;
  }
  if (stuck_) return false;
  Violation("no rest within the time to settle");
  DescribeUnrest();
  return false;
}

void World::DescribeUnrest() {
  if (server_ == nullptr || controllers_ == nullptr || scheduler_ == nullptr)
    return Violation("a part is down");
  Violation(fmt::format("controllers idle: {}, scheduler idle: {}", controllers_->Idle(),
                        scheduler_->scheduler.Idle()));
  for (const std::string& line : controllers_->runtime.WritesOfExtraPass())
    Violation("still to be written: " + line);
  for (const json::Value& job : FindAll("/registry/kubeflow.org/pytorchjobs/")) {
    const json::Value& conditions = job["status"]["conditions"];
    Violation(fmt::format("job {} is {}", client::KeyOf(job).ToString(),
                          conditions.At(conditions.size() - 1)["type"].AsString("new")));
  }
  for (const json::Value& pod : FindAll("/registry/core/pods/")) {
    Violation(fmt::format("pod {} {} node={} deleting={}", client::KeyOf(pod).ToString(),
                          pod["status"]["phase"].AsString(), pod["spec"]["nodeName"].AsString(),
                          pod["metadata"].Has("deletionTimestamp")));
  }
}

void World::Judge() {
  oracles_->CheckFixpoint();
  for (const client::Resource& resource :
       {resources::kPods, resources::kPyTorchJobs, resources::kPodGroups, resources::kServices,
        resources::kNodes, resources::kEndpointSlices, controllers::kOldEndpoints}) {
    oracles_->CheckInformer(*controllers_->link.informers.Find(resource));
  }
  CheckMachines();
  for (const std::string& line : controllers_->runtime.WritesOfExtraPass()) {
    Violation("an extra pass would write: " + line);
  }
}

// What runs is what the store says, no more and no less.
void World::CheckMachines() {
  for (const NodePart& node : nodes_) {
    for (const std::string& uid : node.machine->Uids()) {
      const auto pod = oracles_->pods().find(uid);
      if (pod == oracles_->pods().end() || pod->second.node != node.machine->name())
        Violation(fmt::format("{} runs a pod that it should not: {}", node.machine->name(), uid));
    }
  }
  for (const auto& [uid, pod] : oracles_->pods()) {
    if (!pod.running) continue;
    const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&pod = pod](const auto& one) {
      return one.machine->name() == pod.node;
    });
    if (node == nodes_.end() || node->machine->Find(uid) == nullptr)
      Violation(fmt::format("{} is called Running and nothing runs", pod.key));
  }
}

// ---- to look at it ----

json::Value World::Find(const std::string& key) const {
  const store::EntryPtr entry = store_ == nullptr ? nullptr : store_->Get(key);
  if (entry == nullptr) return {};
  return json::Parse(*entry->value).value_or(json::Value());
}

std::vector<json::Value> World::FindAll(const std::string& prefix) const {
  std::vector<json::Value> objects;
  const auto range = store_->Range(prefix, "", 0, 0);
  for (const store::EntryPtr& entry : range->entries)
    objects.push_back(json::Parse(*entry->value).value_or(json::Value()));
  return objects;
}

namespace {

bool MayDiffer(std::string_view name) {
  static const std::set<std::string_view> kNames = {"uid",
                                                    "resourceVersion",
                                                    "generation",
                                                    "creationTimestamp",
                                                    "deletionTimestamp",
                                                    "podIP",
                                                    "podIPs",
                                                    "addresses",
                                                    "observedGeneration",
                                                    "renewTime",
                                                    "message",
                                                    "nodeName",
                                                    "nominatedNodeName",
                                                    "clusterIP",
                                                    "clusterIPs",
                                                    "targetRef",
                                                    "muster.dev/devices"};
  return kNames.contains(name) || name.ends_with("Time") || name.ends_with("restarted-at") ||
         name.ends_with("assigned-devices") || name.ends_with("replaced-pods");
}

// Without what depends on when and where things happened.
json::Value Essence(const json::Value& value) {
  if (value.IsArray()) {
    std::map<std::string, json::Value> sorted;  // conditions come in the order of their changes
    for (const json::Value& item : value.items()) {
      // A condition that does not hold only tells that it once did.
      if (item.Has("type") && item["status"].AsString() == "False") continue;
      json::Value essence = Essence(item);
      sorted.emplace(json::Write(essence), std::move(essence));
    }
    json::Array items;
    for (auto& [text, item] : sorted) items.push_back(std::move(item));
    return json::Value(std::move(items));
  }
  // The volume with the token is named by the pod's uid.
  constexpr std::string_view kToken = "kube-api-access-";
  if (value.IsString() && value.AsString().starts_with(kToken)) return kToken;
  if (!value.IsObject()) return value;
  std::map<std::string, json::Value> sorted;
  for (const json::Member& member : value.members()) {
    if (!MayDiffer(member.first)) sorted.emplace(member.first, Essence(member.second));
  }
  json::Object members;
  for (auto& [name, essence] : sorted) members.emplace_back(name, std::move(essence));
  return json::Value(std::move(members));
}

}  // namespace

std::map<std::string, std::string> World::Digest() const {
  std::map<std::string, std::string> digest;
  const auto range = store_->Range("", "", 0, 0);
  for (const store::EntryPtr& entry : range->entries) {
    if (!CrashPoint::Counts(entry->key)) continue;
    json::Value object = json::Parse(*entry->value).value_or(json::Value());
    std::string key = entry->key;
    if (const std::string_view prefix = object["metadata"]["generateName"].AsString();
        !prefix.empty()) {
      key = key.substr(0, key.rfind('/') + 1 + prefix.size());  // each time another name
      object = object.SetPath({"metadata", "name"}, "");
    }
    digest[key] = json::Write(Essence(object));
  }
  return digest;
}

}  // namespace muster::simulation
