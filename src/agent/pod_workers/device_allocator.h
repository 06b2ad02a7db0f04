// src/agent/pod_workers/device_allocator.h
//
// DeviceAllocator: which device of this node belongs to which pod. The scheduler names them in the
// annotation muster.dev/assigned-devices; a pod that came without it, by nodeName or another
// scheduler, gets free ones here. What the scheduler says is verified: the devices exist, are
// healthy, are as many as the containers ask for, and are nobody else's. Where they are those of a
// pod that came without it, of which the scheduler could not know yet, others are chosen. A pod
// that asks for muster.dev/gpu-milli has a share of one GPU: the device belongs to all that share
// it.
//
// Life cycle: before the driver has answered nothing is known() of a node's real GPUs, and a pod
//             that wants some has to wait. Pods of an earlier run of the agent are adopted before
//             others may ask.
// Thread:     the loop thread.
// Invariants: a device has at most one owner, or several whose shares come to at most all of it.

#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/devices.h"
#include "json/value.h"

namespace muster::agent {

class DeviceAllocator {
 public:
  // Nothing is known yet.
  DeviceAllocator() = default;
  explicit DeviceAllocator(std::vector<cluster::Device> devices) { SetDevices(devices, {}); }

  // `control_files`: device nodes that every user of a GPU needs beside the GPU's own. `one_each`:
  // a container may have one share of a GPU (cluster/device_shares.h), not several.
  void SetDevices(std::vector<cluster::Device> devices, std::vector<std::string> control_files,
                  bool one_each = false);
  bool known() const { return known_; }
  bool Wants(const json::Value& pod) const;  // the pod asks for a device, or was given one

  // Whether a pod that has devices is about to give them back. Without: none is.
  void OnAskEnding(std::function<bool(const std::string& pod_uid)> ends) {
    ends_ = std::move(ends);
  }
  // A pod of an earlier run keeps what it has, whatever became of it. `gpu_milli`: ShareOf() it.
  void Adopt(const std::string& pod_uid, cluster::AssignedDevices assigned, int64_t gpu_milli);
  // Thousandths of one GPU that the pod asks for; 0: it asks for no share.
  static int64_t ShareOf(const json::Value& pod);
  // container -> resource -> ids, remembered until Release(). With `runs` the pod's containers run
  // already, so the state of its devices does not matter. Conflict says why not, in the words of
  // the kubelet's device manager where it has some; ServiceUnavailable: not yet, what it is to get
  // is a pod's that ends.
  Result<cluster::AssignedDevices> Assign(const json::Value& pod, bool runs);
  void Release(const std::string& pod_uid);
  void OnRelease(std::function<void()> released) { released_ = std::move(released); }

  const std::vector<cluster::Device>& devices() const { return devices_; }
  // The device nodes that a container must have, e.g. /dev/nvidia0 and /dev/nvidiactl. With devices
  // of its own it also gets those of `peers`, if they are there.
  std::vector<std::string> FilesOf(const cluster::AssignedDevices& assigned,
                                   const std::string& container,
                                   const cluster::DeviceLists& peers) const;
  // A container of the pod that uses the device.
  std::string ContainerOf(const std::string& pod_uid, const std::string& resource,
                          const std::string& id) const;
  // uid of the pod that has the device for itself; "" if none has, or several share it.
  std::string OwnerOf(const std::string& resource, const std::string& id) const;
  // uids of all that have the device or a share of it.
  std::vector<std::string> OwnersOf(const std::string& resource, const std::string& id) const;
  // What of the GPU is somebody's, by (resource, id), whatever it is offered as now.
  struct GpuUse {
    std::string resource, id;
    std::vector<std::string> owners;
  };
  std::vector<GpuUse> UsesOf(const std::string& gpu) const;

 private:
  const cluster::Device* Find(const std::string& resource, const std::string& id) const;
  Status Check(const json::Value& pod, const cluster::AssignedDevices& assigned) const;
  Status CheckShare(const json::Value& pod, const cluster::AssignedDevices& assigned) const;
  // `milli`: thousandths of the device that the pod is to have.
  Status CheckDevice(const std::string& resource, const std::string& id, const std::string& uid,
                     int64_t milli) const;
  // Thousandths that others have, and of these those of pods that end.
  struct Taken {
    int64_t milli = 0;
    int64_t ending = 0;
    std::string by;  // one of those that do not end
    std::string by_ending;
  };
  Taken TakenOf(const std::string& resource, const std::string& id, const std::string& uid) const;
  Result<cluster::AssignedDevices> Choose(const json::Value& pod) const;
  bool WereChosenHere(const cluster::AssignedDevices& assigned) const;
  bool AreOfferedAnew(const cluster::AssignedDevices& assigned) const;
  Status CheckOneEach(const json::Value& pod) const;
  Result<std::string> ChooseShare(const json::Value& pod, int64_t milli) const;

  bool known_ = false;
  bool one_each_ = false;
  std::function<void()> released_ = [] {};
  std::function<bool(const std::string& pod_uid)> ends_ = [](const std::string&) { return false; };
  std::vector<cluster::Device> devices_;
  std::vector<std::string> control_files_;
  // (resource, id) -> pod uid -> thousandths of it
  std::map<std::pair<std::string, std::string>, std::map<std::string, int64_t>> owners_;
  std::map<std::string, cluster::AssignedDevices> assigned_;  // by pod uid
  std::set<std::string> chosen_here_;                         // uids of pods without a choice
};

// The devices of one container, in the order given.
std::vector<std::string> DevicesOf(const cluster::AssignedDevices& assigned,
                                   const std::string& container);

}  // namespace muster::agent
