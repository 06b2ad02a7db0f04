// src/apiserver/aggregation/aggregator.h
//
// Aggregator: the API groups that other servers serve behind this one, as upstream's
// kube-aggregator. APIServices name them (api_service_index.h), their availability is checked
// (availability_checker.h), and requests for them are passed on (service_proxy.h).
//
// Life cycle: a member of the Core; Start() once.
// Thread:     the loop thread.

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "apiserver/aggregation/api_service_index.h"
#include "apiserver/aggregation/availability_checker.h"
#include "apiserver/aggregation/local_api_services.h"

namespace muster::apiserver {

struct Core;

// A request that is passed on, until it has its answer (service_proxy.h).
class PassedOn {
 public:
  virtual ~PassedOn() = default;
  // Bytes of the answer that wait here for its reader.
  virtual size_t Backlog() const = 0;
};

class Aggregator {
 public:
  explicit Aggregator(Core& core);

  void Start();

  // What CustomResourceDefinitions serve has changed.
  void OnCustomKinds() { local_.SyncCustom(); }

  const ApiServiceIndex& services() const { return index_; }
  // The APIResourceList that the service gave last; null before.
  json::Value ResourcesOf(const std::string& name) const { return checker_.ResourcesOf(name); }
  // Grows with every change of what is served, or of what is known of it.
  uint64_t revision() const { return index_.revision() + checker_.revision(); }

  std::set<std::shared_ptr<PassedOn>> under_way;

 private:
  ApiServiceIndex index_;
  AvailabilityChecker checker_;
  LocalApiServices local_;
};

}  // namespace muster::apiserver
