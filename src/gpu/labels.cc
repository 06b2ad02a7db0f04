#include "gpu/labels.h"

#include <fmt/core.h>

#include <array>

#include "base/strings.h"

namespace muster::gpu {
namespace {

constexpr std::array<std::string_view, 25> kLabels = {
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.compute.major",
    "nvidia.com/gpu.compute.minor",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.mode",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.capable",
    "nvidia.com/mps.capable",
    "nvidia.com/cuda.driver-version.major",
    "nvidia.com/cuda.driver-version.minor",
    "nvidia.com/cuda.driver-version.revision",
    "nvidia.com/cuda.driver-version.full",
    "nvidia.com/cuda.driver.major",
    "nvidia.com/cuda.driver.minor",
    "nvidia.com/cuda.driver.rev",
    "nvidia.com/cuda.runtime-version.major",
    "nvidia.com/cuda.runtime-version.minor",
    "nvidia.com/cuda.runtime-version.full",
    "nvidia.com/cuda.runtime.major",
    "nvidia.com/cuda.runtime.minor",
};

// Behind the product's name where pods share a GPU and ask for it by its own name.
constexpr std::string_view kSharedSuffix = "-SHARED";

constexpr int64_t kPciDisplayClass = 0x03;
constexpr int64_t kPciVga = 0x0300, kPci3d = 0x0302;

std::string_view Mode(int64_t pci_class) {
  if (pci_class >> 16 != kPciDisplayClass) return "unknown";
  if (pci_class >> 8 == kPci3d) return "compute";
  return pci_class >> 8 == kPciVga ? "graphics" : "unknown";
}

void AddVersions(const Inventory& inventory, json::Value& labels) {
  const auto set = [&labels](std::string_view name, const std::string& value) {
    labels = std::move(labels).Set(fmt::format("nvidia.com/cuda.{}", name), LabelValue(value));
  };
  const std::vector<std::string_view> parts = Split(inventory.driver_version, '.');
  const auto part = [&](size_t i) {
    return std::string(i < parts.size() ? parts[i] : std::string_view());
  };
  set("driver-version.full", inventory.driver_version);
  set("driver-version.major", part(0));
  set("driver-version.minor", part(1));
  set("driver-version.revision", part(2));
  set("driver.major", part(0));
  set("driver.minor", part(1));
  set("driver.rev", part(2));
  const int64_t major = inventory.cuda_version / 1000;
  const int64_t minor = inventory.cuda_version % 1000 / 10;
  set("runtime-version.full", fmt::format("{}.{}", major, minor));
  set("runtime-version.major", std::to_string(major));
  set("runtime-version.minor", std::to_string(minor));
  set("runtime.major", std::to_string(major));
  set("runtime.minor", std::to_string(minor));
}

}  // namespace

std::span<const std::string_view> AllNodeLabels() { return kLabels; }

std::string LabelValue(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (c == ' ') out.push_back('-');
    if (plain || c == '-' || c == '_' || c == '.') out.push_back(c);
  }
  out.resize(std::min<size_t>(out.size(), 63));
  // It begins and ends with a letter or digit.
  const auto is_mark = [](char c) { return c == '-' || c == '_' || c == '.'; };
  while (!out.empty() && is_mark(out.back())) out.pop_back();
  while (!out.empty() && is_mark(out.front())) out.erase(out.begin());
  return out;
}

std::string_view Family(int64_t compute_major, int64_t compute_minor) {
  switch (compute_major) {
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return compute_minor < 5 ? "volta" : "turing";
    case 8:
      return compute_minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 12:
      return "blackwell";
    default:
      return "undefined";
  }
}

json::Value NodeLabels(const Inventory& inventory, const std::vector<Gpu>& gpus,
                       std::string_view machine, const TimeSlicing& slicing) {
  json::Value labels = json::Obj();
  if (gpus.empty()) return labels;
  const Gpu& first = gpus.front();
  const auto set = [&labels](std::string_view name, std::string_view value) {
    labels = std::move(labels).Set(fmt::format("nvidia.com/{}", name), value);
  };
  set("gpu.present", "true");
  const bool shared = slicing.replicas > 1;
  set("gpu.product",
      LabelValue(first.model) + (shared && !slicing.renamed ? std::string(kSharedSuffix) : ""));
  set("gpu.count", std::to_string(gpus.size()));
  set("gpu.replicas", std::to_string(slicing.replicas));
  set("gpu.memory", std::to_string(first.memory_bytes >> 20));
  set("gpu.family", Family(first.compute_major, first.compute_minor));
  set("gpu.compute.major", std::to_string(first.compute_major));
  set("gpu.compute.minor", std::to_string(first.compute_minor));
  const std::string machine_value = LabelValue(machine);
  set("gpu.machine", machine_value.empty() ? "unknown" : machine_value);
  set("gpu.mode", Mode(first.pci_class));
  set("gpu.sharing-strategy", shared ? "time-slicing" : "none");
  set("mig.capable", first.mig_capable ? "true" : "false");
  set("mps.capable", "false");
  AddVersions(inventory, labels);
  return labels;
}

}  // namespace muster::gpu
