#include "scheduler/volume_binder.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "scheduler/binder.h"

namespace muster::scheduler {

using cluster::ClaimInfo;
using cluster::PodKey;
using cluster::VolumeChoice;
using cluster::VolumeInfo;

namespace {

// The claim or volume changed meanwhile, or the server did not decide.
bool MayPass(Reason reason) {
  switch (reason) {
    case Reason::kUnknown:
    case Reason::kConflict:
    case Reason::kServerTimeout:
    case Reason::kTimeout:
    case Reason::kTooManyRequests:
    case Reason::kInternalError:
    case Reason::kServiceUnavailable:
      return true;
    default:
      return false;
  }
}

// Makes the volume the claim's, provided that it is as it was seen.
json::Value ClaimPatch(const VolumeInfo& volume, const json::Value& seen, const ClaimInfo& claim) {
  json::Value metadata = json::Obj(
      {{"uid", seen["metadata"]["uid"]}, {"resourceVersion", seen["metadata"]["resourceVersion"]}});
  // A user who reserved it for the claim keeps it beyond the claim's end.
  if (volume.claim.name.empty()) {
    metadata = metadata.Set(
        "annotations", json::Obj({{std::string(cluster::kBoundByControllerAnnotation), "yes"}}));
  }
  return json::Obj({{"metadata", metadata},
                    {"spec", json::Obj({{"claimRef", json::Obj({{"apiVersion", "v1"},
                                                                {"kind", "PersistentVolumeClaim"},
                                                                {"namespace", claim.key.ns},
                                                                {"name", claim.key.name},
                                                                {"uid", claim.uid}})}})}});
}

json::Value NodePatch(const ClaimInfo& claim, const std::string& node) {
  return json::Obj(
      {{"metadata",
        json::Obj({{"uid", claim.uid},
                   {"annotations",
                    json::Obj({{std::string(cluster::kSelectedNodeAnnotation), node}})}})}});
}

// "PersistentVolumeClaim a/b"
std::string WaitText(const std::vector<VolumeChoice>& choices) {
  std::string out;
  for (const VolumeChoice& choice : choices)
    out += (out.empty() ? "PersistentVolumeClaim " : ", ") + choice.claim.ToString();
  return out;
}

}  // namespace

VolumeBinder::VolumeBinder(client::ApiClient& api, client::Informer& volumes,
                           const cluster::ClusterCache& cache, VolumeBinderHooks hooks)
    : api_(api), volumes_(volumes), cache_(cache), hooks_(std::move(hooks)) {}

bool VolumeBinder::Unit::IsWriting() const {
  return std::any_of(writings.begin(), writings.end(),
                     [](const auto& each) { return each.second.on_the_way; });
}

void VolumeBinder::Bind(const std::vector<PodKey>& pods, bool partly_bound) {
  const bool waits = std::any_of(pods.begin(), pods.end(), [&](const PodKey& pod) {
    return !cache_.AssumedVolumes(pod).empty();
  });
  if (!waits) return hooks_.on_ready(pods, partly_bound);
  const auto unit = std::make_shared<Unit>();
  std::string claims;
  for (const PodKey& pod : pods) {
    unit->members.push_back({pod, cache_.FindPod(pod)->info.uid});
    if (claims.empty()) claims = WaitText(cache_.AssumedVolumes(pod));
  }
  for (const PodKey& pod : pods) {
    const std::string own = WaitText(cache_.AssumedVolumes(pod));
    hooks_.on_waiting(pod, fmt::format("has its place on node {}; waits for {} to be bound",
                                       cache_.FindPod(pod)->assumed_node,
                                       own.empty() ? "the claims of its gang: " + claims : own));
  }
  unit->partly_bound = partly_bound;
  unit->deadline = api_.loop().Now() + kVolumeBindTimeout;
  units_.push_back(unit);
  api_.loop().After(kVolumeBindTimeout, lifetime_.Guard([this] { Look(); }));
  Look();
}

void VolumeBinder::Look() {
  if (look_posted_ || units_.empty()) return;
  look_posted_ = true;
  api_.loop().Post(lifetime_.Guard([this] {
    look_posted_ = false;
    LookAtAll();
  }));
}

void VolumeBinder::LookAtAll() {
  // Hooks may bind further units.
  const std::vector<UnitPtr> all(units_.begin(), units_.end());
  for (const UnitPtr& unit : all) {
    if (LookAt(unit)) units_.remove(unit);
  }
}

bool VolumeBinder::LookAt(const UnitPtr& unit) {
  std::erase_if(unit->members, [&](const Member& member) {
    const cluster::PodRecord* pod = cache_.FindPod(member.pod);
    return pod == nullptr || pod->info.uid != member.uid || pod->assumed_node.empty();
  });
  bool all_bound = true;
  for (const Member& member : unit->members) {
    for (const VolumeChoice& choice : cache_.AssumedVolumes(member.pod)) {
      if (unit->failed.ok()) all_bound &= Advance(unit, choice);
    }
  }
  const bool is_late = api_.loop().Now() >= unit->deadline;
  if (unit->failed.ok() && !all_bound && is_late)
    unit->failed = Error(Reason::kTimeout, "timed out waiting for the condition");
  if ((unit->failed.ok() && !all_bound) || unit->IsWriting()) return false;
  std::vector<PodKey> pods;
  for (const Member& member : unit->members) pods.push_back(member.pod);
  if (unit->failed.ok()) {
    hooks_.on_ready(pods, unit->partly_bound);
  } else {
    hooks_.on_failed(pods,
                     Error(unit->failed.reason(), "binding volumes: {}", unit->failed.message()));
  }
  return true;
}

bool VolumeBinder::Advance(const UnitPtr& unit, const VolumeChoice& choice) {
  const cluster::Storage& storage = *cache_.snapshot().Storage();
  const ClaimInfo* claim = storage.Claim(choice.claim);
  const cluster::NodeIndex node = cache_.FindNode(choice.node);
  if (claim == nullptr || claim->deleting) {
    unit->failed = Error(Reason::kNotFound, "persistentvolumeclaim \"{}\" {}", choice.claim.name,
                         claim == nullptr ? "not found" : "is being deleted");
  } else if (node == cluster::kNoIndex) {
    unit->failed = Error(Reason::kNotFound, "node \"{}\" not found", choice.node);
  } else if (claim->bound) {
    const VolumeInfo* volume = storage.Volume(claim->volume);
    if (volume == nullptr) return false;  // not seen yet
    if (cluster::Reaches(*volume, cache_.snapshot().Node(node).labels_view())) return true;
    unit->failed = Error(Reason::kConflict, "pv \"{}\" node affinity doesn't match node \"{}\"",
                         volume->name, choice.node);
  } else {
    unit->failed = choice.volume.empty() ? CheckSelectedNode(unit, choice, *claim)
                                         : CheckVolume(unit, choice, *claim);
  }
  return false;
}

Status VolumeBinder::CheckVolume(const UnitPtr& unit, const VolumeChoice& choice,
                                 const ClaimInfo& claim) {
  Writing& writing = unit->writings[choice.claim];
  const VolumeInfo* volume = cache_.snapshot().Storage()->Volume(choice.volume);
  const json::Value* seen = volumes_.Find({"", choice.volume});
  if (volume == nullptr || seen == nullptr)
    return Error(Reason::kNotFound, "persistentvolume \"{}\" not found", choice.volume);
  if (!volume->claim.name.empty() && !volume->IsFor(claim)) {
    return Error(Reason::kConflict, "persistentvolume \"{}\" was given to {}", choice.volume,
                 volume->claim.ToString());
  }
  const bool is_given = !volume->claim_uid.empty();
  writing.seen |= is_given;
  if (is_given || writing.on_the_way) return {};
  if (writing.seen)
    return Error(Reason::kConflict, "ClaimRef got reset for pv \"{}\"", choice.volume);
  if (writing.done) return {};
  Write(unit, choice, {client::resources::kPersistentVolumes, "", choice.volume, ""},
        ClaimPatch(*volume, *seen, claim));
  return {};
}

Status VolumeBinder::CheckSelectedNode(const UnitPtr& unit, const VolumeChoice& choice,
                                       const ClaimInfo& claim) {
  Writing& writing = unit->writings[choice.claim];
  const bool is_selected = claim.selected_node == choice.node;
  writing.seen |= is_selected;
  if (is_selected || writing.on_the_way || !claim.volume.empty()) return {};
  // A provisioner that cannot make it there takes the node away.
  if (writing.seen || !claim.selected_node.empty())
    return Error(Reason::kConflict, "provisioning failed for PVC \"{}\"", choice.claim.name);
  if (writing.done) return {};
  Write(unit, choice,
        {client::resources::kPersistentVolumeClaims, choice.claim.ns, choice.claim.name, ""},
        NodePatch(claim, choice.node));
  return {};
}

void VolumeBinder::Write(const UnitPtr& unit, const VolumeChoice& choice,
                         const client::Target& target, json::Value patch) {
  Writing& writing = unit->writings[choice.claim];
  writing.on_the_way = true;
  ++writing.attempts;
  ++in_flight_;
  LOG_INFO("scheduler: chose a volume claim={} volume={} node={}", choice.claim.ToString(),
           choice.volume, choice.node);
  api_.Patch(target, client::PatchType::kMerge, std::move(patch),
             lifetime_.Guard([this, unit, choice](Result<json::Value> answer) {
               --in_flight_;
               OnAnswer(unit, choice, answer.has_value() ? Status() : answer.error());
             }));
}

void VolumeBinder::OnAnswer(const UnitPtr& unit, const VolumeChoice& choice, const Status& status) {
  Writing& writing = unit->writings[choice.claim];
  if (!status.ok() && MayPass(status.reason()) && writing.attempts < kMaxVolumeWrites) {
    // It stays on the way: what there is by then decides whether it is written again.
    api_.loop().After(BindBackoff(writing.attempts), lifetime_.Guard([this, unit, choice] {
      unit->writings[choice.claim].on_the_way = false;
      Look();
    }));
    return;
  }
  writing.on_the_way = false;
  writing.done = status.ok();
  if (!status.ok() && unit->failed.ok()) {
    LOG_WARN("scheduler: a choice of volumes was refused claim={} error={}",
             choice.claim.ToString(), status.ToString());
    unit->failed = status;
  }
  Look();
}

}  // namespace muster::scheduler
