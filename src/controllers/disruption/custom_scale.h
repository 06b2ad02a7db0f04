// src/controllers/disruption/custom_scale.h
//
// How many pods a controller wants that is neither of apps/v1 nor known otherwise: what its /scale
// says. Source: getScaleController in k8s.io/kubernetes pkg/controller/disruption.
//
// Life cycle: of one pass; what it asked is answered in the next one.
// Thread:     any.

#pragma once

#include <map>
#include <string>

#include "base/time.h"
#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/disruption/budget.h"
#include "json/value.h"

namespace muster::controllers {

// In upstream's words: the pod's controller is not there.
WantedScale NoController(const json::Value& pod);

class CustomScales {
 public:
  CustomScales(const client::ResourceDiscovery& discovery, const client::Observations& observations,
               Time now)
      : discovery_(discovery), observations_(observations), now_(now) {}

  // `controller`: the pod's reference to it.
  WantedScale Of(const json::Value& pod, const json::Value& controller);
  // Asks for what was missing, and again for what was known: a pass has only the answers to what
  // the last one asked.
  void Ask(client::Reconciled& out) const;

 private:
  const json::Value* Answer(const std::string& name, client::Target target, std::string path);
  WantedScale NotFound(const json::Value& pod, const client::ServedKind& kind);

  const client::ResourceDiscovery& discovery_;
  const client::Observations& observations_;
  const Time now_;
  std::map<std::string, client::Probe> probes_;
  bool is_missing_ = false;
  bool kinds_missing_ = false;
};

}  // namespace muster::controllers
