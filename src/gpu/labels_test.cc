#include "gpu/labels.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::gpu {
namespace {

TEST(LabelValue, IsOneWhateverTheText) {
  EXPECT_EQ(LabelValue("NVIDIA H100 80GB HBM3"), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(LabelValue("Quadro RTX 6000/8000"), "Quadro-RTX-60008000");
  EXPECT_EQ(LabelValue("580.159.04"), "580.159.04");
  EXPECT_EQ(LabelValue(" (R) x."), "R-x");
  EXPECT_EQ(LabelValue(std::string(62, 'a') + " b"), std::string(62, 'a'));
  EXPECT_EQ(LabelValue(""), "");
}

TEST(NodeLabels, AreThoseOfGpuFeatureDiscovery) {
  Inventory inventory;
  inventory.driver_version = "580.159.04";
  inventory.cuda_version = 12080;
  Gpu gpu;
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.memory_bytes = int64_t{81559} << 20;
  gpu.compute_major = 9;
  gpu.pci_class = 0x030200;
  gpu.mig_capable = true;
  const json::Value labels = NodeLabels(inventory, {gpu, gpu}, "PowerEdge XE9680");
  const std::pair<const char*, const char*> expected[] = {
      {"gpu.present", "true"},
      {"gpu.product", "NVIDIA-H100-80GB-HBM3"},
      {"gpu.count", "2"},
      {"gpu.replicas", "1"},
      {"gpu.memory", "81559"},
      {"gpu.family", "hopper"},
      {"gpu.compute.major", "9"},
      {"gpu.compute.minor", "0"},
      {"gpu.machine", "PowerEdge-XE9680"},
      {"gpu.mode", "compute"},
      {"gpu.sharing-strategy", "none"},
      {"mig.capable", "true"},
      {"mps.capable", "false"},
      {"cuda.driver-version.full", "580.159.04"},
      {"cuda.driver-version.major", "580"},
      {"cuda.driver-version.minor", "159"},
      {"cuda.driver-version.revision", "04"},
      {"cuda.driver.major", "580"},
      {"cuda.driver.minor", "159"},
      {"cuda.driver.rev", "04"},
      {"cuda.runtime-version.full", "12.8"},
      {"cuda.runtime-version.major", "12"},
      {"cuda.runtime-version.minor", "8"},
      {"cuda.runtime.major", "12"},
      {"cuda.runtime.minor", "8"},
  };
  EXPECT_EQ(labels.size(), std::size(expected));
  for (const auto& [name, value] : expected)
    EXPECT_EQ(labels["nvidia.com/" + std::string(name)].AsString(), value) << name;
  const auto all = AllNodeLabels();
  for (const auto& [name, value] : labels.members())
    EXPECT_NE(std::find(all.begin(), all.end(), name), all.end()) << name << " would never go";
  EXPECT_EQ(NodeLabels(inventory, {}, "").size(), 0u);
}

TEST(NodeLabels, FamiliesAreNamed) {
  EXPECT_EQ(Family(7, 0), "volta");
  EXPECT_EQ(Family(7, 5), "turing");
  EXPECT_EQ(Family(8, 0), "ampere");
  EXPECT_EQ(Family(8, 9), "ada-lovelace");
  EXPECT_EQ(Family(10, 0), "blackwell");
  EXPECT_EQ(Family(99, 0), "undefined");
}

TEST(NodeLabels, SayThatGpusAreShared) {
  Gpu gpu;
  gpu.model = "NVIDIA A100-SXM4-40GB";
  const auto text = [&](const TimeSlicing& slicing) {
    const json::Value labels = NodeLabels({}, {gpu}, "", slicing);
    return labels["nvidia.com/gpu.product"].Str() + " " + labels["nvidia.com/gpu.count"].Str() +
           " " + labels["nvidia.com/gpu.replicas"].Str() + " " +
           labels["nvidia.com/gpu.sharing-strategy"].Str();
  };
  EXPECT_EQ(text({4, false, false}), "NVIDIA-A100-SXM4-40GB-SHARED 1 4 time-slicing");
  EXPECT_EQ(text({4, true, false}), "NVIDIA-A100-SXM4-40GB 1 4 time-slicing");
}

}  // namespace
}  // namespace muster::gpu
