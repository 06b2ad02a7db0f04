#include "schema/advice.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::schema {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";

// GPUs of one pod, as its containers' limits say; anything but a plain number counts as none.
int64_t GpusOf(const json::Value& pod_spec) {
  int64_t sum = 0;
  for (const json::Value& container : pod_spec["containers"].items()) {
    const json::Value& amount = container["resources"]["limits"][kGpu];
    sum += amount.IsString() ? ParseInt(amount.AsString()).value_or(0) : amount.AsInt();
  }
  return sum;
}

// Figures: two H100s, NCCL all-reduce of 256 MB.
void AdviseOnNvlink(const json::Value& job, std::vector<std::string>& out) {
  int64_t pods = 0;
  for (const auto& [role, replica] : job["spec"]["pytorchReplicaSpecs"].members()) {
    const json::Value& pod = replica["template"];
    const bool shared =
        pod["metadata"]["annotations"]["muster.dev/gang-sandbox"].AsString() == "shared";
    if (GpusOf(pod["spec"]) != 1 || shared || pod["spec"]["hostNetwork"].AsBool()) continue;
    pods += replica["replicas"].AsInt(1);
  }
  if (pods < 2) return;
  out.push_back(fmt::format(
      "spec.pytorchReplicaSpecs: {} pods with one GPU each do not reach each other over NVLink "
      "where they share a node (2 instead of 295 GB/s between two H100s): use one pod with several "
      "GPUs and torchrun, or give the pods the annotation muster.dev/gang-sandbox: shared",
      pods));
}

// Such a gang waits for pods that nobody makes.
void AdviseOnMinAvailable(const json::Value& job, std::vector<std::string>& out) {
  const json::Value& wanted = job.Path({"spec", "runPolicy", "schedulingPolicy", "minAvailable"});
  int64_t pods = 0;
  for (const auto& [role, replica] : job["spec"]["pytorchReplicaSpecs"].members())
    pods += replica["replicas"].AsInt(1);
  if (wanted.AsInt(0) <= pods) return;
  out.push_back(fmt::format(
      "spec.runPolicy.schedulingPolicy.minAvailable: {} pods must be there before any starts, and "
      "the job has {}: it waits for ever",
      wanted.AsInt(), pods));
}

}  // namespace

std::vector<std::string> Advise(const Kind& kind, const json::Value& object) {
  std::vector<std::string> out;
  if (kind.group == "kubeflow.org" && kind.kind == "PyTorchJob") {
    AdviseOnNvlink(object, out);
    AdviseOnMinAvailable(object, out);
  }
  return out;
}

}  // namespace muster::schema
