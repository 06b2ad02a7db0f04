// src/cluster/packing/gpu_packer.h
//
// GpuPacker: nodes with GPUs, and which of them a pod should get so that the pods to come find the
// most room.
//
// The order of nodes for a pod, best first: least loss (packing_prices.h), the fewest idle GPUs,
// the least free cpu, the lowest position.
//
// Life cycle: made with the nodes; tell it of every arrival, whether it is placed or not.
// Thread:     not shared.
// Invariants: the same calls give the same choices; losses of nodes in equal state are worked out
//             once for each kind of pod and solution.
// Cost:       Choose: O(nodes) look-ups; a solution (FillPrices::Solve) every 64 to about 1,000
//             arrivals.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "cluster/packing/gpu_state.h"
#include "cluster/packing/packing_prices.h"
#include "cluster/packing/pod_mix.h"

namespace muster::cluster {

struct PackingSpot {
  size_t node = 0;
  int gpu = 0;  // position among the node's GPUs, as GpuState::Place takes it
};

class GpuPacker {
 public:
  // REQUIRES: at least one node has GPUs, cpu and memory.
  explicit GpuPacker(const std::vector<GpuState>& nodes);

  // A pod came: the mix is learned, and now and then prices are worked out anew.
  void Arrived(const GpuAsk& ask);
  // The best node; none if no node takes it. Among equals the first, or with `ties` any.
  std::optional<PackingSpot> Choose(const GpuAsk& ask, Rng* ties = nullptr);
  // REQUIRES: the node takes it there.
  void Place(const GpuAsk& ask, const PackingSpot& spot);

  const GpuState& At(size_t node) const { return slots_[slot_of_[node]].state; }
  size_t size() const { return slot_of_.size(); }

 private:
  using Stamp = uint32_t;
  // Nodes in equal state share a slot.
  struct Slot {
    GpuState state;
    size_t nodes = 0;  // 0: the slot is empty
    Stamp stamp = 0;   // new with each state and each solution
    bool has_room = false;
    PackingPrices::Room room;
    int32_t idle_milli = 0;
  };
  struct Loss {
    Stamp stamp = 0;  // of the slot that it was worked out for
    int8_t gpu = 0;
    bool fits = false;
    double loss = 0;
  };
  struct Ask {
    GpuAsk ask;
    Stamp solution = 0;
    PriceRow cost;
    std::vector<Loss> losses;  // by slot
  };

  uint32_t SlotFor(const GpuState& state);
  void Leave(uint32_t slot);
  Ask& Known(const GpuAsk& ask);
  const Loss& LossOf(Ask& ask, uint32_t slot);
  void Solve();

  std::vector<uint32_t> slot_of_;  // by node
  std::vector<Slot> slots_;
  std::vector<uint32_t> empty_slots_;
  std::unordered_map<GpuState, uint32_t, GpuStateHash> slot_by_state_;
  std::map<GpuAsk, size_t> ask_index_;
  std::vector<Ask> asks_;
  Stamp next_stamp_ = 1;
  Stamp solution_ = 0;
  double total_milli_ = 0;
  PodMix mix_;
  PackingPrices prices_;
  uint64_t solve_at_ = 0;  // arrivals
};

}  // namespace muster::cluster
