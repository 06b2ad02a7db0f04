#include "agent/simulated/simulated_nodes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "agent/node/node_object.h"
#include "agent/pod_workers/pod_inputs.h"
#include "agent/pod_workers/pod_status.h"
#include "agent/volumes/local_volumes.h"
#include "base/go_duration.h"
#include "base/log.h"
#include "base/strings.h"
#include "client/lifetime.h"
#include "cluster/quantity.h"
#include "schema/conditions.h"

namespace muster::agent {
namespace {

constexpr int kMaxCreationsInFlight = 64;
constexpr Duration kLeaseTick = milliseconds(100);  // few nodes need less often
constexpr Duration kLongestLeaseTick = seconds(1);
constexpr Duration kRetryDelay = seconds(1);
constexpr char kNodeIndex[] = "simulated-node";
constexpr char kLocalVolumesOfNode[] = "/simulated/local-volumes";  // where nothing is
// Of nodes that an autoscaler made.
constexpr const char* kNodePoolLabel = "karpenter.sh/nodepool";
constexpr const char* kDurationAnnotation = "muster.dev/simulated-duration";

int64_t Amount(const std::string& text) {
  const auto quantity = cluster::Quantity::Parse(text);
  return quantity ? quantity->Units() : 0;
}

// An address that nothing on a real network has (RFC 2544).
std::string FakeAddress(uint64_t number) {
  return fmt::format("198.{}.{}.{}", 18 + (number >> 16) % 2, (number >> 8) % 256, number % 256);
}

// What is read below and by BuildPodStatus.
const json::Fields& SimulatedPodFields() {
  static const json::Fields fields{{"metadata", "annotations", kDurationAnnotation},
                                   {"spec", "nodeName"},
                                   {"spec", "restartPolicy"},
                                   {"spec", "initContainers"},
                                   {"spec", "containers", "name"},
                                   {"spec", "containers", "image"},
                                   {"spec", "containers", "resources"},
                                   {"status", "phase"},
                                   {"status", "conditions"},
                                   {"status", "podIP"},
                                   {"status", "startTime"},
                                   {"status", "qosClass"}};
  return fields;
}

bool IsReady(const json::Value& object) {
  return schema::ConditionHolds(object["status"]["conditions"], "Ready");
}

}  // namespace

struct SimulatedNodes::Impl {
  Impl(SimulatedNodesOptions options_in, Loop& loop_in, client::ApiClient& client_in,
       client::InformerSet& informers, Rng rng_in)
      : options(std::move(options_in)),
        loop(loop_in),
        client(client_in),
        nodes(informers.Get(client::resources::kNodes,
                            {{"metadata", "labels"}, {"status", "conditions"}})),
        pods(informers.Get(client::resources::kPods, SimulatedPodFields())),
        volumes(informers.Get(kPersistentVolumes, LocalVolumeFields())),
        rng(rng_in) {
    pods.AddIndex(kNodeIndex, [](const json::Value& pod) {
      return std::vector<std::string>{pod["spec"]["nodeName"].Str()};
    });
    options.count = std::clamp(options.count, 0, kMaxSimulatedNodes);
    for (int i = 0; i < options.count; ++i)
      own_names.push_back(fmt::format("{}{:04}", options.name_prefix, i));
    names = own_names;
  }
  ~Impl() {
    loop.Cancel(lease_timer);
    for (auto& [uid, timer] : timers) loop.Cancel(timer);
  }

  json::Value Node(const std::string& name) const;
  void CreateMore();
  void CreateNode(size_t index);
  void OnNode(const json::Value& before, const json::Value& node);
  void PostStatus(const std::string& name);
  void Adopt(const std::string& name);
  void Forget(const std::string& name);
  void KeepTicking();
  void TickLeases();
  void RenewLease(const std::string& name);
  void OnPod(const json::Value& before, const json::Value& pod);
  void Run(const json::Value& pod);
  void FinishLater(const json::Value& pod);
  void WriteStatus(const json::Value& pod, const PodRuntimeState& state);
  void Again(const client::ObjectKey& key, const std::string& uid);
  PodRuntimeState StateOf(const json::Value& pod, bool finished) const;
  void SayReady(const json::Value& pod);
  void OnVolume(const json::Value& before, const json::Value& volume);
  bool IsOurs(const std::string& node) const {
    return std::binary_search(names.begin(), names.end(), node);
  }

  SimulatedNodesOptions options;
  Loop& loop;
  client::ApiClient& client;
  client::Informer& nodes;
  client::Informer& pods;
  client::Informer& volumes;
  Rng rng;
  std::vector<std::string> own_names;  // that are made here, sorted
  std::vector<std::string> names;      // that are kept alive, sorted
  size_t next_to_create = 0;
  int creating = 0;
  size_t next_lease = 0;
  Duration leases_due{};  // so many as kSimulatedLeasePeriod is in it
  TimerId lease_timer = 0;
  std::map<std::string, TimerId> timers;  // pod uid -> its end
  uint64_t next_address = 1;
  client::Lifetime lifetime;
};

json::Value SimulatedNodes::Impl::Node(const std::string& name) const {
  NodeFacts facts;
  facts.name = name;
  facts.address = "127.0.0.1";
  facts.version = options.version;
  facts.cpu_count = Amount(options.cpu);
  facts.memory_bytes = Amount(options.memory);
  facts.storage_bytes = Amount(options.ephemeral_storage);
  facts.os_image = "simulated";
  facts.architecture = "amd64";
  facts.devices = SimulatedDevices(options.gpus, options.gpu_model);
  for (cluster::Device& device : facts.devices)
    device.id = fmt::format("GPU-{}-{}", name, device.index);
  facts.devices_simulated = true;
  facts.local_volumes = kLocalVolumesOfNode;
  json::Value node = NewNode(facts, loop.Now());
  node = node.Set("spec", json::Obj());
  return node.SetPath({"metadata", "labels", "muster.dev/simulated"}, "true");
}

void SimulatedNodes::Impl::CreateMore() {
  while (creating < kMaxCreationsInFlight && next_to_create < own_names.size())
    CreateNode(next_to_create++);
}

void SimulatedNodes::Impl::CreateNode(size_t index) {
  ++creating;
  client.Create({client::resources::kNodes, "", "", ""}, Node(own_names[index]),
                lifetime.Guard([this, index](Result<json::Value> answer) {
                  --creating;
                  if (!answer && answer.error().reason() != Reason::kAlreadyExists) {
                    LOG_WARN("simulated: create node {}: {}", own_names[index],
                             answer.error().message());
                    loop.After(kRetryDelay, lifetime.Guard([this, index] { CreateNode(index); }));
                    return;
                  }
                  CreateMore();
                }));
}

void SimulatedNodes::Impl::Adopt(const std::string& name) {
  const auto at = std::lower_bound(names.begin(), names.end(), name);
  if (at == names.end() || *at != name) names.insert(at, name);
  KeepTicking();
}

void SimulatedNodes::Impl::Forget(const std::string& name) {
  const auto at = std::lower_bound(names.begin(), names.end(), name);
  if (at != names.end() && *at == name) names.erase(at);
}

// While we were away the node was called Unknown, and its pods not Ready.
void SimulatedNodes::Impl::OnNode(const json::Value& before, const json::Value& node) {
  const std::string name = (node.IsNull() ? before : node)["metadata"]["name"].Str();
  if (node.IsNull()) return Forget(name);
  const json::Value& labels = node["metadata"]["labels"];
  if (labels.Has(kNodePoolLabel) && labels["muster.dev/simulated"].AsString() == "true")
    Adopt(name);
  if (!IsOurs(name)) return;
  if (!IsReady(node)) return PostStatus(name);
  if (IsReady(before)) return;
  for (const client::ObjectKey& key : pods.Lookup(kNodeIndex, name)) SayReady(*pods.Find(key));
}

void SimulatedNodes::Impl::PostStatus(const std::string& name) {
  json::Value status = Node(name)["status"];
  // What an adopted one has is what it was made with.
  if (!std::binary_search(own_names.begin(), own_names.end(), name))
    status = json::Obj({{"conditions", status["conditions"]}});
  client.Patch({client::resources::kNodes, "", name, "status"}, client::PatchType::kMerge,
               json::Obj({{"status", status}}),
               lifetime.Guard([this, name](Result<json::Value> answer) {
                 if (answer || answer.error().reason() == Reason::kNotFound) return;
                 loop.After(kRetryDelay, lifetime.Guard([this, name] { PostStatus(name); }));
               }));
}

void SimulatedNodes::Impl::KeepTicking() {
  if (lease_timer != 0 || names.empty()) return;
  // Not all parts of a process beat at the same moment.
  const auto offset = milliseconds(rng.Below(static_cast<uint64_t>(kLeaseTick / milliseconds(1))));
  lease_timer = loop.After(offset, [this] { TickLeases(); });
}

// A share of the Leases at each tick, so that thousands of nodes are no burst; each once in
// kSimulatedLeasePeriod.
void SimulatedNodes::Impl::TickLeases() {
  lease_timer = 0;
  if (names.empty()) return;
  const auto count = static_cast<int64_t>(names.size());
  const Duration tick =
      std::clamp<Duration>(kSimulatedLeasePeriod / count, kLeaseTick, kLongestLeaseTick);
  lease_timer = loop.After(tick, [this] { TickLeases(); });
  for (leases_due += tick * count; leases_due >= kSimulatedLeasePeriod;
       leases_due -= kSimulatedLeasePeriod)
    RenewLease(names[next_lease++ % names.size()]);
}

void SimulatedNodes::Impl::RenewLease(const std::string& name) {
  const json::Value patch =
      json::Obj({{"spec", json::Obj({{"renewTime", FormatMicroTime(loop.Now())}})}});
  client.Patch({client::resources::kLeases, "kube-node-lease", name, ""}, client::PatchType::kMerge,
               patch, lifetime.Guard([this, name](Result<json::Value> answer) {
                 if (answer || answer.error().reason() != Reason::kNotFound) return;
                 const json::Value lease =
                     NewLease(name, "", loop.Now()).RemovePath({"metadata", "ownerReferences"});
                 client.Create({client::resources::kLeases, "kube-node-lease", "", ""}, lease,
                               [](Result<json::Value>) {});
               }));
}

void SimulatedNodes::Impl::OnPod(const json::Value& before, const json::Value& pod) {
  const std::string uid = (pod.IsNull() ? before : pod)["metadata"]["uid"].Str();
  if (pod.IsNull()) {
    loop.Cancel(timers[uid]);
    timers.erase(uid);
    return;
  }
  const std::string node = pod["spec"]["nodeName"].Str();
  if (!IsOurs(node)) return;
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (!pod["metadata"]["deletionTimestamp"].AsString().empty()) {
    client::DeleteOptions now;
    now.grace_period_seconds = 0;
    now.precondition_uid = uid;
    client.Delete({client::resources::kPods, pod["metadata"]["namespace"].Str(),
                   pod["metadata"]["name"].Str(), ""},
                  now, [](Result<json::Value>) {});
    return;
  }
  if (phase.empty() || phase == "Pending") return Run(pod);
  if (phase != "Running") return;
  if (!timers.contains(uid)) FinishLater(pod);
  if (const json::Value* of = nodes.Find({"", node}); of != nullptr && IsReady(*of)) SayReady(pod);
}

void SimulatedNodes::Impl::SayReady(const json::Value& pod) {
  const json::Value& meta = pod["metadata"];
  if (pod["status"]["phase"].AsString() != "Running" || IsReady(pod) ||
      meta.Has("deletionTimestamp")) {
    return;
  }
  const json::Value ready = json::Obj(
      {{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", FormatTime(loop.Now())}});
  client.Patch({client::resources::kPods, meta["namespace"].Str(), meta["name"].Str(), "status"},
               client::PatchType::kStrategic,
               json::Obj({{"metadata", json::Obj({{"uid", meta["uid"]}})},
                          {"status", json::Obj({{"conditions", json::List({ready})}})}}),
               lifetime.Guard([this, pod](Result<json::Value> answer) {
                 if (answer || answer.error().reason() == Reason::kNotFound) return;
                 loop.After(kRetryDelay, lifetime.Guard([this, pod] { SayReady(pod); }));
               }));
}

PodRuntimeState SimulatedNodes::Impl::StateOf(const json::Value& pod, bool finished) const {
  PodRuntimeState state;
  const std::string now = FormatNanoTime(loop.Now());
  state.start_time = pod["status"]["startTime"].Str(FormatTime(loop.Now()));
  state.host_ip = "127.0.0.1";
  state.pod_ip = pod["status"]["podIP"].Str();
  state.sandbox_ready = !finished;
  const size_t init_count = pod["spec"]["initContainers"].size();
  for (const json::Value& container : AllContainers(pod)) {
    ContainerRuntimeState entry;
    entry.name = container["name"].Str();
    entry.init = state.containers.size() < init_count;
    entry.attempt = 0;
    entry.started_at = now;
    if (finished || entry.init) {
      entry.is = ContainerRuntimeState::Is::kTerminated;
      entry.exit = ContainerExit{0, 0, "Completed", "", state.start_time, now};
      entry.exit_attempt = 0;
    } else {
      entry.is = ContainerRuntimeState::Is::kRunning;
    }
    state.containers.push_back(std::move(entry));
  }
  // Whatever the restart policy: the annotation says that the pod ends.
  state.terminal = finished;
  return state;
}

void SimulatedNodes::Impl::WriteStatus(const json::Value& pod, const PodRuntimeState& state) {
  const json::Value& meta = pod["metadata"];
  // With the version: what somebody else wrote meanwhile is not written over.
  const json::Value patch =
      json::Obj({{"metadata",
                  json::Obj({{"uid", meta["uid"]}, {"resourceVersion", meta["resourceVersion"]}})},
                 {"status", BuildPodStatus(pod, state, {}, loop.Now())}});
  const client::ObjectKey key{meta["namespace"].Str(), meta["name"].Str()};
  client.Patch({client::resources::kPods, key.ns, key.name, "status"}, client::PatchType::kMerge,
               patch,
               lifetime.Guard([this, key, uid = meta["uid"].Str()](Result<json::Value> answer) {
                 if (answer || answer.error().reason() == Reason::kNotFound) return;
                 loop.After(kRetryDelay, lifetime.Guard([this, key, uid] { Again(key, uid); }));
               }));
}

// A write did not succeed: the pod is looked at as it is by now.
void SimulatedNodes::Impl::Again(const client::ObjectKey& key, const std::string& uid) {
  const json::Value* pod = pods.Find(key);
  if (pod == nullptr || (*pod)["metadata"]["uid"].AsString() != uid) return;
  loop.Cancel(timers[uid]);
  timers.erase(uid);  // if it had ended, it ends now
  OnPod(*pod, *pod);
}

void SimulatedNodes::Impl::Run(const json::Value& pod) {
  PodRuntimeState state = StateOf(pod, false);
  state.pod_ip = FakeAddress(next_address++);
  WriteStatus(pod, state);
}

void SimulatedNodes::Impl::FinishLater(const json::Value& pod) {
  const auto duration =
      ParseGoDuration(pod["metadata"]["annotations"][kDurationAnnotation].AsString());
  if (!duration) return;
  const Time start = ParseTime(pod["status"]["startTime"].AsString()).value_or(loop.Now());
  const std::string uid = pod["metadata"]["uid"].Str();
  timers[uid] = loop.After(
      start + *duration - loop.Now(),
      [this,
       key = client::ObjectKey{pod["metadata"]["namespace"].Str(), pod["metadata"]["name"].Str()},
       uid] {
        const json::Value* now = pods.Find(key);
        if (now == nullptr || (*now)["metadata"]["uid"].AsString() != uid) return;
        WriteStatus(*now, StateOf(*now, true));
      });
}

// As the agent does, without a folder.
void SimulatedNodes::Impl::OnVolume(const json::Value&, const json::Value& volume) {
  if (volume.IsNull() || !AwaitsRemoval(volume) || !IsOurs(HostOfVolume(volume))) return;
  const std::string name = volume["metadata"]["name"].Str();
  client.Patch({kPersistentVolumes, "", name, ""}, client::PatchType::kMerge,
               WithoutFinalizer(volume),
               lifetime.Guard([this, name](const Result<json::Value>& answer) {
                 if (answer || answer.error().reason() == Reason::kNotFound) return;
                 loop.After(kRetryDelay, lifetime.Guard([this, name] {
                   const json::Value* now = volumes.Find({"", name});
                   if (now != nullptr) OnVolume({}, *now);
                 }));
               }));
}

SimulatedNodes::SimulatedNodes(SimulatedNodesOptions options, Loop& loop, client::ApiClient& client,
                               client::InformerSet& informers, Rng rng)
    : impl_(std::make_unique<Impl>(std::move(options), loop, client, informers, rng)) {}

SimulatedNodes::~SimulatedNodes() = default;

void SimulatedNodes::Start() {
  impl_->CreateMore();
  impl_->KeepTicking();
  const auto follow = [impl = impl_.get()](client::Informer& informer, auto handler) {
    client::InformerEvents events;
    events.on_change = impl->lifetime.Guard(
        [impl, handler](const client::ObjectKey&, const json::Value& before,
                        const json::Value& after) { (impl->*handler)(before, after); });
    informer.Subscribe(std::move(events));
  };
  follow(impl_->nodes, &Impl::OnNode);
  follow(impl_->pods, &Impl::OnPod);
  follow(impl_->volumes, &Impl::OnVolume);
}

}  // namespace muster::agent
