#include "scheduler/preemption.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "cluster/pod_relations.h"

namespace muster::scheduler {

using cluster::kNoIndex;
using cluster::NodeIndex;

namespace {

// Makes the sum of several priorities larger than any one of them, negative ones too.
constexpr int64_t kPriorityOffset = int64_t{1} << 31;

}  // namespace

PreemptionPlanner::PreemptionPlanner(NodeFinder& finder, const PreemptionFacts& facts,
                                     size_t max_work, Time now)
    : finder_(finder),
      facts_(facts),
      now_(now),
      work_left_(max_work),
      pods_(facts.pods.size()),
      on_node_(finder.snapshot().node_slots()),
      budgets_of_(finder.snapshot().identity_slots()),
      version_(finder.snapshot().node_slots(), 0) {
  ReadFacts();
}

PreemptionPlanner::~PreemptionPlanner() { RollBack(0); }

void PreemptionPlanner::ReadFacts() {
  const cluster::ClusterSnapshot& snapshot = finder_.snapshot();
  for (const DisruptionBudget& budget : facts_.budgets) allowed_.push_back(budget.allowed);
  std::vector<PodId> leaving;
  for (PodId id = 0; id < pods_.size(); ++id) {
    const cluster::PlacedPod& placed = facts_.pods[id];
    if (placed.serial == 0) continue;
    Pod& pod = pods_[id];
    pod.at = id;
    pod.what = snapshot.At(id);
    pod.priority = placed.priority;
    // One that has not started counts as started now, as upstream.
    pod.started = placed.started == Time{} ? now_ : placed.started;
    if (placed.leaving) {
      leaving.push_back(id);
    } else {
      on_node_[pod.what.node].push_back(id);
    }
  }
  in_gang_.resize(facts_.gangs.size());
  grows_.resize(facts_.gangs.size(), false);
  for (uint32_t gang = 0; gang < facts_.gangs.size(); ++gang) {
    const RunningGang& facts = facts_.gangs[gang];
    Surplus& surplus = surplus_.emplace_back();
    surplus.members = facts.count.occupied - facts.min_member;
    for (const TaskCount& task : facts.count.tasks)
      surplus.of_task.push_back(task.occupied - task.min_member);
    const SubGroups& sub_groups = facts.count.sub_groups;
    for (const SubGroupMinimum& policy : sub_groups.policies)
      surplus.of_policy.push_back(-policy.min_sub_groups);
    for (const SubGroup& each : sub_groups.groups) {
      surplus.of_group.push_back(each.occupied - each.size);
      surplus.of_policy[each.policy] += each.IsWhole() ? 1 : 0;
    }
    for (const auto& [id, task, sub_group] : facts.members) {
      if (facts_.pods[id].leaving) continue;
      pods_[id].gang = gang;
      pods_[id].task = task;
      pods_[id].sub_group = sub_group;
      pods_[id].priority = std::max(pods_[id].priority, facts.priority);
      in_gang_[gang].push_back(id);
    }
  }
  for (const PodId id : leaving) TakeOff(id, false);
}

void PreemptionPlanner::Grows(const Unit& unit) {
  const auto name = [](const RunningGang& gang) { return std::tie(gang.ns, gang.name); };
  const auto at = std::ranges::lower_bound(facts_.gangs, std::tie(unit.ns, unit.name), {}, name);
  if (at != facts_.gangs.end() && name(*at) == std::tie(unit.ns, unit.name))
    grows_[static_cast<size_t>(at - facts_.gangs.begin())] = true;
}

// -- Changes.

void PreemptionPlanner::TakeOff(PodId id, bool counts) {
  Pod& pod = pods_[id];
  finder_.Remove(std::exchange(pod.at, kNoIndex));
  journal_.push_back({id, false, counts});
  NoteChange(pod.what.node);
  if (counts) Count(id, -1);
}

void PreemptionPlanner::PutBack(PodId id, bool counts) {
  Pod& pod = pods_[id];
  pod.at = finder_.Place(pod.what.shape, pod.what.node, pod.what.holder, pod.what.devices,
                         pod.what.identity);
  journal_.push_back({id, true, counts});
  NoteChange(pod.what.node);
  if (counts) Count(id, +1);
}

// The pod goes (-1) or stays after all (+1).
void PreemptionPlanner::Count(PodId id, int64_t sign) {
  const uint32_t gang = pods_[id].gang;
  if (gang != kNoIndex) {
    surplus_[gang].Count(pods_[id], sign, facts_.gangs[gang].count.sub_groups);
    dirty_gangs_.push_back(gang);
  }
  for (const size_t budget : BudgetsOf(id)) {
    allowed_[budget] += sign;
    dirty_budgets_.push_back(budget);
  }
}

PreemptionPlanner::PodId PreemptionPlanner::Place(const QueuedPod& pod, NodeIndex node) {
  const cluster::ClusterSnapshot& snapshot = finder_.snapshot();
  const PodId id = static_cast<PodId>(pods_.size());
  pods_.emplace_back();
  pods_[id].what = {node, pod.shape, pod.holder, pod.identity,
                    snapshot.PickDevices(snapshot.Shape(pod.shape), node)};
  PutBack(id, false);
  return id;
}

void PreemptionPlanner::RollBack(size_t changes) {
  while (journal_.size() > changes) {
    const Change change = journal_.back();
    if (change.placed) {
      TakeOff(change.pod, change.counts);
    } else {
      PutBack(change.pod, change.counts);
    }
    journal_.pop_back();  // of the undoing
    journal_.pop_back();
  }
}

void PreemptionPlanner::NoteChange(NodeIndex node) {
  if (searching_) return;
  ++version_[node];
  changes_.push_back(node);
}

// What a budget still allows and what a gang can do without matters wherever their pods are.
void PreemptionPlanner::NoteDependents() {
  const auto unique = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  unique(dirty_gangs_);
  unique(dirty_budgets_);
  for (const uint32_t gang : std::exchange(dirty_gangs_, {})) {
    for (const PodId id : in_gang_[gang]) NoteChange(pods_[id].what.node);
  }
  if (dirty_budgets_.empty()) return;
  const std::vector<size_t> budgets = std::exchange(dirty_budgets_, {});
  for (NodeIndex node = 0; node < on_node_.size(); ++node) {
    const bool concerned = std::any_of(on_node_[node].begin(), on_node_[node].end(), [&](PodId id) {
      const std::vector<size_t>& of = BudgetsOf(id);
      return std::find_first_of(of.begin(), of.end(), budgets.begin(), budgets.end()) != of.end();
    });
    if (concerned) NoteChange(node);
  }
}

const std::vector<size_t>& PreemptionPlanner::BudgetsOf(PodId id) {
  static const std::vector<size_t> kNone;
  const cluster::IdentityIndex identity = pods_[id].what.identity;
  if (facts_.budgets.empty() || identity == kNoIndex) return kNone;
  std::optional<std::vector<size_t>>& known = budgets_of_[identity];
  if (known.has_value()) return *known;
  known.emplace();
  const cluster::PodIdentity& who = finder_.snapshot().Identity(identity);
  for (size_t budget = 0; budget < facts_.budgets.size(); ++budget) {
    const DisruptionBudget& each = facts_.budgets[budget];
    // An empty selector means no pod here, as in kube-scheduler.
    if (each.ns != who.ns || each.pods.empty()) continue;
    const auto find = [&](std::string_view key) { return cluster::FindLabel(who.labels, key); };
    if (each.pods.MatchesBy(find)) known->push_back(budget);
  }
  return *known;
}

// -- Candidates.

PreemptionPlanner::Candidate PreemptionPlanner::MakeCandidate(std::vector<PodId> pods,
                                                              bool breaks_gang) const {
  Candidate out;
  out.gang = pods_[pods.front()].gang;
  if (!breaks_gang) out.sub_group = pods_[pods.front()].sub_group;
  out.breaks_gang = breaks_gang;
  out.priority = INT64_MIN;
  out.started = Time::max();
  for (const PodId id : pods) {
    out.priority = std::max(out.priority, pods_[id].priority);
    out.started = std::min(out.started, pods_[id].started);
  }
  out.pods = std::move(pods);
  return out;
}

void PreemptionPlanner::Broken::Add(const Candidate& candidate) {
  if (candidate.breaks_gang) gangs.push_back(candidate.gang);
  if (candidate.breaks_group) groups.emplace_back(candidate.gang, candidate.sub_group);
}

bool PreemptionPlanner::Broken::TakesAlong(const Candidate& candidate) const {
  if (candidate.gang == kNoIndex || candidate.breaks_gang) return false;
  return std::find(gangs.begin(), gangs.end(), candidate.gang) != gangs.end() ||
         (!candidate.breaks_group &&
          std::find(groups.begin(), groups.end(), std::pair(candidate.gang, candidate.sub_group)) !=
              groups.end());
}

bool PreemptionPlanner::IsMoreImportant(const Candidate& a, const Candidate& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.breaks_gang != b.breaks_gang) return a.breaks_gang;
  if (a.breaks_group != b.breaks_group) return a.breaks_group;
  if (a.started != b.started) return a.started < b.started;
  return a.pods.front() < b.pods.front();
}

void PreemptionPlanner::Surplus::Count(const Pod& pod, int64_t sign, const SubGroups& sub_groups) {
  members += sign;
  if (pod.task != kNoTask) of_task[pod.task] += sign;
  if (pod.sub_group == kNoSubGroup) return;
  int64_t& above = of_group[pod.sub_group];
  const bool was_whole = above >= 0;
  above += sign;
  if (was_whole != (above >= 0)) of_policy[sub_groups.groups[pod.sub_group].policy] += sign;
}

bool PreemptionPlanner::Surplus::Take(const Pod& pod) {
  if (members <= 0 || (pod.task != kNoTask && of_task[pod.task] <= 0)) return false;
  if (pod.sub_group != kNoSubGroup && of_group[pod.sub_group] <= 0) return false;
  --members;
  if (pod.task != kNoTask) --of_task[pod.task];
  if (pod.sub_group != kNoSubGroup) --of_group[pod.sub_group];
  return true;
}

bool PreemptionPlanner::Surplus::TakeGroup(const std::vector<Pod>& pods,
                                           const SubGroups& sub_groups) {
  Surplus then = *this;
  for (const Pod& pod : pods) then.Count(pod, -1, sub_groups);
  const auto lacks = [](const std::vector<int64_t>& now, const std::vector<int64_t>& before) {
    return !std::ranges::equal(now, before,
                               [](int64_t is, int64_t was) { return is == was || is >= 0; });
  };
  if (then.members < 0 || lacks(then.of_task, of_task) || lacks(then.of_policy, of_policy))
    return false;
  *this = std::move(then);
  return true;
}

std::vector<PreemptionPlanner::Candidate> PreemptionPlanner::SubGroupCandidates(
    int64_t unit_priority, const std::set<PodId>& others, Surplus left,
    std::vector<PodId>& rest) const {
  const uint32_t gang = pods_[rest.front()].gang;
  std::vector<size_t> there;
  for (const PodId id : rest) {
    const size_t sub_group = pods_[id].sub_group;
    if (sub_group != kNoSubGroup && std::find(there.begin(), there.end(), sub_group) == there.end())
      there.push_back(sub_group);
  }
  std::vector<Candidate> out;
  for (const size_t sub_group : there) {
    std::vector<PodId> ids;
    std::vector<Pod> pods;
    bool may_go = true;
    for (const PodId id : in_gang_[gang]) {
      const Pod& pod = pods_[id];
      if (pod.at == kNoIndex || pod.sub_group != sub_group || others.contains(id)) continue;
      may_go &= pod.priority < unit_priority;
      ids.push_back(id);
      pods.push_back(pod);
    }
    if (!may_go || !left.TakeGroup(pods, facts_.gangs[gang].count.sub_groups)) continue;
    std::erase_if(rest, [&](PodId id) { return pods_[id].sub_group == sub_group; });
    out.push_back(MakeCandidate(std::move(ids), false));
    out.back().breaks_group = true;
  }
  return out;
}

// The pods of one gang on one node: as many as it can do without one by one, the least important
// ones, then by sub-groups; the others only with all that it has.
void PreemptionPlanner::AddGangCandidates(std::vector<PodId> here, int64_t unit_priority,
                                          std::vector<Candidate>& out) {
  const uint32_t gang = pods_[here.front()].gang;
  std::stable_sort(here.begin(), here.end(), [&](PodId a, PodId b) {
    return std::pair(pods_[a].priority, pods_[b].started) <
           std::pair(pods_[b].priority, pods_[a].started);
  });
  const NodeIndex node = pods_[here.front()].what.node;
  Surplus left = surplus_[gang];
  std::vector<PodId> rest;
  std::set<PodId> in_found;  // with sub-groups: they may have pods elsewhere
  for (const PodId id : here) {
    if (left.Take(pods_[id])) {
      out.push_back(MakeCandidate({id}, false));
      in_found.insert(id);
    } else {
      rest.push_back(id);
    }
  }
  if (grows_[gang]) return;
  int64_t priority = INT64_MIN;  // of the sub-groups
  if (!rest.empty() && !facts_.gangs[gang].count.sub_groups.empty()) {
    work_left_ -= std::min(work_left_, in_gang_[gang].size());
    for (Candidate& each : SubGroupCandidates(unit_priority, in_found, std::move(left), rest)) {
      in_found.insert(each.pods.begin(), each.pods.end());
      priority = std::max(priority, each.priority);
      out.push_back(std::move(each));
    }
  }
  if (rest.empty()) return;
  for (const PodId id : in_gang_[gang]) {
    if (pods_[id].at == kNoIndex) continue;
    if (pods_[id].priority >= unit_priority) return;  // it cannot go as a whole
    if (pods_[id].what.node != node && !in_found.contains(id)) rest.push_back(id);
  }
  work_left_ -= std::min(work_left_, rest.size());
  out.push_back(MakeCandidate(std::move(rest), true));
  out.back().priority = std::max(out.back().priority, priority);
}

std::vector<PreemptionPlanner::Candidate> PreemptionPlanner::CandidatesOn(NodeIndex node,
                                                                          const Unit& unit) {
  std::vector<Candidate> out;
  std::map<uint32_t, std::vector<PodId>> of_gangs;
  for (const PodId id : on_node_[node]) {
    const Pod& pod = pods_[id];
    if (pod.at == kNoIndex || pod.priority >= unit.priority) continue;
    if (pod.gang == kNoIndex) {
      out.push_back(MakeCandidate({id}, false));
      continue;
    }
    const RunningGang& gang = facts_.gangs[pod.gang];
    const bool is_own = unit.is_gang && gang.name == unit.name && gang.ns == unit.ns;
    if (!is_own) of_gangs[pod.gang].push_back(id);
  }
  for (auto& [gang, here] : of_gangs) AddGangCandidates(std::move(here), unit.priority, out);
  work_left_ -= std::min(work_left_, on_node_[node].size());
  return out;
}

// Each pod uses up the budgets that mean it, the most important ones first, as upstream counts.
void PreemptionPlanner::CountViolations(std::vector<Candidate>& candidates) {
  if (facts_.budgets.empty()) return;
  std::vector<int64_t> left = allowed_;
  for (Candidate& candidate : candidates) {
    for (const PodId id : candidate.pods) {
      bool violates = false;
      for (const size_t budget : BudgetsOf(id)) violates |= --left[budget] < 0;
      if (violates) ++candidate.violations;
    }
  }
}

// First those that violate budgets, then the most important ones; but what breaks a gang or a
// sub-group before its other members.
void PreemptionPlanner::SortToPutBack(std::vector<Candidate>& candidates) {
  struct Most {
    bool violates = false;
    int64_t rank = INT64_MIN;
    void Add(const Candidate& candidate) {
      violates |= candidate.violations > 0;
      rank = std::max(rank, candidate.priority);
    }
  };
  std::map<uint32_t, Most> of_gangs;
  std::map<std::pair<uint32_t, size_t>, Most> of_groups;
  for (const Candidate& candidate : candidates) {
    if (candidate.gang == kNoIndex) continue;
    of_gangs[candidate.gang].Add(candidate);
    if (candidate.sub_group != kNoSubGroup)
      of_groups[{candidate.gang, candidate.sub_group}].Add(candidate);
  }
  for (Candidate& candidate : candidates) {
    Most most;
    most.Add(candidate);
    if (candidate.breaks_gang) most = of_gangs[candidate.gang];
    if (candidate.breaks_group) most = of_groups[{candidate.gang, candidate.sub_group}];
    candidate.reprieved_first = most.violates;
    candidate.rank = most.rank;
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.reprieved_first != b.reprieved_first) return a.reprieved_first;
    if (a.rank != b.rank) return a.rank > b.rank;
    if (a.breaks_gang != b.breaks_gang) return a.breaks_gang;
    if (a.breaks_group != b.breaks_group) return a.breaks_group;
    return IsMoreImportant(a, b);
  });
}

PreemptionPlanner::Cost PreemptionPlanner::CostOf(const std::vector<Candidate>& victims,
                                                  NodeIndex node) const {
  Cost cost;
  cost.node = node;
  cost.victims = static_cast<int64_t>(victims.size());
  cost.highest_priority = victims.empty() ? INT64_MIN : victims.front().priority;
  Time started = Time::max();
  for (const Candidate& victim : victims) {
    cost.violations += victim.violations;
    cost.broken_gangs += victim.breaks_gang ? 1 : 0;
    cost.priority_sum += victim.priority + kPriorityOffset;
    if (victim.priority == cost.highest_priority) started = std::min(started, victim.started);
  }
  cost.age = (now_ - started).count();
  return cost;
}

std::optional<PreemptionPlanner::Choice> PreemptionPlanner::Try(const Unit& unit,
                                                                const QueuedPod& pod,
                                                                NodeIndex node) {
  std::vector<Candidate> candidates = CandidatesOn(node, unit);
  if (candidates.empty()) return std::nullopt;
  const size_t mark = journal_.size();
  // Elsewhere they matter only to pods that look at others.
  const bool everywhere = finder_.pod_rules().LookOf(pod.shape, pod.identity) != kNoIndex;
  const auto each = [&](const Candidate& candidate, auto&& change) {
    for (const PodId id : candidate.pods) {
      if (everywhere || pods_[id].what.node == node) change(id);
    }
  };
  const auto take_off = [&](const Candidate& candidate) {
    each(candidate, [&](PodId id) { TakeOff(id, false); });
  };
  searching_ = true;
  for (const Candidate& candidate : candidates) take_off(candidate);
  std::optional<Choice> choice;
  if (finder_.Takes(pod.shape, pod.identity, node)) {
    choice.emplace();
    std::sort(candidates.begin(), candidates.end(), IsMoreImportant);
    CountViolations(candidates);
    SortToPutBack(candidates);
    Broken broken;
    for (Candidate& candidate : candidates) {
      if (!broken.TakesAlong(candidate)) {
        each(candidate, [&](PodId id) { PutBack(id, false); });
        if (finder_.Takes(pod.shape, pod.identity, node)) continue;
        take_off(candidate);
        broken.Add(candidate);
      }
      choice->victims.push_back(std::move(candidate));
    }
    std::sort(choice->victims.begin(), choice->victims.end(), IsMoreImportant);
    choice->cost = CostOf(choice->victims, node);
  }
  RollBack(mark);
  searching_ = false;
  return choice;
}

// -- Nodes.

PreemptionPlanner::Ranking& PreemptionPlanner::RankingOf(const Unit& unit, const QueuedPod& pod) {
  const bool looks = finder_.pod_rules().LookOf(pod.shape, pod.identity) != kNoIndex;
  const RankingKey key{pod.shape, looks ? pod.identity : kNoIndex, unit.priority,
                       unit.is_gang ? unit.KeyText() : ""};
  const cluster::ClusterSnapshot& snapshot = finder_.snapshot();
  Ranking& ranking =
      rankings_.try_emplace(key, Ranking{NodeFilter(snapshot, snapshot.Shape(pod.shape))})
          .first->second;
  // What goes on anywhere may concern it.
  if (looks) ranking.scanned = false;
  return ranking;
}

void PreemptionPlanner::Consider(Ranking& ranking, const Unit& unit, const QueuedPod& pod,
                                 NodeIndex node) {
  const cluster::ClusterSnapshot& snapshot = finder_.snapshot();
  if (!snapshot.HasNode(node) || on_node_[node].empty() || !ranking.filter.Passes(node) ||
      !snapshot.OffersAmounts(snapshot.Shape(pod.shape), node)) {
    return;
  }
  const std::optional<Choice> choice = Try(unit, pod, node);
  if (!choice.has_value()) return;
  ranking.heap.emplace_back(choice->cost, version_[node]);
  std::push_heap(ranking.heap.begin(), ranking.heap.end(), std::greater<>());
}

NodeIndex PreemptionPlanner::BestNode(const Unit& unit, const QueuedPod& pod) {
  NoteDependents();
  Ranking& ranking = RankingOf(unit, pod);
  if (!ranking.scanned) {
    ranking.heap.clear();
    ranking.seen = changes_.size();
    for (NodeIndex node = 0; node < on_node_.size(); ++node) Consider(ranking, unit, pod, node);
    ranking.scanned = true;
  }
  std::vector<NodeIndex> changed(changes_.begin() + static_cast<ptrdiff_t>(ranking.seen),
                                 changes_.end());
  ranking.seen = changes_.size();
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (const NodeIndex node : changed) Consider(ranking, unit, pod, node);
  while (!ranking.heap.empty()) {
    const auto& [cost, version] = ranking.heap.front();
    if (version == version_[cost.node]) return cost.node;
    std::pop_heap(ranking.heap.begin(), ranking.heap.end(), std::greater<>());
    ranking.heap.pop_back();
  }
  return kNoIndex;
}

// -- Units.

// Takes over what was placed.
void PreemptionPlanner::Adopt(const GangAttempt& attempt, Places& places) {
  for (const PlacedPod& placed : attempt.placed) {
    const PodId id = static_cast<PodId>(pods_.size());
    pods_.emplace_back();
    pods_[id].at = placed.placement;
    pods_[id].what = finder_.snapshot().At(placed.placement);
    journal_.push_back({id, true, false});
    NoteChange(pods_[id].what.node);
    places[placed.pod] = id;
  }
}

// Makes room for one pod and places it.
bool PreemptionPlanner::PlaceOneMore(const Unit& unit, size_t position, Places& places,
                                     std::vector<Candidate>& victims) {
  const QueuedPod& pod = unit.pods[position];
  // Those that went for an earlier pod may have left enough.
  NodeIndex node = finder_.Best(pod.shape, pod.identity);
  if (node == kNoIndex) {
    node = BestNode(unit, pod);
    if (node == kNoIndex) return false;
    std::optional<Choice> choice = Try(unit, pod, node);
    CHECK(choice.has_value());
    for (Candidate& victim : choice->victims) {
      for (const PodId id : victim.pods) TakeOff(id, true);
      victims.push_back(std::move(victim));
    }
  }
  places[position] = Place(pod, node);
  return true;
}

// Pods that were placed later may have left earlier victims' room unused.
void PreemptionPlanner::Reprieve(const Unit& unit, Places& places,
                                 std::vector<Candidate>& victims) {
  SortToPutBack(victims);
  Broken broken;
  std::erase_if(victims, [&](const Candidate& victim) {
    const size_t work = unit.pods.size() + victim.pods.size();
    if (broken.TakesAlong(victim)) return false;
    if (work_left_ <= work) {
      broken.Add(victim);
      return false;
    }
    work_left_ -= work;
    const size_t mark = journal_.size();
    for (const auto& [position, id] : places) TakeOff(id, false);
    for (const PodId id : victim.pods) PutBack(id, true);
    if (const GangAttempt attempt = PlaceGang(unit, finder_, search_); !attempt.placed.empty()) {
      places.clear();
      Adopt(attempt, places);
      return true;
    }
    RollBack(mark);
    broken.Add(victim);
    return false;
  });
}

Lack PreemptionPlanner::LackOf(const Unit& unit, const Places& places) {
  if (unit.sub_groups.empty()) return Lack(unit);
  std::vector<bool> placed(unit.pods.size(), false), available(unit.pods.size(), false);
  for (const auto& [position, id] : places) placed[position] = true;
  for (size_t position = 0; position < unit.pods.size(); ++position)
    available[position] = unit.MayBePlaced(unit.pods[position]);
  return Lack(unit, std::move(placed), available);
}

PreemptionPlanner::Outcome PreemptionPlanner::MakeRoom(const Unit& unit, bool may_evict,
                                                       Preemption& out) {
  if (work_left_ == 0) return Outcome::kUndecided;
  const size_t mark = journal_.size();
  Places places;
  std::vector<Candidate> victims;
  if (ShortOf(unit, finder_.snapshot()).has_value()) return Outcome::kNoRoom;
  Adopt(PlaceGang(unit, finder_, search_), places);
  if (places.empty()) {
    Adopt(PlaceWhatFits(unit, finder_), places);
    Lack lack = LackOf(unit, places);
    for (const auto& [position, id] : places) lack.Fill(position);
    for (size_t position = 0; position < unit.pods.size() && !lack.IsFilled(); ++position) {
      if (places.contains(position) || !lack.Fill(position)) continue;
      if (may_evict && PlaceOneMore(unit, position, places, victims)) continue;
      RollBack(mark);
      return Outcome::kNoRoom;
    }
    if (!lack.CanBeFilled()) {
      RollBack(mark);
      return Outcome::kNoRoom;
    }
  }
  if (unit.pods.size() > 1 && !victims.empty()) Reprieve(unit, places, victims);
  const cluster::ClusterSnapshot& snapshot = finder_.snapshot();
  for (const auto& [position, id] : places)
    out.nominations.push_back({position, snapshot.Node(pods_[id].what.node).name});
  for (const Candidate& victim : victims) {
    for (const PodId id : victim.pods)
      out.victims.push_back({id, facts_.pods[id].serial, victim.violations > 0});
  }
  return Outcome::kRoom;
}

}  // namespace muster::scheduler
