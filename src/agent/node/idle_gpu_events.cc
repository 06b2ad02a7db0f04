#include "agent/node/idle_gpu_events.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "client/reconcile.h"

namespace muster::agent {
namespace {

constexpr const char* kIdle = "GPUIdle";
constexpr const char* kBusy = "GPUBusy";

// What events about the maker of a pod are about; null for a pod of nobody.
json::Value MakerOf(const json::Value& pod) {
  const json::Value& owner = client::ControllerOf(pod);
  if (owner.IsNull()) return nullptr;
  return json::Obj({{"apiVersion", owner["apiVersion"]},
                    {"kind", owner["kind"]},
                    {"metadata", json::Obj({{"name", owner["name"]},
                                            {"namespace", pod["metadata"]["namespace"]},
                                            {"uid", owner["uid"]}})}});
}

}  // namespace

void IdleGpuEvents::Tell(const json::Value& pod, const gpu::Gpu& gpu,
                         const gpu::IdleGpus::Notice& notice) {
  const json::Value& metadata = pod["metadata"];
  const std::string name =
      fmt::format("{}/{}", metadata["namespace"].AsString(), metadata["name"].AsString());
  const json::Value maker = MakerOf(pod);
  const std::string of = maker.IsNull()
                             ? ""
                             : fmt::format(" of {} {}", ToLower(maker["kind"].AsString()),
                                           maker["metadata"]["name"].AsString());
  const std::string what = fmt::format("{} of node {}", gpu::Describe(gpu), node_);
  const std::string time = HumanDuration(notice.idle);
  const std::string text =
      notice.works
          ? fmt::format("{} works again after {}; pod {}{} holds it", what, time, name, of)
          : fmt::format(
                "{} has done nothing for {} (at most {} % busy); pod {}{} holds it, so nobody else "
                "can use it: delete the pod if it is needed no more (kubectl logs says what it "
                "waits for), or let it share a GPU (muster.dev/gpu-milli)",
                what, time, gpu::kIdlePercent, name, of);
  const auto type = notice.works ? client::EventType::kNormal : client::EventType::kWarning;
  const char* reason = notice.works ? kBusy : kIdle;
  events_.Record(pod, type, reason, text);
  if (!maker.IsNull()) events_.Record(maker, type, reason, text);
}

void IdleGpuEvents::Observe(const gpu::GpuHealth& health, Time now) {
  std::vector<gpu::IdleGpus::Held> held;
  for (const gpu::GpuHealth::Known& known : health.gpus()) {
    held.push_back({known.gpu.uuid, known.healthy ? known.gpu.sample.utilization_percent : -1,
                    who_.holders_of(known.gpu.uuid)});
  }
  for (const gpu::IdleGpus::Notice& notice : idle_.Observe(held, now)) {
    const json::Value* pod = who_.pod_of(notice.holder);
    const auto known = std::find_if(health.gpus().begin(), health.gpus().end(),
                                    [&](const auto& each) { return each.gpu.uuid == notice.gpu; });
    if (pod != nullptr && known != health.gpus().end()) Tell(*pod, known->gpu, notice);
  }
}

}  // namespace muster::agent
