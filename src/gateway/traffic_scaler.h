// src/gateway/traffic_scaler.h
//
// Sets the number of pods of InferenceServices whose traffic decides it (minReplicas: 0,
// scaleMetric rps or concurrency): looks at the gateway's counters once a second while there is
// such a service, and at once when a request waits for one that sleeps. What it decides:
// serving/scale_decision.h.
//
// Life cycle: made with an ApiClient that outlives it.
// Thread:     the control-plane loop.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "client/api_client.h"
#include "gateway/route_builder.h"
#include "loop/loop.h"
#include "serving/scale_decision.h"

namespace muster::gateway {

inline constexpr Duration kLookPeriod = seconds(1);
// A write that the informers have not shown by then is made again.
inline constexpr Duration kWritePatience = seconds(5);

class TrafficScaler {
 public:
  TrafficScaler(Loop& loop, client::ApiClient& client, const RouteSources& sources);
  ~TrafficScaler();

  // After each new table.
  void SetTable(std::shared_ptr<const RouteTable> table);
  // A request waits for pods of this service.
  void Wake(const client::ObjectKey& service);

 private:
  struct Scaled {
    serving::TrafficHistory history;
    int64_t asked = -1;  // the last number written
    Time asked_at{};
  };

  void Look();
  // True if traffic decides about it.
  bool LookAt(const client::ObjectKey& key, bool wake);
  void Scale(const client::ObjectKey& deployment, Scaled& state, int64_t present, int64_t wanted);
  void LookLater();

  Loop& loop_;
  client::ApiClient& client_;
  const RouteSources& sources_;
  std::shared_ptr<const RouteTable> table_;
  std::map<client::ObjectKey, Scaled> scaled_;  // by Deployment
  TimerId timer_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster::gateway
