// tests/simulation/faulty_transport.h
//
// A bad network in front of a Transport: answers that come late or never, writes that happened
// although nobody says so, conflicts, watches that lag, repeat themselves, break or are too old.
//
// Life cycle: destroying it is the crash of its client: what it had not sent yet is never sent,
//             what it had sent happens and nobody hears of it.
// Thread:     the simulation's.

#pragma once

#include <cstdint>
#include <memory>

#include "base/rng.h"
#include "client/lifetime.h"
#include "client/transport.h"
#include "loop/loop.h"
#include "simulation/counts.h"

namespace muster::simulation {

// Probabilities per request (or per watch and per piece of it). All zero: a perfect network.
struct FaultRates {
  double late = 0;            // requests and answers, up to max_delay
  double timeout_before = 0;  // never reached the server
  double timeout_after = 0;   // applied, but the answer is lost
  double conflict = 0;        // 409 for an update that would have been fine
  double watch_cut = 0;       // per piece
  double watch_expired = 0;   // per opening
  double watch_late = 0;      // per piece
  double watch_twice = 0;     // per piece
  Duration max_delay = milliseconds(200);
};

class FaultyTransport final : public client::Transport {
 public:
  // REQUIRES: everything passed by reference outlives it; `rates` may change at any time.
  FaultyTransport(Loop& loop, client::Transport& inner, const FaultRates& rates, Rng rng,
                  Counts& counts);
  ~FaultyTransport() override;

  void Send(net::Request request, Function<void(Result<net::Response>)> done) override;
  std::unique_ptr<client::StreamHandle> Stream(net::Request request,
                                               client::StreamCallbacks callbacks) override;

 private:
  Duration Delay(double probability);

  Loop& loop_;
  client::Transport& inner_;
  const FaultRates& rates_;
  Rng rng_;
  Counts& counts_;
  client::Lifetime lifetime_;
};

}  // namespace muster::simulation
