// src/gpu/prober.h
//
// Prober: asks the driver what GPUs there are and how they do. ProbeProcess does it in a process of
// its own; tests have others.
//
// Thread: the loop thread; `done` runs there, never from inside the call.

#pragma once

#include "base/status.h"
#include "base/task.h"
#include "gpu/inventory.h"

namespace muster::gpu {

class Prober {
 public:
  using Done = Function<void(Result<Inventory>)>;
  virtual ~Prober() = default;

  // `anew`: look again which GPUs there are. NotFound: this machine has no driver. Timeout: it does
  // not answer. ServiceUnavailable: it fails. REQUIRES: the one before was answered.
  virtual void Read(bool anew, Done done) = 0;
  // Nothing more is asked for a long time: give back what can be had again.
  virtual void Rest() = 0;
};

}  // namespace muster::gpu
