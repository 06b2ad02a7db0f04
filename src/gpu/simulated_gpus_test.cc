#include "gpu/simulated_gpus.h"

#include <gtest/gtest.h>

namespace muster::gpu {
namespace {

TEST(SimulatedGpus, HavePlainNames) {
  const auto gpus = SimulatedGpus(2, "H100");
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[1], (Gpu{"GPU-sim-1", 1, "H100"}));
}

TEST(SimulatedGpus, AreBounded) {
  EXPECT_TRUE(SimulatedGpus(-1, "x").empty());
  EXPECT_EQ(SimulatedGpus(1000, "x").size(), static_cast<size_t>(kMaxSimulatedGpus));
}

TEST(ProductLabel, IsALabelValueAndSaysSimulated) {
  EXPECT_EQ(ProductLabel("NVIDIA H100 80GB", false), "NVIDIA-H100-80GB");
  EXPECT_EQ(ProductLabel("H100", true), "Simulated-H100");
  EXPECT_EQ(ProductLabel("Simulated-GPU", true), "Simulated-GPU");
  EXPECT_EQ(ProductLabel(std::string(100, 'a'), false).size(), 63u);
}

}  // namespace
}  // namespace muster::gpu
