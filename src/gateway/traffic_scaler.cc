#include "gateway/traffic_scaler.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "serving/inference_service.h"

namespace muster::gateway {

using client::ObjectKey;

TrafficScaler::TrafficScaler(Loop& loop, client::ApiClient& client, const RouteSources& sources)
    : loop_(loop), client_(client), sources_(sources) {}

TrafficScaler::~TrafficScaler() { loop_.Cancel(timer_); }

void TrafficScaler::SetTable(std::shared_ptr<const RouteTable> table) {
  table_ = std::move(table);
  if (timer_ == 0) Look();
}

void TrafficScaler::Wake(const ObjectKey& service) { LookAt(service, true); }

void TrafficScaler::Look() {
  timer_ = 0;
  if (table_ == nullptr) return;
  bool any = false;
  for (const auto& [key, route] : table_->routes()) any = LookAt(key, false) || any;
  std::erase_if(scaled_, [this](const auto& entry) {
    return sources_.deployments.Find(entry.first) == nullptr;
  });
  if (any) timer_ = loop_.After(kLookPeriod, [this] { Look(); });
}

bool TrafficScaler::LookAt(const ObjectKey& key, bool wake) {
  const json::Value* object = sources_.services.Find(key);
  const auto route = table_ == nullptr ? nullptr : table_->FindRoute(key);
  if (object == nullptr || route == nullptr) return false;
  const serving::InferenceService service = serving::ParseInferenceService(*object);
  if (!service.scale.ByTraffic()) return false;
  const bool was_ready =
      !(*object)["status"]["components"]["predictor"]["latestReadyRevision"].AsString().empty();
  for (const PodGroup& group : route->groups) {
    const ObjectKey deployment{key.ns, group.deployment};
    const json::Value* pods = sources_.deployments.Find(deployment);
    if (pods == nullptr || group.weight == 0) continue;
    serving::ScalePolicy policy = service.scale;
    // What was never ready has not shown yet that it can be; a canary is there to be looked at.
    if (!was_ready || group.deployment != serving::PredictorName(key.name))
      policy.least = std::max<int64_t>(policy.least, 1);
    Scaled& state = scaled_[deployment];
    const TrafficCounters& counters = *group.counters;
    const int64_t held = counters.held;
    if (!wake) {
      state.history.Add({loop_.Now().time_since_epoch(), counters.requests.load(),
                         counters.in_flight.load() + held},
                        policy.window);
    }
    const int64_t present = (*pods)["spec"]["replicas"].AsInt(1);
    int64_t wanted = serving::WantedByTraffic(policy, state.history, present);
    if (held > 0) wanted = std::max<int64_t>({wanted, present, 1});
    if (wake && wanted < present) continue;
    Scale(deployment, state, present, wanted);
  }
  return true;
}

void TrafficScaler::Scale(const ObjectKey& deployment, Scaled& state, int64_t present,
                          int64_t wanted) {
  const Time now = loop_.Now();
  if (wanted == present) {
    state.asked = -1;
    return;
  }
  if (state.asked == wanted && now - state.asked_at < kWritePatience) return;
  state.asked = wanted;
  state.asked_at = now;
  LOG_INFO("gateway: scale deployment={} pods={} before={}", deployment.ToString(), wanted,
           present);
  client_.Patch({client::resources::kDeployments, deployment.ns, deployment.name, "scale"},
                client::PatchType::kMerge, json::Obj({{"spec", json::Obj({{"replicas", wanted}})}}),
                [this, alive = std::weak_ptr(alive_), deployment](Result<json::Value> answer) {
                  if (answer || alive.expired()) return;
                  LOG_WARN("gateway: cannot scale deployment={} error={:?}", deployment.ToString(),
                           answer.error().message());
                  if (auto it = scaled_.find(deployment); it != scaled_.end())
                    it->second.asked = -1;
                });
}

}  // namespace muster::gateway
