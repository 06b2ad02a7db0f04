// muster top gpus: every GPU of the cluster, what it does, and who has it.

#include <map>
#include <optional>
#include <set>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/gpu_figures.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "cluster/device_shares.h"
#include "cluster/devices.h"
#include "cluster/resources.h"
#include "schema/pod_phase.h"

namespace muster::cli {
namespace {

std::string Show(const Figures& figures, const char* metric, std::string_view unit) {
  const auto found = figures.find(metric);
  return found == figures.end() ? "-" : found->second + std::string(unit);
}

std::string Memory(const Figures& figures, const cluster::Device& device) {
  const auto used = figures.find("DCGM_FI_DEV_FB_USED");
  if (device.memory_bytes <= 0) return "-";
  return fmt::format("{}/{} MiB", used == figures.end() ? "-" : used->second,
                     device.memory_bytes >> 20);
}

std::string Power(const Figures& figures) {
  const auto found = figures.find("DCGM_FI_DEV_POWER_USAGE");
  if (found == figures.end()) return "-";
  return found->second.substr(0, found->second.find('.')) + " W";
}

// node name, GPU -> "namespace/pod" of all that have a part of it
std::map<std::pair<std::string, std::string>, std::set<std::string>> Owners(
    const json::Value& pods) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> out;
  for (const json::Value& pod : pods["items"].items()) {
    const std::string node = pod["spec"]["nodeName"].Str();
    if (node.empty() || schema::IsFinalPhase(pod["status"]["phase"].AsString())) continue;
    const json::Value& meta = pod["metadata"];
    for (const auto& [container, lists] : cluster::PodDevices(pod)) {
      for (const auto& [resource, ids] : lists) {
        for (const std::string& gpu : cluster::GpusOf(ids))
          out[{node, gpu}].insert(meta["namespace"].Str() + "/" + meta["name"].Str());
      }
    }
  }
  return out;
}

Result<int> Run(Invocation& invocation) {
  Session& session = invocation.session;
  ASSIGN_OR_RETURN(const json::Value nodes, session.List(client::resources::kNodes, ""));
  ASSIGN_OR_RETURN(const json::Value pods, session.List(client::resources::kPods, ""));
  ASSIGN_OR_RETURN(const GpuFigures figures, ReadGpuFigures(session));
  const auto owners = Owners(pods);
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "GPU", "MODEL", "UTIL", "MEMORY", "TEMP", "POWER", "HEALTH", "POD"}};
  for (const json::Value& node : nodes["items"].items()) {
    const std::string name = node["metadata"]["name"].Str();
    std::set<std::string> seen;
    for (const cluster::Device& device : cluster::NodeDevices(node)) {
      if (!device.resource.starts_with(cluster::resource::kNvidiaGpu)) continue;
      const std::string gpu(cluster::GpuOf(device.id));
      if (!seen.insert(gpu).second) continue;  // another share of it
      const auto found = figures.find(gpu);
      const Figures own = found == figures.end() ? Figures() : found->second;
      const auto owner = owners.find({name, gpu});
      rows.push_back(
          {name, std::to_string(device.index), device.model,
           Show(own, "DCGM_FI_DEV_GPU_UTIL", " %"), Memory(own, device),
           Show(own, "DCGM_FI_DEV_GPU_TEMP", " C"), Power(own),
           device.unhealthy.empty() ? "ok" : device.unhealthy,
           owner == owners.end() ? "-" : Join({owner->second.begin(), owner->second.end()}, ", ")});
    }
  }
  if (rows.size() == 1) {
    invocation.console.Print("No node offers GPUs\n");
  } else {
    invocation.console.Out(FormatColumns(rows));
  }
  return 0;
}

}  // namespace

Command TopCommand() {
  Command command;
  command.name = "top";
  command.summary = "what the GPUs do and who has them";
  command.usage = "gpus [flags]";
  command.details = "A dash stands for what the node does not measure, as of simulated GPUs.";
  command.examples = {{"muster top gpus", "every GPU of the cluster"}};
  command.verbs = {{"gpus"}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
