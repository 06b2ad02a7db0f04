#include "cluster/queues/quota_pool.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::cluster {
namespace {

std::string_view TextOf(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "";
}

// As Go prints a Taint by its String().
std::string TextOf(const Taint& taint) {
  return taint.value.empty()
             ? fmt::format("{{{}  {} <nil>}}", taint.key, TextOf(taint.effect))
             : fmt::format("{{{} {} {} <nil>}}", taint.key, taint.value, TextOf(taint.effect));
}

// What of the pod's rules speaks of labels that the group's flavors have: the rest is the
// scheduler's to look at.
NodeAffinity AboutKeys(const NodeAffinity& affinity,
                       const std::set<std::string, std::less<>>& keys) {
  NodeAffinity out;
  for (const auto& pair : affinity.selector) {
    if (keys.contains(pair.first)) out.selector.push_back(pair);
  }
  for (const NodeSelectorTerm& term : affinity.terms) {
    NodeSelectorTerm kept;
    for (const Requirement& rule : term.expressions) {
      if (keys.contains(rule.key)) kept.expressions.push_back(rule);
    }
    // One of the terms must hold; this one may, whatever the flavor.
    if (kept.expressions.empty()) {
      out.terms.clear();
      out.has_terms = false;
      return out;
    }
    out.terms.push_back(std::move(kept));
    out.has_terms = true;
  }
  return out;
}

// "" if the pods may run on the flavor's nodes.
std::string WhyUnsuitable(const QuotaGroup& group, const Flavors& flavors, const std::string& name,
                          const PodSet& pods) {
  const auto flavor = flavors.find(name);
  if (flavor == flavors.end()) return fmt::format("flavor {} not found", name);
  std::vector<Toleration> tolerations = pods.tolerations;
  tolerations.insert(tolerations.end(), flavor->second.tolerations.begin(),
                     flavor->second.tolerations.end());
  if (const Taint* taint = FirstUntolerated(flavor->second.taints, tolerations))
    return fmt::format("untolerated taint {} in flavor {}", TextOf(*taint), name);
  std::set<std::string, std::less<>> keys;
  for (const QuotaGroup::FlavorQuota& quota : group.flavors) {
    const auto other = flavors.find(quota.flavor);
    if (other == flavors.end()) continue;
    for (const auto& [key, value] : other->second.node_labels) keys.insert(key);
  }
  const Labels& labels = flavor->second.node_labels;
  const auto hostname = labels.find(kHostnameLabel);
  const bool has_hostname = hostname != labels.end();
  const NodeLabels node{labels, has_hostname ? std::string_view(hostname->second) : "",
                        has_hostname, ""};
  if (!Matches(AboutKeys(pods.affinity, keys), node))
    return fmt::format("flavor {} doesn't match node affinity", name);
  return "";
}

// One search for one set of pods.
class Search {
 public:
  Search(const QuotaPool& pool, const Flavors& flavors, const QuotaUsage& used,
         const QuotaUsage& assumed, const PodSet& pods)
      : pool_(pool), flavors_(flavors), used_(used), assumed_(assumed), pods_(pods) {}

  // The flavor of each resource; empty if `reasons` say why not.
  std::map<std::string, std::string> Run() {
    std::map<std::string, std::string> chosen;
    for (const auto& [resource, amount] : Requests()) {
      if (chosen.contains(resource)) continue;
      const QuotaGroup* group = pool_.GroupOf(resource);
      if (group == nullptr) {
        reasons = {fmt::format("resource {} unavailable in ClusterQueue", resource)};
        return {};
      }
      const std::string flavor = FlavorFor(*group);
      if (flavor.empty()) return {};
      for (const auto& [other, other_amount] : Requests()) {
        if (pool_.GroupOf(other) == group) chosen[other] = flavor;
      }
    }
    return chosen;
  }

  // Pods are counted where the pool counts them.
  ResourceList Requests() const {
    ResourceList requests;
    for (const auto& entry : pods_.requests) {
      if (entry.first != resource::kPods || pool_.GroupOf(resource::kPods) != nullptr)
        requests.push_back(entry);
    }
    return requests;
  }

  std::vector<std::string> reasons;

 private:
  std::string FlavorFor(const QuotaGroup& group) {
    for (const QuotaGroup::FlavorQuota& quota : group.flavors) {
      if (std::string why = WhyUnsuitable(group, flavors_, quota.flavor, pods_); !why.empty()) {
        reasons.push_back(std::move(why));
        continue;
      }
      if (Fits(group, quota)) return quota.flavor;
    }
    return "";
  }

  bool Fits(const QuotaGroup& group, const QuotaGroup::FlavorQuota& quota) {
    bool fits = true;
    for (const auto& [resource, wanted] : Requests()) {
      if (pool_.GroupOf(resource) != &group) continue;
      const int64_t nominal = AmountOf(quota.nominal, resource);
      const int64_t assumed = At(assumed_, quota.flavor, resource);
      const int64_t used = At(used_, quota.flavor, resource);
      if (wanted + assumed > nominal) {
        reasons.push_back(fmt::format(
            "insufficient quota for {} in flavor {}, previously considered podsets requests ({}) + "
            "current podset request ({}) > maximum capacity ({})",
            resource, quota.flavor, AmountText(resource, assumed), AmountText(resource, wanted),
            AmountText(resource, nominal)));
        return false;
      }
      if (wanted + assumed + used > nominal) {
        reasons.push_back(
            fmt::format("insufficient unused quota for {} in flavor {}, {} more needed", resource,
                        quota.flavor, AmountText(resource, wanted + assumed + used - nominal)));
        fits = false;
      }
    }
    return fits;
  }

  static int64_t At(const QuotaUsage& usage, const std::string& flavor,
                    const std::string& resource) {
    const auto found = usage.find({flavor, resource});
    return found == usage.end() ? 0 : found->second;
  }

  const QuotaPool& pool_;
  const Flavors& flavors_;
  const QuotaUsage& used_;     // by others
  const QuotaUsage& assumed_;  // by the sets of the workload before this one
  const PodSet& pods_;
};

json::Value AmountsOf(const ResourceList& list) {
  json::Object amounts;
  for (const auto& [resource, amount] : list)
    amounts.emplace_back(resource, AmountText(resource, amount));
  return json::Value(std::move(amounts));
}

}  // namespace

Flavor ToFlavor(const json::Value& resource_flavor) {
  const json::Value& spec = resource_flavor["spec"];
  return {resource_flavor["metadata"]["name"].Str(), ToLabels(spec["nodeLabels"]),
          ToTaints(spec["nodeTaints"]), ToTolerations(spec["tolerations"])};
}

void AddUsage(QuotaUsage& sum, const QuotaUsage& more) {
  for (const auto& [key, amount] : more) sum[key] += amount;
}

void TakeUsage(QuotaUsage& sum, const QuotaUsage& less) {
  for (const auto& [key, amount] : less) sum[key] -= amount;
}

const QuotaGroup* QuotaPool::GroupOf(std::string_view resource) const {
  for (const QuotaGroup& group : groups) {
    if (std::ranges::find(group.resources, resource) != group.resources.end()) return &group;
  }
  return nullptr;
}

QuotaPool ToQuotaPool(const json::Value& cluster_queue) {
  QuotaPool pool;
  pool.name = cluster_queue["metadata"]["name"].Str();
  pool.strict = cluster_queue["spec"]["queueingStrategy"].AsString() == "StrictFIFO";
  for (const json::Value& from : cluster_queue["spec"]["resourceGroups"].items()) {
    QuotaGroup group;
    for (const json::Value& resource : from["coveredResources"].items())
      group.resources.push_back(resource.Str());
    for (const json::Value& flavor : from["flavors"].items()) {
      json::Object nominal;
      for (const json::Value& quota : flavor["resources"].items())
        nominal.emplace_back(quota["name"].Str(), quota["nominalQuota"]);
      group.flavors.push_back(
          {flavor["name"].Str(), ToResourceList(json::Value(std::move(nominal)))});
    }
    pool.groups.push_back(std::move(group));
  }
  return pool;
}

std::vector<PodSet> ToPodSets(const json::Value& workload) {
  std::vector<PodSet> pod_sets;
  for (const json::Value& from : workload["spec"]["podSets"].items()) {
    PodSet pods;
    pods.name = from["name"].Str("main");
    pods.count = std::max<int64_t>(from["count"].AsInt(1), 0);
    for (const auto& [resource, amount] : PodRequests(from["template"]))
      pods.requests.emplace_back(resource,
                                 static_cast<int64_t>(std::min<__int128>(
                                     static_cast<__int128>(amount) * pods.count, kMaxAmount)));
    std::erase_if(pods.requests, [](const auto& entry) { return entry.second == 0; });
    pods.affinity = ToNodeAffinity(from["template"]["spec"]);
    pods.tolerations = ToTolerations(from["template"]["spec"]["tolerations"]);
    pod_sets.push_back(std::move(pods));
  }
  return pod_sets;
}

QuotaUsage UsageOf(const Assignment& assignment) {
  QuotaUsage usage;
  for (const PodSetAssignment& pods : assignment) {
    for (const auto& [resource, amount] : pods.usage) {
      const auto flavor = pods.flavors.find(resource);
      if (flavor != pods.flavors.end()) usage[{flavor->second, resource}] += amount;
    }
  }
  return usage;
}

json::Value AdmissionOf(const QuotaPool& pool, const Assignment& assignment) {
  json::Array pod_sets;
  for (const PodSetAssignment& pods : assignment) {
    json::Object flavors;
    for (const auto& [resource, flavor] : pods.flavors) flavors.emplace_back(resource, flavor);
    pod_sets.push_back(json::Obj({{"name", pods.name},
                                  {"flavors", json::Value(std::move(flavors))},
                                  {"resourceUsage", AmountsOf(pods.usage)},
                                  {"count", pods.count}}));
  }
  return json::Obj(
      {{"clusterQueue", pool.name}, {"podSetAssignments", json::Value(std::move(pod_sets))}});
}

QuotaUsage ReservedBy(const json::Value& workload) {
  Assignment assignment;
  for (const json::Value& from : workload["status"]["admission"]["podSetAssignments"].items()) {
    PodSetAssignment pods;
    for (const auto& [resource, flavor] : from["flavors"].members())
      pods.flavors[resource] = flavor.Str();
    pods.usage = ToResourceList(from["resourceUsage"]);
    assignment.push_back(std::move(pods));
  }
  return UsageOf(assignment);
}

void SortByTurn(std::vector<const json::Value*>& workloads) {
  const auto turn = [](const json::Value* workload) {
    const json::Value& metadata = (*workload)["metadata"];
    return std::tuple(-(*workload)["spec"]["priority"].AsInt(),
                      metadata["creationTimestamp"].AsString(), metadata["namespace"].AsString(),
                      metadata["name"].AsString());
  };
  std::ranges::sort(workloads, {}, turn);
}

std::expected<Assignment, Unassigned> AssignFlavors(const QuotaPool& pool, const Flavors& flavors,
                                                    const QuotaUsage& used,
                                                    const std::vector<PodSet>& pod_sets) {
  Assignment assignment;
  QuotaUsage assumed;
  for (const PodSet& pods : pod_sets) {
    Search search(pool, flavors, used, assumed, pods);
    PodSetAssignment assigned{pods.name, pods.count, search.Run(), search.Requests()};
    if (assigned.flavors.empty() && !assigned.usage.empty()) {
      std::ranges::sort(search.reasons);
      Unassigned why;
      why.message = fmt::format("couldn't assign flavors to pod set {}: {}", pods.name,
                                Join(search.reasons, ", "));
      why.never_fits = !used.empty() && !AssignFlavors(pool, flavors, {}, pod_sets).has_value();
      if (used.empty()) why.never_fits = true;
      return std::unexpected(std::move(why));
    }
    AddUsage(assumed, UsageOf({assigned}));
    assignment.push_back(std::move(assigned));
  }
  return assignment;
}

std::optional<std::vector<size_t>> WhoseEndWouldAdmit(const QuotaPool& pool, const Flavors& flavors,
                                                      const std::vector<QuotaUsage>& holders,
                                                      const std::vector<PodSet>& pod_sets) {
  QuotaUsage used;
  for (const QuotaUsage& holder : holders) AddUsage(used, holder);
  const auto fits = [&] { return AssignFlavors(pool, flavors, used, pod_sets).has_value(); };
  std::vector<size_t> ended;
  for (size_t i = 0; i < holders.size() && !fits(); ++i) {
    TakeUsage(used, holders[i]);
    ended.push_back(i);
  }
  if (!fits()) return std::nullopt;
  // Whose end changes nothing need not end.
  for (size_t i = 0; i < ended.size();) {
    AddUsage(used, holders[ended[i]]);
    if (fits()) {
      ended.erase(ended.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      TakeUsage(used, holders[ended[i]]);
      ++i;
    }
  }
  return ended;
}

}  // namespace muster::cluster
