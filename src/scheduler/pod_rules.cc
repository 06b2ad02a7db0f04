#include "scheduler/pod_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace muster::scheduler {

using cluster::HostPort;
using cluster::IdentityIndex;
using cluster::kNoIndex;
using cluster::NodeIndex;
using cluster::Placement;
using cluster::PodRelations;
using cluster::PodTerm;
using cluster::ShapeIndex;
using cluster::SpreadConstraint;

namespace {

// Upstream's default for hardPodAffinityWeight.
constexpr int64_t kWeightOfRequiredAffinity = 1;

// Only spreads the terms out; what is equal is compared.
uint64_t HashOf(const PodTerm& term) {
  uint64_t hash = Hash64(term.topology_key);
  for (const schema::LabelRequirement& requirement : term.pods.labels.requirements()) {
    hash = Hash64(requirement.key, hash);
    for (const std::string& value : requirement.values) hash = Hash64(value, hash);
  }
  return hash;
}

void TakeOut(std::vector<NodeIndex>& nodes, NodeIndex node) {
  // From the back: what is taken back was placed last.
  const auto found = std::find(nodes.rbegin(), nodes.rend(), node);
  CHECK(found != nodes.rend());
  std::swap(*found, nodes.back());
  nodes.pop_back();
}

}  // namespace

PodRules::PodRules(const cluster::ClusterSnapshot& snapshot)
    : snapshot_(snapshot), volumes_(snapshot), active_(volumes_.active()) {
  for (ShapeIndex shape = 0; shape < snapshot.shape_slots(); ++shape) {
    const PodRelations& relations = snapshot.Shape(shape).constraints.relations;
    active_ |= !relations.IsTrivial();
  }
  if (!active_) return;
  terms_.resize(snapshot.shape_slots());
  claims_of_.resize(snapshot.shape_slots());
  on_by_shape_.resize(snapshot.shape_slots());
  known_.resize(snapshot.identity_slots());
  on_by_identity_.resize(snapshot.identity_slots());
  ports_on_.resize(snapshot.node_slots());
  MakeClaims();
  for (cluster::PlacementIndex index = 0; index < snapshot.placement_slots(); ++index) {
    if (snapshot.At(index).node != kNoIndex) Placed(snapshot.At(index));
  }
}

// Equal terms of many shapes are one claim.
void PodRules::MakeClaims() {
  std::unordered_multimap<uint64_t, size_t> by_hash;
  const auto add = [&](ShapeIndex shape, const PodTerm& term, bool forbids, int64_t weight) {
    const auto [begin, end] = by_hash.equal_range(HashOf(term));
    const auto same = std::find_if(begin, end, [&](const auto& entry) {
      const Claim& claim = claims_[entry.second];
      return claim.forbids == forbids && *claim.term == term;
    });
    const size_t index = same == end ? claims_.size() : same->second;
    if (same == end) {
      by_hash.emplace(HashOf(term), index);
      claims_.push_back({&term, forbids, {}});
    }
    claims_[index].owners.emplace_back(shape, weight);
    claims_of_[shape].emplace_back(index, weight);
  };
  for (ShapeIndex shape = 0; shape < snapshot_.shape_slots(); ++shape) {
    const PodRelations& relations = snapshot_.Shape(shape).constraints.relations;
    for (const PodTerm& term : relations.anti_affinity) add(shape, term, true, 1);
    for (const PodTerm& term : relations.affinity)
      add(shape, term, false, kWeightOfRequiredAffinity);
    for (const cluster::PreferredPodTerm& each : relations.preferred)
      add(shape, each.term, false, each.weight);
  }
}

// -- Counting.

void PodRules::Counter::Add(NodeIndex node, int64_t sign) {
  const uint32_t domain = topology->domain_of[node];
  if (domain == kNoIndex || (spread != nullptr && eligible[node] == 0)) return;
  const int64_t before = count[domain];
  count[domain] += sign;
  total += sign;
  ++moved;
  const bool has_others = topology->nodes_in[domain] > 1;
  switch (kind) {
    case Kind::kWanted:
      // Without any such pod the first of a group may go anywhere.
      if (sign > 0 ? before == 0 && has_others : total == 0) ++loosened;
      break;
    case Kind::kForbidden:
      if (sign < 0 && before == 1 && has_others) ++loosened;
      break;
    case Kind::kSpread: {
      const size_t after = static_cast<size_t>(count[domain]);
      if (after >= domains_with.size()) domains_with.resize(after + 1, 0);
      --domains_with[static_cast<size_t>(before)];
      ++domains_with[after];
      if (sign < 0) {
        smallest = std::min(smallest, after);
        if (has_others) ++loosened;
      } else if (domains_with[smallest] == 0) {
        ++smallest;
        ++loosened;
      }
      break;
    }
    case Kind::kPull:
    case Kind::kPreferredSpread:
      break;
  }
}

bool PodRules::Counter::Allows(NodeIndex node, bool counts_itself) const {
  const int64_t least = domains < spread->min_domains ? 0 : static_cast<int64_t>(smallest);
  const int64_t here = count[topology->domain_of[node]];
  return here + (counts_itself ? 1 : 0) - least <= spread->max_skew;
}

void PodRules::Count(const Placement& placement, int64_t sign) {
  if (!active_) return;
  const NodeIndex node = placement.node;
  volumes_.Count(placement.shape, node, sign);
  for (const HostPort& port : snapshot_.Shape(placement.shape).constraints.relations.ports) {
    std::vector<HostPort>& taken = ports_on_[node];
    if (sign > 0) {
      taken.push_back(port);
    } else {
      taken.erase(std::find(taken.begin(), taken.end(), port));
    }
  }
  const auto& claims = claims_of_[placement.shape];
  for (const auto& [claim, weight] : claims) {
    if (claims_[claim].counter != kNoIndex)
      counters_[claims_[claim].counter].Add(node, sign * weight);
  }
  const auto record = [&](std::vector<NodeIndex>& nodes) {
    if (sign > 0) return nodes.push_back(node);
    TakeOut(nodes, node);
  };
  if (!claims.empty()) record(on_by_shape_[placement.shape]);
  if (placement.identity == kNoIndex) return;
  for (const CounterIndex counter : KnownOf(placement.identity).means)
    counters_[counter].Add(node, sign);
  record(on_by_identity_[placement.identity]);
}

const PodRules::Topology& PodRules::TopologyOf(const std::string& key) {
  const auto [at, added] = topologies_.try_emplace(key);
  Topology& topology = at->second;
  if (!added) return topology;
  topology.domain_of.assign(snapshot_.node_slots(), kNoIndex);
  std::unordered_map<std::string_view, uint32_t> domains;
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node)) continue;
    const std::optional<std::string_view> value = snapshot_.Node(node).labels_view().Find(key);
    if (!value.has_value()) continue;
    const auto [domain, first] =
        domains.try_emplace(*value, static_cast<uint32_t>(topology.nodes_in.size()));
    if (first) topology.nodes_in.push_back(0);
    ++topology.nodes_in[domain->second];
    topology.domain_of[node] = domain->second;
  }
  return topology;
}

PodRules::CounterIndex PodRules::NewCounter(Counter::Kind kind, const std::string& key,
                                            std::vector<const cluster::PodSelector*> selectors) {
  Counter& counter = counters_.emplace_back();
  counter.kind = kind;
  counter.topology = &TopologyOf(key);
  counter.selectors = std::move(selectors);
  counter.count.assign(counter.topology->nodes_in.size(), 0);
  return static_cast<CounterIndex>(counters_.size() - 1);
}

// Counts the pods that the counter means and that are placed already.
void PodRules::CountPlaced(CounterIndex counter) {
  for (IdentityIndex identity = 0; identity < on_by_identity_.size(); ++identity) {
    if (on_by_identity_[identity].empty() || !Means(counter, identity)) continue;
    for (const NodeIndex node : on_by_identity_[identity]) counters_[counter].Add(node, +1);
  }
}

void PodRules::FindEligible(Counter& counter, const cluster::Shape& shape,
                            const std::vector<SpreadConstraint>& constraints) {
  const SpreadConstraint& spread = *counter.spread;
  counter.eligible.assign(snapshot_.node_slots(), 0);
  std::vector<uint8_t> has_domain(counter.count.size(), 0);
  const cluster::PodConstraints& pod = shape.constraints;
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node)) continue;
    const cluster::NodeLabels labels = snapshot_.Node(node).labels_view();
    const bool has_all_keys =
        std::all_of(constraints.begin(), constraints.end(), [&](const SpreadConstraint& each) {
          return each.is_default || labels.Find(each.term.topology_key);
        });
    if (!has_all_keys) continue;
    if (spread.honor_affinity && !cluster::Matches(pod.affinity, labels)) continue;
    if (spread.honor_taints &&
        cluster::FirstUntolerated(snapshot_.Node(node).taints, pod.tolerations) != nullptr) {
      continue;
    }
    const uint32_t domain = counter.topology->domain_of[node];
    if (domain == kNoIndex) continue;
    counter.eligible[node] = 1;
    has_domain[domain] = 1;
  }
  counter.domains = std::count(has_domain.begin(), has_domain.end(), 1);
  counter.domains_with = {counter.domains};
}

std::vector<PodRules::CounterIndex> PodRules::CountSpread(
    Counter::Kind kind, const cluster::Shape& shape,
    const std::vector<SpreadConstraint>& constraints) {
  std::vector<CounterIndex> out;
  for (const SpreadConstraint& spread : constraints) {
    out.push_back(NewCounter(kind, spread.term.topology_key, {&spread.term.pods}));
    counters_.back().spread = &spread;
    FindEligible(counters_.back(), shape, constraints);
    CountPlaced(out.back());
  }
  return out;
}

const PodRules::Terms& PodRules::TermsOf(ShapeIndex shape) {
  Terms& terms = terms_[shape];
  if (terms.known) return terms;
  terms.known = true;
  const PodRelations& relations = snapshot_.Shape(shape).constraints.relations;
  std::vector<const cluster::PodSelector*> all;  // a pod counts if every term means it
  for (const PodTerm& term : relations.affinity) all.push_back(&term.pods);
  for (const PodTerm& term : relations.affinity) {
    terms.affinity.push_back(NewCounter(Counter::Kind::kWanted, term.topology_key, all));
    CountPlaced(terms.affinity.back());
  }
  for (const PodTerm& term : relations.anti_affinity) {
    terms.anti_affinity.push_back(
        NewCounter(Counter::Kind::kForbidden, term.topology_key, {&term.pods}));
    CountPlaced(terms.anti_affinity.back());
  }
  for (const cluster::PreferredPodTerm& each : relations.preferred) {
    terms.preferred.push_back(
        NewCounter(Counter::Kind::kPull, each.term.topology_key, {&each.term.pods}));
    CountPlaced(terms.preferred.back());
  }
  const cluster::Shape& pod = snapshot_.Shape(shape);
  terms.spread = CountSpread(Counter::Kind::kSpread, pod, relations.spread);
  terms.preferred_spread =
      CountSpread(Counter::Kind::kPreferredSpread, pod, relations.preferred_spread);
  return terms;
}

PodRules::CounterIndex PodRules::OwnersOf(Claim& claim) {
  if (claim.counter != kNoIndex) return claim.counter;
  const auto kind = claim.forbids ? Counter::Kind::kForbidden : Counter::Kind::kPull;
  claim.counter = NewCounter(kind, claim.term->topology_key, {});
  for (const auto& [shape, weight] : claim.owners) {
    for (const NodeIndex node : on_by_shape_[shape]) counters_[claim.counter].Add(node, weight);
  }
  return claim.counter;
}

// -- Who is meant by which term.

PodRules::Known& PodRules::KnownOf(IdentityIndex identity) {
  Known& known = known_[identity];
  for (; known.asked < counters_.size(); ++known.asked) {
    const Counter& counter = counters_[known.asked];
    const cluster::PodIdentity& pod = snapshot_.Identity(identity);
    if (counter.selectors.empty()) continue;
    if (counter.spread != nullptr && pod.terminating) continue;
    const bool means =
        std::all_of(counter.selectors.begin(), counter.selectors.end(), [&](const auto* selector) {
          return cluster::Matches(*selector, pod, snapshot_.Namespaces());
        });
    if (means) known.means.push_back(static_cast<CounterIndex>(known.asked));
  }
  return known;
}

bool PodRules::Means(CounterIndex counter, IdentityIndex identity) {
  if (identity == kNoIndex) return false;
  const std::vector<CounterIndex>& means = KnownOf(identity).means;
  return std::binary_search(means.begin(), means.end(), counter);
}

const std::vector<size_t>& PodRules::ClaimsOn(IdentityIndex identity) {
  Known& known = known_[identity];
  if (known.claims_known) return known.claims;
  known.claims_known = true;
  const cluster::PodIdentity& pod = snapshot_.Identity(identity);
  for (size_t claim = 0; claim < claims_.size(); ++claim) {
    if (cluster::Matches(claims_[claim].term->pods, pod, snapshot_.Namespaces()))
      known.claims.push_back(claim);
  }
  return known.claims;
}

LookIndex PodRules::LookOf(ShapeIndex shape, IdentityIndex identity) {
  if (!active_) return kNoIndex;
  const auto [at, added] =
      look_of_.try_emplace(uint64_t{shape} << 32 | identity, LookIndex{kNoIndex});
  if (!added) return at->second;
  Look look;
  look.shape = shape;
  if (identity != kNoIndex) {
    for (const size_t index : ClaimsOn(identity)) {
      Claim& claim = claims_[index];
      (claim.forbids ? look.blockers : look.pullers).push_back(OwnersOf(claim));
    }
  }
  if (snapshot_.Shape(shape).constraints.relations.IsTrivial() && look.blockers.empty() &&
      look.pullers.empty() && !volumes_.Asks(shape)) {
    return kNoIndex;
  }
  const Terms& terms = TermsOf(shape);
  look.affinity = terms.affinity;
  look.anti_affinity = terms.anti_affinity;
  look.spread = terms.spread;
  look.preferred = terms.preferred;
  look.preferred_spread = terms.preferred_spread;
  look.matches_own_affinity = !look.affinity.empty() && Means(look.affinity.front(), identity);
  for (const CounterIndex counter : look.spread)
    look.counts_itself.push_back(Means(counter, identity));
  std::vector<bool> itself = look.counts_itself;
  itself.push_back(look.matches_own_affinity);
  const auto [same, is_new] =
      same_looks_.try_emplace(std::tuple(shape, std::move(itself), look.blockers, look.pullers),
                              static_cast<LookIndex>(looks_.size()));
  if (is_new) looks_.push_back(std::move(look));
  return at->second = same->second;
}

// -- Verdicts.

bool PodRules::PortsCollide(const Look& look, const std::vector<HostPort>& taken) const {
  const std::vector<HostPort>& wanted = snapshot_.Shape(look.shape).constraints.relations.ports;
  return std::any_of(wanted.begin(), wanted.end(), [&](const HostPort& port) {
    return std::any_of(taken.begin(), taken.end(),
                       [&](const HostPort& other) { return cluster::Collide(port, other); });
  });
}

Rule PodRules::CheckPorts(LookIndex index, NodeIndex node) const {
  if (index == kNoIndex) return Rule::kPasses;
  return PortsCollide(looks_[index], ports_on_[node]) ? Rule::kPorts : Rule::kPasses;
}

Rule PodRules::CheckTopology(LookIndex index, NodeIndex node) const {
  if (index == kNoIndex) return Rule::kPasses;
  const Look& look = looks_[index];
  if (volumes_.Asks(look.shape)) {
    const std::vector<Rule> failed = volumes_.Failed(look.shape, node);
    if (!failed.empty()) return failed.front();
  }
  return CheckPods(look, node);
}

std::vector<Rule> PodRules::FailedRules(LookIndex index, NodeIndex node) const {
  if (index == kNoIndex) return {};
  const Look& look = looks_[index];
  std::vector<Rule> failed = volumes_.Failed(look.shape, node);
  if (!failed.empty()) return failed;
  const Rule rule = CheckPods(look, node);
  if (rule != Rule::kPasses) failed.push_back(rule);
  return failed;
}

Rule PodRules::CheckPods(const Look& look, NodeIndex node) const {
  for (size_t i = 0; i < look.spread.size(); ++i) {
    const Counter& counter = counters_[look.spread[i]];
    if (counter.topology->domain_of[node] == kNoIndex) return Rule::kSpreadLabel;
    if (!counter.Allows(node, look.counts_itself[i])) return Rule::kSpread;
  }
  const auto count_here = [&](CounterIndex which) {
    const Counter& counter = counters_[which];
    const uint32_t domain = counter.topology->domain_of[node];
    return domain == kNoIndex ? 0 : counter.count[domain];
  };
  bool all_near = true;
  bool none_anywhere = true;
  for (const CounterIndex which : look.affinity) {
    const Counter& counter = counters_[which];
    if (counter.topology->domain_of[node] == kNoIndex) return Rule::kPodAffinity;
    all_near &= count_here(which) > 0;
    none_anywhere &= counter.total == 0;
  }
  // The first pod of a group that wants to be together has nobody to be near to.
  if (!all_near && !(none_anywhere && look.matches_own_affinity)) return Rule::kPodAffinity;
  for (const CounterIndex which : look.anti_affinity) {
    if (count_here(which) > 0) return Rule::kPodAntiAffinity;
  }
  for (const CounterIndex which : look.blockers) {
    if (count_here(which) > 0) return Rule::kExistingAntiAffinity;
  }
  return Rule::kPasses;
}

uint64_t PodRules::Loosened(LookIndex index) const {
  if (index == kNoIndex) return 0;
  const Look& look = looks_[index];
  uint64_t sum = volumes_.Asks(look.shape) ? volumes_.Loosened() : 0;
  for (const auto* counters : {&look.affinity, &look.anti_affinity, &look.spread, &look.blockers}) {
    for (const CounterIndex counter : *counters) sum += counters_[counter].loosened;
  }
  return sum;
}

// -- Who keeps a pod away.

size_t PodRules::TermCount(LookIndex index) const {
  const Look& look = looks_[index];
  return 2 + look.anti_affinity.size() + look.blockers.size() + look.spread.size();
}

PodRules::CounterIndex PodRules::CounterOf(const Look& look, size_t term) const {
  size_t position = term - 1;
  for (const auto* counters : {&look.anti_affinity, &look.blockers}) {
    if (position < counters->size()) return (*counters)[position];
    position -= counters->size();
  }
  return look.spread[position];
}

uint32_t PodRules::ExcludedDomain(LookIndex index, size_t term, NodeIndex node) const {
  const Look& look = looks_[index];
  if (term == 0) return PortsCollide(look, ports_on_[node]) ? node : kNoIndex;
  if (term + 1 == TermCount(index)) return volumes_.IsInUse(look.shape) ? 0 : kNoIndex;
  const Counter& counter = counters_[CounterOf(look, term)];
  const uint32_t domain = counter.topology->domain_of[node];
  if (domain == kNoIndex) return kNoIndex;
  if (counter.kind != Counter::Kind::kSpread) return counter.count[domain] > 0 ? domain : kNoIndex;
  const size_t position = term - 1 - look.anti_affinity.size() - look.blockers.size();
  return counter.Allows(node, look.counts_itself[position]) ? kNoIndex : domain;
}

uint32_t PodRules::CountsIn(LookIndex index, size_t term, const Placement& placement) {
  const Look& look = looks_[index];
  if (term == 0) {
    const PodRelations& relations = snapshot_.Shape(placement.shape).constraints.relations;
    return PortsCollide(look, relations.ports) ? placement.node : kNoIndex;
  }
  if (term + 1 == TermCount(index))
    return volumes_.Contend(look.shape, placement.shape) ? 0 : kNoIndex;
  const CounterIndex which = CounterOf(look, term);
  const Counter& counter = counters_[which];
  if (counter.kind == Counter::Kind::kSpread && counter.eligible[placement.node] == 0)
    return kNoIndex;
  const auto& claims = claims_of_[placement.shape];
  const auto is_owner = [&](const auto& claim) { return claims_[claim.first].counter == which; };
  const bool counts = counter.selectors.empty()  // then its owners are meant
                          ? std::any_of(claims.begin(), claims.end(), is_owner)
                          : Means(which, placement.identity);
  return counts ? counter.topology->domain_of[placement.node] : kNoIndex;
}

// -- Preferences.

PodRules::Preferred PodRules::PreferredOf(LookIndex index) const {
  Preferred out;
  if (index == kNoIndex) return out;
  const Look& look = looks_[index];
  const auto pull = [&](CounterIndex which, int64_t weight) {
    const Counter& counter = counters_[which];
    out.pulls.push_back({weight, counter.topology, &counter.count});
  };
  const PodRelations& relations = snapshot_.Shape(look.shape).constraints.relations;
  for (size_t i = 0; i < look.preferred.size(); ++i)
    pull(look.preferred[i], relations.preferred[i].weight);
  for (const CounterIndex which : look.pullers) pull(which, 1);
  for (const CounterIndex which : look.preferred_spread) {
    const Counter& counter = counters_[which];
    out.spread.push_back({counter.spread, counter.topology, &counter.count});
  }
  return out;
}

uint64_t PodRules::Moved(LookIndex index) const {
  if (index == kNoIndex) return 0;
  const Look& look = looks_[index];
  uint64_t sum = 0;
  for (const auto* counters : {&look.preferred, &look.pullers, &look.preferred_spread}) {
    for (const CounterIndex counter : *counters) sum += counters_[counter].moved;
  }
  return sum;
}

}  // namespace muster::scheduler
