// src/client/in_process_transport.h
//
// InProcessTransport: requests go straight to a net::Handler of the same process (the embedded API
// server), with the identity given here. Same code path as HTTPS from the handler on; no socket, no
// TLS.
//
// Life cycle: made by the composition root; the handler and the loop outlive it. Destroying it
//             abandons the calls in flight; a stream lives as long as its handle, which tells the
//             handler when the peer is gone.
// Thread:     the handler's loop thread.
// Invariants: the handler is never called from inside Send() or Stream(), nor a callback from
//             inside the handler: both go through the loop, in order. A handler that answers
//             nothing gives 500.

#pragma once

#include <memory>

#include "client/lifetime.h"
#include "client/transport.h"
#include "loop/loop.h"

namespace muster::client {

class InProcessTransport final : public Transport {
 public:
  // `peer` e.g. {"", "system:kube-scheduler", {"system:masters"}}.
  InProcessTransport(Loop& loop, net::Handler& handler, net::Peer peer);
  ~InProcessTransport() override;

  void Send(net::Request request, Function<void(Result<net::Response>)> done) override;
  std::unique_ptr<StreamHandle> Stream(net::Request request, StreamCallbacks callbacks) override;
  bool CarriesValues() const override { return true; }

 private:
  Loop& loop_;
  net::Handler& handler_;
  net::Peer peer_;
  Lifetime lifetime_;
};

}  // namespace muster::client
