// src/controllers/controllers.h
//
// The Kubernetes controllers of this folder, put together: one call gives a process all of them.
//
//   client::InformerSet informers(client);
//   client::ResourceDiscovery discovery(client, informers);
//   client::Runtime runtime(client, informers, Rng(seed));
//   controllers::AddAll(runtime, discovery, {.root_ca_pem = ca});
//   training::AddAll(runtime);
//   runtime.Start(); discovery.Start(); informers.Start();

#pragma once

#include <string>

#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/podautoscaler/autoscaler_pass.h"

namespace muster::controllers {

struct Options {
  // Goes into the ConfigMap kube-root-ca.crt of every namespace; "" leaves the ConfigMaps out.
  std::string root_ca_pem;
  // Between two looks at one HorizontalPodAutoscaler; more than 0.
  Duration autoscaler_period = kAutoscalerPeriod;
};

// REQUIRES: `discovery` outlives the runtime, and AddAll comes before Runtime::Start().
void AddAll(client::Runtime& runtime, client::ResourceDiscovery& discovery, Options options);

}  // namespace muster::controllers
