#include "cluster/instance_types.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::cluster {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

struct GpuModel {
  const char* name;
  const char* product;
  int64_t memory_mib;
};
constexpr GpuModel kNoGpu{"", "", 0};
constexpr GpuModel kT4{"t4", "Tesla-T4", 16'384};
constexpr GpuModel kA10g{"a10g", "NVIDIA-A10G", 24'576};
constexpr GpuModel kL4{"l4", "NVIDIA-L4", 24'576};
constexpr GpuModel kL40s{"l40s", "NVIDIA-L40S", 49'152};
constexpr GpuModel kV100{"v100", "Tesla-V100-SXM2-16GB", 16'384};
constexpr GpuModel kA100{"a100", "NVIDIA-A100-SXM4-40GB", 40'960};
constexpr GpuModel kA100Large{"a100", "NVIDIA-A100-SXM4-80GB", 81'920};
constexpr GpuModel kH100{"h100", "NVIDIA-H100-80GB-HBM3", 81'920};
constexpr GpuModel kH200{"h200", "NVIDIA-H200", 144'384};
constexpr GpuModel kB200{"b200", "NVIDIA-B200", 183'296};
constexpr GpuModel kB300{"b300", "NVIDIA-B300-SXM6-AC", 274'432};

struct Row {
  const char* name;
  int64_t vcpus, memory_gib;
  int gpus;
  const GpuModel& gpu;
  MicroUsd on_demand;
  MicroUsd spot;  // 0: nobody has seen one
};

constexpr Row kRows[] = {
    {"c5.2xlarge", 8, 16, 0, kNoGpu, 340'000, 0},
    {"c5.4xlarge", 16, 32, 0, kNoGpu, 680'000, 0},
    {"c5.9xlarge", 36, 72, 0, kNoGpu, 1'530'000, 0},
    {"g4dn.12xlarge", 48, 192, 4, kT4, 3'912'000, 0},
    {"g4dn.16xlarge", 64, 256, 1, kT4, 4'352'000, 0},
    {"g4dn.2xlarge", 8, 32, 1, kT4, 752'000, 0},
    {"g4dn.4xlarge", 16, 64, 1, kT4, 1'204'000, 0},
    {"g4dn.8xlarge", 32, 128, 1, kT4, 2'176'000, 0},
    {"g4dn.xlarge", 4, 16, 1, kT4, 526'000, 0},
    {"g5.12xlarge", 48, 192, 4, kA10g, 5'672'000, 0},
    {"g5.16xlarge", 64, 256, 1, kA10g, 4'096'000, 0},
    {"g5.24xlarge", 96, 384, 4, kA10g, 8'144'000, 0},
    {"g5.2xlarge", 8, 32, 1, kA10g, 1'212'000, 0},
    {"g5.48xlarge", 192, 768, 8, kA10g, 16'288'000, 0},
    {"g5.4xlarge", 16, 64, 1, kA10g, 1'624'000, 0},
    {"g5.8xlarge", 32, 128, 1, kA10g, 2'448'000, 0},
    {"g5.xlarge", 4, 16, 1, kA10g, 1'006'000, 0},
    {"g6.12xlarge", 48, 192, 4, kL4, 4'601'600, 0},
    {"g6.2xlarge", 8, 32, 1, kL4, 977'600, 0},
    {"g6.48xlarge", 192, 768, 8, kL4, 13'350'400, 0},
    {"g6.4xlarge", 16, 64, 1, kL4, 1'323'200, 0},
    {"g6.xlarge", 4, 16, 1, kL4, 804'800, 0},
    {"g6e.12xlarge", 48, 384, 4, kL40s, 10'492'640, 0},
    {"g6e.48xlarge", 192, 1'536, 8, kL40s, 30'131'180, 0},
    {"g6e.xlarge", 4, 32, 1, kL40s, 1'861'000, 0},
    {"m5.12xlarge", 48, 192, 0, kNoGpu, 2'304'000, 0},
    {"m5.24xlarge", 96, 384, 0, kNoGpu, 4'608'000, 0},
    {"m5.2xlarge", 8, 32, 0, kNoGpu, 384'000, 0},
    {"m5.4xlarge", 16, 64, 0, kNoGpu, 768'000, 0},
    {"m5.8xlarge", 32, 128, 0, kNoGpu, 1'536'000, 0},
    {"m5.large", 2, 8, 0, kNoGpu, 96'000, 0},
    {"m5.xlarge", 4, 16, 0, kNoGpu, 192'000, 0},
    {"p3.16xlarge", 64, 488, 8, kV100, 24'480'000, 0},
    {"p3.2xlarge", 8, 61, 1, kV100, 3'060'000, 0},
    {"p3.8xlarge", 32, 244, 4, kV100, 12'240'000, 1'400'000},
    {"p4d.24xlarge", 96, 1'152, 8, kA100, 21'957'642, 8'190'000},
    {"p4de.24xlarge", 96, 1'152, 8, kA100Large, 27'447'050, 9'970'000},
    {"p5.48xlarge", 192, 2'048, 8, kH100, 55'040'000, 25'800'000},
    {"p5.4xlarge", 16, 256, 1, kH100, 6'880'000, 0},
    {"p5en.48xlarge", 192, 2'048, 8, kH200, 63'296'000, 0},
    {"p6-b200.48xlarge", 192, 2'048, 8, kB200, 113'932'800, 0},
    {"p6-b300.48xlarge", 192, 4'096, 8, kB300, 142'416'000, 0},
    {"r5.2xlarge", 8, 64, 0, kNoGpu, 504'000, 0},
    {"r5.4xlarge", 16, 128, 0, kNoGpu, 1'008'000, 0},
    {"r5.xlarge", 4, 32, 0, kNoGpu, 252'000, 0},
};

InstanceType FromRow(const Row& row) {
  InstanceType type;
  type.name = row.name;
  type.vcpus = row.vcpus;
  type.memory_bytes = row.memory_gib * kGib;
  type.gpus = row.gpus;
  type.gpu_name = row.gpu.name;
  type.gpu_product = row.gpu.product;
  type.gpu_memory_mib = row.gpu.memory_mib;
  type.on_demand = row.on_demand;
  type.spot_estimated = row.spot == 0;
  type.spot = row.spot == 0 ? row.on_demand * kSpotEstimatePercent / 100 : row.spot;
  return type;
}

}  // namespace

std::string_view ToString(CapacityType type) {
  return type == CapacityType::kSpot ? "spot" : "on-demand";
}

const std::vector<InstanceType>& BuiltInInstanceTypes() {
  static const std::vector<InstanceType> types = [] {
    std::vector<InstanceType> all;
    for (const Row& row : kRows) all.push_back(FromRow(row));
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return types;
}

const InstanceType* FindBuiltInInstanceType(std::string_view name) {
  const std::vector<InstanceType>& all = BuiltInInstanceTypes();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const InstanceType& type, std::string_view key) { return type.name < key; });
  return found == all.end() || found->name != name ? nullptr : &*found;
}

std::string UsdText(MicroUsd price) {
  std::string text =
      fmt::format("{}{}.{:06}", price < 0 ? "-" : "", std::abs(price / kMicroUsdPerUsd),
                  std::abs(price % kMicroUsdPerUsd));
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::optional<MicroUsd> ParseUsd(std::string_view text) {
  constexpr MicroUsd kMostUsd = 1'000'000;
  constexpr size_t kDecimals = 6;
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string decimals(point == text.npos ? "" : text.substr(point + 1));
  const auto digits = [](std::string_view part) {
    return part.find_first_not_of("0123456789") == part.npos;
  };
  if (whole.empty() || !digits(whole) || !digits(decimals) || decimals.size() > kDecimals ||
      (point != text.npos && decimals.empty())) {
    return std::nullopt;
  }
  decimals.resize(kDecimals, '0');
  const std::optional<int64_t> usd = ParseInt(whole);
  if (!usd || *usd > kMostUsd) return std::nullopt;
  return *usd * kMicroUsdPerUsd + ParseInt(decimals).value_or(0);
}

}  // namespace muster::cluster
