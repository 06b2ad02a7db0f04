// src/cluster/device_picker.h
//
// DeviceLinks: which devices of one node a pod gets, so that its devices are NVLink neighbours and
// neighbours stay together for the pods to come.
//
// Thread: any (a value that does not change).

#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "cluster/devices.h"

namespace muster::cluster {

// Choices of one pod's devices on one node that are all compared.
inline constexpr int64_t kMaxDeviceChoices = 1000;

class DeviceLinks {
 public:
  explicit DeviceLinks(const std::vector<Device>& devices);
  // No device has a link: any choice is as good as another.
  bool empty() const { return links_.empty(); }

  // `count` of the free devices: with the most links among them; of equal choices the one with the
  // fewest links to free devices that stay behind (a single device comes from a pair that is broken
  // already); then the lowest positions. Exact up to kMaxDeviceChoices choices, as on any machine
  // with 8 GPUs; beyond them good: a set is grown from each free device, always by the one with the
  // most links to it. REQUIRES: count <= free.Count().
  DeviceSet Pick(const DeviceSet& free, int64_t count) const;

  // The most of the free devices that are joined by links, directly or through each other.
  int64_t MostJoined(const DeviceSet& free) const;

 private:
  int64_t Between(size_t a, size_t b) const { return links_[a * size_ + b]; }
  int64_t To(size_t position, const std::vector<size_t>& others) const;
  // The lower the better.
  using Score = std::tuple<int64_t, int64_t, std::vector<size_t>>;
  Score ScoreOf(std::vector<size_t> chosen, const std::vector<size_t>& free) const;
  std::vector<size_t> BestOfAll(const std::vector<size_t>& free, size_t count) const;
  std::vector<size_t> Grown(const std::vector<size_t>& free, size_t count) const;
  std::vector<size_t> Grow(size_t seed, const std::vector<size_t>& free, size_t count) const;

  size_t size_ = 0;
  std::vector<uint16_t> links_;  // size_ x size_; empty without links
};

}  // namespace muster::cluster
