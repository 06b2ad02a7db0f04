#include "gpu/gpu_metrics.h"

#include <fmt/core.h>

namespace muster::gpu {
namespace {

// A label's value in Prometheus' text format.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

std::string Labels(const Gpu& gpu, std::string_view node, const std::string& driver,
                   const GpuUser& user) {
  return fmt::format(
      "gpu=\"{}\",UUID={},pci_bus_id={},device=\"nvidia{}\",modelName={},Hostname={},"
      "DCGM_FI_DRIVER_VERSION={},container={},namespace={},pod={}",
      gpu.index, Quoted(gpu.uuid), Quoted(gpu.pci_bus_id), gpu.minor, Quoted(gpu.model),
      Quoted(node), Quoted(driver), Quoted(user.container), Quoted(user.ns), Quoted(user.pod));
}

struct Metric {
  const char* name;
  const char* help;
  std::string (*read)(const GpuHealth::Known&);  // "": the driver does not tell
};

std::string Whole(int64_t value, int shift = 0) {
  return value < 0 ? std::string() : std::to_string(value >> shift);
}

constexpr int kMiB = 20;

const Metric kMetrics[] = {
    {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.sample.utilization_percent); }},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.sample.memory_busy_percent); }},
    {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.sample.memory_used_bytes, kMiB); }},
    {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.sample.memory_free_bytes, kMiB); }},
    {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.sample.temperature_celsius); }},
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).",
     [](const GpuHealth::Known& k) {
       const int64_t milliwatts = k.gpu.sample.power_milliwatts;
       return milliwatts < 0 ? std::string()
                             : fmt::format("{:.3f}", static_cast<double>(milliwatts) / 1000.0);
     }},
    {"DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.",
     [](const GpuHealth::Known& k) {
       return k.gpu.tells_xids ? fmt::format("{}", k.last_xid) : std::string();
     }},
    {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.pace.sm_clock_mhz); }},
    {"DCGM_FI_DEV_MAX_SM_CLOCK", "Maximum SM clock frequency (in MHz).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.pace.max_sm_clock_mhz); }},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Current clock throttle reasons (bitmask).",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.pace.slowdown_reasons); }},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Total number of double-bit volatile ECC errors.",
     [](const GpuHealth::Known& k) { return Whole(k.gpu.pace.uncorrected_errors); }},
    {"muster_gpu_healthy", "1 while the GPU is offered to pods.",
     [](const GpuHealth::Known& k) { return std::string(k.healthy ? "1" : "0"); }},
};

}  // namespace

std::string GpuMetricsText(
    const GpuHealth& health, std::string_view node,
    const std::function<std::vector<GpuUser>(const std::string& uuid)>& users_of) {
  std::string out;
  if (health.gpus().empty()) return out;
  std::vector<std::vector<std::string>> labels;  // of each GPU's series
  for (const GpuHealth::Known& known : health.gpus()) {
    std::vector<GpuUser> users = users_of(known.gpu.uuid);
    if (users.size() != 1) users.emplace_back();
    std::vector<std::string>& series = labels.emplace_back();
    for (const GpuUser& user : users)
      series.push_back(Labels(known.gpu, node, health.inventory().driver_version, user));
  }
  for (const Metric& metric : kMetrics) {
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", metric.name, metric.help);
    for (size_t i = 0; i < labels.size(); ++i) {
      const std::string value = metric.read(health.gpus()[i]);
      if (value.empty()) continue;
      for (const std::string& series : labels[i])
        out += fmt::format("{}{{{}}} {}\n", metric.name, series, value);
    }
  }
  return out;
}

}  // namespace muster::gpu
