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

// Plans are made while the world goes on.
class LatePool final : public Pool {
 public:
  LatePool(Rng rng, const FaultRates& rates) : rng_(rng), rates_(rates) {}
  void Run(Task work, Loop& loop, Task done) override {
    const Duration before = Late();
    const Duration after = Late();
    loop.After(before, [work = std::move(work), &loop, after, done = std::move(done)]() mutable {
      work();
      loop.After(after, std::move(done));
    });
  }

 private:
  Duration Late() {
    if (rates_.late == 0) return Duration::zero();
    return Duration(rng_.Between(0, rates_.max_delay.count()));
  }

  Rng rng_;
  const FaultRates& rates_;
};

// A client over the bad network, with its informers.
struct Link {
  Link(const Network& network, const std::string& user, Rng rng, CrashPoint* crash)
      : transport(network, "system:" + user, Rng(rng.Next()), crash),
        client(network.loop, transport, user),
        informers(client, rng.Next()) {}

  FaultyTransport transport;
  client::ApiClient client;
  client::InformerSet informers;
};

struct ControllerManager {
  ControllerManager(const Network& network, Rng rng, CrashPoint* crash)
      : link(network, "kube-controller-manager", Rng(rng.Next()), crash),
        discovery(link.client, link.informers),
        runtime(link.client, link.informers, Rng(rng.Next())) {
    controllers::AddAll(runtime, discovery, {.root_ca_pem = "the root CA"});
    training::AddAll(runtime);
    runtime.SetHooks(
        {.on_pass =
             [&counts = network.counts](std::string_view, std::string_view result, size_t) {
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
  SchedulerPart(const Network& network, Rng rng, CrashPoint* crash)
      : counts(network.counts),
        pool(Rng(rng.Next()), network.rates),
        link(network, "kube-scheduler", rng, crash),
        scheduler(link.client, link.informers, pool) {
    scheduler.Start();
    link.informers.Start();
  }
  ~SchedulerPart() {
    counts.Add("branch: plan dropped, the world had changed",
               static_cast<int64_t>(scheduler.metrics().plans_dropped));
    counts.Add("branch: binding refused", static_cast<int64_t>(scheduler.metrics().errors));
  }

  Counts& counts;
  LatePool pool;
  Link link;
  scheduler::Scheduler scheduler;
};

}  // namespace muster::simulation
