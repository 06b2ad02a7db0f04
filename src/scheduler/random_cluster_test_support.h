// src/scheduler/random_cluster_test_support.h
//
// Random small clusters for the oracles, as objects that users could have written, in which every
// rule and preference has something to do.
//
// Thread: any.

#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/rng.h"
#include "cluster/cluster_cache.h"
#include "json/parse.h"
#include "scheduler/node_finder.h"
#include "scheduler/plain_rules_test_support.h"
#include "scheduler/random_storage_test_support.h"

namespace muster::scheduler {

struct ClusterMaker {
  Rng rng;

  std::string Pick(std::initializer_list<const char*> texts) {
    return *(texts.begin() + rng.Below(texts.size()));
  }
  std::string Maybe(double chance, const std::string& text) {
    return rng.Chance(chance) ? text : "";
  }
  // Members of an object, of which any may be missing.
  std::string Labels() {
    std::string out = fmt::format(R"("run": "{}")", Pick({"1", "2"}));
    out += Maybe(0.8, fmt::format(R"(, "app": "{}")", Pick({"x", "y"})));
    return out + Maybe(0.3, fmt::format(R"(, "ver": "{}")", Pick({"1", "2"})));
  }
  std::string Node(int number) {
    std::string labels = fmt::format(R"("n": "{}")", number);
    labels += Maybe(
        0.9, fmt::format(R"(, "kubernetes.io/hostname": "h{}")", rng.Chance(0.9) ? number : 0));
    labels += Maybe(0.8, fmt::format(R"(, "zone": "{}")", Pick({"a", "b", "c"})));
    labels += Maybe(0.5, fmt::format(R"(, "rack": "{}")", Pick({"1", "2", "3", "x"})));
    std::string taints;
    if (rng.Chance(0.2)) {
      taints = fmt::format(R"({{"key": "{}", "value": "{}", "effect": "{}"}})", Pick({"k", "l"}),
                           Pick({"v", "w"}), Pick({"NoSchedule", "NoExecute", "PreferNoSchedule"}));
    }
    if (rng.Chance(0.3)) {
      taints += fmt::format(R"({}{{"key": "{}", "value": "v", "effect": "PreferNoSchedule"}})",
                            taints.empty() ? "" : ",", Pick({"k", "m"}));
    }
    std::string images;
    for (const char* name : {"a:latest", "reg/b:1"}) {
      if (rng.Chance(0.6)) continue;
      images +=
          fmt::format(R"({}{{"names": ["{}", "{}-too"], "sizeBytes": {}}})",
                      images.empty() ? "" : ",", name, name, rng.Between(1, 30) * 100'000'000);
    }
    return fmt::format(
        R"({{"metadata": {{"name": "n{}", "labels": {{{}}}}},
            "spec": {{"unschedulable": {}, "taints": [{}]}},
            "status": {{"allocatable": {{"cpu": "{}", "memory": "{}Mi", "pods": "{}",
                                         "nvidia.com/gpu": "{}"}},
                          "images": [{}]}}}})",
        number, labels, rng.Chance(0.07), taints, rng.Between(1, 5), rng.Between(1, 4) * 512,
        rng.Between(2, 6), rng.Between(0, 2), images);
  }
  std::string Expression(bool of_nodes) {
    const std::string key = of_nodes ? Pick({"zone", "rack", "kubernetes.io/hostname", "n"})
                                     : Pick({"app", "ver", "run"});
    const std::string op = of_nodes ? Pick({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})
                                    : Pick({"In", "NotIn", "Exists", "DoesNotExist"});
    std::string values;
    if (op == "Gt" || op == "Lt") values = Pick({"\"1\"", "\"2\""});
    if (op == "In" || op == "NotIn")
      values = of_nodes ? Pick({R"("a", "1")", R"("b", "2", "h1")", R"("h0", "x")"})
                        : Pick({R"("x", "1")", R"("y")", R"("2")"});
    return fmt::format(R"({{"key": "{}", "operator": "{}", "values": [{}]}})", key, op, values);
  }
  std::string NodeTerm() {
    if (rng.Chance(0.7)) return fmt::format(R"({{"matchExpressions": [{}]}})", Expression(true));
    return fmt::format(
        R"({{"matchFields": [{{"key": "metadata.name", "operator": "{}", "values": ["n{}"]}}]}})",
        Pick({"In", "NotIn"}), rng.Between(0, 3));
  }
  // One or two, each made by `make`.
  template <class Make>
  std::string Some(Make make) {
    std::string out = make();
    if (rng.Chance(0.3)) out += "," + make();
    return out;
  }
  std::string Weighted(const char* member, const std::string& what) {
    return fmt::format(R"({{"weight": {}, "{}": {}}})", rng.Chance(0.5) ? 100 : rng.Between(1, 99),
                       member, what);
  }
  std::string NodeAffinity() {
    std::string out;
    if (rng.Chance(0.5)) {
      out = fmt::format(
          R"("requiredDuringSchedulingIgnoredDuringExecution": {{"nodeSelectorTerms": [{}]}})",
          Some([&] { return NodeTerm(); }));
    }
    if (rng.Chance(0.7)) {
      out += fmt::format(R"({}"preferredDuringSchedulingIgnoredDuringExecution": [{}])",
                         out.empty() ? "" : ",",
                         Some([&] { return Weighted("preference", NodeTerm()); }));
    }
    return fmt::format(R"("nodeAffinity": {{{}}})", out);
  }
  std::string Selector() {
    if (rng.Chance(0.05)) return "null";
    if (rng.Chance(0.1)) return "{}";
    if (rng.Chance(0.6))
      return fmt::format(R"({{"matchLabels": {{"app": "{}"}}}})", Pick({"x", "y"}));
    return fmt::format(R"({{"matchExpressions": [{}]}})", Expression(false));
  }
  std::string Key() { return Pick({"zone", "zone", "kubernetes.io/hostname", "rack"}); }
  std::string LabelKeys(const char* member) {
    return fmt::format(R"(, "{}": ["{}"])", member, Pick({"run", "ver"}));
  }
  std::string PodTerm() {
    std::string term =
        fmt::format(R"("topologyKey": "{}", "labelSelector": {})", Key(), Selector());
    if (!term.ends_with("null")) {
      term += Maybe(0.1, LabelKeys("matchLabelKeys"));
      term += Maybe(0.1, LabelKeys("mismatchLabelKeys"));
    }
    term += Maybe(0.2, fmt::format(R"(, "namespaces": ["{}"])", Pick({"d", "e"})));
    term += Maybe(0.15, fmt::format(R"(, "namespaceSelector": {})",
                                    Pick({"{}", R"({"matchLabels": {"team": "b"}})"})));
    return fmt::format("{{{}}}", term);
  }
  std::string Terms(const char* kind) {
    std::string out;
    if (rng.Chance(0.6)) {
      out = fmt::format(R"("requiredDuringSchedulingIgnoredDuringExecution": [{}])",
                        Some([&] { return PodTerm(); }));
    }
    if (rng.Chance(0.5)) {
      out += fmt::format(R"({}"preferredDuringSchedulingIgnoredDuringExecution": [{}])",
                         out.empty() ? "" : ",",
                         Some([&] { return Weighted("podAffinityTerm", PodTerm()); }));
    }
    return fmt::format(R"("{}": {{{}}})", kind, out);
  }
  std::string Spread() {
    std::string out;
    for (int64_t i = rng.Chance(0.3) ? 2 : 1; i > 0; --i) {
      std::string one =
          fmt::format(R"("topologyKey": "{}", "maxSkew": {}, "whenUnsatisfiable": "{}",
                         "labelSelector": {})",
                      i == 2 ? "rack" : Pick({"zone", "kubernetes.io/hostname"}), rng.Between(1, 2),
                      rng.Chance(0.5) ? "DoNotSchedule" : "ScheduleAnyway",
                      rng.Chance(0.7) ? R"({"matchLabels": {"app": "x"}})" : Selector());
      if (!one.ends_with("null") && !one.ends_with("{}"))
        one += Maybe(0.2, LabelKeys("matchLabelKeys"));
      one += Maybe(0.2, fmt::format(R"(, "minDomains": {})", rng.Between(1, 4)));
      one += Maybe(0.2, R"(, "nodeAffinityPolicy": "Ignore")");
      one += Maybe(0.3, R"(, "nodeTaintsPolicy": "Honor")");
      out += fmt::format("{}{{{}}}", out.empty() ? "" : ",", one);
    }
    return out;
  }
  std::string Container(bool may_be_sidecar) {
    std::string ports;
    if (rng.Chance(0.2)) {
      ports = fmt::format(R"({{"containerPort": 80, "hostPort": {}{}{}}})", rng.Between(0, 2),
                          Maybe(0.3, R"(, "protocol": "UDP")"),
                          Maybe(0.3, fmt::format(R"(, "hostIP": "{}")",
                                                 Pick({"10.0.0.1", "10.0.0.2", "0.0.0.0"}))));
    }
    std::string requests = fmt::format(R"("cpu": "{}m")", rng.Between(1, 8) * 100);
    requests += Maybe(0.5, fmt::format(R"(, "memory": "{}Mi")", rng.Between(1, 4) * 64));
    const std::string gpu = fmt::format(R"("nvidia.com/gpu": "{}")", rng.Between(0, 1));
    const bool gpus = rng.Chance(0.2);
    if (gpus) requests += ", " + gpu;
    return fmt::format(
        R"({{"name": "c", "image": "{}", "ports": [{}],
            "resources": {{"requests": {{{}}}, "limits": {{{}}}}}{}}})",
        Pick({"a", "reg/b:1", "reg/c"}), ports, requests, gpus ? gpu : "",
        may_be_sidecar ? Maybe(0.5, R"(, "restartPolicy": "Always")") : "");
  }
  std::string Tolerations() {
    return fmt::format(R"({{{}{}"operator": "{}"}})", Maybe(0.7, R"("key": "k", "value": "v", )"),
                       Maybe(0.3, R"("effect": "NoSchedule", )"), Pick({"Exists", "Equal"}));
  }
  // On node `where`; "" for a pod that waits.
  json::Value Pod(const std::string& name, const std::string& where) {
    std::string affinity;
    const auto add = [&](double chance, const std::string& part) {
      if (rng.Chance(chance)) affinity += (affinity.empty() ? "" : ",") + part;
    };
    add(0.35, NodeAffinity());
    add(0.4, Terms("podAffinity"));
    add(0.4, Terms("podAntiAffinity"));
    std::string inits;
    if (rng.Chance(0.3)) inits = Container(true) + "," + Container(true);
    const bool runs = !where.empty();
    return *json::Parse(fmt::format(
        R"({{"metadata": {{"name": "{}", "uid": "u-{}", "namespace": "{}", "labels": {{{}}}{}}},
            "spec": {{"nodeName": "{}", "schedulerName": "{}", "containers": [{}],
                      "initContainers": [{}],
                      "affinity": {{{}}}, "tolerations": [{}],
                      "topologySpreadConstraints": [{}]{}{}}},
            "status": {{"phase": "{}"}}}})",
        name, name, Pick({"d", "d", "e"}), Labels(),
        runs ? Maybe(0.15, R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")") : "", where,
        Pick({"default-scheduler", "default-scheduler", "muster-spread"}), Container(false), inits,
        affinity, rng.Chance(0.2) ? Tolerations() : "", rng.Chance(0.45) ? Spread() : "",
        Maybe(0.1, R"(, "nodeSelector": {"zone": "a"})"),
        Maybe(0.1, R"(, "overhead": {"cpu": "100m"})"),
        runs ? Pick({"Running", "Running", "Running", "Pending", "Succeeded"}) : "Pending"));
  }
};

// A random cluster twice: as objects, and as the scheduler keeps it.
class RandomCluster {
 public:
  // With storage, pods also name claims.
  explicit RandomCluster(uint64_t seed, bool with_storage = false)
      : make_{Rng(seed)}, make_storage_{Rng(seed)} {
    if (with_storage) world.storage = make_storage_.Make();
    world.namespace_labels = {{"d", *json::Parse(R"({"team": "a"})")},
                              {"e", *json::Parse(R"({"team": "b"})")}};
    for (const auto& [ns, labels] : world.namespace_labels)
      cache.UpsertNamespace(ns, cluster::ToLabels(labels));
    const int64_t nodes = make_.rng.Between(1, 6);
    for (int i = 0; i < nodes; ++i) {
      world.nodes.push_back(*json::Parse(make_.Node(i)));
      if (with_storage) world.nodes.back() = make_storage_.InSomeZone(world.nodes.back());
      cache.UpsertNode(cluster::ToNodeInfo(world.nodes.back()));
    }
    const int64_t running = make_.rng.Between(0, 8);
    for (int64_t i = 0; i < running; ++i) {
      Add(make_.Pod(fmt::format("r{}", i),
                    fmt::format("n{}", make_.rng.Below(world.nodes.size()))));
    }
    for (int64_t i = make_.rng.Between(1, 6); i > 0; --i)
      waiting_.push_back(Add(make_.Pod(fmt::format("w{}", i), "")));
    if (with_storage) KeepStorage();
  }

  const cluster::PodRecord& Record(const json::Value& pod) const {
    return *cache.FindPod({pod["metadata"]["namespace"].Str(), pod["metadata"]["name"].Str()});
  }

  // In each step a waiting pod is placed where `choose(finder, pod)` says (kNoIndex: nowhere), or
  // taken back.
  template <class Choose>
  void Play(int steps, Choose choose) {
    cluster::ClusterSnapshot snapshot = cache.snapshot();
    NodeFinder finder(snapshot);
    std::map<std::string, cluster::PlacementIndex> placed;
    for (int step = 0; step < steps; ++step) {
      const json::Value& pod = waiting_[make_.rng.Below(waiting_.size())];
      const std::string name = pod["metadata"]["name"].Str();
      if (const auto at = placed.find(name); at != placed.end()) {
        finder.Remove(at->second);
        placed.erase(at);
        world.pods[name] = pod;
        GiveVolumesBack(pod);
        continue;
      }
      const cluster::NodeIndex node = choose(finder, pod);
      if (node == cluster::kNoIndex) continue;
      const cluster::PodRecord& record = Record(pod);
      placed[name] = finder.Place(record.shape, node, record.holder, {}, record.identity);
      world.pods[name] =
          pod.Set("spec", pod["spec"].Set("nodeName", json::Value(snapshot.Node(node).name)));
      if (world.storage.kept) plain::Write(world.storage, pod, world.nodes[node]);
    }
  }

  plain::World world;  // the index of a node is its position there
  cluster::ClusterCache cache;

 private:
  json::Value Add(json::Value pod) {
    if (world.storage.kept) pod = make_storage_.WithVolumes(pod, world.storage);
    world.pods[pod["metadata"]["name"].Str()] = pod;
    cache.UpsertPod(cluster::ToPodInfo(pod));
    return pod;
  }

  void KeepStorage() {
    at_first_ = world.storage;
    cache.KeepStorage();
    for (const auto& [key, claim] : world.storage.claims)
      cache.UpsertClaim(cluster::ToClaimInfo(claim));
    for (const auto& [name, volume] : world.storage.volumes)
      cache.UpsertVolume(cluster::ToVolumeInfo(volume));
    for (const auto& [name, each] : world.storage.classes)
      cache.UpsertStorageClass(cluster::ToStorageClassInfo(each));
  }

  // Of claims that no pod names any more that was placed in between.
  void GiveVolumesBack(const json::Value& pod) {
    const std::map<std::string, int> users = plain::ClaimUsers(world);
    for (const plain::Named& named : plain::ClaimsOf(pod)) {
      const auto claim = world.storage.claims.find(named.key);
      if (claim == world.storage.claims.end() || users.contains(named.key)) continue;
      for (auto& [name, volume] : world.storage.volumes) {
        if (plain::IsReservedFor(volume, claim->second)) volume = at_first_.volumes.at(name);
      }
      claim->second = at_first_.claims.at(named.key);
    }
  }

  ClusterMaker make_;
  StorageMaker make_storage_;
  plain::Storage at_first_;
  std::vector<json::Value> waiting_;
};

}  // namespace muster::scheduler
