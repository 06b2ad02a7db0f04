// src/scheduler/random_storage_test_support.h
//
// Random classes, volumes and claims for the oracle, and pods that name them.
//
// Thread: any.

#pragma once

#include <initializer_list>
#include <string>

#include <fmt/core.h>

#include "base/rng.h"
#include "json/parse.h"
#include "scheduler/plain_volumes_test_support.h"

namespace muster::scheduler {

struct StorageMaker {
  static constexpr int kClaims = 5;  // in each namespace; one more is named by pods and missing

  Rng rng;

  std::string Pick(std::initializer_list<const char*> texts) {
    return *(texts.begin() + rng.Below(texts.size()));
  }
  std::string Maybe(double chance, const std::string& text) {
    return rng.Chance(chance) ? text : "";
  }
  static json::Value Parsed(const std::string& text) { return *json::Parse(text); }

  void AddClasses(plain::Storage& storage) {
    for (const auto& [name, text] : std::initializer_list<std::pair<const char*, const char*>>{
             {"local", R"("provisioner": "kubernetes.io/no-provisioner",
                          "volumeBindingMode": "WaitForFirstConsumer")"},
             {"cloud", R"("provisioner": "csi.example.com",
                          "volumeBindingMode": "WaitForFirstConsumer")"},
             {"zonal", R"("provisioner": "csi.example.com",
                          "volumeBindingMode": "WaitForFirstConsumer",
                          "allowedTopologies": [{"matchLabelExpressions": [
                              {"key": "zone", "values": ["a", "c"]}]}])"},
             {"now", R"("provisioner": "csi.example.com", "volumeBindingMode": "Immediate")"}})
      storage.classes[name] =
          Parsed(fmt::format(R"({{"metadata": {{"name": "{}"}}, {}}})", name, text));
  }

  std::string Affinity() {
    const std::string expression =
        rng.Chance(0.5)
            ? fmt::format(R"("key": "kubernetes.io/hostname", "values": ["h{}", "h{}"])",
                          rng.Between(0, 3), rng.Between(0, 5))
            : fmt::format(R"("key": "zone", "values": ["{}"])", Pick({"a", "b"}));
    return fmt::format(
        R"(, "nodeAffinity": {{"required": {{"nodeSelectorTerms": [
            {{"matchExpressions": [{{"operator": "In", {}}}]}}]}}}})",
        expression);
  }
  std::string Modes() {
    return Pick({R"("ReadWriteOnce")", R"("ReadWriteOnce")", R"("ReadWriteOnce")",
                 R"("ReadWriteOnce", "ReadWriteMany")", R"("ReadWriteOncePod")"});
  }
  json::Value Volume(const std::string& name, const std::string& spec) {
    std::string labels = fmt::format(R"("disk": "{}")", Pick({"ssd", "hdd"}));
    labels += Maybe(0.15, R"(, "topology.kubernetes.io/zone": "a__b")");
    labels += Maybe(0.15, R"(, "failure-domain.beta.kubernetes.io/zone": "b")");
    return Parsed(fmt::format(
        R"({{"metadata": {{"name": "{}", "labels": {{{}}}{}}},
            "spec": {{"capacity": {{"storage": "{}Gi"}}{}{}{}}}, "status": {{"phase": "{}"}}}})",
        name, labels, Maybe(0.04, R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")"),
        rng.Between(1, 4), Maybe(0.05, R"(, "volumeMode": "Block")"),
        rng.Chance(0.5) ? Affinity() : "", spec, rng.Chance(0.9) ? "Available" : "Released"));
  }
  void AddFreeVolumes(plain::Storage& storage) {
    for (int i = 0; i < 6; ++i) {
      const std::string name = fmt::format("v{}", i);
      std::string spec = fmt::format(
          R"(, "storageClassName": "{}", "accessModes": [{}])", Pick({"local", "local", "cloud"}),
          rng.Chance(0.7) ? R"("ReadWriteOnce", "ReadWriteMany")" : Modes());
      if (rng.Chance(0.2)) {
        const std::string ns = Pick({"d", "e"});
        const int64_t claim = rng.Between(0, kClaims);
        spec += fmt::format(
            R"(, "claimRef": {{"namespace": "{}", "name": "c{}"{}}})", ns, claim,
            Maybe(0.5, fmt::format(R"(, "uid": "u-{}-c{}{}")", ns, claim, Maybe(0.3, "-old"))));
      }
      storage.volumes[name] = Volume(name, spec);
    }
  }
  std::string Claim(const std::string& ns, const std::string& name, plain::Storage& storage) {
    std::string metadata, spec, annotations, status;
    if (rng.Chance(0.5)) {
      const std::string volume = fmt::format("b-{}-{}", ns, name);
      spec = fmt::format(R"(, "volumeName": "{}")", volume);
      annotations = Maybe(0.95, R"("pv.kubernetes.io/bind-completed": "yes")");
      if (rng.Chance(0.93)) {
        storage.volumes[volume] = Volume(
            volume, fmt::format(R"(, "claimRef": {{"namespace": "{}", "name": "{}", "uid": "u"}})",
                                ns, name));
      }
      status = Maybe(0.03, R"("phase": "Lost")");
    } else if (rng.Chance(0.15)) {
      annotations =
          fmt::format(R"("volume.kubernetes.io/selected-node": "n{}")", rng.Between(0, 4));
    }
    metadata = Maybe(0.03, R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")");
    spec += Maybe(0.05, R"(, "volumeMode": "Block")");
    spec += Maybe(0.15, R"(, "selector": {"matchLabels": {"disk": "ssd"}})");
    const std::string of_class = rng.Chance(0.08) ? Pick({"now", "missing", ""})
                                                  : Pick({"local", "local", "cloud", "zonal"});
    return fmt::format(
        R"("metadata": {{"namespace": "{}", "name": "{}", "uid": "u-{}-{}",
                         "annotations": {{{}}}{}}},
           "spec": {{"storageClassName": "{}", "accessModes": [{}],
                     "resources": {{"requests": {{"storage": "{}Gi"}}}}{}}},
           "status": {{{}}})",
        ns, name, ns, name, annotations, metadata, of_class, Modes(), rng.Between(1, 3), spec,
        status);
  }
  plain::Storage Make() {
    plain::Storage storage;
    storage.kept = true;
    AddClasses(storage);
    AddFreeVolumes(storage);
    for (const std::string ns : {"d", "e"}) {
      for (int i = 0; i < kClaims; ++i) {
        const std::string name = fmt::format("c{}", i);
        storage.claims[ns + "/" + name] = Parsed("{" + Claim(ns, name, storage) + "}");
      }
    }
    return storage;
  }

  // The pod with volumes. One that runs already names bound claims only.
  json::Value WithVolumes(const json::Value& pod, plain::Storage& storage) {
    const std::string ns = pod["metadata"]["namespace"].Str();
    const std::string name = pod["metadata"]["name"].Str();
    const bool runs = !pod["spec"]["nodeName"].Str().empty();
    std::string volumes;
    for (int64_t i = rng.Between(0, 2); i > 0; --i) {
      const std::string claim =
          fmt::format("c{}", rng.Chance(0.03) ? int64_t{kClaims} : rng.Between(0, kClaims - 1));
      const auto known = storage.claims.find(ns + "/" + claim);
      if (runs && (known == storage.claims.end() || !plain::IsBound(known->second))) continue;
      volumes +=
          fmt::format(R"({}{{"name": "v{}", "persistentVolumeClaim": {{"claimName": "{}"}}}})",
                      volumes.empty() ? "" : ",", i, claim);
    }
    if (!runs && rng.Chance(0.15)) {
      volumes += fmt::format(
          R"({}{{"name": "e", "ephemeral": {{"volumeClaimTemplate": {{"spec": {{}}}}}}}})",
          volumes.empty() ? "" : ",");
      json::Value claim = Parsed("{" + Claim(ns, name + "-e", storage) + "}");
      const std::string owner = rng.Chance(0.85) ? pod["metadata"]["uid"].Str() : "another";
      claim = claim.SetPath(
          {"metadata", "ownerReferences"},
          json::List({json::Obj({{"kind", "Pod"}, {"uid", owner}, {"controller", true}})}));
      if (rng.Chance(0.85)) storage.claims[ns + "/" + name + "-e"] = claim;
    }
    return pod.SetPath({"spec", "volumes"}, Parsed("[" + volumes + "]"));
  }
  json::Value InSomeZone(const json::Value& node) {
    if (rng.Chance(0.4)) return node;
    return node.SetPath(
        {"metadata", "labels",
         Pick({"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"})},
        Pick({"a", "b", "c"}));
  }
};

}  // namespace muster::scheduler
