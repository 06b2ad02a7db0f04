#include "cli/run_manifest.h"

#include <cctype>
#include <filesystem>

#include "base/strings.h"
#include "schema/names.h"

namespace muster::cli {
namespace {

using json::List;
using json::Obj;
using json::Value;

constexpr size_t kMaxBaseName = 20;
constexpr size_t kMaxRunName = 50;  // "-worker-9999" must still fit into 63

Value Resources(const RunSpec& spec) {
  Value requests;
  Value limits;
  if (!spec.cpus.empty()) requests = requests.Set("cpu", spec.cpus);
  if (!spec.memory.empty()) {
    requests = requests.Set("memory", spec.memory);
    limits = limits.Set("memory", spec.memory);
  }
  if (spec.gpus > 0) {
    requests = requests.Set("nvidia.com/gpu", std::to_string(spec.gpus));
    limits = limits.Set("nvidia.com/gpu", std::to_string(spec.gpus));
  }
  Value out = Obj();
  if (!limits.IsNull()) out = out.Set("limits", limits);
  if (!requests.IsNull()) out = out.Set("requests", requests);
  return out;
}

Value PodTemplate(const RunSpec& spec) {
  json::Array environment;
  for (const auto& [name, value] : spec.environment)
    environment.push_back(Obj({{"name", name}, {"value", value}}));
  json::Array mounts;
  json::Array volumes;
  for (size_t i = 0; i < spec.mounts.size(); ++i) {
    const HostMount& mount = spec.mounts[i];
    const std::string name = fmt::format("host-{}", i);
    Value entry = Obj({{"name", name}, {"mountPath", mount.path}});
    mounts.push_back(mount.read_only ? entry.Set("readOnly", true) : entry);
    volumes.push_back(
        Obj({{"name", name}, {"hostPath", Obj({{"path", mount.path}, {"type", "Directory"}})}}));
  }
  Value container = Obj({{"name", "pytorch"},
                         {"image", spec.image},
                         {"command", json::Strings(spec.command)},
                         {"workingDir", spec.directory}});
  if (!environment.empty()) container = container.Set("env", Value(std::move(environment)));
  if (const Value resources = Resources(spec); !resources.empty())
    container = container.Set("resources", resources);
  if (!mounts.empty()) container = container.Set("volumeMounts", Value(std::move(mounts)));
  Value pod = Obj({{"containers", List({container})}});
  if (!volumes.empty()) pod = pod.Set("volumes", Value(std::move(volumes)));
  return Obj({{"spec", pod}});
}

}  // namespace

Value MakeRunJob(const RunSpec& spec) {
  auto replica = [&](int64_t count) {
    // A script that fails would fail again: it is not repeated behind the user's back.
    return Obj({{"replicas", count}, {"restartPolicy", "Never"}, {"template", PodTemplate(spec)}});
  };
  Value replicas = Obj({{"Master", replica(1)}});
  if (spec.workers > 1) replicas = replicas.Set("Worker", replica(spec.workers - 1));
  return Obj(
      {{"apiVersion", "kubeflow.org/v1"},
       {"kind", "PyTorchJob"},
       {"metadata", Obj({{"name", spec.name},
                         {"namespace", spec.ns},
                         {"labels", Obj({{"app.kubernetes.io/managed-by", "muster-run"}})}})},
       {"spec", Obj({{"runPolicy", Obj({{"cleanPodPolicy", "Running"},
                                        {"ttlSecondsAfterFinished", kFinishedRunTtlSeconds}})},
                     {"pytorchReplicaSpecs", replicas}})}});
}

std::string RunName(const std::vector<std::string>& command, Rng& rng) {
  // The script or module rather than the interpreter.
  std::string base = command.front();
  for (size_t i = 1; i < command.size(); ++i) {
    const bool module = command[i - 1] == "-m";
    if (!module && !command[i].ends_with(".py") && !command[i].ends_with(".sh")) continue;
    base = command[i];
    break;
  }
  base = std::filesystem::path(base).stem().string();
  std::string name;
  for (char c : ToLower(base)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = std::islower(byte) != 0 || (std::isdigit(byte) != 0 && !name.empty());
    if (fits) name += c;
    if (!fits && !name.empty() && name.back() != '-') name += '-';
    if (name.size() >= kMaxBaseName) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return (name.empty() ? "run" : name) + "-" + rng.NameSuffix(5);
}

Status CheckRunName(const std::string& name) {
  schema::Problems problems;
  schema::CheckDns1035Label(name, problems);
  if (name.size() > kMaxRunName)
    problems.push_back(fmt::format("must be no more than {} characters", kMaxRunName));
  if (problems.empty()) return Status::Ok();
  return Error(Reason::kInvalid, "--name {:?}: {}", name, problems.front());
}

}  // namespace muster::cli
