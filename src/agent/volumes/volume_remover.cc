#include "agent/volumes/volume_remover.h"

#include <utility>

#include "agent/runtime/files.h"
#include "base/log.h"

namespace muster::agent {

VolumeRemover::VolumeRemover(VolumeRemoverOptions options, Loop& loop, Pool& pool,
                             client::ApiClient& client, client::InformerSet& informers,
                             VolumeUsers& users)
    : options_(std::move(options)),
      loop_(loop),
      pool_(pool),
      client_(client),
      volumes_(informers.Get(kPersistentVolumes, LocalVolumeFields())),
      users_(users) {}

VolumeRemover::~VolumeRemover() {
  loop_.Cancel(sweep_timer_);
  users_.OnReleased(nullptr);
}

void VolumeRemover::Start() {
  users_.OnReleased(lifetime_.Guard([this](const std::string& volume) {
    if (waiting_.erase(volume) > 0) Consider(volume);
  }));
  // Before a pod has one made.
  pool_.Run([root = options_.root] { SweepLocalVolumes(root); }, loop_, lifetime_.Guard([this] {
    client::InformerEvents events;
    events.on_change =
        lifetime_.Guard([this](const client::ObjectKey&, const json::Value& before,
                               const json::Value& after) { OnChange(before, after); });
    events.on_synced = lifetime_.Guard([this] { SweepLater(Duration()); });
    volumes_.Subscribe(std::move(events));
  }));
}

bool VolumeRemover::IsOurs(const json::Value& volume) const {
  return HostOfVolume(volume) == options_.node_name;
}

void VolumeRemover::OnChange(const json::Value& before, const json::Value& after) {
  if (after.IsNull()) {
    if (IsOurs(before)) SweepLater(kVolumeSweepDelay);
    return;
  }
  if (!IsOurs(after)) return;
  NoteRetention(before, after);
  if (AwaitsRemoval(after)) Consider(after["metadata"]["name"].Str());
}

// Before it is gone, so that nobody is told of a folder that is kept on purpose.
void VolumeRemover::NoteRetention(const json::Value& before, const json::Value& after) {
  const bool retain = IsRetained(after);
  const std::string folder = LocalVolumeFolder(after);
  if (folder.empty() || retain == IsRetained(before)) return;
  pool_.Run(
      [root = options_.root, folder, retain] {
        const Status status = RetainLocalVolume(root, folder, retain);
        if (!status.ok()) LOG_WARN("agent: retain {}: {}", folder, status.message());
      },
      loop_, [] {});
}

// The object as it is now decides.
void VolumeRemover::Consider(const std::string& name) {
  if (!busy_.insert(name).second) return;
  client_.Get(
      {kPersistentVolumes, "", name, ""},
      lifetime_.Guard([this, name](const Result<json::Value>& volume) { OnRead(name, volume); }));
}

void VolumeRemover::OnRead(const std::string& name, const Result<json::Value>& volume) {
  if (!volume) {
    if (volume.error().reason() == Reason::kNotFound) return Done(name);
    return Retry(name, volume.error());
  }
  if (!IsOurs(*volume) || !AwaitsRemoval(*volume)) return Done(name);
  if (!users_.BeginRemoval(name)) {
    busy_.erase(name);
    waiting_.insert(name);
    return;
  }
  Remove(*volume);
}

void VolumeRemover::Remove(const json::Value& volume) {
  const std::string folder = LocalVolumeFolder(volume);
  if (folder.empty()) return TakeFinalizer(volume);  // no such folder can have been made
  const bool retain = IsRetained(volume);
  auto status = std::make_shared<Status>();
  pool_.Run(
      [root = options_.root, folder, retain, status] {
        *status = retain ? RetainLocalVolume(root, folder, true) : RemoveLocalVolume(root, folder);
      },
      loop_, lifetime_.Guard([this, volume, status] {
        const std::string name = volume["metadata"]["name"].Str();
        if (!status->ok()) return Retry(name, *status);
        TakeFinalizer(volume);
      }));
}

void VolumeRemover::TakeFinalizer(const json::Value& volume) {
  const std::string name = volume["metadata"]["name"].Str();
  client_.Patch({kPersistentVolumes, "", name, ""}, client::PatchType::kMerge,
                WithoutFinalizer(volume),
                lifetime_.Guard([this, name](const Result<json::Value>& answer) {
                  if (answer || answer.error().reason() == Reason::kNotFound) return Done(name);
                  Retry(name, answer.error());
                }));
}

void VolumeRemover::Done(const std::string& name) {
  users_.EndRemoval(name);
  busy_.erase(name);
}

// Nobody gets the volume meanwhile.
void VolumeRemover::Retry(const std::string& name, const Status& why) {
  LOG_WARN("agent: remove local volume {}: {}", name, why.message());
  loop_.After(kVolumeRemovalRetry, lifetime_.Guard([this, name] {
    busy_.erase(name);
    Consider(name);
  }));
}

void VolumeRemover::SweepLater(Duration delay) {
  loop_.Cancel(sweep_timer_);
  sweep_timer_ = loop_.After(delay, [this] {
    sweep_timer_ = 0;
    Sweep();
  });
}

void VolumeRemover::Sweep() {
  auto folders = std::make_shared<std::vector<std::string>>();
  pool_.Run([root = options_.root, folders] { *folders = LocalVolumeFolders(root); }, loop_,
            lifetime_.Guard([this, folders] {
              for (const std::string& folder : *folders) LookForOwner(folder);
            }));
}

// Our finalizer keeps a PersistentVolume until its folder is gone, so one without is the work of
// somebody else: the store is an older one, from a backup, or the finalizer was taken off by hand.
// What users wrote is not removed for that.
void VolumeRemover::LookForOwner(const std::string& folder) {
  const std::string name = VolumeOfLocalFolder(folder);
  if (volumes_.Find({"", name}) != nullptr || told_.contains(folder)) return;
  const auto on_read = [this, folder](const Result<json::Value>& volume) {
    if (volume || volume.error().reason() != Reason::kNotFound) return;
    if (!told_.insert(folder).second) return;
    LOG_WARN(
        "agent: {}/{} has no PersistentVolume (an older backup was restored, or its finalizer was "
        "taken off by hand); it is kept: move it away or remove it when nobody needs it",
        options_.root, folder);
  };
  client_.Get({kPersistentVolumes, "", name, ""}, lifetime_.Guard(on_read));
}

}  // namespace muster::agent
