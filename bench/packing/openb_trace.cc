#include "packing/openb_trace.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/csv.h"
#include "base/files.h"
#include "base/strings.h"

namespace muster::bench {
namespace {

constexpr double kArrivals = 1.3;  // of what the GPUs hold
constexpr int64_t kMaxAmount = 1'000'000'000;
constexpr size_t kMaxFileBytes = 256 * 1024 * 1024;

Result<int32_t> Number(const CsvRows& rows, std::string_view column, int64_t most = kMaxAmount) {
  ASSIGN_OR_RETURN(const int64_t value, rows.Int(column, most));
  return static_cast<int32_t>(value);
}

using Models = std::map<std::string, int>;

// Models beyond kMaxGpuModels count as one.
int ModelOf(Models& models, const std::string& name) {
  const int next = std::min(static_cast<int>(models.size()), cluster::kMaxGpuModels - 1);
  return models.try_emplace(name, next).first->second;
}

Result<cluster::GpuState> ReadNode(const CsvRows& rows, Models& models) {
  cluster::GpuState node;
  ASSIGN_OR_RETURN(node.cpu_milli, Number(rows, "cpu_milli"));
  ASSIGN_OR_RETURN(node.memory_mib, Number(rows, "memory_mib"));
  ASSIGN_OR_RETURN(const int32_t gpus, Number(rows, "gpu", cluster::kMaxGpusPerNode));
  node.gpus = static_cast<uint8_t>(gpus);
  for (int i = 0; i < gpus; ++i) node.free_milli[i] = cluster::kWholeGpu;
  node.model = static_cast<uint8_t>(ModelOf(models, std::string(rows.Text("model"))));
  return node;
}

Result<cluster::GpuAsk> ReadPod(const CsvRows& rows, const Models& models) {
  cluster::GpuAsk pod;
  ASSIGN_OR_RETURN(pod.cpu_milli, Number(rows, "cpu_milli"));
  ASSIGN_OR_RETURN(pod.memory_mib, Number(rows, "memory_mib"));
  ASSIGN_OR_RETURN(const int32_t gpus, Number(rows, "num_gpu", 1000));
  if (gpus == 0) return pod;
  pod.gpus = static_cast<int16_t>(gpus);
  ASSIGN_OR_RETURN(const int32_t milli, Number(rows, "gpu_milli"));
  // A pod of several GPUs has them whole.
  pod.gpu_milli =
      gpus > 1 ? cluster::kWholeGpu : static_cast<int16_t>(std::min(milli, cluster::kWholeGpu));
  for (std::string_view name : Split(rows.Text("gpu_spec"), '|')) {
    if (name.empty()) continue;
    const auto known = models.find(std::string(name));
    // A model that no node has: a bit that no node has either.
    pod.models |= uint32_t{1} << (known == models.end() ? cluster::kMaxGpuModels : known->second);
  }
  return pod;
}

}  // namespace

Result<OpenbTrace> ReadOpenbTrace(const std::string& node_file, const std::string& pod_file) {
  ASSIGN_OR_RETURN(const std::string node_text, ReadSmallFile(node_file, kMaxFileBytes));
  ASSIGN_OR_RETURN(const std::string pod_text, ReadSmallFile(pod_file, kMaxFileBytes));
  CsvRows nodes(node_file, node_text), pods(pod_file, pod_text);
  RETURN_IF_ERROR(nodes.Require({"cpu_milli", "memory_mib", "gpu"}));
  RETURN_IF_ERROR(pods.Require({"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}));
  OpenbTrace trace;
  Models models;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, nodes.Next());
    if (!more) break;
    ASSIGN_OR_RETURN(const cluster::GpuState node, ReadNode(nodes, models));
    trace.nodes.push_back(node);
    trace.total_milli += node.IdleMilli();
  }
  while (true) {
    ASSIGN_OR_RETURN(const bool more, pods.Next());
    if (!more) break;
    ASSIGN_OR_RETURN(const cluster::GpuAsk pod, ReadPod(pods, models));
    trace.pods.push_back(pod);
  }
  if (trace.total_milli == 0) return Error(Reason::kInvalid, "{}: no node has a GPU", node_file);
  const bool asks = std::any_of(trace.pods.begin(), trace.pods.end(),
                                [](const cluster::GpuAsk& pod) { return pod.TotalMilli() > 0; });
  if (!asks) return Error(Reason::kInvalid, "{}: no pod asks for a GPU", pod_file);
  return trace;
}

std::vector<cluster::GpuAsk> MakeArrivals(const OpenbTrace& trace, Rng& rng) {
  std::vector<cluster::GpuAsk> arrivals = trace.pods;
  Shuffle(arrivals, rng);
  int64_t milli = 0;
  for (const cluster::GpuAsk& pod : arrivals) milli += pod.TotalMilli();
  const auto wanted = static_cast<int64_t>(kArrivals * static_cast<double>(trace.total_milli));
  while (milli > wanted) {
    const auto at = arrivals.begin() + static_cast<ptrdiff_t>(rng.Below(arrivals.size()));
    milli -= at->TotalMilli();
    arrivals.erase(at);
  }
  while (true) {
    const cluster::GpuAsk& pod = trace.pods[rng.Below(trace.pods.size())];
    // As the original, which looks at one GPU of the pod here.
    if (milli + pod.gpu_milli > wanted) return arrivals;
    milli += pod.TotalMilli();
    arrivals.push_back(pod);
  }
}

}  // namespace muster::bench
