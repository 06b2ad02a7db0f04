#include "scheduler/linked_nodes.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kFourGpus = {{"cpu", 8000}, {"nvidia.com/gpu", 4}};
const cluster::ResourceList kTwoGpus = {{"cpu", 1000}, {"nvidia.com/gpu", 2}};

// "plain" comes first in the order of nodes, "paired" has links 0-1 and 2-3.
struct TwoNodes : TestCluster {
  TwoNodes() {
    cache.UpsertNode(MakeNode("plain", kFourGpus));
    cluster::NodeInfo paired = MakeNode("paired", kFourGpus);
    LinkDevices(paired, {{0, 1}, {2, 3}});
    cache.UpsertNode(paired);
  }
  std::string Place(const std::string& pod, const cluster::ResourceList& requests) {
    AddPod(pod, requests);
    Plan();
    return NodeOf(pod);
  }
};

TEST(LinkedNodes, APodOfTwoGoesWhereTwoAreJoined) {
  TwoNodes c;
  EXPECT_EQ(c.Place("pair", kTwoGpus), "paired");
  EXPECT_EQ(c.DevicesOf("pair"), (std::vector<size_t>{0, 1}));
}

TEST(LinkedNodes, APodOfOneOrOfMoreThanAreJoinedGoesAsBefore) {
  TwoNodes c;
  EXPECT_EQ(c.Place("one", {{"cpu", 1000}, {"nvidia.com/gpu", 1}}), "plain");
  TwoNodes other;
  EXPECT_EQ(other.Place("three", {{"cpu", 1000}, {"nvidia.com/gpu", 3}}), "plain");
}

TEST(LinkedNodes, WhatIsFreeCountsNotWhatIsThere) {
  TwoNodes c;
  cluster::NodeInfo broken = c.MakeNode("broken", kFourGpus);
  c.LinkDevices(broken, {{0, 1}, {2, 3}});
  broken.devices[1].unhealthy = "XID 79";
  broken.devices[3].unhealthy = "XID 79";
  cluster::AddTo(broken.allocatable, {{"nvidia.com/gpu", -2}});
  c.cache.UpsertNode(broken);
  // Links come before the fullest node.
  EXPECT_EQ(c.Place("a", kTwoGpus), "paired");
  EXPECT_EQ(c.Place("b", kTwoGpus), "paired");
  EXPECT_EQ(c.Place("c", kTwoGpus), "broken");
  EXPECT_EQ(c.Place("d", kTwoGpus), "plain");
}

TEST(LinkedNodes, NodesThatDifferInNothingElseAreToldApart) {
  // In a pass over many nodes that look alike by their amounts.
  TestCluster c;
  c.AddNodes(200, kFourGpus);
  cluster::NodeInfo paired = c.MakeNode("paired", kFourGpus);
  c.LinkDevices(paired, {{0, 1}});
  c.cache.UpsertNode(paired);
  c.AddPod("pair", kTwoGpus);
  c.Plan();
  EXPECT_EQ(c.NodeOf("pair"), "paired");
}

}  // namespace
}  // namespace muster::scheduler
