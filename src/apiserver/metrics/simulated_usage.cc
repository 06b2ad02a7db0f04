#include "apiserver/metrics/simulated_usage.h"

#include <algorithm>
#include <optional>
#include <string>

#include "schema/quantity_syntax.h"

namespace muster::apiserver {
namespace {

constexpr __int128 kNanoPerUnit = 1'000'000'000;

// Nano-units of a quantity; nullopt for what is none, or is below zero.
std::optional<__int128> NanoOf(const json::Value& quantity) {
  if (!quantity.IsString()) return std::nullopt;
  const Result<schema::Amount> amount = schema::ParseAmount(quantity.AsString());
  if (!amount || amount->nano < 0) return std::nullopt;
  return amount->nano;
}

}  // namespace

std::vector<ContainerUsage> SimulatedUsage(const json::Value& pod, Time now) {
  const json::Value& annotations = pod["metadata"]["annotations"];
  const std::optional<__int128> cpu = NanoOf(annotations["muster.dev/simulated-cpu"]);
  const std::optional<__int128> memory = NanoOf(annotations["muster.dev/simulated-memory"]);
  std::vector<ContainerUsage> containers;
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    const json::Value& requests = container["resources"]["requests"];
    const __int128 cpu_nano = cpu.value_or(NanoOf(requests["cpu"]).value_or(0) / 2);
    const __int128 bytes =
        memory.value_or(NanoOf(requests["memory"]).value_or(0) / 2) / kNanoPerUnit;
    constexpr __int128 kMost = INT64_MAX;
    containers.push_back({container["name"].Str(),
                          {now, kSimulatedWindow, static_cast<int64_t>(std::min(cpu_nano, kMost)),
                           static_cast<int64_t>(std::min(bytes, kMost))}});
  }
  return containers;
}

}  // namespace muster::apiserver
