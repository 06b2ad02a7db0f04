#include "agent/pod_workers/pod_manager.h"

#include "agent/pod_workers/container_builder.h"
#include "agent/runtime/files.h"
#include "base/log.h"

namespace muster::agent {
namespace {

// Enough of a Pod to end it.
json::Value ObjectOf(const RecoveredPod& pod) {
  json::Array containers;
  for (const RecoveredContainer& container : pod.containers) {
    containers.push_back(json::Obj({{"name", container.name}}));
  }
  return json::Obj({{"metadata", json::Obj({{"namespace", pod.record["namespace"]},
                                            {"name", pod.record["name"]},
                                            {"uid", pod.uid}})},
                    {"spec", json::Obj({{"containers", std::move(containers)}})}});
}

std::optional<Ipv4> AddressOf(const RecoveredPod& pod) {
  return Ipv4::Parse(pod.record["podIP"].AsString());
}

// The uid at the end of a pod's log folder, NAMESPACE_NAME_UID.
std::string_view UidOf(std::string_view log_folder) {
  return log_folder.substr(log_folder.find_last_of('_') + 1);
}

}  // namespace

PodManager::PodManager(PodWorkerContext& context, client::Informer& pods)
    : context_(context), pods_(pods) {
  ListenToRuntime();
  context_.devices.OnAskEnding([this](const std::string& uid) {
    // Before all is known of an earlier run, its pods may turn out to be deleted.
    const PodWorker* worker = FindByUid(uid);
    return worker == nullptr || worker->ends();
  });
}

PodManager::~PodManager() {
  context_.devices.OnAskEnding([](const std::string&) { return false; });
}

void PodManager::ListenToRuntime() {
  PodRuntime::Events events;
  events.on_exit = lifetime_.Guard([this](const std::string& uid, const std::string& container,
                                          int attempt, const ContainerExit& exit) {
    if (const auto found = workers_.find(uid); found != workers_.end()) {
      found->second->OnContainerExit(container, attempt, exit);
    } else {
      early_exits_.push_back({uid, container, attempt, exit});
    }
  });
  events.on_sandbox_gone = lifetime_.Guard([this](const std::string& uid) {
    if (const auto found = workers_.find(uid); found != workers_.end())
      return found->second->OnSandboxGone();
    if (const auto waiting = recovered_.find(uid); waiting != recovered_.end()) {
      waiting->second.sandbox_alive = false;
      const std::string gang = waiting->second.record["gang"].Str();
      if (!gang.empty()) return context_.gangs.Leave(gang, uid);
      if (const auto address = AddressOf(waiting->second)) context_.addresses.Release(*address);
    }
  });
  context_.runtime.SetEvents(std::move(events));
}

void PodManager::Start(std::vector<RecoveredPod> recovered) {
  for (RecoveredPod& pod : recovered) {
    // All of them before a new pod may ask for one.
    if (const auto address = AddressOf(pod); address && pod.sandbox_alive) {
      const std::string gang = pod.record["gang"].Str();
      if (gang.empty()) {
        (void)context_.addresses.Take(*address);
      } else {
        context_.gangs.Adopt(gang, pod.uid, *address);
      }
    }
    context_.volume_users.Adopt(pod.uid, ClaimVolumesFromJson(pod.record["claims"]));
    context_.host_ports.Adopt(pod.uid, pod.record["hostPorts"]);
    context_.devices.Adopt(pod.uid, cluster::AssignedDevicesFromJson(pod.record["devices"]),
                           pod.record["gpuMilli"].AsInt());
    recovered_.emplace(pod.uid, std::move(pod));
  }
  context_.on_done = lifetime_.Guard([this](const std::string& uid) { Remove(uid); });
  client::InformerEvents subscription;
  subscription.on_change =
      lifetime_.Guard([this](const client::ObjectKey&, const json::Value& before,
                             const json::Value& after) { OnChange(before, after); });
  subscription.on_synced = lifetime_.Guard([this] { OnSynced(); });
  pods_.Subscribe(std::move(subscription));
}

void PodManager::OnChange(const json::Value& before, const json::Value& after) {
  const std::string before_uid = before["metadata"]["uid"].Str();
  const std::string after_uid = after["metadata"]["uid"].Str();
  if (!before_uid.empty() && before_uid != after_uid) {
    if (const auto old = workers_.find(before_uid); old != workers_.end())
      old->second->ObjectGone();
  }
  if (after_uid.empty()) return;
  if (const auto known = workers_.find(after_uid); known != workers_.end())
    return known->second->Update(after);
  Add(after);
}

void PodManager::Add(const json::Value& pod) {
  const std::string uid = pod["metadata"]["uid"].Str();
  const auto found = recovered_.find(uid);
  const RecoveredPod* recovered = found == recovered_.end() ? nullptr : &found->second;
  auto [entry, is_new] =
      workers_.emplace(uid, std::make_unique<PodWorker>(context_, pod, recovered));
  if (found != recovered_.end()) recovered_.erase(found);
  entry->second->Start();
  // It ended before the API server told us of its pod.
  for (const EarlyExit& early : early_exits_) {
    if (early.uid == uid)
      entry->second->OnContainerExit(early.container, early.attempt, early.exit);
  }
  std::erase_if(early_exits_, [&uid](const EarlyExit& early) { return early.uid == uid; });
}

// What is left in `recovered_` now has no object: its pods are ended and their folders removed.
void PodManager::OnSynced() {
  std::map<std::string, RecoveredPod> orphans = std::move(recovered_);
  recovered_.clear();
  early_exits_.clear();
  for (auto& [uid, pod] : orphans) {
    LOG_INFO("agent: end pod {}/{} uid={}: it was deleted meanwhile",
             pod.record["namespace"].AsString(), pod.record["name"].AsString(), uid);
    const json::Value object = ObjectOf(pod);
    auto [entry, is_new] =
        workers_.emplace(uid, std::make_unique<PodWorker>(context_, object, &pod));
    entry->second->ObjectGone();
  }
  SweepLogs();
  synced_ = true;
  context_.on_addresses_changed();
}

// Logs go with their pod; those of pods that went while no agent was there go now.
void PodManager::SweepLogs() {
  const std::string dir = PodLogsDir(context_.data_dir);
  auto folders = std::make_shared<std::vector<std::string>>();
  context_.pool.Run([dir, folders] { *folders = ListDir(dir); }, context_.loop,
                    lifetime_.Guard([this, dir, folders] {
                      std::erase_if(*folders, [this](const std::string& folder) {
                        return workers_.contains(std::string(UidOf(folder)));
                      });
                      if (folders->empty()) return;
                      context_.pool.Run(
                          [dir, folders] {
                            for (const std::string& folder : *folders)
                              (void)RemoveTree(dir + "/" + folder);
                          },
                          context_.loop, [] {});
                    }));
}

void PodManager::Remove(const std::string& uid) {
  const auto found = workers_.find(uid);
  if (found != workers_.end() && found->second->done()) workers_.erase(found);
  context_.on_addresses_changed();
}

const PodWorker* PodManager::Find(const std::string& ns, const std::string& name) const {
  if (const json::Value* pod = pods_.Find({ns, name})) {
    const auto found = workers_.find((*pod)["metadata"]["uid"].Str());
    if (found != workers_.end()) return found->second.get();
  }
  return nullptr;
}

const PodWorker* PodManager::FindByUid(const std::string& uid) const {
  const auto found = workers_.find(uid);
  return found == workers_.end() ? nullptr : found->second.get();
}

void PodManager::DevicesChanged() {
  for (const auto& [uid, worker] : workers_) worker->DevicesChanged();
}

void PodManager::PoliciesChanged() {
  for (const auto& [uid, worker] : workers_) worker->PoliciesChanged();
}

void PodManager::Evict(const std::string& uid, const std::string& message) {
  if (const auto found = workers_.find(uid); found != workers_.end()) found->second->Evict(message);
}

ImageCache::Users PodManager::ImageUsers() const {
  ImageCache::Users out;
  for (const auto& [uid, worker] : workers_) {
    if (worker->removed()) continue;
    const json::Value& meta = worker->pod()["metadata"];
    const std::string name =
        fmt::format("{}/{}", meta["namespace"].AsString(), meta["name"].AsString());
    for (const ContainerRuntimeState& container : worker->state().containers) {
      if (container.image_name.empty()) continue;
      std::vector<std::string>& users = out[container.image_name];
      if (users.empty() || users.back() != name) users.push_back(name);
    }
  }
  for (const auto& [uid, pod] : recovered_) {
    for (const RecoveredContainer& container : pod.containers) {
      if (!container.image_name.empty())
        out[container.image_name].push_back(fmt::format("{}/{}", pod.record["namespace"].AsString(),
                                                        pod.record["name"].AsString()));
    }
  }
  return out;
}

json::Array PodManager::Objects() const {
  json::Array out;
  for (const auto& [uid, worker] : workers_) out.push_back(worker->pod());
  return out;
}

std::vector<json::Value> PodManager::PodsWithAddresses(bool with_host_ports) const {
  std::vector<json::Value> out;
  for (const auto& [uid, worker] : workers_) {
    const std::string& address = worker->state().pod_ip;
    if (address.empty() || worker->removed() || worker->pod()["spec"]["hostNetwork"].AsBool())
      continue;
    if (with_host_ports && !context_.host_ports.Has(uid)) continue;
    out.push_back(worker->pod().SetPath({"status", "podIP"}, address));
  }
  return out;
}

std::optional<std::vector<json::Value>> PodManager::PodsWithHostPorts() const {
  if (!synced_) return std::nullopt;
  return PodsWithAddresses(true);
}

}  // namespace muster::agent
