#include "ray/start_command.h"

#include <map>
#include <string_view>

#include <fmt/core.h>

#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::ray {
namespace {

using Params = std::map<std::string, std::string>;

bool TakesWords(std::string_view flag) {
  return flag == "log-color" || flag == "include-dashboard" || flag == "include-log-monitor";
}

Params ParamsOf(const json::Value& params) {
  Params all;
  for (const auto& [name, value] : params.members()) all[name] = value.Str();
  return all;
}

std::string Flags(const Params& params) {
  std::string flags;
  for (const auto& [name, value] : params) {
    const std::string word = ToLower(value);
    const bool is_switch = (word == "true" || word == "false") && !TakesWords(name);
    if (is_switch && word == "false") continue;
    flags += is_switch ? fmt::format(" --{}", name) : fmt::format(" --{}={}", name, value);
  }
  return flags.empty() ? flags : flags.substr(1);
}

// In whole units, rounded up; 0 if there is none or it cannot be read.
int64_t UnitsOf(const json::Value& amount) {
  const auto quantity = cluster::Quantity::FromJson(amount);
  return quantity && !quantity->IsNegative() ? quantity->Units() : 0;
}

void AddResources(const json::Value& container, Params& params) {
  const json::Value& limits = container["resources"]["limits"];
  const json::Value& requests = container["resources"]["requests"];
  const int64_t cpus = UnitsOf(limits.Has("cpu") ? limits["cpu"] : requests["cpu"]);
  if (cpus > 0) params.try_emplace("num-cpus", std::to_string(cpus));
  const int64_t memory = UnitsOf(limits["memory"]);
  if (memory > 0) params.try_emplace("memory", std::to_string(memory));
  const json::Value sorted = json::SortKeys(limits);
  for (const auto& [name, amount] : sorted.members()) {
    const int64_t gpus = name.ends_with("gpu") ? UnitsOf(amount) : 0;
    if (gpus > 0) params.try_emplace("num-gpus", std::to_string(gpus));
  }
}

std::string Command(std::string_view kind, Params params, const json::Value& container) {
  params.try_emplace("metrics-export-port", std::to_string(kMetricsPort));
  params.try_emplace("dashboard-agent-listen-port", std::to_string(kAgentPort));
  params["block"] = "true";
  AddResources(container, params);
  return fmt::format("ulimit -n ${{RAY_START_ULIMIT_OPEN_FILES:-65536}}; ray start{} {}", kind,
                     Flags(params));
}

}  // namespace

std::string FlagsOf(const json::Value& params) { return Flags(ParamsOf(params)); }

std::string HeadCommand(const Cluster& cluster, const json::Value& container) {
  Params params = ParamsOf(cluster.head["rayStartParams"]);
  params.try_emplace("dashboard-host", "0.0.0.0");
  if (cluster.autoscaling) params["no-monitor"] = "true";
  return Command(" --head", std::move(params), container);
}

std::string WorkerCommand(const Cluster& cluster, const json::Value& params,
                          const json::Value& container) {
  Params all = ParamsOf(params);
  const Params head = ParamsOf(cluster.head["rayStartParams"]);
  const auto port = head.find("port");
  all.try_emplace("address",
                  fmt::format("{}:{}", cluster.HeadAddress(),
                              port == head.end() ? std::to_string(kGcsPort) : port->second));
  return Command("", std::move(all), container);
}

}  // namespace muster::ray
