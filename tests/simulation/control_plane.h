// tests/simulation/control_plane.h
//
// The parts that may crash: an API server behind a gate (requests get 503 while it is down), the
// scheduler, and the controllers, each with its own link. A crash destroys the part; it is made
// anew from nothing but the store.
//
// Thread: the simulation's.

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "apiserver/server.h"
#include "client/api_client.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/controllers.h"
#include "loop/sim_loop.h"
#include "scheduler/scheduler.h"
#include "simulation/counts.h"
#include "simulation/faulty_transport.h"
#include "training/training.h"

namespace muster::simulation {

class Gate final : public net::Handler {
 public:
  void Open(net::Handler* server) { server_ = server; }
  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    if (server_ != nullptr) return server_->Handle(std::move(request), std::move(writer));
    net::Response response;
    response.status = 503;
    response.body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":503,)"
                    R"("reason":"ServiceUnavailable"})";
    writer->Send(std::move(response));
  }

 private:
  net::Handler* server_ = nullptr;
};

// A client over the bad network, with its informers.
struct Link {
  Link(Loop& loop, net::Handler& server, std::string user, const FaultRates& rates, Rng rng,
       Counts& counts)
      : transport(loop, server, {"", "system:" + user, {"system:masters"}}),
        faulty(loop, transport, rates, Rng(rng.Next()), counts),
        client(loop, faulty, std::move(user)),
        informers(client, rng.Next()) {}

  client::InProcessTransport transport;
  FaultyTransport faulty;
  client::ApiClient client;
  client::InformerSet informers;
};

struct ControllerManager {
  ControllerManager(Loop& loop, net::Handler& server, const FaultRates& rates, Rng rng,
                    Counts& counts)
      : link(loop, server, "kube-controller-manager", rates, Rng(rng.Next()), counts),
        discovery(link.client, link.informers),
        runtime(link.client, link.informers, Rng(rng.Next())) {
    controllers::AddAll(runtime, discovery, {.root_ca_pem = "the root CA"});
    training::AddAll(runtime);
    runtime.SetHooks({.on_pass =
                          [&counts](std::string_view, std::string_view result, size_t) {
                            if (result == "requeue") counts.Add("branch: pass met a conflict");
                            if (result == "error") counts.Add("branch: pass failed");
                          },
                      .on_error = {}});
    runtime.Start();
    discovery.Start();
    link.informers.Start();
  }

  bool Idle() const { return runtime.Idle() && discovery.Synced() && link.informers.AllSynced(); }

  Link link;
  client::ResourceDiscovery discovery;
  client::Runtime runtime;
};

struct SchedulerPart {
  SchedulerPart(Loop& loop, net::Handler& server, SimPool& pool, const FaultRates& rates, Rng rng,
                Counts& counts)
      : link(loop, server, "kube-scheduler", rates, rng, counts),
        scheduler(link.client, link.informers, pool) {
    scheduler.Start();
    link.informers.Start();
  }

  Link link;
  scheduler::Scheduler scheduler;
};

}  // namespace muster::simulation
