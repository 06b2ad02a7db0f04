#include "simulator/trace_reader.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/csv.h"
#include "base/strings.h"
#include "simulator/object_validation.h"

namespace muster::simulator {
namespace {

using cluster::NodeInfo;

constexpr std::string_view kModelLabel = "nvidia.com/gpu.product";
// What every machine of `NODESxGPUS` has.
constexpr int64_t kShapeCpuMilli = 96'000;
constexpr int64_t kPodsPerNode = 110;  // the kubelet's default
constexpr int64_t kMebibyte = 1024 * 1024;

Duration Seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

NodeInfo MakeNode(std::string name, int64_t cpu_milli, int64_t memory_bytes, int64_t gpus,
                  const std::string& model) {
  NodeInfo node;
  node.name = node.uid = node.hostname = std::move(name);
  node.has_hostname = true;
  if (!model.empty()) node.labels[std::string(kModelLabel)] = model;
  for (const auto& [resource, amount] : {std::pair(cluster::resource::kCpu, cpu_milli),
                                         std::pair(cluster::resource::kMemory, memory_bytes),
                                         std::pair(cluster::resource::kNvidiaGpu, gpus),
                                         std::pair(cluster::resource::kPods, kPodsPerNode)}) {
    if (amount > 0) cluster::AddTo(node.allocatable, {{std::string(resource), amount}});
  }
  const std::string resource(cluster::resource::kNvidiaGpu);
  for (int64_t i = 0; i < gpus; ++i)
    node.devices.push_back({resource, fmt::format("GPU-{}", i), i, model});
  return node;
}

void Request(PodSet& pods, std::string_view resource, int64_t amount) {
  if (amount > 0) cluster::AddTo(pods.constraints.requests, {{std::string(resource), amount}});
}

Status TooMany(std::string_view file, std::string_view what, size_t most) {
  return Error(Reason::kInvalid, "{}: more than {} {}", file, most, what);
}

Result<std::vector<NodeInfo>> Checked(std::string_view file, std::vector<NodeInfo> nodes) {
  if (nodes.empty()) return Error(Reason::kInvalid, "{}: no node", file);
  std::set<std::string_view> names;
  for (const NodeInfo& node : nodes) {
    if (!names.insert(node.name).second)
      return Error(Reason::kInvalid, "{}: node {:?} is there twice", file, node.name);
  }
  return nodes;
}

// --- CSV

Result<std::vector<NodeInfo>> OpenbNodes(std::string_view file, CsvRows rows) {
  RETURN_IF_ERROR(rows.Require({"sn", "cpu_milli", "memory_mib", "gpu"}));
  std::vector<NodeInfo> nodes;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return Checked(file, std::move(nodes));
    if (nodes.size() == kMaxSimulatedNodes) return Error(TooMany(file, "nodes", nodes.size()));
    if (rows.Text("sn").empty()) return Error(rows.Fault("sn", "a name"));
    ASSIGN_OR_RETURN(const int64_t cpu, rows.Int("cpu_milli", cluster::kMaxAmount));
    ASSIGN_OR_RETURN(const int64_t memory, rows.Int("memory_mib", cluster::kMaxAmount / kMebibyte));
    ASSIGN_OR_RETURN(const int64_t gpus,
                     rows.Int("gpu", static_cast<int64_t>(cluster::kMaxDevicesPerNode)));
    nodes.push_back(MakeNode(std::string(rows.Text("sn")), cpu, memory * kMebibyte, gpus,
                             std::string(rows.Text("model"))));
  }
}

Result<std::vector<Job>> OpenbJobs(std::string_view file, CsvRows rows) {
  RETURN_IF_ERROR(rows.Require({"name", "cpu_milli", "memory_mib", "num_gpu", "creation_time",
                                "deletion_time", "scheduled_time"}));
  std::vector<Job> jobs;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return InOrderOfArrival(file, std::move(jobs));
    if (jobs.size() == kMaxSimulatedJobs) return Error(TooMany(file, "jobs", jobs.size()));
    Job job;
    job.name = rows.Text("name");
    if (job.name.empty()) return Error(rows.Fault("name", "a name"));
    ASSIGN_OR_RETURN(const int64_t cpu, rows.Int("cpu_milli", cluster::kMaxAmount));
    ASSIGN_OR_RETURN(const int64_t memory, rows.Int("memory_mib", cluster::kMaxAmount / kMebibyte));
    ASSIGN_OR_RETURN(const int64_t gpus,
                     rows.Int("num_gpu", static_cast<int64_t>(cluster::kMaxDevicesPerNode)));
    ASSIGN_OR_RETURN(const double created, rows.Number("creation_time", kMaxSimulatedSeconds));
    ASSIGN_OR_RETURN(const double ended, rows.Number("deletion_time", kMaxSimulatedSeconds));
    double started = created;
    if (!rows.Text("scheduled_time").empty()) {
      ASSIGN_OR_RETURN(started, rows.Number("scheduled_time", kMaxSimulatedSeconds));
    }
    if (ended <= started) continue;
    job.arrival = Seconds(created);
    job.run_time = Seconds(ended - started);
    PodSet& pods = job.pods.emplace_back();
    Request(pods, cluster::resource::kCpu, cpu);
    Request(pods, cluster::resource::kMemory, memory * kMebibyte);
    Request(pods, cluster::resource::kNvidiaGpu, gpus);
    Request(pods, cluster::resource::kPods, 1);
    if (const std::string_view models = rows.Text("gpu_spec"); !models.empty()) {
      cluster::Requirement one_of{std::string(kModelLabel), cluster::SelectorOperator::kIn, {}};
      for (const std::string_view model : SplitNonEmpty(models, '|'))
        one_of.values.emplace_back(model);
      pods.constraints.affinity.has_terms = true;
      pods.constraints.affinity.terms.push_back({{std::move(one_of)}, {}});
    }
    jobs.push_back(std::move(job));
  }
}

// "2017-10-09 07:01:55", taken as UTC.
std::optional<Time> PhillyTime(std::string_view text) {
  std::string rfc(text);
  if (rfc.size() > 10 && rfc[10] == ' ') rfc[10] = 'T';
  return ParseTime(rfc + "Z");
}

Result<std::vector<Job>> PhillyJobs(std::string_view file, CsvRows rows) {
  RETURN_IF_ERROR(rows.Require({"timestamp", "duration", "num_gpus"}));
  std::vector<Job> jobs;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return InOrderOfArrival(file, std::move(jobs));
    if (jobs.size() == kMaxSimulatedJobs) return Error(TooMany(file, "jobs", jobs.size()));
    const auto arrival = PhillyTime(rows.Text("timestamp"));
    if (!arrival) return Error(rows.Fault("timestamp", "a time like 2017-10-09 07:01:55"));
    ASSIGN_OR_RETURN(const double duration, rows.Number("duration", kMaxSimulatedSeconds));
    ASSIGN_OR_RETURN(const int64_t gpus, rows.Int("num_gpus", kMaxPhillyGpus));
    if (gpus == 0 || duration <= 0) continue;
    Job job;
    job.name = fmt::format("job-{}", rows.line());
    job.arrival = arrival->time_since_epoch();
    job.run_time = Seconds(duration);
    PodSet& pods = job.pods.emplace_back();
    pods.count = (gpus + kGpusPerPhillyPod - 1) / kGpusPerPhillyPod;
    Request(pods, cluster::resource::kNvidiaGpu, (gpus + pods.count - 1) / pods.count);
    Request(pods, cluster::resource::kPods, 1);
    jobs.push_back(std::move(job));
  }
}

std::string_view FirstLine(std::string_view text) { return Trim(text.substr(0, text.find('\n'))); }

bool IsCsv(std::string_view text) {
  const std::string_view header = FirstLine(text);
  return header.starts_with("name,") || header.starts_with("timestamp,");
}

}  // namespace

Result<std::vector<NodeInfo>> ReadNodes(std::string_view file, std::string_view text) {
  if (FirstLine(text).starts_with("sn,")) return OpenbNodes(file, CsvRows(file, text));
  ASSIGN_OR_RETURN(const std::vector<json::Value> objects, ReadObjects(file, text));
  std::vector<NodeInfo> nodes;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!IsOfKind(objects[i], "Node"))
      return Error(WrongKind(file, i, objects[i], "Node (or a CSV of openb)"));
    if (nodes.size() == kMaxSimulatedNodes) return Error(TooMany(file, "nodes", nodes.size()));
    nodes.push_back(cluster::ToNodeInfo(objects[i]));
  }
  return Checked(file, std::move(nodes));
}

Status ValidateJobs(std::string_view file, std::string_view text) {
  if (IsCsv(text)) return Status::Ok();
  ASSIGN_OR_RETURN(const std::vector<json::Value> objects, ReadObjects(file, text));
  return ValidateObjects(file, objects);
}

std::vector<std::string> NotSimulated(std::string_view file, std::string_view text) {
  static const std::set<std::string_view> kinds = {"CronJob", "DaemonSet",  "Deployment",
                                                   "JobSet",  "ReplicaSet", "StatefulSet"};
  if (IsCsv(text)) return {};
  std::vector<std::string> names;
  for (const json::Value& object : ReadObjects(file, text).value_or(std::vector<json::Value>())) {
    if (kinds.contains(object["kind"].AsString()))
      names.push_back(object["kind"].Str() + " " + object["metadata"]["name"].Str());
  }
  return names;
}

Result<std::vector<Job>> ReadJobs(std::string_view file, std::string_view text,
                                  const ReadOptions& options) {
  const std::string_view header = FirstLine(text);
  if (header.starts_with("name,")) return OpenbJobs(file, CsvRows(file, text));
  if (header.starts_with("timestamp,")) return PhillyJobs(file, CsvRows(file, text));
  ASSIGN_OR_RETURN(const std::vector<json::Value> objects, ReadObjects(file, text));
  return JobsOfObjects(file, objects, options);
}

bool IsNodeShape(std::string_view text) {
  const auto parts = Split(text, 'x');
  return parts.size() == 2 && ParseInt(parts[0]) && ParseInt(parts[1]);
}

Result<std::vector<NodeInfo>> NodesOfShape(std::string_view text) {
  const auto parts = Split(text, 'x');
  const int64_t count = *ParseInt(parts[0]), gpus = *ParseInt(parts[1]);
  if (count < 1 || count > static_cast<int64_t>(kMaxSimulatedNodes) || gpus < 0 ||
      gpus > static_cast<int64_t>(cluster::kMaxDevicesPerNode))
    return Error(Reason::kInvalid,
                 "--nodes: expected 1 to {} nodes of 0 to {} GPUs, as in 100x8, got {:?}",
                 kMaxSimulatedNodes, cluster::kMaxDevicesPerNode, text);
  std::vector<NodeInfo> nodes;
  nodes.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    nodes.push_back(
        MakeNode(fmt::format("node-{}", i), kShapeCpuMilli, kMebibyte * kMebibyte, gpus, ""));
  return nodes;
}

}  // namespace muster::simulator
