#include "packing/openb_trace.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::bench {
namespace {

constexpr double kArrivals = 1.3;  // of what the GPUs hold
constexpr int64_t kMaxAmount = 1'000'000'000;

// The rows of a CSV file without quotes, by the names in its first line.
class Table {
 public:
  static Result<Table> Read(const std::string& file) {
    std::ifstream in(file);
    if (!in) return Error(Reason::kNotFound, "cannot read {}", file);
    Table table;
    table.file_ = file;
    std::string line;
    while (std::getline(in, line)) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.empty()) continue;
      std::vector<std::string> cells;
      for (std::string_view cell : Split(line, ',')) cells.emplace_back(cell);
      if (table.columns_.empty()) {
        for (size_t i = 0; i < cells.size(); ++i) table.columns_[cells[i]] = i;
      } else {
        table.rows_.push_back(std::move(cells));
      }
    }
    return table;
  }

  size_t size() const { return rows_.size(); }
  std::string Text(size_t row, const std::string& column) const {
    const auto at = columns_.find(column);
    const bool has = at != columns_.end() && at->second < rows_[row].size();
    return has ? rows_[row][at->second] : "";
  }
  Result<int32_t> Number(size_t row, const std::string& column, int64_t most = kMaxAmount) const {
    const std::string text = Text(row, column);
    const auto value = ParseInt(text);
    if (!value || *value < 0 || *value > most) {
      return Error(Reason::kInvalid, "{} line {}: {} must be a number from 0 to {}, not {:?}",
                   file_, row + 2, column, most, text);
    }
    return static_cast<int32_t>(*value);
  }

 private:
  std::string file_;
  std::map<std::string, size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

using Models = std::map<std::string, int>;

// Models beyond kMaxGpuModels count as one.
int ModelOf(Models& models, const std::string& name) {
  const int next = std::min(static_cast<int>(models.size()), cluster::kMaxGpuModels - 1);
  return models.try_emplace(name, next).first->second;
}

Result<cluster::GpuState> ReadNode(const Table& table, size_t row, Models& models) {
  cluster::GpuState node;
  ASSIGN_OR_RETURN(node.cpu_milli, table.Number(row, "cpu_milli"));
  ASSIGN_OR_RETURN(node.memory_mib, table.Number(row, "memory_mib"));
  ASSIGN_OR_RETURN(const int32_t gpus, table.Number(row, "gpu", cluster::kMaxGpusPerNode));
  node.gpus = static_cast<uint8_t>(gpus);
  for (int i = 0; i < gpus; ++i) node.free_milli[i] = cluster::kWholeGpu;
  node.model = static_cast<uint8_t>(ModelOf(models, table.Text(row, "model")));
  return node;
}

Result<cluster::GpuAsk> ReadPod(const Table& table, size_t row, const Models& models) {
  cluster::GpuAsk pod;
  ASSIGN_OR_RETURN(pod.cpu_milli, table.Number(row, "cpu_milli"));
  ASSIGN_OR_RETURN(pod.memory_mib, table.Number(row, "memory_mib"));
  ASSIGN_OR_RETURN(const int32_t gpus, table.Number(row, "num_gpu", 1000));
  if (gpus == 0) return pod;
  pod.gpus = static_cast<int16_t>(gpus);
  ASSIGN_OR_RETURN(const int32_t milli, table.Number(row, "gpu_milli"));
  // A pod of several GPUs has them whole.
  pod.gpu_milli =
      gpus > 1 ? cluster::kWholeGpu : static_cast<int16_t>(std::min(milli, cluster::kWholeGpu));
  const std::string spec = table.Text(row, "gpu_spec");
  for (std::string_view name : Split(spec, '|')) {
    if (name.empty()) continue;
    const auto known = models.find(std::string(name));
    // A model that no node has: a bit that no node has either.
    pod.models |= uint32_t{1} << (known == models.end() ? cluster::kMaxGpuModels : known->second);
  }
  return pod;
}

}  // namespace

Result<OpenbTrace> ReadOpenbTrace(const std::string& node_file, const std::string& pod_file) {
  ASSIGN_OR_RETURN(const Table nodes, Table::Read(node_file));
  ASSIGN_OR_RETURN(const Table pods, Table::Read(pod_file));
  OpenbTrace trace;
  Models models;
  for (size_t row = 0; row < nodes.size(); ++row) {
    ASSIGN_OR_RETURN(const cluster::GpuState node, ReadNode(nodes, row, models));
    trace.nodes.push_back(node);
    trace.total_milli += node.IdleMilli();
  }
  for (size_t row = 0; row < pods.size(); ++row) {
    ASSIGN_OR_RETURN(const cluster::GpuAsk pod, ReadPod(pods, row, models));
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
