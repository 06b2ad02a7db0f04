#include "schema/advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "schema/dcgm_exporter.h"
#include "schema/device_plugin.h"
#include "schema/distributed_training.h"
#include "schema/gpu_operator.h"
#include "schema/names.h"
#include "schema/preemptible_nodes.h"
#include "schema/queued_kinds.h"
#include "schema/training_kinds.h"

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
void AdviseOnNvlink(const TrainingKind& kind, const json::Value& job,
                    std::vector<std::string>& out) {
  int64_t pods = 0;
  for (const auto& [role, replica] : job["spec"][kind.specs].members()) {
    const json::Value& pod = replica["template"];
    const bool shared =
        pod["metadata"]["annotations"]["muster.dev/gang-sandbox"].AsString() == "shared";
    if (GpusOf(pod["spec"]) != 1 || shared || pod["spec"]["hostNetwork"].AsBool()) continue;
    pods += replica["replicas"].AsInt(1);
  }
  if (pods < 2) return;
  out.push_back(fmt::format(
      "spec.{}: {} pods with one GPU each do not reach each other over NVLink where they share a "
      "node (2 instead of 295 GB/s between two H100s): use one pod with several GPUs{}, or give "
      "the pods the annotation muster.dev/gang-sandbox: shared",
      kind.specs, pods, kind.kind == "PyTorchJob" ? " and torchrun" : ""));
}

// Such a gang waits for pods that nobody makes.
void AdviseOnMinAvailable(const TrainingKind& kind, const json::Value& job,
                          std::vector<std::string>& out) {
  const json::Value& wanted = job.Path({"spec", "runPolicy", "schedulingPolicy", "minAvailable"});
  int64_t pods = 0;
  for (const auto& [role, replica] : job["spec"][kind.specs].members())
    pods += replica["replicas"].AsInt(1);
  if (wanted.AsInt(0) <= pods) return;
  out.push_back(fmt::format(
      "spec.runPolicy.schedulingPolicy.minAvailable: {} pods must be there before any starts, and "
      "the job has {}: it waits for ever",
      wanted.AsInt(), pods));
}

// "4" of `torchrun --nnodes=4 train.py`, also in a line of a shell; nothing of a range.
std::string_view FixedNnodes(std::string_view words) {
  static constexpr std::string_view kOption = "--nnodes";
  const size_t at = words.find(kOption);
  if (at == std::string_view::npos || at + kOption.size() + 1 >= words.size()) return {};
  const std::string_view value = words.substr(at + kOption.size() + 1);
  const size_t end = std::min(value.find_first_not_of("0123456789"), value.size());
  return end < value.size() && value[end] == ':' ? std::string_view() : value.substr(0, end);
}

// torchrun of such a pod does not form a group of another size, and those of the others fail at it.
void AdviseOnFixedNnodes(const std::string& role, const json::Value& pod_spec,
                         std::vector<std::string>& out) {
  const json::Array& containers = pod_spec["containers"].items();
  for (size_t i = 0; i < containers.size(); ++i) {
    std::string words;
    for (const char* list : {"command", "args"})
      for (const json::Value& word : containers[i][list].items()) words += word.Str() + " ";
    const std::string_view fixed = FixedNnodes(words);
    if (fixed.empty()) continue;
    out.push_back(fmt::format(
        "spec.pytorchReplicaSpecs.{}.template.spec.containers[{}]: --nnodes={} goes before "
        "PET_NNODES, which has the bounds of elasticPolicy: with any other number of pods torchrun "
        "fails; leave it out",
        role, i, fixed));
  }
}

// What stands in the way of an elastic job's rendezvous.
void AdviseOnElastic(const json::Value& job, std::vector<std::string>& out) {
  const json::Value& policy = job["spec"]["elasticPolicy"];
  if (const std::string backend = policy["rdzvBackend"].Str(); backend.starts_with("etcd")) {
    out.push_back(fmt::format(
        "spec.elasticPolicy.rdzvBackend: {} needs an etcd that you run at rdzvHost, and the Python "
        "package python-etcd in the image; without rdzvBackend and rdzvHost the workers meet at "
        "worker 0 (c10d), and so they do where rdzvHost is a Service that does not exist",
        backend));
  }
  int64_t pods = 0;
  for (const auto& [role, replica] : job["spec"]["pytorchReplicaSpecs"].members()) {
    pods += replica["replicas"].AsInt(1);
    AdviseOnFixedNnodes(role, replica["template"]["spec"], out);
  }
  const std::optional<int64_t> least = policy["minReplicas"].Int();
  const std::optional<int64_t> most = policy["maxReplicas"].Int();
  if (least && pods < *least) {
    out.push_back(fmt::format(
        "spec.elasticPolicy.minReplicas: torchrun waits for {} pods, and the job has {}", *least,
        pods));
  }
  if (most && pods > *most) {
    out.push_back(fmt::format(
        "spec.elasticPolicy.maxReplicas: torchrun lets {} pods train; {} of the job's {} wait for "
        "one of them to leave",
        *most, pods - *most, pods));
  }
}

// It would hold GPUs for nothing that anybody wants.
void AdviseOnReferenceProgram(const json::Value& training_spec, std::vector<std::string>& out) {
  if (training_spec.Has("template")) return;
  out.emplace_back(
      "spec.template: it is absent, so a small reference model learns made-up data; put the pod of "
      "your program there (its container is called pytorch)");
}

// As upstream; but one mistake in a replica count is then paid for.
void AdviseOnNodePoolLimits(const json::Value& pool_spec, std::vector<std::string>& out) {
  if (!pool_spec["limits"].empty()) return;
  out.emplace_back(
      "spec.limits: there are none, so nodes are added for whatever pods ask for; set the most "
      "that they may have together, such as limits: {cpu: \"1000\", nvidia.com/gpu: \"64\"}");
}

// Upstream has these wait, too.
void AdviseOnQueueName(const Kind& kind, const json::Value& object, std::vector<std::string>& out) {
  const bool waits_upstream = kind.group == "apps" || kind.group == "ray.io" ||
                              kind.kind == "CronJob" || kind.group == "leaderworkerset.x-k8s.io" ||
                              kind.group == "serving.kserve.io";
  if (!waits_upstream || QueueOf(object).empty()) return;
  out.push_back(fmt::format(
      "metadata.labels[{}] is not acted on yet for a {}: it waits in no queue, and its pods count "
      "for none; put the label on Jobs, training jobs, JobSets or single pods",
      kQueueNameLabel, kind.kind));
}

// Of several pods upstream makes one workload.
void AdviseOnPodGroup(const Kind& kind, const json::Value& object, std::vector<std::string>& out) {
  const json::Value& labels = object["metadata"]["labels"];
  if (!kind.group.empty() || kind.kind != "Pod" || !labels.Has("kueue.x-k8s.io/pod-group-name"))
    return;
  out.emplace_back(
      "metadata.labels[kueue.x-k8s.io/pod-group-name] is not acted on yet: each pod waits in the "
      "queue by itself");
}

// The names of the pods begin with that of the object, and become host names.
void AdviseOnHostNames(const json::Value& object, std::vector<std::string>& out) {
  const std::string_view name = object["metadata"]["name"].AsString();
  Problems problems;
  CheckDns1123Label(name, problems);
  if (name.empty() || problems.empty()) return;
  out.push_back(fmt::format(
      "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
      "behavior; a DNS label is recommended: [{}]",
      Join(problems, " ")));
}

// The list of indexes may outgrow what an object can hold.
void AdviseOnManyIndexes(const json::Value& job_spec, std::vector<std::string>& out) {
  constexpr int64_t kManyCompletions = 100'000;
  constexpr int64_t kManyAtOnce = 10'000;
  if (job_spec["completionMode"].AsString() != "Indexed" ||
      job_spec["completions"].AsInt() <= kManyCompletions ||
      job_spec["parallelism"].AsInt() <= kManyAtOnce) {
    return;
  }
  out.emplace_back(
      "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
      "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes "
      "fail");
}

void AdviseOnLoadBalancer(const json::Value& spec, std::vector<std::string>& out) {
  if (spec["type"].AsString() != "LoadBalancer") return;
  out.emplace_back(
      "spec.type: no load balancer is made for this Service and its EXTERNAL-IP stays <pending>, "
      "unless a controller of your own sees to it; it is reached at the nodes' addresses, at its "
      "node ports");
}

// What the annotations ask for upstream: hints in proportion to the CPUs of each zone.
void AdviseOnTopologyMode(const json::Value& service, std::vector<std::string>& out) {
  const json::Value& annotations = service["metadata"]["annotations"];
  constexpr const char* kNow = "service.kubernetes.io/topology-mode";
  constexpr const char* kFormer = "service.kubernetes.io/topology-aware-hints";
  const char* annotation = annotations.Has(kNow) ? kNow : kFormer;
  const std::string_view mode = annotations[annotation].AsString();
  if (mode != "Auto" && mode != "auto") return;
  out.push_back(fmt::format(
      "metadata.annotations[{}] is not acted on yet: spec.trafficDistribution: PreferSameZone "
      "keeps requests in their zone, too",
      annotation));
}

// Upstream takes it and never enforces it.
void AdviseOnUncountedNames(const json::Value& quota_spec, std::vector<std::string>& out) {
  for (const auto& [name, amount] : quota_spec["hard"].members()) {
    const bool counted = name.starts_with("requests.") || name.starts_with("count/") ||
                         name.find(".storageclass.storage.k8s.io/") != std::string::npos;
    if (counted || IsNativeResource(name)) continue;
    out.push_back(fmt::format(
        "spec.hard[{}]: nothing counts this name, so nothing is limited; devices and other "
        "extended resources are limited as requests.{}",
        name, name.starts_with("limits.") ? name.substr(7) : name));
  }
}

// CUDA takes numbers and UUIDs and stops reading at anything else: nothing is left of "all".
void AdviseOnCudaDevices(const json::Value& pod_spec, const std::string& path,
                         std::vector<std::string>& out) {
  const json::Array& containers = pod_spec["containers"].items();
  for (size_t i = 0; i < containers.size(); ++i) {
    const json::Array& env = containers[i]["env"].items();
    for (size_t k = 0; k < env.size(); ++k) {
      if (env[k]["name"].AsString() != "CUDA_VISIBLE_DEVICES" ||
          env[k]["value"].AsString() != "all")
        continue;
      out.push_back(fmt::format(
          "{}.containers[{}].env[{}].value: CUDA_VISIBLE_DEVICES knows no \"all\", with which "
          "programs see no GPU; leave it out: the node sets it to the GPUs of the container",
          path, i, k));
    }
  }
}

void AdviseOnDevicePlugin(const json::Value& pod_spec, std::vector<std::string>& out) {
  if (!IsNvidiaDevicePlugin(pod_spec)) return;
  out.emplace_back(
      "spec.template.spec: muster offers nvidia.com/gpu itself and makes no pods of NVIDIA's "
      "device plugin");
}

// Some volume is there after the pod and its node.
bool HasLastingVolume(const json::Value& pod_spec) {
  constexpr std::string_view kPassing[] = {"name",      "emptyDir",  "hostPath",
                                           "configMap", "secret",    "downwardAPI",
                                           "projected", "ephemeral", "image"};
  return std::ranges::any_of(pod_spec["volumes"].items(), [&](const json::Value& volume) {
    return std::ranges::any_of(volume.members(), [&](const json::Member& member) {
      return std::ranges::find(kPassing, member.first) == std::end(kPassing);
    });
  });
}

// What they have done so far goes with the node.
void AdviseOnSpotNodes(const json::Value& pod_spec, const std::string& path,
                       std::vector<std::string>& out) {
  const std::string demand = PreemptibleDemand(pod_spec);
  if (demand.empty() || HasLastingVolume(pod_spec)) return;
  out.push_back(fmt::format(
      "{}: nodes with {} are taken back at any moment, and no volume of the pod outlives them: "
      "save checkpoints to a PersistentVolumeClaim or NFS, or the work is done again from the "
      "beginning",
      path, demand));
}

void AdviseOnDcgmExporter(const json::Value& pod_spec, std::vector<std::string>& out) {
  if (!IsDcgmExporter(pod_spec)) return;
  out.emplace_back(
      "spec.template.spec: muster's nodes have the metrics DCGM_FI_DEV_* themselves and no pods of "
      "dcgm-exporter are made: scrape /api/v1/nodes/NODE/proxy/metrics");
}

void AdviseOnGpuOperator(const json::Value& pod_spec, std::vector<std::string>& out) {
  if (IsGpuOperator(pod_spec)) out.emplace_back(kGpuOperatorIsKept);
}

// Where the pods of an object are described, if it is one of those that people write.
std::pair<const json::Value&, std::string> PodSpecOf(const Kind& kind, const json::Value& object) {
  if (kind.group.empty() && kind.kind == "Pod") return {object["spec"], "spec"};
  if (kind.group == "batch" && kind.kind == "CronJob") {
    return {object.Path({"spec", "jobTemplate", "spec", "template", "spec"}),
            "spec.jobTemplate.spec.template.spec"};
  }
  return {object.Path({"spec", "template", "spec"}), "spec.template.spec"};
}

}  // namespace

std::vector<std::string> Advise(const Kind& kind, const json::Value& object) {
  std::vector<std::string> out;
  const TrainingKind* training =
      kind.group == "kubeflow.org" ? FindTrainingKind(kind.kind) : nullptr;
  if (training != nullptr) {
    AdviseOnNvlink(*training, object, out);
    AdviseOnMinAvailable(*training, object, out);
    if (object["spec"].Has("elasticPolicy")) AdviseOnElastic(object, out);
    for (const auto& [role, replica] : object["spec"][training->specs].members()) {
      AdviseOnSpotNodes(replica["template"]["spec"],
                        fmt::format("spec.{}.{}.template.spec", training->specs, role), out);
    }
  }
  AdviseOnQueueName(kind, object, out);
  AdviseOnPodGroup(kind, object, out);
  const json::Value& spec = object["spec"];
  if (kind.group == "karpenter.sh" && kind.kind == "NodePool")
    AdviseOnNodePoolLimits(spec, out);
  if (kind.group == "ml.example.com" && kind.kind == kDistributedTraining)
    AdviseOnReferenceProgram(spec, out);
  const auto [pod_spec, path] = PodSpecOf(kind, object);
  AdviseOnCudaDevices(pod_spec, path, out);
  if (kind.group == "apps" && kind.kind == "DaemonSet") {
    AdviseOnDevicePlugin(pod_spec, out);
    AdviseOnDcgmExporter(pod_spec, out);
  }
  if (kind.group == "apps" && kind.kind == "Deployment") AdviseOnGpuOperator(pod_spec, out);
  if (kind.group.empty() && kind.kind == "Service") {
    AdviseOnLoadBalancer(spec, out);
    AdviseOnTopologyMode(object, out);
  }
  if (kind.group.empty() && kind.kind == "ResourceQuota") AdviseOnUncountedNames(spec, out);
  const bool job = kind.group == "batch" && kind.kind == "Job";
  const bool cron_job = kind.group == "batch" && kind.kind == "CronJob";
  const bool pod = kind.group.empty() && kind.kind == "Pod";
  if (job || cron_job || (pod && object["metadata"]["ownerReferences"].empty()))
    AdviseOnSpotNodes(pod_spec, path, out);
  if (job || cron_job) AdviseOnManyIndexes(job ? spec : spec["jobTemplate"]["spec"], out);
  if (job || cron_job ||
      (kind.group == "apps" && (kind.kind == "Deployment" || kind.kind == "ReplicaSet"))) {
    AdviseOnHostNames(object, out);
  }
  return out;
}

}  // namespace muster::schema
