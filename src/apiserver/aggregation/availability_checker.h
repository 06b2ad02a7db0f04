// src/apiserver/aggregation/availability_checker.h
//
// AvailabilityChecker: keeps the condition Available of APIServices, and what they serve. A service
// is looked at when it appears or changes, when its Service or endpoints change, and every
// kAvailabilityPeriod: the Service, its port, its endpoints, then its discovery document. Reasons
// and messages: k8s.io/kube-aggregator pkg/controllers/status.
//
// Life cycle: a member of the Aggregator; Start() once.
// Thread:     the loop thread.
// Invariants: at most kMaxAvailabilityChecks are under way, one for each APIService; each ends
//             within kDiscoveryPatience; nothing happens while there are no APIServices.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/aggregation/api_service.h"
#include "apiserver/aggregation/api_service_index.h"
#include "apiserver/metrics.h"
#include "base/time.h"
#include "json/value.h"
#include "loop/loop.h"
#include "net/client.h"
#include "store/store.h"

namespace muster::apiserver {

struct Core;

inline constexpr Duration kAvailabilityPeriod = seconds(30);
inline constexpr Duration kDiscoveryPatience = seconds(5);  // all attempts together
inline constexpr int kDiscoveryAttempts = 3;                // one endpoint may be on its way out
inline constexpr size_t kMaxAvailabilityChecks = 16;
inline constexpr size_t kMaxDiscoveryBytes = 1024 * 1024;  // of one group version

class AvailabilityChecker {
 public:
  AvailabilityChecker(Core& core, const ApiServiceIndex& services);
  ~AvailabilityChecker();
  AvailabilityChecker(const AvailabilityChecker&) = delete;
  AvailabilityChecker& operator=(const AvailabilityChecker&) = delete;

  void Start();
  // Looks at it soon; after the look that is under way, if one is.
  void Check(const std::string& name);
  void Forget(const std::string& name);

  json::Value ResourcesOf(const std::string& name) const;
  // Grows with every change of these.
  uint64_t revision() const { return revision_; }

 private:
  struct Condition {
    std::string status, reason, message;
  };
  // One APIService.
  struct Look {
    bool queued = false, under_way = false, again = false;
    ApiServicePtr service;  // as it was when the look began
    int attempts = 0;
    uint64_t question = 0;  // the one under way; what is said of an earlier one is late
    std::string url, body, refusal;
    int status = 0;
    TimerId deadline = 0;
    std::unique_ptr<net::ClientStream> stream;
    json::Value resources;
  };

  void FollowServices();
  void CheckBehind(std::string_view ns, std::string_view service);
  void ArmPeriod();
  void Pump();
  void Begin(const std::string& name);
  // What is wrong with the Service itself; status "" if nothing is.
  Condition LookAtService(const ApiService& service);
  void Ask(const std::string& name);
  void OnAnswer(const std::string& name, const Status& status);
  void EndRefused(const std::string& name);
  void End(const std::string& name, const Condition& condition);
  void Report(const std::string& name, const Condition& condition);
  void Write(const std::string& name, const Condition& condition);
  void Keep(Look& look);

  Core& core_;
  const ApiServiceIndex& services_;
  CounterFamily& unavailable_;
  CounterFamily& became_unavailable_;
  std::map<std::string, Look> looks_;
  std::deque<std::string> queue_;
  size_t under_way_ = 0;
  uint64_t questions_ = 0;
  uint64_t revision_ = 0;
  TimerId period_ = 0;
  std::vector<store::Store::WatchId> watches_;
};

}  // namespace muster::apiserver
