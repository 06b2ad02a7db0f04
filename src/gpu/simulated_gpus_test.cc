#include "gpu/simulated_gpus.h"

#include <gtest/gtest.h>

namespace muster::gpu {
namespace {

TEST(SimulatedGpus, HavePlainNames) {
  const auto gpus = SimulatedGpus(2, "H100");
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[1].uuid, "GPU-sim-1");
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].model, "H100");
}

TEST(SimulatedGpus, AreBounded) {
  EXPECT_TRUE(SimulatedGpus(-1, "x").empty());
  EXPECT_EQ(SimulatedGpus(1000, "x").size(), static_cast<size_t>(kMaxSimulatedGpus));
}

TEST(SimulatedProductLabel, SaysSimulatedOnce) {
  EXPECT_EQ(SimulatedProductLabel("H100"), "Simulated-H100");
  EXPECT_EQ(SimulatedProductLabel("Simulated-GPU"), "Simulated-GPU");
}

}  // namespace
}  // namespace muster::gpu
