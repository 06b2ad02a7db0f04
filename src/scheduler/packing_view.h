// src/scheduler/packing_view.h
//
// PackingView: the price of placing a pod of a shape on a node, while pods are placed and taken
// back.
//
// Life cycle: as long as a plan's working copy, which tells it of every change.
// Thread:     not shared.
// Cost:       O(1) for each shape and changed node: about 0.1 us.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/packing.h"

namespace muster::scheduler {

class PackingView {
 public:
  // REQUIRES: the snapshot outlives the view. Without a packing every price is 0.
  PackingView(const cluster::ClusterSnapshot& snapshot, std::shared_ptr<const Packing> packing);

  // What the shape asks for, in the terms of packing.
  struct Ask {
    cluster::GpuAsk ask;
    cluster::PriceRow cost;
  };
  Ask AskFor(const cluster::Shape& shape) const;

  // Smaller is better. REQUIRES: the node has room for it.
  uint32_t Price(const Ask& ask, cluster::NodeIndex node);
  // Which of the node's GPUs a share goes to: one that has so many thousandths left; 0: any.
  int16_t ShareOf(const Ask& ask, cluster::NodeIndex node);
  // The room of the node changed.
  void Touch(cluster::NodeIndex node);

 private:
  struct Room {
    cluster::GpuState state;
    cluster::PackingPrices::Room room;
  };
  const Room* RoomOn(cluster::NodeIndex node);  // null: of no interest to packing
  // The least loss, and for which of the state's GPUs. REQUIRES: room.state takes the ask.
  std::pair<double, int> LeastLoss(const Ask& ask, const Room& room) const;

  const cluster::ClusterSnapshot& snapshot_;
  const std::shared_ptr<const Packing> packing_;
  const std::vector<cluster::ResourceIndex> gpus_;
  std::vector<uint32_t> room_of_;  // by node; kNoIndex: not worked out
  std::deque<Room> rooms_;
  std::vector<uint32_t> spare_rooms_;
};

}  // namespace muster::scheduler
