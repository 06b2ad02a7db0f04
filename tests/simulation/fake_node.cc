#include "simulation/fake_node.h"

#include <utility>

#include "base/strings.h"
#include "cluster/devices.h"
#include "json/write.h"
#include "schema/conditions.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr Duration kHeartbeat = seconds(10);
constexpr Duration kAgentRetry = milliseconds(100);

std::string UidOf(const json::Value& object) { return object["metadata"]["uid"].Str(); }

bool IsFinished(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return phase == "Succeeded" || phase == "Failed";
}

std::set<std::string> DevicesOf(const json::Value& pod) {
  std::set<std::string> ids;
  for (const auto& [container, by_resource] : cluster::PodAssignedDevices(pod)) {
    for (const auto& [resource, devices] : by_resource) ids.insert(devices.begin(), devices.end());
  }
  return ids;
}

json::Value ContainerState(const ProcessState& state) {
  switch (state.phase) {
    case ProcessState::Phase::kStarting:
      return json::Obj({{"waiting", json::Obj({{"reason", "ContainerCreating"}})}});
    case ProcessState::Phase::kRunning:
      return json::Obj({{"running", json::Obj()}});
    case ProcessState::Phase::kExited:
      return json::Obj({{"terminated", json::Obj({{"exitCode", state.exit_code}})}});
  }
  return json::Obj();
}

std::string_view PodPhase(const ProcessState& state) {
  if (state.phase == ProcessState::Phase::kStarting) return "Pending";
  if (state.phase == ProcessState::Phase::kRunning) return "Running";
  return state.exit_code == 0 ? "Succeeded" : "Failed";
}

json::Value StatusPatch(const json::Value& pod, const ProcessState& state, Time now) {
  const bool runs = state.phase == ProcessState::Phase::kRunning;
  const std::string_view ready = runs ? "True" : "False";
  const json::Value& before = schema::FindCondition(pod["status"]["conditions"], "Ready");
  json::Array containers;
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    containers.push_back(json::Obj({{"name", container["name"]},
                                    {"image", container["image"]},
                                    {"imageID", ""},
                                    {"ready", runs},
                                    {"restartCount", state.restarts},
                                    {"state", ContainerState(state)}}));
  }
  const std::string ip = fmt::format("10.42.0.{}", Hash64(UidOf(pod)) % 250 + 2);
  return json::Obj(
      {{"status",
        json::Obj({{"phase", PodPhase(state)},
                   {"startTime", pod["status"]["startTime"].Str(FormatTime(now))},
                   {"podIP", ip},
                   {"podIPs", json::List({json::Obj({{"ip", ip}})})},
                   {"conditions",
                    json::List({json::Obj(
                        {{"type", "Ready"},
                         {"status", ready},
                         {"lastTransitionTime", schema::TransitionTime(before, ready, now)}})})},
                   {"containerStatuses", json::Value(std::move(containers))}})}});
}

bool Reported(const json::Value& pod, const ProcessState& state) {
  const json::Value& status = pod["status"];
  // The node lifecycle calls pods of a silent node not Ready.
  const bool runs = state.phase == ProcessState::Phase::kRunning;
  return schema::ConditionHolds(status["conditions"], "Ready") == runs &&
         status["phase"].AsString() == PodPhase(state) &&
         status["containerStatuses"].At(0)["restartCount"].AsInt() == state.restarts &&
         !status["podIP"].AsString().empty();
}

}  // namespace

Fate RandomFate(const json::Value& pod, int64_t restarts) {
  constexpr int kCodes[] = {1, 2, 127, 128, 137, 143};
  const std::string uid = UidOf(pod);
  Rng first(Hash64(uid));
  Rng rng(Hash64(uid, static_cast<uint64_t>(restarts) + 1));
  Fate fate;
  fate.starts_in = milliseconds(first.Between(5, 800));
  fate.stops_in = milliseconds(first.Between(1, 3'000));
  fate.runs_for = milliseconds(rng.Between(500, 45'000));
  if (rng.Chance(0.2)) fate.exit_code = kCodes[rng.Below(std::size(kCodes))];
  const json::Value& annotation = pod["metadata"]["annotations"][kRunsForAnnotation];
  if (const auto length = ParseInt(annotation.AsString())) {
    fate.runs_for = milliseconds(*length);
    fate.exit_code = 0;
  }
  return fate;
}

Machine::Machine(Loop& loop, std::string name, FateFunction fate,
                 std::function<void(const std::string&)> on_violation)
    : loop_(loop),
      name_(std::move(name)),
      fate_(std::move(fate)),
      on_violation_(std::move(on_violation)) {}

Machine::~Machine() { PowerCut(); }

void Machine::Listen(std::function<void(const std::string&)> on_change) {
  on_change_ = std::move(on_change);
}

void Machine::Changed(const std::string& uid) {
  if (on_change_) on_change_(uid);
}

void Machine::Start(const std::string& uid, const json::Value& pod, int64_t restarts) {
  Process process;
  process.pod = pod;
  process.state.restart_policy = pod["spec"]["restartPolicy"].Str("Always");
  process.state.restarts = restarts;
  process.state.devices = DevicesOf(pod);
  for (const auto& [other, running] : processes_) {
    if (running.state.phase == ProcessState::Phase::kExited) continue;
    for (const std::string& device : running.state.devices) {
      if (process.state.devices.contains(device)) {
        on_violation_(fmt::format("device {} of {} is used by {} and given to {}", device, name_,
                                  other, uid));
      }
    }
  }
  process.timer = loop_.After(fate_(pod, 0).starts_in, [this, uid] {
    processes_.at(uid).state.phase = ProcessState::Phase::kRunning;
    ScheduleEnd(uid);
    Changed(uid);
  });
  processes_.insert_or_assign(uid, std::move(process));
}

void Machine::ScheduleEnd(const std::string& uid) {
  Process& process = processes_.at(uid);
  const Duration length = fate_(process.pod, process.state.restarts).runs_for;
  process.timer = loop_.After(length, [this, uid] { OnEnd(uid); });
}

void Machine::OnEnd(const std::string& uid) {
  Process& process = processes_.at(uid);
  process.timer = 0;
  const int code = fate_(process.pod, process.state.restarts).exit_code;
  const std::string& policy = process.state.restart_policy;
  if ((code != 0 && policy == "OnFailure") || policy == "Always") {
    ++process.state.restarts;
    ScheduleEnd(uid);
  } else {
    process.state.phase = ProcessState::Phase::kExited;
    process.state.exit_code = code;
  }
  Changed(uid);
}

void Machine::Kill(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return;
  loop_.Cancel(found->second.timer);
  processes_.erase(found);
}

void Machine::PowerCut() {
  for (auto& [uid, process] : processes_) loop_.Cancel(process.timer);
  processes_.clear();
}

const ProcessState* Machine::Find(const std::string& uid) const {
  const auto found = processes_.find(uid);
  return found == processes_.end() ? nullptr : &found->second.state;
}

std::vector<std::string> Machine::Uids() const {
  std::vector<std::string> uids;
  for (const auto& [uid, process] : processes_) uids.push_back(uid);
  return uids;
}

NodeAgent::NodeAgent(const Network& network, Machine& machine, Options options, Rng rng,
                     CrashPoint* crash)
    : loop_(network.loop),
      machine_(machine),
      options_(options),
      rng_(rng),
      counts_(network.counts),
      link_(network, "system:node:" + machine.name(), Rng(rng_.Next()), crash),
      client_(network.loop, link_, "kubelet"),
      informers_(client_, rng_.Next()) {
  client::Informer& pods =
      informers_.Get(resources::kPods, json::Fields::Whole(), "spec.nodeName=" + machine_.name());
  pods.Subscribe(
      {.on_change = lifetime_.Guard([this](const client::ObjectKey& key, const json::Value& before,
                                           const json::Value& after) {
         if (!after.IsNull()) keys_[UidOf(after)] = key;
         const bool other = !before.IsNull() && UidOf(before) != UidOf(after);
         if (after.IsNull() || other) machine_.Kill(UidOf(before));
         Sync(key);
       }),
       .on_synced = lifetime_.Guard([this] { OnSynced(); })});
  machine_.Listen([this](const std::string& uid) {
    if (const auto found = keys_.find(uid); found != keys_.end()) Sync(found->second);
  });
  informers_.Get(resources::kNodes, json::Fields::Whole(), "metadata.name=" + machine_.name())
      .Subscribe({.on_change = lifetime_.Guard([this](const client::ObjectKey&, const json::Value&,
                                                      const json::Value&) { PostNodeStatus(); }),
                  .on_synced = {}});
  if (options_.keeps_volumes)
    volumes_ = std::make_unique<NodeVolumes>(loop_, client_, informers_, machine_);
  informers_.Start();
  Register();
  Heartbeat();
}

NodeAgent::~NodeAgent() {
  machine_.Listen({});
  for (auto& [key, work] : work_) loop_.Cancel(work.timer);
}

bool NodeAgent::Idle() const {
  if (volumes_ != nullptr && !volumes_->Idle()) return false;
  for (const auto& [key, work] : work_) {
    if (work.sending || work.timer != 0) return false;
  }
  return true;
}

json::Value NodeAgent::NodeObject() const {
  json::Array list;
  for (int i = 0; i < options_.devices; ++i) {
    list.push_back(json::Obj({{"id", fmt::format("{}-gpu-{}", machine_.name(), i)},
                              {"index", i},
                              {"model", "Simulated-GPU"}}));
  }
  const std::string text =
      json::Write(json::Obj({{"nvidia.com/gpu", json::Value(std::move(list))}}));
  const json::Value room = json::Obj({{"cpu", "64"},
                                      {"memory", "256Gi"},
                                      {"pods", "110"},
                                      {"nvidia.com/gpu", std::to_string(options_.devices)}});
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", json::Obj({{"name", machine_.name()},
                               // Its metrics are what annotations of its pods say.
                               {"labels", json::Obj({{"kubernetes.io/hostname", machine_.name()},
                                                     {"muster.dev/simulated", "true"}})},
                               {"annotations",
                                json::Obj({{std::string(cluster::kDevicesAnnotation), text}})}})},
       {"status",
        json::Obj({{"capacity", room},
                   {"allocatable", room},
                   {"conditions", json::List({json::Obj({{"type", "Ready"},
                                                         {"status", "True"},
                                                         {"reason", "KubeletReady"}})})}})}});
}

void NodeAgent::Register() {
  client_.Create({resources::kNodes, "", machine_.name(), ""}, NodeObject(),
                 lifetime_.Guard([this](Result<json::Value> reply) {
                   if (!reply && reply.error().reason() != Reason::kAlreadyExists) {
                     loop_.After(kAgentRetry, lifetime_.Guard([this] { Register(); }));
                   }
                 }));
}

// A node object that was deleted is made again; one that was called Unknown is called Ready again.
void NodeAgent::PostNodeStatus() {
  const client::Informer& nodes =
      informers_.Get(resources::kNodes, json::Fields::Whole(), "metadata.name=" + machine_.name());
  const json::Value* node = nodes.Find({"", machine_.name()});
  if (node == nullptr) return Register();
  for (const json::Value& condition : (*node)["status"]["conditions"].items()) {
    if (condition["type"].AsString() == "Ready" && condition["status"].AsString() == "True") return;
  }
  client_.Patch({resources::kNodes, "", machine_.name(), "status"}, client::PatchType::kMerge,
                json::Obj({{"status", NodeObject()["status"]}}),
                lifetime_.Guard([this](Result<json::Value> reply) {
                  if (reply) return;
                  loop_.After(kAgentRetry, lifetime_.Guard([this] { PostNodeStatus(); }));
                }));
}

void NodeAgent::Heartbeat() {
  const client::Target target{resources::kLeases, "kube-node-lease", machine_.name(), ""};
  const json::Value spec = json::Obj({{"holderIdentity", machine_.name()},
                                      {"leaseDurationSeconds", 40},
                                      {"renewTime", FormatMicroTime(loop_.Now())}});
  client_.Patch(
      target, client::PatchType::kMerge, json::Obj({{"spec", spec}}),
      lifetime_.Guard([this, target, spec](Result<json::Value> reply) {
        if (reply || reply.error().reason() != Reason::kNotFound) return;
        client_.Create(
            target,
            json::Obj({{"apiVersion", "coordination.k8s.io/v1"},
                       {"kind", "Lease"},
                       {"metadata", json::Obj({{"name", target.name}, {"namespace", target.ns}})},
                       {"spec", spec}}),
            [](Result<json::Value>) {});
      }));
  loop_.After(kHeartbeat, lifetime_.Guard([this] { Heartbeat(); }));
}

// What runs without an API object was removed while the agent was away.
void NodeAgent::OnSynced() {
  const client::Informer& pods =
      informers_.Get(resources::kPods, json::Fields::Whole(), "spec.nodeName=" + machine_.name());
  std::set<std::string> known;
  for (const auto& [key, pod] : pods.objects()) known.insert(UidOf(pod));
  for (const std::string& uid : machine_.Uids()) {
    if (!known.contains(uid)) machine_.Kill(uid);
  }
  for (const auto& [key, pod] : pods.objects()) Sync(key);
}

void NodeAgent::Sync(const client::ObjectKey& key) {
  PodWork& work = work_[key];
  if (work.sending || work.timer != 0) {
    work.again = true;
    return;
  }
  const client::Informer& pods =
      informers_.Get(resources::kPods, json::Fields::Whole(), "spec.nodeName=" + machine_.name());
  const json::Value* pod = pods.Find(key);
  if (!pods.Synced()) return;  // OnSynced() frees the devices of removed pods first
  if (pod == nullptr) {
    work_.erase(key);
    return;
  }
  const std::string uid = UidOf(*pod);
  if ((*pod)["metadata"].Has("deletionTimestamp")) return Terminate(key, *pod);
  const ProcessState* state = machine_.Find(uid);
  if (IsFinished(*pod)) {
    // Somebody else called it Failed: its node was gone.
    if (state != nullptr && state->phase != ProcessState::Phase::kExited) machine_.Kill(uid);
    return;
  }
  if (state == nullptr) {
    const json::Value& status = (*pod)["status"]["containerStatuses"].At(0);
    const bool ran = (*pod)["status"]["phase"].AsString() == "Running";
    if (ran) counts_.Add("branch: pod lost its node's power");
    if (ran && (*pod)["spec"]["restartPolicy"].AsString() == "Never") {
      ProcessState lost;
      lost.phase = ProcessState::Phase::kExited;
      lost.exit_code = 137;
      return Report(key, *pod, lost);
    }
    machine_.Start(uid, *pod, status["restartCount"].AsInt() + (ran ? 1 : 0));
    state = machine_.Find(uid);
  }
  if (!Reported(*pod, *state)) Report(key, *pod, *state);
}

void NodeAgent::Report(const client::ObjectKey& key, const json::Value& pod,
                       const ProcessState& state) {
  work_[key].sending = true;
  json::Value patch = StatusPatch(pod, state, loop_.Now());
  patch = patch.SetPath({"metadata", "uid"}, UidOf(pod));
  // What somebody else wrote meanwhile is not written over, as the real agent has it.
  patch = patch.SetPath({"metadata", "resourceVersion"}, pod["metadata"]["resourceVersion"]);
  client_.Patch({resources::kPods, key.ns, key.name, "status"}, client::PatchType::kMerge, patch,
                lifetime_.Guard([this, key](Result<json::Value> reply) {
                  // Seen when the informer shows it; asked again if it does not.
                  Finished(key, reply.has_value());
                }));
}

void NodeAgent::Terminate(const client::ObjectKey& key, const json::Value& pod) {
  PodWork& work = work_[key];
  work.sending = true;
  const std::string uid = UidOf(pod);
  work.timer = loop_.After(machine_.FateOf(pod, 0).stops_in, [this, key, uid, pod] {
    work_[key].timer = 0;
    const ProcessState* state = machine_.Find(uid);
    const bool exited = state != nullptr && state->phase == ProcessState::Phase::kExited;
    ProcessState ended = exited ? *state : ProcessState{};
    machine_.Kill(uid);
    // Whoever holds the pod waits for its end.
    if (!pod["metadata"]["finalizers"].empty() && !IsFinished(pod)) {
      if (!exited) ended.exit_code = 137;
      ended.phase = ProcessState::Phase::kExited;
      ended.restarts = pod["status"]["containerStatuses"].At(0)["restartCount"].AsInt();
      return Report(key, pod, ended);
    }
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    options.precondition_uid = uid;
    client_.Delete({resources::kPods, key.ns, key.name, ""}, options,
                   lifetime_.Guard([this, key](Result<json::Value> reply) {
                     const bool done = reply || reply.error().reason() == Reason::kNotFound;
                     Finished(key, done);
                   }));
  });
}

void NodeAgent::Finished(const client::ObjectKey& key, bool ok) {
  const auto found = work_.find(key);
  if (found == work_.end()) return;
  found->second.sending = false;
  const bool again = std::exchange(found->second.again, false);
  if (ok && !again) return;
  found->second.timer = loop_.After(kAgentRetry, [this, key] {
    work_[key].timer = 0;
    Sync(key);
  });
}

}  // namespace muster::simulation
