#include "cluster/packing/fill_prices.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster::cluster {
namespace {

GpuState Node(int cores, int gib, std::vector<int16_t> free) {
  GpuState node{.cpu_milli = cores * 1000, .memory_mib = gib * 1024};
  node.gpus = static_cast<uint8_t>(free.size());
  for (size_t i = 0; i < free.size(); ++i) node.free_milli[i] = free[i];
  return node;
}
GpuAsk Whole(int cores, int gib, int gpus) {
  return {.cpu_milli = cores * 1000,
          .memory_mib = gib * 1024,
          .gpus = static_cast<int16_t>(gpus),
          .gpu_milli = kWholeGpu};
}
GpuAsk Share(int cores, int milli) {
  return {.cpu_milli = cores * 1000, .gpus = 1, .gpu_milli = static_cast<int16_t>(milli)};
}

TEST(FillPrices, OneKindIsWorthItsSize) {
  FillPrices prices(80, 400, 10);
  PodMix mix;
  mix.Add(Whole(4, 10, 1));
  prices.Solve({{Node(8, 40, {1000}), 10}}, mix);
  EXPECT_NEAR(prices.Value(Node(8, 40, {1000})), 1000, 1);
  EXPECT_NEAR(prices.Value(Node(8, 40, {1000, 1000})), 2000, 1);
  EXPECT_NEAR(prices.Value(Node(8, 40, {900})), 0, 1);   // not whole
  EXPECT_NEAR(prices.Value(Node(0, 40, {1000})), 0, 1);  // no cpu
  EXPECT_NEAR(prices.Value(Node(8, 0, {1000})), 0, 1);   // no memory
}

TEST(FillPrices, ValueAfterIsTheValueOfWhatIsLeft) {
  FillPrices prices(320, 1000, 40);
  PodMix mix;
  for (int i = 0; i < 10; ++i) mix.Add(Whole(8, 16, 1));
  for (int i = 0; i < 10; ++i) mix.Add(Share(2, 300));
  for (int i = 0; i < 10; ++i) mix.Add(Share(4, 700));
  mix.Add(Whole(16, 64, 4));
  prices.Solve({{Node(32, 100, {1000, 1000, 1000, 1000}), 10}}, mix);
  Rng rng(1);
  for (int round = 0; round < 500; ++round) {
    GpuState node =
        Node(static_cast<int>(rng.Below(33)), static_cast<int>(rng.Below(101)), {0, 0, 0, 0});
    for (int i = 0; i < 4; ++i)
      node.free_milli[i] = static_cast<int16_t>(rng.Chance(0.5) ? 1000 : 10 * rng.Below(100));
    std::sort(node.free_milli.begin(), node.free_milli.begin() + 4, std::greater<>());
    const std::vector<GpuAsk> asks = {Whole(8, 16, 1),
                                      Whole(2, 2, 2),
                                      Share(2, 300),
                                      Share(4, 700),
                                      {.cpu_milli = 3000, .memory_mib = 4096}};
    const GpuAsk ask = asks[rng.Below(asks.size())];
    if (!node.Takes(ask)) continue;
    const PriceRow terms = prices.Terms(node);
    ForEachChoice(node, ask, [&](int gpu) {
      GpuState left = node;
      left.Place(ask, gpu);
      EXPECT_NEAR(prices.ValueAfter(node, terms, ask, prices.CostOf(ask), gpu), prices.Value(left),
                  0.05);
      EXPECT_LE(prices.Value(left), prices.Value(node) + 0.05);  // less room is never worth more
    });
  }
}

// Two kinds that fill a GPU together: a GPU that waits for its second is worth no less than the
// second.
TEST(FillPrices, WhatFitsTogetherIsWorthTogether) {
  FillPrices prices(1000, 1000, 100);
  PodMix mix;
  for (int i = 0; i < 50; ++i) mix.Add(Share(1, 700));
  for (int i = 0; i < 50; ++i) mix.Add(Share(1, 300));
  const GpuState empty = Node(10, 10, {1000});
  prices.Solve({{empty, 100}}, mix);
  const double waits = prices.Value(Node(10, 10, {300}));
  EXPECT_NEAR(prices.Value(empty), prices.Value(Node(10, 10, {700})) + waits, 1);
  EXPECT_GT(waits, 100);
}

// Pods of all GPUs of a node, which cannot use a broken one, are worth more than their size.
TEST(FillPrices, WhatIsHardToPlaceIsWorthMore) {
  FillPrices prices(1000, 1000, 80);
  PodMix mix;
  for (int i = 0; i < 80; ++i) mix.Add(Whole(1, 1, 1));
  for (int i = 0; i < 10; ++i) mix.Add(Whole(8, 8, 8));
  const GpuState empty = Node(100, 100, {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  const GpuState broken = Node(99, 99, {1000, 1000, 1000, 1000, 1000, 1000, 1000, 0});
  for (int i = 0; i < 10; ++i) prices.Solve({{empty, 2}, {broken, 8}}, mix);
  const double loss_of_empty = prices.Value(empty) - prices.Value(broken);
  const double loss_of_broken =
      prices.Value(broken) - prices.Value(Node(98, 98, {1000, 1000, 1000, 1000, 1000, 1000, 0, 0}));
  EXPECT_GT(loss_of_empty, 2 * loss_of_broken);
}

}  // namespace
}  // namespace muster::cluster
