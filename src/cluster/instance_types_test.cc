#include "cluster/instance_types.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

TEST(InstanceTypes, OfTheReferenceHaveTheirShapesAndPrices) {
  const InstanceType* g5 = FindBuiltInInstanceType("g5.2xlarge");
  ASSERT_NE(g5, nullptr);
  EXPECT_EQ(g5->vcpus, 8);
  EXPECT_EQ(g5->memory_bytes, int64_t{32} << 30);
  EXPECT_EQ(g5->gpus, 1);
  EXPECT_EQ(g5->gpu_product, "NVIDIA-A10G");
  EXPECT_EQ(g5->on_demand, 1'212'000);
  EXPECT_EQ(g5->Price(CapacityType::kSpot), 848'400);
  EXPECT_TRUE(g5->spot_estimated);
  const InstanceType* p4d = FindBuiltInInstanceType("p4d.24xlarge");
  ASSERT_NE(p4d, nullptr);
  EXPECT_EQ(p4d->gpus, 8);
  EXPECT_EQ(UsdText(p4d->Price(CapacityType::kOnDemand)), "21.957642");
  EXPECT_EQ(p4d->spot, 8'190'000);
  EXPECT_FALSE(p4d->spot_estimated);
  EXPECT_EQ(FindBuiltInInstanceType("p4d.25xlarge"), nullptr);
  EXPECT_EQ(FindBuiltInInstanceType(""), nullptr);
}

TEST(InstanceTypes, AreSortedAndSound) {
  const auto& all = BuiltInInstanceTypes();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const InstanceType& type : all) {
    SCOPED_TRACE(type.name);
    EXPECT_EQ(FindBuiltInInstanceType(type.name), &type);
    EXPECT_GT(type.vcpus, 0);
    EXPECT_GT(type.memory_bytes, 0);
    EXPECT_EQ(type.gpus > 0, !type.gpu_product.empty());
    EXPECT_EQ(type.gpus > 0, type.gpu_memory_mib > 0);
    EXPECT_GT(type.spot, 0);
    EXPECT_LT(type.spot, type.on_demand);
  }
}

TEST(InstanceTypes, PricesAreWrittenWithoutNeedlessDecimals) {
  EXPECT_EQ(UsdText(0), "0");
  EXPECT_EQ(UsdText(526'000), "0.526");
  EXPECT_EQ(UsdText(-526'000), "-0.526");
  EXPECT_EQ(UsdText(98'000'000), "98");
  EXPECT_EQ(UsdText(1), "0.000001");
}

TEST(InstanceTypes, PricesAreReadAsTheyAreWritten) {
  EXPECT_EQ(ParseUsd("1.212"), 1'212'000);
  EXPECT_EQ(ParseUsd("98"), 98'000'000);
  EXPECT_EQ(ParseUsd("0.000001"), 1);
  for (const InstanceType& type : BuiltInInstanceTypes())
    EXPECT_EQ(ParseUsd(UsdText(type.on_demand)), type.on_demand) << type.name;
  for (const char* bad : {"", ".5", "1.", "-1", "1.0000001", "1e3", "1,5", "2000000", "1.2.3"})
    EXPECT_EQ(ParseUsd(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace muster::cluster
