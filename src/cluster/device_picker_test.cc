#include "cluster/device_picker.h"

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

using Positions = std::vector<size_t>;

// `count` devices; links[i] = {a, b, n}: n links between a and b.
struct Link {
  size_t a, b;
  int64_t count;
};

std::vector<Device> Devices(size_t count, const std::vector<Link>& links) {
  std::vector<Device> devices(count);
  for (size_t i = 0; i < count; ++i) {
    devices[i].resource = "nvidia.com/gpu";
    devices[i].id = "g" + std::to_string(i);
    devices[i].index = static_cast<int64_t>(i);
  }
  for (const Link& link : links) {
    devices[link.a].links[devices[link.b].id] = link.count;
    devices[link.b].links[devices[link.a].id] = link.count;
  }
  return devices;
}

DeviceSet Set(const Positions& positions) {
  DeviceSet set;
  for (const size_t position : positions) set.Add(position);
  return set;
}

Positions Pick(const DeviceLinks& links, const Positions& free, int64_t count) {
  return links.Pick(Set(free), count).Positions();
}

TEST(DeviceLinks, WithoutLinksTheLowestAreTaken) {
  const DeviceLinks links(Devices(4, {}));
  EXPECT_TRUE(links.empty());
  EXPECT_EQ(Pick(links, {1, 2, 3}, 2), (Positions{1, 2}));
}

TEST(DeviceLinks, CountsThoseThatAreJoined) {
  const DeviceLinks pairs(Devices(6, {{0, 1, 4}, {2, 3, 4}}));
  EXPECT_EQ(pairs.MostJoined(Set({0, 1, 2, 4, 5})), 2);
  EXPECT_EQ(pairs.MostJoined(Set({0, 2, 4, 5})), 1);
  EXPECT_EQ(pairs.MostJoined(Set({})), 0);
  const DeviceLinks chain(Devices(5, {{0, 4, 1}, {4, 2, 1}, {2, 1, 1}}));
  EXPECT_EQ(chain.MostJoined(Set({0, 1, 2, 3, 4})), 4) << "through each other";
  EXPECT_EQ(chain.MostJoined(Set({0, 1, 2, 3})), 2) << "but not through one that is taken";
  EXPECT_EQ(DeviceLinks(Devices(4, {})).MostJoined(Set({1, 2})), 1);
}

TEST(DeviceLinks, PairsStayWhole) {
  const DeviceLinks links(Devices(6, {{0, 1, 4}, {2, 3, 4}, {4, 5, 4}}));
  EXPECT_EQ(Pick(links, {0, 1, 2, 3, 4, 5}, 2), (Positions{0, 1}));
  EXPECT_EQ(Pick(links, {1, 2, 3, 4, 5}, 2), (Positions{2, 3})) << "not 1 and 2";
  EXPECT_EQ(Pick(links, {0, 1, 2, 4, 5}, 1), (Positions{2})) << "from the broken pair";
  EXPECT_EQ(Pick(links, {0, 1, 2, 3}, 1), (Positions{0}));
  EXPECT_EQ(Pick(links, {0, 1, 2, 3, 4}, 3), (Positions{0, 1, 4}));
  EXPECT_EQ(Pick(links, {0, 1, 2, 3, 4}, 4), (Positions{0, 1, 2, 3}));
}

TEST(DeviceLinks, IslandsStayWhole) {
  std::vector<Link> all;
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = a + 1; b < 8; ++b) {
      if (a / 4 == b / 4) all.push_back({a, b, 2});
    }
  }
  const DeviceLinks links(Devices(8, all));
  EXPECT_EQ(Pick(links, {1, 2, 3, 4, 5, 6, 7}, 4), (Positions{4, 5, 6, 7}));
  EXPECT_EQ(Pick(links, {1, 2, 3, 4, 5, 6, 7}, 3), (Positions{1, 2, 3}));
  EXPECT_EQ(Pick(links, {1, 2, 3, 4, 5, 6, 7}, 1), (Positions{1}));
  EXPECT_EQ(Pick(links, {0, 1, 2, 3, 5, 6}, 2), (Positions{5, 6}));
}

TEST(DeviceLinks, MoreLinksAreBetter) {
  // The cube of a DGX-1: 0-3 and 1-2 have two links, 0-1, 0-2 and others one.
  const DeviceLinks links(
      Devices(4, {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 2}}));
  EXPECT_EQ(Pick(links, {0, 1, 2, 3}, 2), (Positions{0, 3}))
      << "two links, as 1-2 and 2-3 have, and 2-3 would cut more";
  EXPECT_EQ(Pick(links, {0, 1, 3}, 2), (Positions{0, 3}));
}

TEST(DeviceLinks, BeyondThatAllChoicesAreTooManyASetIsGrown) {
  std::vector<Link> all;
  for (size_t a = 0; a < 32; ++a) {
    for (size_t b = a + 1; b < 32; ++b) {
      if (a / 16 == b / 16) all.push_back({a, b, 1});
    }
  }
  const DeviceLinks links(Devices(32, all));
  Positions free, second;
  for (size_t i = 8; i < 32; ++i) free.push_back(i);
  for (size_t i = 16; i < 28; ++i) second.push_back(i);
  EXPECT_EQ(Pick(links, free, 12), second) << "within one island";
  EXPECT_EQ(Pick(links, free, 8), (Positions{8, 9, 10, 11, 12, 13, 14, 15})) << "the broken one";
}

TEST(DeviceLinks, AsManyAsThereAreAndNone) {
  const DeviceLinks links(Devices(2, {{0, 1, 18}}));
  EXPECT_EQ(Pick(links, {0, 1}, 2), (Positions{0, 1}));
  EXPECT_EQ(Pick(links, {0, 1}, 0), Positions{});
}

TEST(DeviceLinks, ALinkToSomethingElseIsNoLink) {
  std::vector<Device> devices = Devices(3, {});
  devices[2].links["elsewhere"] = 4;
  devices[1].links["g1"] = 4;
  EXPECT_EQ(Pick(DeviceLinks(devices), {0, 1, 2}, 1), (Positions{0}));
}

}  // namespace
}  // namespace muster::cluster
