#include "preference_shapes.h"

#include <string>

namespace muster::scheduler {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;
constexpr int kZones = 10;

cluster::PodTerm WebTerm(std::string_view key) {
  cluster::PodTerm term;
  term.pods.namespaces = {"default"};
  term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {"web"}}});
  term.topology_key = key;
  return term;
}

cluster::NodeSelectorTerm InFirstZone() {
  return {{{std::string(cluster::kZoneLabel), cluster::SelectorOperator::kIn, {"0"}}}, {}};
}

cluster::PodInfo MakePreferring(TestCluster& cluster, const std::string& name,
                                Preference preference) {
  cluster::PodInfo pod = cluster.MakePod(name, {{"cpu", 100}, {"memory", 256 * kMi}});
  pod.labels = {{"app", "web"}};
  cluster::PodConstraints& wants = pod.constraints;
  switch (preference) {
    case Preference::kRequiredNodes:
      wants.affinity.has_terms = true;
      wants.affinity.terms = {InFirstZone()};
      break;
    case Preference::kNodes:
      wants.affinity.preferred = {{100, InFirstZone()}};
      break;
    case Preference::kPodAffinity:
      wants.relations.preferred = {{100, WebTerm(cluster::kZoneLabel)}};
      break;
    case Preference::kPodAntiAffinity:
      wants.relations.preferred = {{-100, WebTerm(cluster::kHostnameLabel)}};
      break;
    case Preference::kSpread:
      wants.relations.preferred_spread = {{WebTerm(cluster::kZoneLabel), 1}};
      break;
    case Preference::kProfile:
      wants.profile = cluster::Profile::kSpread;
      wants.relations.preferred_spread = cluster::DefaultSpread({pod.ns, pod.labels});
      break;
    case Preference::kImages:
      wants.images = {cluster::HashOfImage("web")};
      break;
  }
  return pod;
}

}  // namespace

void FillPreferring(TestCluster& cluster, Preference preference, int nodes, int pods) {
  for (int i = 0; i < nodes; ++i) {
    cluster::NodeInfo node =
        cluster.MakeNode("n" + std::to_string(i), {{"cpu", 16'000}, {"memory", 64 * 1024 * kMi}});
    node.labels[std::string(cluster::kZoneLabel)] = std::to_string(i % kZones);
    if (preference == Preference::kImages && i % kZones == 0)
      node.images = {{cluster::HashOfImage("web"), int64_t{20} << 30}};
    cluster.cache.UpsertNode(std::move(node));
  }
  for (int i = 0; i < pods; ++i)
    cluster.AddPod(MakePreferring(cluster, "r" + std::to_string(i), preference));
  cluster.Plan();
  for (int i = 0; i < pods; ++i)
    cluster.AddPod(MakePreferring(cluster, "p" + std::to_string(i), preference));
}

}  // namespace muster::scheduler
