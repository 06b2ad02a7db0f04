// tests/simulation/faulty_transport.h
//
// A bad network between a client and the API server: answers that come late or never, writes that
// happened although nobody says so, conflicts, watches that lag, repeat themselves, break or are
// too old.
//
// Life cycle: destroying it is the crash of its client: what it had not sent yet is never sent,
//             what it had sent happens and nobody hears of it.
// Thread:     the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/rng.h"
#include "client/in_process_transport.h"
#include "client/lifetime.h"
#include "client/transport.h"
#include "loop/sim_loop.h"
#include "simulation/counts.h"
#include "simulation/crash_point.h"

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

// What every link goes through.
struct Network {
  SimLoop& loop;
  net::Handler& server;
  const FaultRates& rates;  // may change at any time
  Counts& counts;
  // An oracle: the server said that this write is done.
  std::function<void(const net::Request&, const net::Response&)> on_acknowledged;
};

class FaultyTransport final : public client::Transport {
 public:
  // `crash`: of the part that this link belongs to; may be null.
  // REQUIRES: everything passed by reference or pointer outlives it.
  FaultyTransport(const Network& network, std::string user, Rng rng, CrashPoint* crash);
  ~FaultyTransport() override;

  void Send(net::Request request, Function<void(Result<net::Response>)> done) override;
  std::unique_ptr<client::StreamHandle> Stream(net::Request request,
                                               client::StreamCallbacks callbacks) override;
  bool CarriesValues() const override { return true; }

 private:
  bool DiesNow(net::Request& request);
  Duration Delay(double probability);
  void Deliver(net::Request request, Function<void(Result<net::Response>)> done);

  const Network& network_;
  client::InProcessTransport inner_;
  Rng rng_;
  CrashPoint* const crash_;
  client::Lifetime lifetime_;
};

}  // namespace muster::simulation
