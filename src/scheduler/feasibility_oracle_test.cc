// A second, plain implementation of the filters, written from the Kubernetes documentation and on
// the objects as users write them: slow loops over all pods, nothing shared with rules.* and
// pod_rules.*. On thousands of random small clusters both must give the same verdict for every node
// and the same reasons, while pods are placed and taken away.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "cluster/cluster_cache.h"
#include "json/parse.h"
#include "scheduler/failures.h"
#include "scheduler/node_finder.h"
#include "scheduler/rules.h"

namespace muster::scheduler {
namespace {

using json::Value;

constexpr int kSeeds = 5'000;

// -- The oracle.

struct World {
  std::vector<Value> nodes;
  std::map<std::string, Value> pods;  // by name; those with spec.nodeName run
  std::map<std::string, Value> namespace_labels;
};

using Text = std::optional<std::string>;

Text Label(const Value& labels, const std::string& key) {
  if (!labels.Has(key)) return std::nullopt;
  return labels[key].Str();
}

bool IsOneOf(const std::string& text, const Value& list) {
  for (const Value& each : list.items()) {
    if (each.AsString() == text) return true;
  }
  return false;
}

std::optional<long> Integer(const std::string& text) {
  char* end = nullptr;
  const long number = strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

bool Holds(const Value& expression, const Text& value) {
  const std::string op = expression["operator"].Str();
  const Value& values = expression["values"];
  if (op == "In") return value && IsOneOf(*value, values);
  if (op == "NotIn") return !value || !IsOneOf(*value, values);
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  const auto have = Integer(value.value_or(""));
  const auto limit = Integer(values.At(0).Str());
  if (!have || !limit) return false;
  return op == "Gt" ? *have > *limit : *have < *limit;
}

bool Selects(const Value& selector, const Value& labels) {
  if (selector.IsNull()) return false;
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    if (Label(labels, std::string(key)) != value.Str()) return false;
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    if (!Holds(expression, Label(labels, expression["key"].Str()))) return false;
  }
  return true;
}

bool MatchesNodeAffinity(const Value& pod, const Value& node) {
  const Value& labels = node["metadata"]["labels"];
  for (const auto& [key, value] : pod["spec"]["nodeSelector"].members()) {
    if (Label(labels, std::string(key)) != value.Str()) return false;
  }
  const Value& required =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required.IsNull()) return true;
  for (const Value& term : required["nodeSelectorTerms"].items()) {
    bool holds = !term["matchExpressions"].empty() || !term["matchFields"].empty();
    for (const Value& expression : term["matchExpressions"].items())
      holds = holds && Holds(expression, Label(labels, expression["key"].Str()));
    for (const Value& field : term["matchFields"].items())
      holds = holds && Holds(field, node["metadata"]["name"].Str());
    if (holds) return true;
  }
  return false;
}

bool Tolerated(const Value& pod, const Value& taint) {
  for (const Value& toleration : pod["spec"]["tolerations"].items()) {
    const bool exists = toleration["operator"].AsString() == "Exists";
    const std::string effect = toleration["effect"].Str();
    if (!effect.empty() && effect != taint["effect"].Str()) continue;
    if (toleration["key"].Str().empty()
            ? exists
            : toleration["key"].Str() == taint["key"].Str() &&
                  (exists || toleration["value"].Str() == taint["value"].Str())) {
      return true;
    }
  }
  return false;
}

// The first taint that keeps the pod away.
Text Untolerated(const Value& pod, const Value& node) {
  for (const Value& taint : node["spec"]["taints"].items()) {
    if (taint["effect"].AsString() == "PreferNoSchedule" || Tolerated(pod, taint)) continue;
    return fmt::format("{{{}: {}}}", taint["key"].Str(), taint["value"].Str());
  }
  return std::nullopt;
}

// cpu in thousandths, all else in ones; the clusters below write only such amounts.
long Amount(const Value& resources, const std::string& name) {
  const std::string text = resources[name].Str("0");
  if (text.ends_with("m")) return std::stol(text);
  if (text.ends_with("Mi")) return std::stol(text) << 20;
  return std::stol(text) * (name == "cpu" ? 1000 : 1);
}

long Demand(const Value& pod, const std::string& name) {
  long running = 0;
  long sidecars = 0;
  long starting = 0;
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    const long own = Amount(container["resources"]["requests"], name);
    if (container["restartPolicy"].AsString() == "Always") {
      sidecars += own;
      starting = std::max(starting, sidecars);
    } else {
      starting = std::max(starting, sidecars + own);
    }
  }
  for (const Value& container : pod["spec"]["containers"].items())
    running += Amount(container["resources"]["requests"], name);
  return std::max(running + sidecars, starting) + Amount(pod["spec"]["overhead"], name);
}

bool RunsOn(const Value& pod, const Value& node) {
  const std::string phase = pod["status"]["phase"].Str();
  return pod["spec"]["nodeName"].Str() == node["metadata"]["name"].Str() && phase != "Succeeded" &&
         phase != "Failed";
}

std::vector<std::string> Lacking(const World& world, const Value& pod, const Value& node) {
  std::vector<std::string> out;
  for (const char* name : {"cpu", "memory", "nvidia.com/gpu", "pods"}) {
    const bool counts_pods = std::string(name) == "pods";
    long free = Amount(node["status"]["allocatable"], name);
    for (const auto& [key, other] : world.pods) {
      if (RunsOn(other, node)) free -= counts_pods ? 1 : Demand(other, name);
    }
    const long wanted = counts_pods ? 1 : Demand(pod, name);
    if (wanted > 0 && wanted > free)
      out.push_back(counts_pods ? "Too many pods" : fmt::format("Insufficient {}", name));
  }
  return out;
}

std::vector<Value> HostPorts(const Value& pod) {
  std::vector<Value> out;
  const auto take = [&](const Value& container) {
    for (const Value& port : container["ports"].items()) {
      if (port["hostPort"].AsInt() > 0) out.push_back(port);
    }
  };
  for (const Value& container : pod["spec"]["containers"].items()) take(container);
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always") take(container);
  }
  return out;
}

bool PortsAreTaken(const World& world, const Value& pod, const Value& node) {
  for (const auto& [key, other] : world.pods) {
    if (!RunsOn(other, node)) continue;
    for (const Value& a : HostPorts(pod)) {
      for (const Value& b : HostPorts(other)) {
        const std::string ip_a = a["hostIP"].Str("0.0.0.0");
        const std::string ip_b = b["hostIP"].Str("0.0.0.0");
        const bool same_ip = ip_a == ip_b || ip_a == "0.0.0.0" || ip_b == "0.0.0.0";
        if (same_ip && a["hostPort"].AsInt() == b["hostPort"].AsInt() &&
            a["protocol"].Str("TCP") == b["protocol"].Str("TCP")) {
          return true;
        }
      }
    }
  }
  return false;
}

bool AgreeOn(const Value& keys, const Value& a, const Value& b) {
  for (const Value& key : keys.items()) {
    const Text value = Label(a, key.Str());
    if (value && Label(b, key.Str()) != value) return false;
  }
  return true;
}

bool DifferOn(const Value& keys, const Value& a, const Value& b) {
  for (const Value& key : keys.items()) {
    const Text value = Label(a, key.Str());
    if (value && Label(b, key.Str()) == value) return false;
  }
  return true;
}

// The term of `owner` means `other`.
bool TermMeans(const World& world, const Value& owner, const Value& term, const Value& other) {
  const std::string ns = other["metadata"]["namespace"].Str();
  const Value& labels = other["metadata"]["labels"];
  const Value& own = owner["metadata"]["labels"];
  const Value& by_selector = term["namespaceSelector"];
  bool in_namespace = IsOneOf(ns, term["namespaces"]);
  if (term["namespaces"].empty() && by_selector.IsNull())
    in_namespace = ns == owner["metadata"]["namespace"].Str();
  in_namespace |= Selects(by_selector, world.namespace_labels.at(ns));
  return in_namespace && Selects(term["labelSelector"], labels) &&
         AgreeOn(term["matchLabelKeys"], own, labels) &&
         DifferOn(term["mismatchLabelKeys"], own, labels);
}

const Value& Required(const Value& pod, const char* kind) {
  return pod["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"];
}

bool AllTermsMean(const World& world, const Value& owner, const Value& other) {
  for (const Value& term : Required(owner, "podAffinity").items()) {
    if (!TermMeans(world, owner, term, other)) return false;
  }
  return true;
}

// Both nodes have the label, with one value.
bool InOneDomain(const std::string& key, const Value& a, const Value& b) {
  const Text value = Label(a["metadata"]["labels"], key);
  return value && value == Label(b["metadata"]["labels"], key);
}

bool SuitsAffinity(const World& world, const Value& pod, const Value& node) {
  const Value& terms = Required(pod, "podAffinity");
  bool some_anywhere = false;
  bool all_here = true;
  for (const Value& term : terms.items()) {
    const std::string key = term["topologyKey"].Str();
    if (!Label(node["metadata"]["labels"], key)) return false;
    bool here = false;
    for (const auto& [name, other] : world.pods) {
      for (const Value& place : world.nodes) {
        if (!RunsOn(other, place) || !AllTermsMean(world, pod, other)) continue;
        some_anywhere |= Label(place["metadata"]["labels"], key).has_value();
        here |= InOneDomain(key, node, place);
      }
    }
    all_here &= here;
  }
  return all_here || (!some_anywhere && AllTermsMean(world, pod, pod));
}

// A term of `owner` forbids `other` next to `place`, seen from `node`.
bool Forbids(const World& world, const Value& owner, const Value& other, const Value& place,
             const Value& node) {
  for (const Value& term : Required(owner, "podAntiAffinity").items()) {
    if (TermMeans(world, owner, term, other) && InOneDomain(term["topologyKey"].Str(), place, node))
      return true;
  }
  return false;
}

Text AffinityReason(const World& world, const Value& pod, const Value& node) {
  if (!SuitsAffinity(world, pod, node)) return "node(s) didn't match pod affinity rules";
  bool forbids = false;
  bool is_forbidden = false;
  for (const auto& [name, other] : world.pods) {
    for (const Value& place : world.nodes) {
      if (!RunsOn(other, place)) continue;
      forbids |= Forbids(world, pod, other, place, node);
      is_forbidden |= Forbids(world, other, pod, place, node);
    }
  }
  if (forbids) return "node(s) didn't match pod anti-affinity rules";
  if (is_forbidden) return "node(s) didn't satisfy existing pods anti-affinity rules";
  return std::nullopt;
}

std::vector<Value> HardConstraints(const Value& pod) {
  std::vector<Value> out;
  for (const Value& constraint : pod["spec"]["topologySpreadConstraints"].items()) {
    if (constraint["whenUnsatisfiable"].AsString() == "DoNotSchedule") out.push_back(constraint);
  }
  return out;
}

bool CountsForSpread(const Value& pod, const Value& constraint, const Value& node) {
  for (const Value& each : HardConstraints(pod)) {
    if (!Label(node["metadata"]["labels"], each["topologyKey"].Str())) return false;
  }
  if (constraint["nodeAffinityPolicy"].Str("Honor") == "Honor" && !MatchesNodeAffinity(pod, node))
    return false;
  return constraint["nodeTaintsPolicy"].Str("Ignore") == "Ignore" || !Untolerated(pod, node);
}

// Upstream counts no pods for the selector {}.
bool SpreadMeans(const Value& pod, const Value& constraint, const Value& other) {
  const Value& selector = constraint["labelSelector"];
  if (selector["matchLabels"].empty() && selector["matchExpressions"].empty()) return false;
  return other["metadata"]["namespace"].Str() == pod["metadata"]["namespace"].Str() &&
         Selects(selector, other["metadata"]["labels"]) &&
         AgreeOn(constraint["matchLabelKeys"], pod["metadata"]["labels"],
                 other["metadata"]["labels"]);
}

Text SpreadReason(const World& world, const Value& pod, const Value& node) {
  for (const Value& constraint : HardConstraints(pod)) {
    const std::string key = constraint["topologyKey"].Str();
    const Text here = Label(node["metadata"]["labels"], key);
    if (!here)
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    std::map<std::string, long> count;
    for (const Value& place : world.nodes) {
      if (!CountsForSpread(pod, constraint, place)) continue;
      long& domain = count[*Label(place["metadata"]["labels"], key)];
      for (const auto& [name, other] : world.pods) {
        if (RunsOn(other, place) && !other["metadata"].Has("deletionTimestamp") &&
            SpreadMeans(pod, constraint, other))
          ++domain;
      }
    }
    long least = count.empty() ? 0 : count.begin()->second;
    for (const auto& [domain, pods] : count) least = std::min(least, pods);
    if (static_cast<long>(count.size()) < constraint["minDomains"].AsInt(1)) least = 0;
    const long itself = SpreadMeans(pod, constraint, pod) ? 1 : 0;
    const long pods_here = count.contains(*here) ? count[*here] : 0;
    if (pods_here + itself - least > constraint["maxSkew"].AsInt())
      return "node(s) didn't match pod topology spread constraints";
  }
  return std::nullopt;
}

// Why the node does not take the pod; empty: it does. In the order of kube-scheduler's filters.
std::vector<std::string> Reasons(const World& world, const Value& pod, const Value& node) {
  const Value cordon =
      *json::Parse(R"({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})");
  if (node["spec"]["unschedulable"].AsBool() && !Tolerated(pod, cordon))
    return {"node(s) were unschedulable"};
  if (const Text taint = Untolerated(pod, node)) return {"node(s) had untolerated taint " + *taint};
  if (!MatchesNodeAffinity(pod, node)) return {"node(s) didn't match Pod's node affinity/selector"};
  if (PortsAreTaken(world, pod, node))
    return {"node(s) didn't have free ports for the requested pod ports"};
  if (const auto lacking = Lacking(world, pod, node); !lacking.empty()) return lacking;
  if (const Text why = SpreadReason(world, pod, node)) return {*why};
  if (const Text why = AffinityReason(world, pod, node)) return {*why};
  return {};
}

// -- Random clusters.

struct Maker {
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
    return fmt::format(
        R"({{"metadata": {{"name": "n{}", "labels": {{{}}}}},
            "spec": {{"unschedulable": {}, "taints": [{}]}},
            "status": {{"allocatable": {{"cpu": "{}", "memory": "{}Mi", "pods": "{}",
                                         "nvidia.com/gpu": "{}"}}}}}})",
        number, labels, rng.Chance(0.07), taints, rng.Between(1, 5), rng.Between(1, 4) * 512,
        rng.Between(2, 6), rng.Between(0, 2));
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
  std::string NodeAffinity() {
    std::string terms;
    for (int64_t i = rng.Between(1, 2); i > 0; --i) {
      std::string term = fmt::format(R"("matchExpressions": [{}])", Expression(true));
      if (rng.Chance(0.3)) {
        term = fmt::format(
            R"("matchFields": [{{"key": "metadata.name", "operator": "{}", "values": ["n{}"]}}])",
            Pick({"In", "NotIn"}), rng.Between(0, 3));
      }
      terms += fmt::format("{}{{{}}}", terms.empty() ? "" : ",", term);
    }
    return fmt::format(R"("nodeAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution":
                           {{"nodeSelectorTerms": [{}]}}}})",
                       terms);
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
  std::string Terms(const char* kind) {
    std::string terms;
    for (int64_t i = rng.Chance(0.2) ? 2 : 1; i > 0; --i) {
      std::string term =
          fmt::format(R"("topologyKey": "{}", "labelSelector": {})", Key(), Selector());
      if (!term.ends_with("null")) {
        term += Maybe(0.1, LabelKeys("matchLabelKeys"));
        term += Maybe(0.1, LabelKeys("mismatchLabelKeys"));
      }
      term += Maybe(0.2, fmt::format(R"(, "namespaces": ["{}"])", Pick({"d", "e"})));
      term += Maybe(0.15, fmt::format(R"(, "namespaceSelector": {})",
                                      Pick({"{}", R"({"matchLabels": {"team": "b"}})"})));
      terms += fmt::format("{}{{{}}}", terms.empty() ? "" : ",", term);
    }
    return fmt::format(R"("{}": {{"requiredDuringSchedulingIgnoredDuringExecution": [{}]}})", kind,
                       terms);
  }
  std::string Spread() {
    std::string out;
    for (int64_t i = rng.Chance(0.3) ? 2 : 1; i > 0; --i) {
      std::string one =
          fmt::format(R"("topologyKey": "{}", "maxSkew": {}, "whenUnsatisfiable": "{}",
                         "labelSelector": {})",
                      i == 2 ? "rack" : Pick({"zone", "kubernetes.io/hostname"}), rng.Between(1, 2),
                      rng.Chance(0.9) ? "DoNotSchedule" : "ScheduleAnyway",
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
        R"({{"name": "c", "ports": [{}],
            "resources": {{"requests": {{{}}}, "limits": {{{}}}}}{}}})",
        ports, requests, gpus ? gpu : "",
        may_be_sidecar ? Maybe(0.5, R"(, "restartPolicy": "Always")") : "");
  }
  std::string Tolerations() {
    return fmt::format(R"({{{}{}"operator": "{}"}})", Maybe(0.7, R"("key": "k", "value": "v", )"),
                       Maybe(0.3, R"("effect": "NoSchedule", )"), Pick({"Exists", "Equal"}));
  }
  // On node `where`; "" for a pod that waits.
  Value Pod(const std::string& name, const std::string& where) {
    std::string affinity;
    const auto add = [&](double chance, const std::string& part) {
      if (rng.Chance(chance)) affinity += (affinity.empty() ? "" : ",") + part;
    };
    add(0.2, NodeAffinity());
    add(0.3, Terms("podAffinity"));
    add(0.3, Terms("podAntiAffinity"));
    std::string inits;
    if (rng.Chance(0.3)) inits = Container(true) + "," + Container(true);
    const bool runs = !where.empty();
    return *json::Parse(fmt::format(
        R"({{"metadata": {{"name": "{}", "uid": "u-{}", "namespace": "{}", "labels": {{{}}}{}}},
            "spec": {{"nodeName": "{}", "containers": [{}], "initContainers": [{}],
                      "affinity": {{{}}}, "tolerations": [{}],
                      "topologySpreadConstraints": [{}]{}{}}},
            "status": {{"phase": "{}"}}}})",
        name, name, Pick({"d", "d", "e"}), Labels(),
        runs ? Maybe(0.15, R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")") : "", where,
        Container(false), inits, affinity, rng.Chance(0.2) ? Tolerations() : "",
        rng.Chance(0.35) ? Spread() : "", Maybe(0.1, R"(, "nodeSelector": {"zone": "a"})"),
        Maybe(0.1, R"(, "overhead": {"cpu": "100m"})"),
        runs ? Pick({"Running", "Running", "Running", "Pending", "Succeeded"}) : "Pending"));
  }
};

// -- The comparison.

std::vector<std::string> OurReasons(PodRules& pod_rules, const cluster::PodRecord& pod,
                                    cluster::NodeIndex node) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  const cluster::Shape& shape = snapshot.Shape(pod.shape);
  NodeFilter filter(snapshot, shape);
  const LookIndex look = pod_rules.LookOf(pod.shape, pod.identity);
  RuleVerdict verdict = filter.Check(node);
  if (verdict.rule == Rule::kPasses) verdict.rule = pod_rules.CheckPorts(look, node);
  if (verdict.rule == Rule::kPasses && !snapshot.FitsAmounts(shape, node)) {
    std::vector<std::string> out;
    for (const char* name : {"cpu", "memory", "nvidia.com/gpu", "pods"}) {
      const cluster::ResourceIndex resource = snapshot.FindResource(name);
      if (shape.AmountOf(resource) <= 0) continue;
      if (snapshot.Free(node, resource) >= shape.AmountOf(resource)) continue;
      out.push_back(std::string(name) == "pods" ? "Too many pods"
                                                : fmt::format("Insufficient {}", name));
    }
    return out;
  }
  if (verdict.rule == Rule::kPasses) verdict.rule = pod_rules.CheckTopology(look, node);
  if (verdict.rule == Rule::kPasses) return {};
  return {ReasonText(verdict)};
}

class FeasibilityOracle : public testing::Test {
 protected:
  void Make(uint64_t seed) {
    Maker make{Rng(seed)};
    world_ = {};
    cache_ = {};
    world_.namespace_labels = {{"d", *json::Parse(R"({"team": "a"})")},
                               {"e", *json::Parse(R"({"team": "b"})")}};
    for (const auto& [ns, labels] : world_.namespace_labels)
      cache_.UpsertNamespace(ns, cluster::ToLabels(labels));
    const int64_t nodes = make.rng.Between(1, 6);
    for (int i = 0; i < nodes; ++i) {
      world_.nodes.push_back(*json::Parse(make.Node(i)));
      cache_.UpsertNode(cluster::ToNodeInfo(world_.nodes.back()));
    }
    const int64_t running = make.rng.Between(0, 8);
    for (int64_t i = 0; i < running; ++i)
      Add(make.Pod(fmt::format("r{}", i), fmt::format("n{}", make.rng.Below(world_.nodes.size()))));
    waiting_.clear();
    for (int64_t i = make.rng.Between(1, 6); i > 0; --i) {
      waiting_.push_back(make.Pod(fmt::format("w{}", i), ""));
      Add(waiting_.back());
    }
    rng_ = make.rng;
  }
  void Add(const Value& pod) {
    world_.pods[pod["metadata"]["name"].Str()] = pod;
    cache_.UpsertPod(cluster::ToPodInfo(pod));
  }
  const cluster::PodRecord& Record(const Value& pod) const {
    return *cache_.FindPod({pod["metadata"]["namespace"].Str(), pod["metadata"]["name"].Str()});
  }

  // Every node, the counts of all nodes, and the choice. Returns the chosen node.
  cluster::NodeIndex Compare(NodeFinder& finder, const Value& pod) {
    const cluster::PodRecord& record = Record(pod);
    std::map<std::string, int64_t> counts;
    std::set<cluster::NodeIndex> feasible;
    for (const Value& node : world_.nodes) {
      const cluster::NodeIndex index = cache_.FindNode(node["metadata"]["name"].AsString());
      const std::vector<std::string> expected = Reasons(world_, pod, node);
      EXPECT_EQ(OurReasons(finder.pod_rules(), record, index), expected)
          << node["metadata"]["name"].Str() << " for " << pod["metadata"]["name"].Str();
      for (const std::string& reason : expected) ++counts[reason];
      if (expected.empty()) feasible.insert(index);
    }
    std::map<std::string, int64_t> ours;
    for (const RuleCount& count :
         CountFailures(finder.pod_rules(), record.shape, record.identity).by_rule)
      ours[count.reason] = count.nodes;
    EXPECT_EQ(ours, counts);
    for (const auto& [reason, nodes] : counts) seen_[reason.substr(0, 60)] += nodes;
    seen_["feasible"] += static_cast<int64_t>(feasible.size());

    const cluster::NodeIndex best = finder.Best(record.shape, record.identity);
    cluster::ClusterSnapshot copy = finder.snapshot();
    EXPECT_EQ(best, NodeFinder(copy).Best(record.shape, record.identity));
    EXPECT_EQ(best != cluster::kNoIndex, !feasible.empty());
    EXPECT_TRUE(best == cluster::kNoIndex || feasible.contains(best));
    return best;
  }

  World world_;
  cluster::ClusterCache cache_;
  std::vector<Value> waiting_;
  Rng rng_{0};
  std::map<std::string, int64_t> seen_;  // nodes by reason
};

TEST_F(FeasibilityOracle, AgreesOnEveryNodeAndReasonWhilePodsComeAndGo) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Make(seed);
    cluster::ClusterSnapshot snapshot = cache_.snapshot();
    NodeFinder finder(snapshot);
    std::vector<std::pair<std::string, cluster::PlacementIndex>> placed;
    for (int step = 0; step < 10; ++step) {
      const Value& pod = waiting_[rng_.Below(waiting_.size())];
      const std::string name = pod["metadata"]["name"].Str();
      if (world_.pods.at(name)["spec"]["nodeName"].Str().empty()) {
        const cluster::NodeIndex node = Compare(finder, pod);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << " step " << step;
        if (node == cluster::kNoIndex) continue;
        const cluster::PodRecord& record = Record(pod);
        placed.emplace_back(name,
                            finder.Place(record.shape, node, record.holder, {}, record.identity));
        world_.pods[name] =
            pod.Set("spec", pod["spec"].Set("nodeName", Value(snapshot.Node(node).name)));
      } else {
        const auto at = std::find_if(placed.begin(), placed.end(),
                                     [&](const auto& entry) { return entry.first == name; });
        finder.Remove(at->second);
        placed.erase(at);
        world_.pods[name] = pod;
      }
    }
  }
  for (const auto& [reason, nodes] : seen_) {
    fmt::print("result: oracle {} {}\n", nodes, reason);
    EXPECT_GT(nodes, 100) << reason;
  }
  EXPECT_GE(seen_.size(), 16u);
}

}  // namespace
}  // namespace muster::scheduler
