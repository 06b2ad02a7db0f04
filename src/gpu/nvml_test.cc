#include "gpu/nvml.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "gpu/fake_nvml_test_support.h"

namespace muster::gpu {
namespace {

Nvml Open() {
  Result<Nvml> nvml = Nvml::Open(FakeDriver::Library());
  CHECK(nvml.has_value());
  return std::move(*nvml);
}

TEST(Nvml, TellsWhatTheDriverKnows) {
  FakeDriver driver;
  driver.Says(kThreeGpus);
  Nvml nvml = Open();
  const Result<Inventory> read = nvml.Read(false);
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->driver_version, "580.159.04");
  EXPECT_EQ(read->cuda_version, 13000);
  EXPECT_TRUE(read->library.ends_with("/libfake-nvml.so")) << read->library;
  ASSERT_EQ(read->gpus.size(), 3u);
  const Gpu& a = read->gpus[0];
  EXPECT_EQ(a.uuid, "GPU-a");
  EXPECT_EQ(a.model, "NVIDIA H200");
  EXPECT_EQ(a.memory_bytes, 150754820096);
  EXPECT_EQ(a.pci_bus_id, "00000000:04:00.0");
  EXPECT_EQ(a.compute_major, 9);
  EXPECT_EQ(a.sample, (GpuSample{37, 1048576, 150754820096 - 1048576, 41, 123456, 12}));
  EXPECT_EQ(a.links, (std::map<std::string, int64_t>{{"GPU-b", 18}}));
  EXPECT_EQ(read->gpus[1].numa_node, 1);
  EXPECT_EQ(read->gpus[2].minor, 7);
  EXPECT_EQ(read->gpus[2].index, 2);
  EXPECT_TRUE(read->gpus[2].links.empty());
  EXPECT_EQ(ToJson(InventoryFromJson(ToJson(*read))), ToJson(*read)) << "the way through JSON";
}

TEST(Nvml, TellsHowFastAGpuGoesAndWhatHoldsItBack) {
  FakeDriver driver;
  driver.Says("gpu GPU-a\nclock 705\nmax-clock 1410\nslow 72\necc 2\ngpu GPU-b\n");
  Nvml nvml = Open();
  const Result<Inventory> read = nvml.Read(false);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->gpus[0].pace, (GpuPace{705, 1410, 72, 2}));
  EXPECT_EQ(read->gpus[1].pace, (GpuPace{1410, 1410, 0, 0}));
  EXPECT_EQ(InventoryFromJson(ToJson(*read)).gpus[0].pace, read->gpus[0].pace);
}

TEST(Nvml, GpusBehindASwitchAllReachEachOther) {
  FakeDriver driver;
  driver.Says("gpu GPU-a\nswitch 18\ngpu GPU-b\nswitch 16\ngpu GPU-c\n");
  Nvml nvml = Open();
  const Result<Inventory> read = nvml.Read(false);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->gpus[0].links, (std::map<std::string, int64_t>{{"GPU-b", 16}}));
  EXPECT_EQ(read->gpus[1].links, (std::map<std::string, int64_t>{{"GPU-a", 16}}));
  EXPECT_TRUE(read->gpus[2].links.empty());
}

TEST(Nvml, AGpuThatIsLostHasAFaultAndTheOthersHaveNone) {
  FakeDriver driver;
  driver.Says(kThreeGpus);
  Nvml nvml = Open();
  ASSERT_TRUE(nvml.Read(false).has_value());
  driver.Says(std::string(kThreeGpus) + "error 15\n");
  Result<Inventory> read = nvml.Read(false);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->gpus[2].fault, "GPU is lost (NVML error 15)");
  EXPECT_EQ(read->gpus[0].fault, "");
  // Asked anew, the driver does not even tell its name.
  read = nvml.Read(true);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->gpus.size(), 2u);
  EXPECT_EQ(read->fault, "GPU 2: GPU is lost (NVML error 15)");
  driver.Says(kThreeGpus);
  EXPECT_EQ(nvml.Read(true)->gpus.size(), 3u);
}

TEST(Nvml, EachXidIsToldOnceAndOfItsGpuAlone) {
  FakeDriver driver;
  const std::string old = "gpu GPU-a\nxid 31\n";  // of before we came
  driver.Says(old + "gpu GPU-b\n");
  Nvml nvml = Open();
  EXPECT_TRUE(nvml.Read(false)->gpus[0].tells_xids);
  const std::string more = old + "xid 13\nxid 79\nxid 13 again\ngpu GPU-b\nxid 48\n";
  driver.Says(more);
  Result<Inventory> read = nvml.Read(false);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->gpus[0].xids, (std::vector<int64_t>{13, 79}));
  EXPECT_EQ(read->gpus[1].xids, (std::vector<int64_t>{48}));
  EXPECT_EQ(ToJson(InventoryFromJson(ToJson(*read))), ToJson(*read)) << "the way through JSON";
  EXPECT_TRUE(nvml.Read(false)->gpus[0].xids.empty());
  // What came before the driver is asked anew is not lost, even if that fails at first.
  driver.Says("init 999\n" + more + "xid 94\n");
  EXPECT_FALSE(nvml.Read(true).has_value());
  driver.Says(more + "xid 94\n");
  EXPECT_EQ(nvml.Read(true)->gpus[1].xids, (std::vector<int64_t>{94}));
}

TEST(Nvml, AGpuThatTellsNoXidsIsAsGoodAsAnyOther) {
  FakeDriver driver;
  driver.Says("gpu GPU-a\nno-xids 1\ngpu GPU-b\n");
  Nvml nvml = Open();
  ASSERT_TRUE(nvml.Read(false).has_value());
  driver.Says("gpu GPU-a\nno-xids 1\nxid 79\ngpu GPU-b\nxid 79\n");
  const Result<Inventory> read = nvml.Read(false);
  EXPECT_FALSE(read->gpus[0].tells_xids);
  EXPECT_TRUE(read->gpus[0].xids.empty());
  EXPECT_EQ(read->gpus[1].xids.size(), 1u);
}

TEST(Nvml, AStormOfXidsIsToldInParts) {
  FakeDriver driver;
  driver.Says("gpu GPU-a\n");
  Nvml nvml = Open();
  ASSERT_TRUE(nvml.Read(false).has_value());
  std::string storm = "gpu GPU-a\n";
  for (size_t i = 0; i < kMaxXidsPerLook + 5; ++i) storm += fmt::format("xid {}\n", 1000 + i);
  driver.Says(storm);
  EXPECT_EQ(nvml.Read(false)->gpus[0].xids.size(), kMaxXidsPerLook);
  EXPECT_EQ(nvml.Read(false)->gpus[0].xids.size(), 5u);
}

TEST(Nvml, WhatIsNotThereIsNotFound) {
  const Result<Nvml> missing = Nvml::Open("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().reason(), Reason::kNotFound);
  const Result<Nvml> other = Nvml::Open("libc.so.6");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().message(), "libc.so.6 is no NVML library");
  FakeDriver driver;
  driver.Says("init 9\n");
  Nvml nvml = Open();
  const Result<Inventory> read = nvml.Read(false);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().reason(), Reason::kNotFound);
  EXPECT_EQ(read.error().message(), "nvmlInit: Driver Not Loaded (NVML error 9)");
  driver.Says("init 999\n");
  EXPECT_EQ(nvml.Read(false).error().reason(), Reason::kServiceUnavailable);
}

TEST(Nvml, GpusBeyondTheLimitAreLeftOut) {
  FakeDriver driver;
  std::string many;
  for (size_t i = 0; i < kMaxGpusPerNode + 3; ++i) many += "gpu GPU-" + std::to_string(i) + "\n";
  driver.Says(many);
  EXPECT_EQ(Open().Read(false)->gpus.size(), kMaxGpusPerNode);
}

}  // namespace
}  // namespace muster::gpu
