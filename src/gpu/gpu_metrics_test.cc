#include "gpu/gpu_metrics.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace muster::gpu {
namespace {

TEST(GpuMetrics, LookLikeThoseOfDcgmExporter) {
  Inventory inventory;
  inventory.driver_version = "580.159.04";
  inventory.gpus.resize(2);
  Gpu& gpu = inventory.gpus[0];
  gpu.uuid = "GPU-a";
  gpu.pci_bus_id = "00000000:00:04.0";
  gpu.model = "NVIDIA A100-SXM4-80GB";
  gpu.sample = {42, 3 << 20, int64_t{80} << 30, 35, 61234, 12};
  gpu.tells_xids = true;
  gpu.xids = {31};
  inventory.gpus[1].uuid = "GPU-b";
  inventory.gpus[1].index = inventory.gpus[1].minor = 1;
  GpuHealth health(1);
  health.Observe(inventory, true);
  const auto users_of = [](const std::string& uuid) {
    return uuid == "GPU-a" ? std::vector<GpuUser>{{"ns", "p", "c"}} : std::vector<GpuUser>();
  };
  const std::string text = GpuMetricsText(health, "node-a", users_of);
  const std::string labels =
      R"({gpu="0",UUID="GPU-a",pci_bus_id="00000000:00:04.0",device="nvidia0",)"
      R"(modelName="NVIDIA A100-SXM4-80GB",Hostname="node-a",)"
      R"(DCGM_FI_DRIVER_VERSION="580.159.04",container="c",namespace="ns",pod="p"})";
  for (const char* line : {"DCGM_FI_DEV_GPU_UTIL* 42\n", "DCGM_FI_DEV_MEM_COPY_UTIL* 12\n",
                           "DCGM_FI_DEV_FB_USED* 3\n", "DCGM_FI_DEV_FB_FREE* 81920\n",
                           "DCGM_FI_DEV_GPU_TEMP* 35\n", "DCGM_FI_DEV_POWER_USAGE* 61.234\n",
                           "DCGM_FI_DEV_XID_ERRORS* 31\n", "muster_gpu_healthy* 1\n"}) {
    std::string expected = line;
    expected.replace(expected.find('*'), 1, labels);
    EXPECT_NE(text.find(expected), std::string::npos) << expected << text;
  }
  EXPECT_NE(text.find("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"), std::string::npos);
  EXPECT_EQ(text.find(R"(DCGM_FI_DEV_GPU_UTIL{gpu="1")"), std::string::npos) << "it does not tell";
  EXPECT_EQ(text.find(R"(DCGM_FI_DEV_XID_ERRORS{gpu="1")"), std::string::npos);
  EXPECT_NE(text.find(R"(muster_gpu_healthy{gpu="1")"), std::string::npos);
}

// dcgm-exporter #151, #201, #222: of a shared GPU one pod or none had a series.
TEST(GpuMetrics, OfASharedGpuEachPodHasASeriesAndTheGpuToo) {
  Inventory inventory;
  inventory.gpus.resize(1);
  inventory.gpus[0].uuid = "GPU-a";
  inventory.gpus[0].sample.utilization_percent = 42;
  GpuHealth health(1);
  health.Observe(inventory, true);
  const std::string text = GpuMetricsText(health, "n", [](const std::string&) {
    return std::vector<GpuUser>{{"ns", "p", "c"}, {"ns", "q", "c"}};
  });
  for (const char* pod : {"p", "q", ""}) {
    const std::string expected = fmt::format("pod=\"{}\"}} 42\n", pod);
    EXPECT_NE(text.find(expected), std::string::npos) << expected << text;
  }
}

TEST(GpuMetrics, TellOfAGpuThatIsHeldBack) {
  Inventory inventory;
  inventory.gpus.resize(2);
  inventory.gpus[0].uuid = "GPU-a";
  inventory.gpus[0].pace = {705, 1410, 72, 2};
  inventory.gpus[1].uuid = "GPU-b";
  GpuHealth health(1);
  health.Observe(inventory, true);
  const std::string text =
      GpuMetricsText(health, "n", [](const std::string&) { return std::vector<GpuUser>(); });
  for (const char* line :
       {"DCGM_FI_DEV_SM_CLOCK 705", "DCGM_FI_DEV_MAX_SM_CLOCK 1410",
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS 72", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL 2"}) {
    const std::string_view all(line);
    const std::string name(all.substr(0, all.find(' ')));
    const size_t at = text.find(name + "{");
    ASSERT_NE(at, std::string::npos) << name;
    const std::string sample = text.substr(at, text.find('\n', at) - at);
    EXPECT_TRUE(sample.ends_with(all.substr(all.find(' ')))) << sample;
    EXPECT_EQ(text.find(name + "{", at + 1), std::string::npos) << "GPU-b does not tell";
  }
}

TEST(GpuMetrics, OfADriverThatHangsTellNoOldFigures) {
  Inventory inventory;
  inventory.gpus.resize(1);
  inventory.gpus[0].uuid = "GPU-\"a\\";
  inventory.gpus[0].sample.utilization_percent = 42;
  GpuHealth health(1);
  health.Observe(inventory, true);
  health.Observe(Error(Reason::kTimeout, "no answer"), true);
  const std::string text =
      GpuMetricsText(health, "n", [](const std::string&) { return std::vector<GpuUser>(); });
  EXPECT_EQ(text.find("DCGM_FI_DEV_GPU_UTIL{"), std::string::npos);
  EXPECT_NE(text.find(R"(UUID="GPU-\"a\\")"), std::string::npos) << text;
  EXPECT_NE(text.find("pod=\"\"} 0\n"), std::string::npos);
  EXPECT_EQ(GpuMetricsText(GpuHealth(1), "n", nullptr), "");
}

}  // namespace
}  // namespace muster::gpu
