// src/scheduler/plain_volumes_test_support.h
//
// The rules about claims and volumes a second time, as plain_rules_test_support.h: from the
// Kubernetes documentation, on the objects as users write them, nothing shared with volume_rules.*.
//
// Thread: any (pure functions).

#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "json/parse.h"
#include "json/value.h"

namespace muster::scheduler::plain {

using json::Value;

struct Storage {
  bool kept = false;                    // else what pods claim is no matter
  std::map<std::string, Value> claims;  // by "namespace/name"
  std::map<std::string, Value> volumes, classes;
};

struct Named {
  std::string key;  // of Storage::claims
  bool ephemeral = false;
};

inline std::vector<Named> ClaimsOf(const Value& pod) {
  std::vector<Named> out;
  std::set<std::string> seen;
  const std::string ns = pod["metadata"]["namespace"].Str();
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    Named named;
    if (volume.Has("persistentVolumeClaim")) {
      named.key = ns + "/" + volume["persistentVolumeClaim"]["claimName"].Str();
    } else if (volume.Has("ephemeral")) {
      named.key = ns + "/" + pod["metadata"]["name"].Str() + "-" + volume["name"].Str();
      named.ephemeral = true;
    }
    if (!named.key.empty() && seen.insert(named.key).second) out.push_back(named);
  }
  return out;
}

inline bool IsBound(const Value& claim) {
  return claim["spec"].Has("volumeName") &&
         claim["metadata"]["annotations"].Has("pv.kubernetes.io/bind-completed");
}

inline bool WaitsForPod(const Storage& storage, const Value& claim) {
  const auto found = storage.classes.find(claim["spec"]["storageClassName"].Str());
  return !claim["spec"].Has("volumeName") && found != storage.classes.end() &&
         found->second["volumeBindingMode"].AsString() == "WaitForFirstConsumer";
}

// What keeps the pod from every node.
inline std::optional<std::string> ClaimFault(const Storage& storage, const Value& pod) {
  const std::vector<Named> claims = ClaimsOf(pod);
  const auto name_of = [](const Named& named) { return named.key.substr(named.key.find('/') + 1); };
  for (const Named& named : claims) {
    if (!named.ephemeral && !storage.claims.contains(named.key))
      return fmt::format("persistentvolumeclaim \"{}\" not found", name_of(named));
  }
  for (const Named& named : claims) {
    const std::string name = name_of(named);
    if (!storage.claims.contains(named.key))
      return fmt::format(
          "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
          name);
    const Value& claim = storage.claims.at(named.key);
    if (claim["status"]["phase"].AsString() == "Lost")
      return fmt::format(
          "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
          claim["spec"]["volumeName"].Str());
    if (claim["metadata"].Has("deletionTimestamp"))
      return fmt::format("persistentvolumeclaim \"{}\" is being deleted", name);
    const Value& owner = claim["metadata"]["ownerReferences"].At(0);
    if (named.ephemeral && owner["uid"] != pod["metadata"]["uid"])
      return fmt::format("PVC {} was not created for pod {}/{} (pod is not owner)", named.key,
                         pod["metadata"]["namespace"].Str(), pod["metadata"]["name"].Str());
  }
  for (const Named& named : claims) {
    const Value& claim = storage.claims.at(named.key);
    if (!IsBound(claim) && !WaitsForPod(storage, claim))
      return "pod has unbound immediate PersistentVolumeClaims";
  }
  return std::nullopt;
}

inline bool HasLabelIn(const Value& node, const Value& expression) {
  const Value& labels = node["metadata"]["labels"];
  const std::string key = expression["key"].Str();
  if (!labels.Has(key)) return false;
  for (const Value& value : expression["values"].items()) {
    if (value == labels[key]) return true;
  }
  return false;
}

// Of terms whose expressions are all In, as the random clusters have them.
inline bool SomeTermHolds(const Value& terms, const char* expressions, const Value& node) {
  for (const Value& term : terms.items()) {
    bool holds = !term[expressions].empty();
    for (const Value& expression : term[expressions].items())
      holds = holds && HasLabelIn(node, expression);
    if (holds) return true;
  }
  return false;
}

inline bool CanReach(const Value& volume, const Value& node) {
  const Value& required = volume["spec"]["nodeAffinity"]["required"];
  return required.IsNull() ||
         SomeTermHolds(required["nodeSelectorTerms"], "matchExpressions", node);
}

inline bool InZone(const Value& volume, const Value& node) {
  const Value& labels = node["metadata"]["labels"];
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
      {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"}};
  const auto any = [&](const auto& pair) {
    return labels.Has(pair.first) || labels.Has(pair.second);
  };
  if (std::none_of(keys.begin(), keys.end(), any)) return true;
  for (const auto& [beta, stable] : keys) {
    for (const std::string& key : {beta, stable}) {
      if (!volume["metadata"]["labels"].Has(key)) continue;
      const std::string zones = "__" + volume["metadata"]["labels"][key].Str() + "__";
      const std::string own = labels.Has(key) ? labels[key].Str() : labels[stable].Str();
      if (own.empty() || zones.find("__" + own + "__") == zones.npos) return false;
    }
  }
  return true;
}

// The clusters write whole Gi only.
inline long Gibi(const Value& amounts) { return std::stol(amounts["storage"].Str()); }

inline bool IsReservedFor(const Value& volume, const Value& claim) {
  const Value& ref = volume["spec"]["claimRef"];
  return ref["name"] == claim["metadata"]["name"] &&
         ref["namespace"] == claim["metadata"]["namespace"] &&
         (!ref.Has("uid") || ref["uid"] == claim["metadata"]["uid"]);
}

inline bool HasAllModes(const Value& volume, const Value& claim) {
  for (const Value& mode : claim["spec"]["accessModes"].items()) {
    bool has = false;
    for (const Value& each : volume["spec"]["accessModes"].items()) has |= each == mode;
    if (!has) return false;
  }
  return true;
}

// The name of the volume that exists and that the claim gets for the node.
inline std::optional<std::string> Match(const Storage& storage, const Value& claim,
                                        const Value& node, const std::set<std::string>& taken) {
  std::optional<std::string> best;
  long best_size = 0;
  const std::string wanted = claim["spec"]["volumeMode"].Str("Filesystem");
  for (const bool reserved : {true, false}) {
    for (const auto& [name, volume] : storage.volumes) {
      const Value& spec = volume["spec"];
      if (taken.contains(name) || IsReservedFor(volume, claim) != reserved) continue;
      if (!reserved && spec.Has("claimRef")) continue;
      const long size = Gibi(spec["capacity"]);
      if (spec["storageClassName"] != claim["spec"]["storageClassName"] ||
          size < Gibi(claim["spec"]["resources"]["requests"]) ||
          spec["volumeMode"].Str("Filesystem") != wanted ||
          volume["metadata"].Has("deletionTimestamp")) {
        continue;
      }
      if (reserved) return CanReach(volume, node) ? std::optional(name) : std::nullopt;
      const Value& selected = claim["spec"]["selector"]["matchLabels"]["disk"];
      if (volume["status"]["phase"].AsString() != "Available" || !HasAllModes(volume, claim) ||
          !CanReach(volume, node) ||
          (!selected.IsNull() && volume["metadata"]["labels"]["disk"] != selected)) {
        continue;
      }
      if (!best || size < best_size) {
        best = name;
        best_size = size;
      }
    }
  }
  return best;
}

// For each claim of the pod that waits for a pod the volume that it gets, "" for one that is to be
// made; nothing if one of them gets none there.
inline std::optional<std::map<std::string, std::string>> Choose(const Storage& storage,
                                                                const Value& pod,
                                                                const Value& node) {
  const std::string selected = "volume.kubernetes.io/selected-node";
  std::vector<std::string> waiting;
  for (const Named& named : ClaimsOf(pod)) {
    if (WaitsForPod(storage, storage.claims.at(named.key))) waiting.push_back(named.key);
  }
  const auto size = [&](const std::string& key) {
    return Gibi(storage.claims.at(key)["spec"]["resources"]["requests"]);
  };
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](const auto& a, const auto& b) { return size(a) < size(b); });
  std::set<std::string> taken;
  std::map<std::string, std::string> out;
  for (const std::string& key : waiting) {
    const Value& claim = storage.claims.at(key);
    const Value& annotations = claim["metadata"]["annotations"];
    std::optional<std::string> volume;
    if (annotations.Has(selected)) {
      if (annotations[selected] != node["metadata"]["name"]) return std::nullopt;
    } else {
      volume = Match(storage, claim, node, taken);
    }
    if (volume) {
      taken.insert(*volume);
      out[key] = *volume;
      continue;
    }
    const Value& of_claim = storage.classes.at(claim["spec"]["storageClassName"].Str());
    const Value& topologies = of_claim["allowedTopologies"];
    if (of_claim["provisioner"].AsString() == "kubernetes.io/no-provisioner" ||
        (!topologies.empty() && !SomeTermHolds(topologies, "matchLabelExpressions", node))) {
      return std::nullopt;
    }
    out[key] = "";
  }
  return out;
}

// `users`: how many placed pods name each claim. The pod has no ClaimFault().
inline std::vector<std::string> VolumeReasons(const Storage& storage, const Value& pod,
                                              const Value& node,
                                              const std::map<std::string, int>& users) {
  std::vector<std::string> out;
  for (const Named& named : ClaimsOf(pod)) {
    for (const Value& mode : storage.claims.at(named.key)["spec"]["accessModes"].items()) {
      if (mode.AsString() == "ReadWriteOncePod" && users.contains(named.key))
        return {
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
            "access mode"};
    }
  }
  std::vector<Value> bound;  // volumes
  bool missing = false;
  bool conflict = false;
  for (const Named& named : ClaimsOf(pod)) {
    const Value& claim = storage.claims.at(named.key);
    if (!IsBound(claim)) continue;
    const auto volume = storage.volumes.find(claim["spec"]["volumeName"].Str());
    missing = volume == storage.volumes.end();
    conflict = !missing && !CanReach(volume->second, node);
    if (missing || conflict) break;
    bound.push_back(volume->second);
  }
  if (conflict) out.push_back("node(s) had volume node affinity conflict");
  if (!Choose(storage, pod, node))
    out.push_back("node(s) didn't find available persistent volumes to bind");
  if (missing)
    out.push_back("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
  if (!out.empty()) return out;
  for (const Value& volume : bound) {
    if (!InZone(volume, node)) return {"node(s) had no available volume zone"};
  }
  return out;
}

// Writes what was chosen for a pod that is placed there, as the scheduler will.
inline void Write(Storage& storage, const Value& pod, const Value& node) {
  const auto chosen = Choose(storage, pod, node);
  if (!chosen) return;
  for (const auto& [key, name] : *chosen) {
    Value& claim = storage.claims.at(key);
    if (name.empty()) {
      claim = claim.SetPath({"metadata", "annotations", "volume.kubernetes.io/selected-node"},
                            node["metadata"]["name"]);
      continue;
    }
    Value& volume = storage.volumes.at(name);
    volume = volume.SetPath({"spec", "claimRef"},
                            json::Obj({{"namespace", claim["metadata"]["namespace"]},
                                       {"name", claim["metadata"]["name"]},
                                       {"uid", claim["metadata"]["uid"]}}));
  }
}

}  // namespace muster::scheduler::plain
