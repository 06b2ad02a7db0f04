#include "controllers/podautoscaler/replica_calculator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "cluster/quantity.h"
#include "controllers/pods/pod_facts.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

using PodSet = std::set<std::string, std::less<>>;
using Requests = std::map<std::string, int64_t, std::less<>>;  // milli, by pod
using Wide = __int128;                                         // sums of any amounts

constexpr int64_t kMostReplicas = std::numeric_limits<int32_t>::max();

int64_t Narrow(Wide value) {
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  constexpr Wide kLeast = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::clamp(value, kLeast, kMost));
}

int64_t CountFrom(double replicas) {
  if (std::isnan(replicas)) return 0;
  constexpr double kMost = static_cast<double>(kMostReplicas);
  return static_cast<int64_t>(std::clamp(std::ceil(replicas), -kMost, kMost));
}

struct Groups {
  int64_t ready = 0;
  PodSet unready, missing, ignored;
};

// Of a pod whose cpu was measured.
bool CountsAsUnready(const json::Value& pod, const Sample& sample, Time now) {
  const json::Value& ready = schema::FindCondition(pod["status"]["conditions"], "Ready");
  const std::optional<Time> started = ParseTime(pod["status"]["startTime"].AsString());
  if (ready.IsNull() || !started.has_value()) return true;
  const bool is_unready = ready["status"].AsString() == "False";
  const Time since = ParseTime(ready["lastTransitionTime"].AsString()).value_or(Time{});
  if (*started + kCpuInitializationPeriod > now)
    return is_unready || sample.at < since + sample.window;
  return is_unready && *started + kInitialReadinessDelay > since;
}

Groups Group(const Fleet& fleet, const Samples& samples, std::string_view resource) {
  Groups groups;
  for (const json::Value& pod : fleet.pods) {
    std::string name = pod["metadata"]["name"].Str();
    const std::string_view phase = pod["status"]["phase"].AsString();
    const auto sample = samples.find(name);
    if (pod["metadata"].Has("deletionTimestamp") || phase == "Failed") {
      groups.ignored.insert(std::move(name));
    } else if (phase == "Pending") {
      groups.unready.insert(std::move(name));
    } else if (sample == samples.end()) {
      groups.missing.insert(std::move(name));
    } else if (resource == "cpu" && CountsAsUnready(pod, sample->second, fleet.now)) {
      groups.unready.insert(std::move(name));
    } else {
      ++groups.ready;
    }
  }
  return groups;
}

ErrorStatus NoPods() {
  return Error(Reason::kInternalError,
               "no pods returned by selector while calculating replica count");
}

// Groups the pods and leaves only samples that count.
Result<Groups> TakeStock(const Fleet& fleet, Samples& samples, std::string_view resource) {
  if (fleet.pods.empty()) return NoPods();
  Groups groups = Group(fleet, samples, resource);
  std::erase_if(samples, [&groups](const auto& sample) {
    return groups.ignored.contains(sample.first) || groups.unready.contains(sample.first);
  });
  if (samples.empty()) {
    return Error(Reason::kInternalError,
                 "did not receive metrics for targeted pods (pods might be unready)");
  }
  return groups;
}

// Regular containers, and the init containers that stay.
std::vector<json::Value> LastingContainers(const json::Value& pod) {
  std::vector<json::Value> containers = pod["spec"]["containers"].items();
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always") containers.push_back(container);
  }
  return containers;
}

Result<int64_t> MilliOf(const json::Value& quantity) {
  ASSIGN_OR_RETURN(const cluster::Quantity amount, cluster::Quantity::FromJson(quantity));
  return amount.Milli();
}

Result<int64_t> RequestOf(const json::Value& pod, std::string_view resource,
                          std::string_view container_name) {
  const json::Value& of_pod = pod["spec"]["resources"]["requests"][resource];
  if (container_name.empty() && !of_pod.IsNull()) return MilliOf(of_pod);
  Wide sum = 0;
  for (const json::Value& container : LastingContainers(pod)) {
    if (!container_name.empty() && container["name"].AsString() != container_name) continue;
    const json::Value& request = container["resources"]["requests"][resource];
    if (request.IsNull()) {
      return Error(Reason::kInternalError, "missing request for {} in container {} of Pod {}",
                   resource, container["name"].AsString(), pod["metadata"]["name"].AsString());
    }
    ASSIGN_OR_RETURN(const int64_t milli, MilliOf(request));
    sum += milli;
  }
  return Narrow(sum);
}

// How far the samples are from their target: 1.0 is there.
struct Ratio {
  double ratio = 0;
  int64_t milli = 0;
  int64_t utilization = 0;
};

Result<Ratio> UtilizationRatio(const Samples& samples, const Requests& requests, int64_t target) {
  Wide used = 0, requested = 0;
  int64_t count = 0;
  for (const auto& [pod, sample] : samples) {
    const auto request = requests.find(pod);
    if (request == requests.end()) continue;
    used += sample.milli;
    requested += request->second;
    ++count;
  }
  if (requested == 0)
    return Error(Reason::kInternalError, "no metrics returned matched known pods");
  Ratio out;
  out.utilization = std::clamp(Narrow(used * 100 / requested), -kMostReplicas, kMostReplicas);
  out.ratio = static_cast<double>(out.utilization) / static_cast<double>(target);
  out.milli = Narrow(used / count);
  return out;
}

Ratio AverageRatio(const Samples& samples, int64_t target) {
  Wide used = 0;
  for (const auto& [pod, sample] : samples) used += sample.milli;
  Ratio out;
  out.milli = Narrow(used / static_cast<Wide>(samples.size()));
  out.ratio = static_cast<double>(out.milli) / static_cast<double>(target);
  return out;
}

// What a second look found, in which pods that were not measured were assumed to use something.
int64_t Reconsider(const Fleet& fleet, double before, double after, size_t pods) {
  const bool turned = (before < 1.0 && after > 1.0) || (before > 1.0 && after < 1.0);
  if (fleet.tolerance.Allows(after) || turned) return fleet.wanted;
  const int64_t replicas = CountFrom(after * static_cast<double>(pods));
  const bool against =
      (after < 1.0 && replicas > fleet.wanted) || (after > 1.0 && replicas < fleet.wanted);
  return against ? fleet.wanted : replicas;
}

void Assume(Samples& samples, const PodSet& pods, int64_t milli) {
  for (const std::string& pod : pods) samples[pod].milli = milli;
}

// Pods that are ready to serve.
Result<int64_t> ReadyPods(const Fleet& fleet) {
  if (fleet.pods.empty()) {
    return Error(Reason::kInternalError,
                 "unable to calculate ready pods: no pods returned by selector while calculating "
                 "replica count");
  }
  return std::count_if(fleet.pods.begin(), fleet.pods.end(), [](const json::Value& pod) {
    return pod["status"]["phase"].AsString() == "Running" && IsReady(pod);
  });
}

}  // namespace

const json::Fields& ScaledPodFields() {
  static const json::Fields fields{
      {"metadata", "labels"},
      {"spec", "resources", "requests"},
      {"spec", "containers", "name"},
      {"spec", "containers", "resources", "requests"},
      {"spec", "initContainers", "name"},
      {"spec", "initContainers", "restartPolicy"},
      {"spec", "initContainers", "resources", "requests"},
      {"status", "phase"},
      {"status", "startTime"},
      {"status", "conditions"},
  };
  return fields;
}

Result<Proposal> ReplicasForUtilization(const Fleet& fleet, Samples samples,
                                        std::string_view resource, std::string_view container,
                                        int64_t target_percent) {
  ASSIGN_OR_RETURN(const Groups groups, TakeStock(fleet, samples, resource));
  Requests requests;
  for (const json::Value& pod : fleet.pods) {
    ASSIGN_OR_RETURN(requests[pod["metadata"]["name"].Str()], RequestOf(pod, resource, container));
  }
  ASSIGN_OR_RETURN(const Ratio first, UtilizationRatio(samples, requests, target_percent));
  Proposal proposal{fleet.wanted, first.milli, first.utilization};
  const bool up_with_unready = !groups.unready.empty() && first.ratio > 1.0;
  if (!up_with_unready && groups.missing.empty()) {
    if (!fleet.tolerance.Allows(first.ratio))
      proposal.replicas = CountFrom(first.ratio * static_cast<double>(groups.ready));
    return proposal;
  }
  if (first.ratio < 1.0) {
    // Missing ones may use all that they asked for.
    for (const std::string& pod : groups.missing) {
      samples[pod].milli =
          Narrow(Wide{requests[pod]} * std::max<int64_t>(100, target_percent) / 100);
    }
  } else if (first.ratio > 1.0) {
    Assume(samples, groups.missing, 0);
  }
  if (up_with_unready) Assume(samples, groups.unready, 0);
  ASSIGN_OR_RETURN(const Ratio second, UtilizationRatio(samples, requests, target_percent));
  proposal.replicas = Reconsider(fleet, first.ratio, second.ratio, samples.size());
  return proposal;
}

Result<Proposal> ReplicasForAverage(const Fleet& fleet, Samples samples, std::string_view resource,
                                    int64_t target_milli) {
  ASSIGN_OR_RETURN(const Groups groups, TakeStock(fleet, samples, resource));
  const Ratio first = AverageRatio(samples, target_milli);
  Proposal proposal{fleet.wanted, first.milli, 0};
  const bool up_with_unready = !groups.unready.empty() && first.ratio > 1.0;
  if (!up_with_unready && groups.missing.empty()) {
    if (!fleet.tolerance.Allows(first.ratio))
      proposal.replicas = CountFrom(first.ratio * static_cast<double>(groups.ready));
    return proposal;
  }
  Assume(samples, groups.missing, first.ratio < 1.0 ? target_milli : 0);
  if (up_with_unready) Assume(samples, groups.unready, 0);
  const Ratio second = AverageRatio(samples, target_milli);
  proposal.replicas = Reconsider(fleet, first.ratio, second.ratio, samples.size());
  return proposal;
}

Result<Proposal> ReplicasForValue(const Fleet& fleet, int64_t measured_milli,
                                  int64_t target_milli) {
  const double ratio = static_cast<double>(measured_milli) / static_cast<double>(target_milli);
  Proposal proposal{fleet.wanted, measured_milli, 0};
  if (fleet.wanted == 0) {
    proposal.replicas = CountFrom(ratio);
  } else if (!fleet.tolerance.Allows(ratio)) {
    ASSIGN_OR_RETURN(const int64_t ready, ReadyPods(fleet));
    proposal.replicas = CountFrom(ratio * static_cast<double>(ready));
  }
  return proposal;
}

Proposal ReplicasForShare(const Fleet& fleet, int64_t measured_milli, int64_t target_milli) {
  const double measured = static_cast<double>(measured_milli);
  const double target = static_cast<double>(target_milli);
  const double counted = static_cast<double>(fleet.counted);
  Proposal proposal{fleet.counted, measured_milli, 0};
  if (fleet.counted == 0 || !fleet.tolerance.Allows(measured / (target * counted)))
    proposal.replicas = CountFrom(measured / target);
  if (fleet.counted > 0) {
    const int64_t rest = measured_milli % fleet.counted;
    proposal.milli = measured_milli / fleet.counted + (rest > 0 ? 1 : 0);
  }
  return proposal;
}

}  // namespace muster::controllers
