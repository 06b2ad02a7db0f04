#include "schema/distributed_training.h"

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

TEST(DistributedTraining, SizesInBytesAreQuantities) {
  EXPECT_EQ(SizeAsQuantity("100GB"), "100G");
  EXPECT_EQ(SizeAsQuantity("1.5 TB"), "1.5T");
  EXPECT_EQ(SizeAsQuantity("64GiB"), "64Gi");
  EXPECT_EQ(SizeAsQuantity("64Gi"), "64Gi");
  EXPECT_EQ(SizeAsQuantity("800KB"), "800k");
  EXPECT_EQ(SizeAsQuantity("512"), "512");
}

TEST(DistributedTraining, AGpuTypeIsAWordOfTheProduct) {
  EXPECT_TRUE(IsGpuType("NVIDIA-H100-80GB-HBM3", "H100"));
  EXPECT_TRUE(IsGpuType("NVIDIA-H100-80GB-HBM3", "h100-80gb"));
  EXPECT_TRUE(IsGpuType("NVIDIA-A100-SXM4-40GB-SHARED", "A100-SXM4-40GB"));
  EXPECT_TRUE(IsGpuType("Simulated-H100", "H100"));
  EXPECT_TRUE(IsGpuType("H100", "H100"));
  EXPECT_FALSE(IsGpuType("NVIDIA-L40S", "L4"));
  EXPECT_FALSE(IsGpuType("NVIDIA-GH100X", "H100"));
  EXPECT_FALSE(IsGpuType("NVIDIA-A100-SXM4-40GB", "H100"));
  EXPECT_FALSE(IsGpuType("", "H100"));
  EXPECT_FALSE(IsGpuType("H100", ""));
}

}  // namespace
}  // namespace muster::schema
