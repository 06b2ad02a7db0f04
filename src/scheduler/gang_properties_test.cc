// Properties of plans on 10,000 random small clusters, checked against a plain model of their own:
// amounts, selectors and cordons as numbers, gangs, tasks and sub-groups as counts, fitting by
// trying every placement. Nothing of the planner is used to judge it.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/seeds_test_support.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

constexpr uint64_t kSeeds = SeedsOf(10'000);
constexpr size_t kAmounts = 3;  // cpu in milli-cores, GPUs, pods
using Amounts = std::array<int64_t, kAmounts>;
constexpr int kNowhere = -1;

struct ModelNode {
  Amounts offered{};
  char zone = 'a';
  bool cordoned = false;
};

struct ModelPod {
  std::string name;
  int gang = kNowhere;
  std::string task;
  std::string block;  // its sub-group; "" if it is of none
  Amounts wants{};
  char zone = 0;  // only there; 0: anywhere
  int64_t priority = 0;
  int node = kNowhere;  // bound there
  std::vector<size_t> devices;
  bool deleting = false;
};

struct ModelGang {
  std::string name;
  int64_t min_member = 1;
  std::map<std::string, int64_t> min_task_member;
  int64_t min_gpus = 0;  // minResources
  bool has_blocks = false;
  int64_t block_size = 1, min_blocks = 0;
};

struct Model {
  std::vector<ModelNode> nodes;
  std::vector<ModelGang> gangs;
  std::vector<ModelPod> pods;

  std::vector<Amounts> Free() const {
    std::vector<Amounts> free;
    for (const ModelNode& node : nodes) free.push_back(node.offered);
    for (const ModelPod& pod : pods) {
      for (size_t i = 0; i < kAmounts && pod.node != kNowhere; ++i)
        free[static_cast<size_t>(pod.node)][i] -= pod.wants[i];
    }
    return free;
  }
  bool Takes(const std::vector<Amounts>& free, size_t node, const ModelPod& pod) const {
    if (nodes[node].cordoned || (pod.zone != 0 && pod.zone != nodes[node].zone)) return false;
    for (size_t i = 0; i < kAmounts; ++i) {
      if (free[node][i] < pod.wants[i]) return false;
    }
    return true;
  }
};

// -- Making them.

void AddBoundPod(Model& model, ModelPod pod, Rng& rng) {
  const std::vector<Amounts> free = model.Free();
  const size_t node = rng.Below(model.nodes.size());
  for (size_t i = 0; i < kAmounts; ++i) {
    if (free[node][i] < pod.wants[i]) return;
  }
  std::vector<bool> taken(static_cast<size_t>(model.nodes[node].offered[1]), false);
  for (const ModelPod& other : model.pods) {
    if (other.node != static_cast<int>(node)) continue;
    for (const size_t device : other.devices) taken[device] = true;
  }
  for (size_t device = 0; device < taken.size(); ++device) {
    if (!taken[device] && static_cast<int64_t>(pod.devices.size()) < pod.wants[1])
      pod.devices.push_back(device);
  }
  pod.node = static_cast<int>(node);
  model.pods.push_back(std::move(pod));
}

ModelPod RandomPod(const std::string& name, Rng& rng) {
  ModelPod pod;
  pod.name = name;
  pod.wants = {rng.Between(1, 4) * 500, rng.Chance(0.7) ? rng.Between(1, 4) : 0, 1};
  if (rng.Chance(0.15)) pod.zone = rng.Chance(0.5) ? 'a' : 'b';
  return pod;
}

void AddGang(Model& model, Rng& rng) {
  ModelGang gang;
  gang.name = fmt::format("g{}", model.gangs.size());
  const int index = static_cast<int>(model.gangs.size());
  const int64_t pods = rng.Between(1, 5);
  gang.min_member = rng.Between(1, pods + (rng.Chance(0.1) ? 1 : 0));
  const bool has_tasks = rng.Chance(0.4);
  const bool uniform = rng.Chance(0.3);
  const int64_t priority = rng.Between(0, 1);
  std::map<std::string, int64_t> of_task;
  const ModelPod first = RandomPod("", rng);
  for (int64_t i = 0; i < pods; ++i) {
    ModelPod pod = uniform ? first : RandomPod("", rng);
    pod.name = fmt::format("{}-{}", gang.name, i);
    pod.gang = index;
    pod.priority = priority;
    if (has_tasks) {
      pod.task = rng.Chance(0.5) ? "ps" : "worker";
      ++of_task[pod.task];
    }
    if (rng.Chance(0.12)) {
      pod.deleting = rng.Chance(0.3);
      AddBoundPod(model, std::move(pod), rng);
    } else {
      model.pods.push_back(std::move(pod));
    }
  }
  int64_t left = gang.min_member;
  for (const auto& [task, count] : of_task) {
    const int64_t wanted = std::min(rng.Between(0, count), left);
    if (wanted > 0) gang.min_task_member[task] = wanted;
    left -= wanted;
  }
  if (rng.Chance(0.15)) gang.min_gpus = rng.Between(1, 8);
  model.gangs.push_back(std::move(gang));
}

// Divides some gangs into sub-groups; the rest of the model stays as it is.
void AddBlocks(Model& model, Rng rng) {
  for (size_t index = 0; index < model.gangs.size(); ++index) {
    ModelGang& gang = model.gangs[index];
    gang.has_blocks = rng.Chance(0.4);
    if (!gang.has_blocks) continue;
    gang.block_size = rng.Between(1, 3);
    const bool is_small = rng.Chance(0.5);
    std::map<std::string, int64_t> sizes;
    for (ModelPod& pod : model.pods) {
      if (pod.gang != static_cast<int>(index)) continue;
      pod.block = std::array{"", "x", "x", "y", "y"}[rng.Below(5)];
      if (is_small && pod.node == kNowhere) pod.wants = {500, 1, 1};
      if (!pod.block.empty()) ++sizes[pod.block];
    }
    gang.min_blocks = rng.Between(0, static_cast<int64_t>(sizes.size()));
    if (rng.Chance(0.5)) {
      gang.min_member = 1;
      gang.min_task_member.clear();
    }
  }
}

Model RandomModel(uint64_t seed) {
  Rng rng(seed);
  Model model;
  const int64_t nodes = rng.Between(1, 4);
  for (int64_t i = 0; i < nodes; ++i) {
    ModelNode node;
    node.offered = {rng.Between(2, 8) * 500, rng.Chance(0.8) ? rng.Between(1, 6) : 0,
                    rng.Chance(0.1) ? rng.Between(1, 3) : 20};
    node.zone = rng.Chance(0.5) ? 'a' : 'b';
    node.cordoned = rng.Chance(0.05);
    model.nodes.push_back(node);
  }
  const int64_t others = rng.Between(0, 3);
  for (int64_t i = 0; i < others; ++i) {
    ModelPod pod = RandomPod(fmt::format("there-{}", i), rng);
    pod.deleting = rng.Chance(0.3);
    AddBoundPod(model, std::move(pod), rng);
  }
  const int64_t units = rng.Between(1, 5);
  for (int64_t i = 0; i < units; ++i) {
    if (rng.Chance(0.35)) {
      model.pods.push_back(RandomPod(fmt::format("p{}", i), rng));
      model.pods.back().priority = rng.Between(0, 1);
    } else {
      AddGang(model, rng);
    }
  }
  return model;
}

Model RandomModelWithBlocks(uint64_t seed) {
  Model model = RandomModel(seed);
  AddBlocks(model, Rng(seed + 3 * kSeeds));
  return model;
}

// A scheduler that starts with the cluster as the model has it.
struct Started {
  explicit Started(const Model& model) {
    c.config.explain = false;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      const ModelNode& node = model.nodes[i];
      cluster::NodeInfo info =
          c.MakeNode(fmt::format("n{}", i), {{"cpu", node.offered[0]},
                                             {"nvidia.com/gpu", node.offered[1]},
                                             {"pods", node.offered[2]}});
      info.labels["zone"] = std::string(1, node.zone);
      info.unschedulable = node.cordoned;
      c.cache.UpsertNode(info);
    }
    for (const ModelGang& gang : model.gangs) {
      cluster::PodGroupInfo info;
      info.ns = "default";
      info.name = gang.name;
      info.min_member = gang.min_member;
      info.created = Time(seconds(1000));
      for (const auto& [task, wanted] : gang.min_task_member)
        info.min_task_member.push_back({task, wanted});
      if (gang.has_blocks) {
        cluster::SubGroupPolicy policy;
        policy.name = "blocks";
        policy.size = gang.block_size;
        policy.min_sub_groups = gang.min_blocks;
        policy.keys = {"block"};
        info.sub_group_policies.push_back(std::move(policy));
      }
      if (gang.min_gpus > 0) info.min_resources = {{"nvidia.com/gpu", gang.min_gpus}};
      c.cache.UpsertGroup(info);
    }
    for (const ModelPod& pod : model.pods) {
      cluster::PodInfo info = c.MakePod(pod.name, {{"cpu", pod.wants[0]}});
      if (pod.wants[1] > 0)
        cluster::AddTo(info.constraints.requests, {{"nvidia.com/gpu", pod.wants[1]}});
      if (pod.zone != 0) info.constraints.affinity.selector = {{"zone", std::string(1, pod.zone)}};
      if (pod.gang != kNowhere) info.group = model.gangs[static_cast<size_t>(pod.gang)].name;
      info.task = pod.task;
      if (!pod.block.empty()) info.labels = {{"block", pod.block}};
      info.priority = pod.priority;
      info.deleting = pod.deleting;
      if (pod.node != kNowhere) {
        info.node_name = fmt::format("n{}", pod.node);
        for (const size_t device : pod.devices)
          info.assigned_devices["main"]["nvidia.com/gpu"].push_back(
              fmt::format("nvidia.com/gpu-{}", device));
      }
      c.AddPod(info);
    }
  }
  TestCluster c;
};

// -- Judging them.

struct Decision {
  size_t pod = 0;  // in Model::pods
  int node = kNowhere;
  std::vector<size_t> devices;
  bool operator==(const Decision&) const = default;
};

std::vector<Decision> Decide(const Model& model, size_t* looks = nullptr) {
  Started started(model);
  started.c.Plan();
  EXPECT_EQ(started.c.refused, 0u);
  if (looks != nullptr) *looks = started.c.result.search_looks;
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < model.pods.size(); ++i) by_name[model.pods[i].name] = i;
  std::vector<Decision> decisions;
  for (const UnitPlan& plan : started.c.result.units) {
    for (const Assignment& assignment : plan.assignments) {
      const std::string& name = started.c.queue[plan.unit].pods[assignment.pod].key.name;
      decisions.push_back(
          {by_name.at(name), std::stoi(assignment.node.substr(1)), assignment.devices.Positions()});
    }
  }
  return decisions;
}

void Bind(Model& model, const Decision& decision) {
  ModelPod& pod = model.pods[decision.pod];
  EXPECT_EQ(pod.node, kNowhere) << pod.name << " is bound twice";
  EXPECT_FALSE(pod.deleting) << pod.name;
  pod.node = decision.node;
  pod.devices = decision.devices;
}

struct Tally {
  int64_t pods = 0;
  std::map<std::string, int64_t> of_task, of_block;
  void Add(const ModelPod& pod, int64_t count) {
    pods += count;
    of_task[pod.task] += count;
    if (!pod.block.empty()) of_block[pod.block] += count;
  }
};
struct Counts {
  Tally members, occupied;
};
Counts CountOf(const Model& model, size_t gang) {
  Counts counts;
  for (const ModelPod& pod : model.pods) {
    if (pod.gang != static_cast<int>(gang) || pod.deleting) continue;
    counts.members.Add(pod, 1);
    if (pod.node != kNowhere) counts.occupied.Add(pod, 1);
  }
  return counts;
}
bool Meets(const ModelGang& gang, Tally tally) {
  const auto blocks =
      std::count_if(tally.of_block.begin(), tally.of_block.end(),
                    [&](const auto& each) { return each.second >= gang.block_size; });
  return tally.pods >= gang.min_member && blocks >= gang.min_blocks &&
         std::all_of(gang.min_task_member.begin(), gang.min_task_member.end(),
                     [&](const auto& task) { return tally.of_task[task.first] >= task.second; });
}
// Every sub-group that got pods is whole.
bool KeepsBlocks(const ModelGang& gang, Tally was, const Tally& is) {
  return std::all_of(is.of_block.begin(), is.of_block.end(), [&](const auto& each) {
    return each.second == was.of_block[each.first] || each.second >= gang.block_size;
  });
}

void ExpectRoomForAll(const Model& model) {
  for (const Amounts& free : model.Free()) {
    for (const int64_t amount : free) EXPECT_GE(amount, 0);
  }
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    std::vector<int> owners(static_cast<size_t>(model.nodes[node].offered[1]), 0);
    for (const ModelPod& pod : model.pods) {
      if (pod.node != static_cast<int>(node)) continue;
      EXPECT_EQ(static_cast<int64_t>(pod.devices.size()), pod.wants[1]) << pod.name;
      for (const size_t device : pod.devices) EXPECT_EQ(++owners.at(device), 1) << pod.name;
    }
  }
}

// Some choice of the pods from `at` on, each on some node, makes the gang meet its minima.
bool SomePlacement(const Model& model, const ModelGang& gang, const std::vector<size_t>& pods,
                   size_t at, std::vector<Amounts>& free, const Tally& was, Tally& is) {
  if (is.pods > was.pods && Meets(gang, is) && KeepsBlocks(gang, was, is)) return true;
  if (at == pods.size() || is.pods + static_cast<int64_t>(pods.size() - at) < gang.min_member)
    return false;
  const ModelPod& pod = model.pods[pods[at]];
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    if (!model.Takes(free, node, pod)) continue;
    for (size_t i = 0; i < kAmounts; ++i) free[node][i] -= pod.wants[i];
    is.Add(pod, 1);
    const bool found = SomePlacement(model, gang, pods, at + 1, free, was, is);
    is.Add(pod, -1);
    for (size_t i = 0; i < kAmounts; ++i) free[node][i] += pod.wants[i];
    if (found) return true;
  }
  return SomePlacement(model, gang, pods, at + 1, free, was, is);
}

bool GangFits(const Model& model, size_t index) {
  const ModelGang& gang = model.gangs[index];
  Counts counts = CountOf(model, index);
  if (!Meets(gang, counts.members)) return false;
  std::vector<Amounts> free = model.Free();
  std::vector<size_t> pods;
  for (size_t i = 0; i < model.pods.size(); ++i) {
    const ModelPod& pod = model.pods[i];
    if (pod.gang == static_cast<int>(index) && pod.node == kNowhere && !pod.deleting)
      pods.push_back(i);
  }
  int64_t free_gpus = 0;
  for (const Amounts& amounts : free) free_gpus += amounts[1];
  if (counts.occupied.pods == 0 && free_gpus < gang.min_gpus) return false;
  Tally is = counts.occupied;
  return SomePlacement(model, gang, pods, 0, free, counts.occupied, is);
}

// Every gang that got pods has what its minima ask for; returns how many have.
size_t ExpectGangsWhole(const Model& before, const Model& after) {
  size_t started = 0;
  for (size_t i = 0; i < after.gangs.size(); ++i) {
    const Counts was = CountOf(before, i);
    const Counts is = CountOf(after, i);
    if (is.occupied.pods == was.occupied.pods) continue;
    ++started;
    EXPECT_TRUE(Meets(after.gangs[i], is.occupied)) << after.gangs[i].name;
    EXPECT_TRUE(KeepsBlocks(after.gangs[i], was.occupied, is.occupied)) << after.gangs[i].name;
  }
  return started;
}

void ExpectNothingLeftThatFits(const Model& model) {
  const std::vector<Amounts> free = model.Free();
  for (const ModelPod& pod : model.pods) {
    if (pod.node != kNowhere || pod.gang != kNowhere || pod.deleting) continue;
    for (size_t node = 0; node < model.nodes.size(); ++node)
      EXPECT_FALSE(model.Takes(free, node, pod)) << pod.name << " fits n" << node;
  }
  for (size_t gang = 0; gang < model.gangs.size(); ++gang)
    EXPECT_FALSE(GangFits(model, gang)) << model.gangs[gang].name << " fits";
}

Model After(Model model, const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) Bind(model, decision);
  return model;
}

// Some gang has a part of what it needs, and waits for the rest.
bool BegunBefore(const Model& model) {
  for (size_t gang = 0; gang < model.gangs.size(); ++gang) {
    const Counts counts = CountOf(model, gang);
    if (counts.occupied.pods > 0 && !Meets(model.gangs[gang], counts.occupied)) return true;
  }
  return false;
}

TEST(GangProperties, HoldOnTenThousandClusters) {
  size_t decided = 0, started = 0, waiting = 0, searched = 0, tasks = 0, blocks = 0, split = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Model model = RandomModelWithBlocks(seed);
    size_t looks = 0;
    const std::vector<Decision> decisions = Decide(model, &looks);
    EXPECT_EQ(Decide(model), decisions);
    const Model after = After(model, decisions);
    ExpectRoomForAll(after);
    started += ExpectGangsWhole(model, after);
    ExpectNothingLeftThatFits(after);
    EXPECT_TRUE(Decide(after).empty());
    decided += decisions.size();
    searched += looks > 0 ? 1 : 0;
    for (size_t i = 0; i < model.gangs.size(); ++i) {
      const Counts is = CountOf(after, i);
      const int64_t size = model.gangs[i].block_size;
      size_t whole = 0, open = 0;
      for (const auto& [name, members] : is.members.of_block) {
        const auto there = is.occupied.of_block.find(name);
        const bool is_whole = there != is.occupied.of_block.end() && there->second >= size;
        (is_whole ? whole : open) += size > 1 && members >= size ? 1 : 0;
      }
      blocks += whole;
      split += whole > 0 && open > 0 ? 1 : 0;
    }
    for (const ModelGang& gang : model.gangs) tasks += gang.min_task_member.empty() ? 0 : 1;
    for (const ModelPod& pod : after.pods) waiting += pod.node == kNowhere ? 1 : 0;
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  fmt::print(
      "result: gang properties: {} clusters, {} pods placed, {} wait, {} gangs started, {} had "
      "minima of tasks, {} clusters searched, {} sub-groups whole, {} gangs with one that waits\n",
      kSeeds, decided, waiting, started, tasks, searched, blocks, split);
  EXPECT_GT(blocks, kSeeds / 20);
  EXPECT_GT(split, kSeeds / 1000);
  EXPECT_GT(started, kSeeds / 10);
  EXPECT_GT(waiting, kSeeds / 10);
  EXPECT_GT(searched, kSeeds / 100);
  EXPECT_GT(tasks, kSeeds / 10);
}

// The scheduler keeps nothing but what is bound: one that starts after the first few bindings of a
// plan decides the rest as that plan did. (Without sub-groups: a begun one goes before the others.)
TEST(GangProperties, ARestartInTheMiddleOfTheBindingsChangesNothing) {
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Model model = RandomModel(seed);
    size_t looks = 0;
    const std::vector<Decision> decisions = Decide(model, &looks);
    if (decisions.size() < 2) continue;
    Rng rng(seed + kSeeds);
    const auto cut =
        decisions.begin() + static_cast<ptrdiff_t>(1 + rng.Below(decisions.size() - 1));
    const Model half = After(model, {decisions.begin(), cut});
    const std::vector<Decision> rest = Decide(half);
    // What a search found may be found elsewhere; whole it must be all the same (below). A gang
    // that the plan completed goes back to its place in the queue once it is whole.
    if (looks > 0 || BegunBefore(model)) continue;
    EXPECT_EQ(rest, std::vector<Decision>(cut, decisions.end()));
    ++compared;
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  fmt::print("result: gang properties: {} restarts in order, same decisions\n", compared);
  EXPECT_GT(compared, kSeeds / 5);
}

// Bindings are answered in any order: whichever of them were done, what they began is completed.
TEST(GangProperties, ARestartAfterAnyOfTheBindingsCompletesWhatTheyBegan) {
  size_t begun = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Model model = RandomModelWithBlocks(seed);
    Rng rng(seed + 2 * kSeeds);
    std::vector<Decision> done;
    for (const Decision& decision : Decide(model)) {
      if (rng.Chance(0.5)) done.push_back(decision);
    }
    const Model half = After(model, done);
    const Model after = After(half, Decide(half));
    ExpectRoomForAll(after);
    ExpectNothingLeftThatFits(after);
    for (const Decision& decision : done) {
      const int gang = model.pods[decision.pod].gang;
      if (gang == kNowhere) continue;
      const ModelGang& of = model.gangs[static_cast<size_t>(gang)];
      Counts counts = CountOf(after, static_cast<size_t>(gang));
      EXPECT_TRUE(Meets(of, counts.occupied)) << of.name << " stays half";
      const std::string& block = model.pods[decision.pod].block;
      EXPECT_TRUE(block.empty() || counts.occupied.of_block[block] >= of.block_size)
          << block << " of " << of.name << " stays half";
      ++begun;
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(begun, kSeeds / 4);
}

}  // namespace
}  // namespace muster::scheduler
