#include "cluster/volumes.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::cluster {

namespace {

constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";
// What came before spec.storageClassName, which it still beats.
constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";
constexpr std::string_view kZoneSeparator = "__";

struct ZoneLabel {
  std::string_view key, today;  // `today`: the label that took its place
};
constexpr std::array<ZoneLabel, 4> kZoneLabels = {
    {{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
     {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
     {"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
     {"topology.kubernetes.io/region", "topology.kubernetes.io/region"}}};

AccessModes ToAccessModes(const json::Value& modes) {
  constexpr std::array<std::string_view, 4> kNames = {"ReadWriteOnce", "ReadOnlyMany",
                                                      "ReadWriteMany", "ReadWriteOncePod"};
  AccessModes out = 0;
  for (const json::Value& mode : modes.items()) {
    const auto found = std::find(kNames.begin(), kNames.end(), mode.AsString());
    if (found != kNames.end()) out |= static_cast<AccessModes>(1 << (found - kNames.begin()));
  }
  return out;
}

// `unreadable` for an amount that cannot be read (the API server refuses such objects).
int64_t ToBytes(const json::Value& amounts, int64_t unreadable) {
  const Result<Quantity> quantity = Quantity::FromJson(amounts["storage"]);
  return quantity.has_value() ? quantity->Units() : unreadable;
}

std::string ClassOf(const json::Value& object) {
  const json::Value& annotated = object.Path({"metadata", "annotations", kClassAnnotation});
  return annotated.IsString() ? annotated.Str() : object.Path({"spec", "storageClassName"}).Str();
}

std::set<std::string, std::less<>> ToZones(std::string_view text) {
  std::set<std::string, std::less<>> zones;
  while (true) {
    const size_t end = text.find(kZoneSeparator);
    const std::string_view zone = Trim(text.substr(0, end));
    if (zone.empty()) return {};  // as upstream: such a label says nothing
    zones.emplace(zone);
    if (end == text.npos) return zones;
    text.remove_prefix(end + kZoneSeparator.size());
  }
}

// Terms of label expressions, each of which must have one of its values.
NodeAffinity ToTopologies(const json::Value& terms) {
  NodeAffinity out;
  out.has_terms = !terms.empty();
  for (const json::Value& term : terms.items()) {
    NodeSelectorTerm& each = out.terms.emplace_back();
    for (const json::Value& expression : term["matchLabelExpressions"].items()) {
      each.expressions.push_back(
          {expression["key"].Str(), SelectorOperator::kIn, json::ToStrings(expression["values"])});
    }
  }
  return out;
}

template <class Map, class Key>
auto FindIn(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second.get();
}

}  // namespace

// -- Pods.

const json::Fields& ClaimUseFields() {
  static const json::Fields fields{
      {"spec", "volumes", "name"},
      {"spec", "volumes", "persistentVolumeClaim", "claimName"},
      // Of a template its name is enough: what is claimed stands in the claim.
      {"spec", "volumes", "ephemeral", "volumeClaimTemplate", "metadata", "name"}};
  return fields;
}

std::vector<ClaimUse> ToClaimUses(const json::Value& pod) {
  std::vector<ClaimUse> out;
  const json::Value& metadata = pod["metadata"];
  for (const json::Value& volume : pod.Path({"spec", "volumes"}).items()) {
    ClaimUse use;
    use.claim.ns = metadata["namespace"].Str();
    if (volume.Has("persistentVolumeClaim")) {
      use.claim.name = volume.Path({"persistentVolumeClaim", "claimName"}).Str();
    } else if (volume.Has("ephemeral")) {
      use.pod_name = metadata["name"].Str();
      use.pod_uid = metadata["uid"].Str();
      use.claim.name = use.pod_name + "-" + volume["name"].Str();
    } else {
      continue;
    }
    if (std::find(out.begin(), out.end(), use) == out.end()) out.push_back(std::move(use));
  }
  return out;
}

// -- Claims.

const json::Fields& ClaimInfoFields() {
  static const json::Fields fields{{"metadata", "annotations", kSelectedNodeAnnotation},
                                   {"metadata", "annotations", kBindCompletedAnnotation},
                                   {"metadata", "annotations", kClassAnnotation},
                                   {"spec", "volumeName"},
                                   {"spec", "storageClassName"},
                                   {"spec", "accessModes"},
                                   {"spec", "volumeMode"},
                                   {"spec", "selector"},
                                   {"spec", "resources", "requests"},
                                   {"status", "phase"}};
  return fields;
}

ClaimInfo ToClaimInfo(const json::Value& claim) {
  const json::Value& metadata = claim["metadata"];
  const json::Value& spec = claim["spec"];
  const json::Value& annotations = metadata["annotations"];
  ClaimInfo out;
  out.key = {metadata["namespace"].Str(), metadata["name"].Str()};
  out.uid = metadata["uid"].Str();
  for (const json::Value& owner : metadata["ownerReferences"].items()) {
    if (owner["controller"].AsBool()) out.owner_uid = owner["uid"].Str();
  }
  out.deleting = metadata.Has("deletionTimestamp");
  out.lost = claim.Path({"status", "phase"}).AsString() == "Lost";
  out.volume = spec["volumeName"].Str();
  out.bound = !out.volume.empty() && annotations.Has(kBindCompletedAnnotation);
  out.class_name = ClassOf(claim);
  out.bytes = ToBytes(spec.Path({"resources", "requests"}), std::numeric_limits<int64_t>::max());
  out.modes = ToAccessModes(spec["accessModes"]);
  out.block = spec["volumeMode"].AsString() == "Block";
  if (spec.Has("selector")) {
    out.selector = schema::LabelSelector::FromJson(spec["selector"])
                       .value_or(schema::LabelSelector::Nothing());
  }
  out.selected_node = annotations[kSelectedNodeAnnotation].Str();
  return out;
}

// -- Volumes.

const json::Fields& VolumeInfoFields() {
  static const json::Fields fields{{"metadata", "annotations", kClassAnnotation},
                                   {"metadata", "labels"},
                                   {"spec", "storageClassName"},
                                   {"spec", "capacity"},
                                   {"spec", "accessModes"},
                                   {"spec", "volumeMode"},
                                   {"spec", "claimRef"},
                                   {"spec", "nodeAffinity"},
                                   {"status", "phase"}};
  return fields;
}

VolumeInfo ToVolumeInfo(const json::Value& volume) {
  const json::Value& metadata = volume["metadata"];
  const json::Value& spec = volume["spec"];
  VolumeInfo out;
  out.name = metadata["name"].Str();
  out.class_name = ClassOf(volume);
  out.bytes = ToBytes(spec["capacity"], 0);
  out.modes = ToAccessModes(spec["accessModes"]);
  out.block = spec["volumeMode"].AsString() == "Block";
  out.available = volume.Path({"status", "phase"}).AsString() == "Available";
  out.deleting = metadata.Has("deletionTimestamp");
  out.claim = {spec.Path({"claimRef", "namespace"}).Str(), spec.Path({"claimRef", "name"}).Str()};
  out.claim_uid = spec.Path({"claimRef", "uid"}).Str();
  out.labels = ToLabels(metadata["labels"]);
  const json::Value& required = spec.Path({"nodeAffinity", "required"});
  if (required.IsObject()) out.affinity = ToRequiredNodes(required);
  for (const ZoneLabel& label : kZoneLabels) {
    const auto found = out.labels.find(label.key);
    if (found == out.labels.end()) continue;
    auto values = ToZones(found->second);
    if (!values.empty()) out.zones.emplace_back(label.key, std::move(values));
  }
  return out;
}

bool Reaches(const VolumeInfo& volume, const NodeLabels& node) {
  if (volume.affinity.IsTrivial()) return true;
  return Matches(volume.affinity, {node.shared, node.hostname, node.has_hostname, ""});
}

bool IsInZoneOf(const VolumeInfo& volume, const NodeLabels& node) {
  if (volume.zones.empty()) return true;
  const bool has_zone = std::any_of(kZoneLabels.begin(), kZoneLabels.end(),
                                    [&](const ZoneLabel& each) { return node.Find(each.key); });
  if (!has_zone) return true;
  return std::all_of(volume.zones.begin(), volume.zones.end(), [&](const auto& zone) {
    const auto& [key, values] = zone;
    std::optional<std::string_view> value = node.Find(key);
    if (!value.has_value()) {
      const auto label = std::find_if(kZoneLabels.begin(), kZoneLabels.end(),
                                      [&](const ZoneLabel& each) { return each.key == key; });
      value = node.Find(label->today);
    }
    return value.has_value() && values.contains(*value);
  });
}

// -- Classes.

const json::Fields& StorageClassInfoFields() {
  static const json::Fields fields{{"provisioner"}, {"volumeBindingMode"}, {"allowedTopologies"}};
  return fields;
}

StorageClassInfo ToStorageClassInfo(const json::Value& storage_class) {
  StorageClassInfo out;
  out.name = storage_class.Path({"metadata", "name"}).Str();
  out.provisioner = storage_class["provisioner"].Str();
  out.waits = storage_class["volumeBindingMode"].AsString() == "WaitForFirstConsumer";
  out.topologies = ToTopologies(storage_class["allowedTopologies"]);
  return out;
}

bool StorageClassInfo::Provisions() const {
  return !provisioner.empty() && provisioner != kNoProvisioner;
}

// -- All together.

const ClaimInfo* Storage::Claim(const ClaimKey& key) const { return FindIn(claims, key); }
const VolumeInfo* Storage::Volume(std::string_view name) const { return FindIn(volumes, name); }
const StorageClassInfo* Storage::Class(std::string_view name) const {
  return FindIn(classes, name);
}

bool Storage::IsDelayed(const ClaimInfo& claim) const {
  const StorageClassInfo* of_claim = Class(claim.class_name);
  return claim.volume.empty() && of_claim != nullptr && of_claim->waits;
}

bool Storage::Holds(const VolumeChoice& choice) const {
  const ClaimInfo* claim = Claim(choice.claim);
  if (claim == nullptr || claim->deleting || claim->lost) return false;
  const auto known = decided.find(choice.claim);
  if (known != decided.end() && known->second.choice.volume != choice.volume) return false;
  if (choice.volume.empty()) {
    // Made meanwhile, or still to be made there.
    return !claim->volume.empty() || claim->selected_node.empty() ||
           claim->selected_node == choice.node;
  }
  const VolumeInfo* volume = Volume(choice.volume);
  if (volume == nullptr || volume->deleting) return false;
  if (!claim->volume.empty() && claim->volume != choice.volume) return false;
  if (!volume->claim.name.empty() && !volume->IsFor(*claim)) return false;
  const auto user = taken.find(choice.volume);
  return user == taken.end() || user->second == choice.claim;
}

void Storage::Decide(const VolumeChoice& choice) {
  Decision& decision = decided[choice.claim];
  if (decision.pods++ > 0) return;
  decision.choice = choice;
  if (!choice.volume.empty()) taken[choice.volume] = choice.claim;
}

void Storage::Undo(const VolumeChoice& choice) {
  const auto known = decided.find(choice.claim);
  CHECK(known != decided.end());
  if (--known->second.pods > 0) return;
  if (!choice.volume.empty()) taken.erase(choice.volume);
  decided.erase(known);
}

}  // namespace muster::cluster
