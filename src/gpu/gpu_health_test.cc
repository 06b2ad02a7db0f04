#include "gpu/gpu_health.h"

#include <gtest/gtest.h>

namespace muster::gpu {
namespace {

constexpr int kSteadyLooks = 3;

Inventory Both(const std::string& fault_of_b = "") {
  Inventory inventory;
  inventory.gpus.resize(2);
  inventory.gpus[0].uuid = "GPU-a";
  inventory.gpus[1].uuid = "GPU-b";
  inventory.gpus[1].index = 1;
  inventory.gpus[1].model = "NVIDIA H200";
  inventory.gpus[1].fault = fault_of_b;
  return inventory;
}

Inventory OnlyA() {
  Inventory inventory = Both();
  inventory.gpus.pop_back();
  return inventory;
}

struct Health {
  GpuHealth health{kSteadyLooks};
  bool Look(const Result<Inventory>& look, bool counts = true) {
    return health.Observe(look, counts);
  }
  bool a() const { return health.gpus().at(0).healthy; }
  bool b() const { return health.gpus().at(1).healthy; }
};

TEST(GpuHealth, AFaultTakesOneGpuAwayAtOnce) {
  Health h;
  EXPECT_TRUE(h.Look(Both()));
  EXPECT_FALSE(h.Look(Both())) << "nothing changed";
  EXPECT_TRUE(h.Look(Both("GPU is lost (NVML error 15)")));
  EXPECT_TRUE(h.a());
  EXPECT_FALSE(h.b());
  EXPECT_EQ(h.health.fault_reason(), "GPUUnhealthy");
  EXPECT_EQ(h.health.fault_message(), "GPU 1 (GPU-b, NVIDIA H200): GPU is lost (NVML error 15)");
}

TEST(GpuHealth, ItComesBackWhenItHasBeenSteady) {
  Health h;
  h.Look(Both());
  EXPECT_TRUE(h.Look(OnlyA()));
  EXPECT_EQ(h.health.gpus()[1].why, "the driver no longer lists it");
  for (int i = 1; i < kSteadyLooks; ++i) {
    h.Look(Both());
    EXPECT_FALSE(h.b()) << i;
  }
  EXPECT_NE(h.health.fault_message().find("waiting until it is steady"), std::string::npos);
  EXPECT_FALSE(h.Look(Both(), /*counts=*/false)) << "looks in between do not make it steady";
  EXPECT_TRUE(h.Look(Both()));
  EXPECT_TRUE(h.b());
  EXPECT_EQ(h.health.fault_reason(), "");
}

TEST(GpuHealth, OneThatFlapsStaysAway) {
  Health h;
  h.Look(Both());
  for (int i = 0; i < 20; ++i) {
    for (int fine = 1; fine < kSteadyLooks; ++fine) h.Look(Both());
    h.Look(OnlyA());
    EXPECT_FALSE(h.b());
  }
}

TEST(GpuHealth, ADriverThatDoesNotAnswerTakesAllAway) {
  Health h;
  h.Look(Both());
  EXPECT_TRUE(h.Look(Error(Reason::kTimeout, "the driver did not answer within 10 s")));
  EXPECT_FALSE(h.a());
  EXPECT_FALSE(h.b());
  EXPECT_TRUE(h.health.gpus()[0].unknown);
  EXPECT_EQ(h.health.fault_reason(), "NVMLHang");
  h.Look(Error(Reason::kServiceUnavailable, "nvmlInit: Unknown Error"));
  EXPECT_EQ(h.health.fault_reason(), "NVMLError");
  for (int i = 0; i < kSteadyLooks; ++i) h.Look(Both());
  EXPECT_TRUE(h.a() && h.b());
  EXPECT_FALSE(h.health.gpus()[0].unknown);
}

Inventory WithXids(std::vector<int64_t> of_b) {
  Inventory inventory = Both();
  inventory.gpus[1].xids = std::move(of_b);
  return inventory;
}

TEST(GpuHealth, AnXidOfTheGpuKeepsItAwayAndOneOfAProgramDoesNot) {
  Health h;
  h.Look(Both());
  EXPECT_TRUE(h.Look(WithXids({31}))) << "somebody may want to tell of it";
  EXPECT_TRUE(h.b());
  EXPECT_EQ(h.health.gpus()[1].last_xid, 31);
  EXPECT_FALSE(h.Look(Both()));
  EXPECT_TRUE(h.Look(WithXids({31, 79}), /*counts=*/false));
  EXPECT_TRUE(h.a());
  EXPECT_FALSE(h.b());
  EXPECT_EQ(h.health.fault_reason(), "GPUUnhealthy");
  EXPECT_EQ(h.health.fault_message(),
            "GPU 1 (GPU-b, NVIDIA H200): XID 79: the GPU has fallen off the bus");
  EXPECT_FALSE(h.health.asks_anew()) << "nothing is missing";
  for (int i = 0; i < 10 * kSteadyLooks; ++i) h.Look(Both());
  EXPECT_FALSE(h.b()) << "it does not get well by itself";
  h.Look(Both("GPU is lost (NVML error 15)"));
  EXPECT_EQ(h.health.gpus()[1].why,
            "GPU is lost (NVML error 15), after XID 79: the GPU has fallen off the bus");
  EXPECT_TRUE(h.health.asks_anew());
  // Taken out, repaired and put back.
  h.Look(OnlyA());
  for (int i = 0; i < kSteadyLooks; ++i) h.Look(Both());
  EXPECT_TRUE(h.b());
  EXPECT_EQ(h.health.gpus()[1].last_xid, 79);
}

TEST(GpuHealth, AnXidIsNewForOneLook) {
  Health h;
  h.Look(Both());
  h.Look(WithXids({79}));
  h.Look(Error(Reason::kTimeout, "no answer"));
  EXPECT_TRUE(h.health.gpus()[1].gpu.xids.empty());
  h.Look(Both());
  EXPECT_FALSE(h.b()) << "a driver that did not answer is no repair";
}

TEST(GpuHealth, ANewGpuIsOfferedAtOnceAndAMovedOneKeepsItsName) {
  Health h;
  h.Look(OnlyA());
  EXPECT_TRUE(h.Look(Both()));
  EXPECT_TRUE(h.b());
  Inventory swapped = Both();
  swapped.gpus[0].index = 1;
  swapped.gpus[0].minor = 1;
  swapped.gpus[1].index = 0;
  EXPECT_TRUE(h.Look(swapped));
  EXPECT_EQ(h.health.gpus()[0].gpu.uuid, "GPU-b");
  EXPECT_EQ(h.health.gpus()[1].gpu.minor, 1);
}

}  // namespace
}  // namespace muster::gpu
