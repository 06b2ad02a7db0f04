#include "cluster/packing/pod_mix.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

GpuAsk Share(int cpu_milli) { return {.cpu_milli = cpu_milli, .gpus = 1, .gpu_milli = 500}; }

TEST(PodMix, CountsKindsThoseWithoutGpusApart) {
  PodMix mix;
  mix.Arrived(Share(1));
  mix.Arrived(Share(2));
  mix.Arrived(Share(1));
  mix.Arrived({.cpu_milli = 1});
  EXPECT_EQ(mix.arrivals(), 4U);
  ASSERT_EQ(mix.kinds().size(), 2U);
  EXPECT_EQ(mix.kinds()[0].count, 2);
  EXPECT_EQ(mix.kinds()[1].count, 1);
  ASSERT_EQ(mix.kinds_without_gpus().size(), 1U);
  EXPECT_EQ(mix.kinds_without_gpus()[0].ask.cpu_milli, 1);
}

TEST(PodMix, TheRarestKindMakesRoom) {
  PodMix mix;
  for (int i = 0; i < static_cast<int>(kMaxAskKinds); ++i) {
    mix.Arrived(Share(i));
    if (i != 7) mix.Arrived(Share(i));
  }
  mix.Arrived(Share(100'000));
  ASSERT_EQ(mix.kinds().size(), kMaxAskKinds);
  const auto has = [&](int cpu_milli) {
    return std::any_of(mix.kinds().begin(), mix.kinds().end(),
                       [&](const AskKind& kind) { return kind.ask == Share(cpu_milli); });
  };
  EXPECT_FALSE(has(7));
  EXPECT_TRUE(has(8));
  EXPECT_TRUE(has(100'000));
  mix.Arrived(Share(100'000));  // the index still leads to it
  EXPECT_EQ(mix.kinds().size(), kMaxAskKinds);
}

TEST(PodMix, WhatCameLongAgoFades) {
  PodMix mix;
  for (int i = 0; i < static_cast<int>(kFadeAfter); ++i) mix.Arrived(Share(1));
  for (int i = 0; i < static_cast<int>(kFadeAfter); ++i) mix.Arrived(Share(2));
  ASSERT_EQ(mix.kinds().size(), 2U);
  EXPECT_LT(mix.kinds()[0].count, 0.3 * kFadeAfter);
  EXPECT_GT(mix.kinds()[1].count, 2 * mix.kinds()[0].count);
}

}  // namespace
}  // namespace muster::cluster
