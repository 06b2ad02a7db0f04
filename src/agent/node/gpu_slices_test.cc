#include "agent/node/gpu_slices.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace muster::agent {
namespace {

class GpuSlicesTest : public testing::Test {
 protected:
  std::string Cut() {
    std::string text;
    for (const cluster::Device& device : slices_.Cut(gpus_)) {
      text += (text.empty() ? "" : " ") + device.id;
      if (device.resource != "nvidia.com/gpu") text += "(" + device.resource + ")";
    }
    return text;
  }
  void Give(const std::string& uid, const std::string& id,
            const std::string& resource = "nvidia.com/gpu") {
    allocator_.Adopt(uid, {{"c", {{resource, {id}}}}}, 0);
  }

  std::vector<cluster::Device> gpus_ = {{"nvidia.com/gpu", "a", 0, "m"},
                                        {"nvidia.com/gpu", "b", 1, "m"}};
  DeviceAllocator allocator_;
  GpuSlices slices_{allocator_};
};

TEST_F(GpuSlicesTest, FreeGpusAreCutAtOnce) {
  gpus_[0].links = {{"b", 12}};
  EXPECT_EQ(Cut(), "a b");
  slices_.Wish({3, false, false});
  EXPECT_EQ(Cut(), "a::0 b::0 a::1 b::1 a::2 b::2") << "the first of each GPU come first";
  EXPECT_TRUE(slices_.Cut(gpus_)[0].links.empty());
  EXPECT_EQ(slices_.waiting(), 0);
  slices_.Wish({2, true, false});
  EXPECT_EQ(Cut(),
            "a::0(nvidia.com/gpu.shared) b::0(nvidia.com/gpu.shared) a::1(nvidia.com/gpu.shared) "
            "b::1(nvidia.com/gpu.shared)");
  slices_.Wish({});
  EXPECT_EQ(Cut(), "a b");
}

TEST_F(GpuSlicesTest, WhatSomebodyHasStaysAsItIs) {
  Cut();
  Give("u", "b");
  slices_.Wish({2, false, false});
  EXPECT_EQ(Cut(), "a::0 b a::1");
  EXPECT_EQ(slices_.waiting(), 1);
  allocator_.Release("u");
  EXPECT_EQ(Cut(), "a::0 b::0 a::1 b::1");
  Give("v", "a::1");
  slices_.Wish({3, false, false});
  EXPECT_EQ(Cut(), "a::0 b::0 a::1 b::1 b::2");
  slices_.Wish({});
  EXPECT_EQ(Cut(), "a::0 b a::1");
  allocator_.Release("v");
  EXPECT_EQ(Cut(), "a b");
  EXPECT_EQ(slices_.waiting(), 0);
}

// After a restart pods are found before, or after, it is known what is wished.
TEST_F(GpuSlicesTest, FollowsWhatPodsOfAnEarlierRunHave) {
  Give("u", "a::2");
  EXPECT_EQ(Cut(), "a::0 b a::1 a::2");
  slices_.Wish({4, false, false});
  EXPECT_EQ(Cut(), "a::0 b::0 a::1 b::1 a::2 b::2 b::3");
  EXPECT_EQ(slices_.waiting(), 1);
  Give("w", "b", "nvidia.com/gpu");
  EXPECT_EQ(Cut(), "a::0 b a::1 a::2") << "it was whole when w got it";
  GpuSlices later(allocator_);
  later.Wish({4, false, false});
  EXPECT_EQ(later.Cut(gpus_).size(), 5u) << "four of a, as is wished, and b whole";
  GpuSlices renamed(allocator_);
  renamed.Wish({4, true, false});
  EXPECT_EQ(renamed.Cut(gpus_).size(), 4u) << "what u has is no nvidia.com/gpu.shared";
}

}  // namespace
}  // namespace muster::agent
