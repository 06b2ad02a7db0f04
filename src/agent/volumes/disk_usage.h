// src/agent/volumes/disk_usage.h
//
// What a pod has on the node's disk, and whether that is too much.
//
// Thread:  MeasureDisk and DiskUsage block (pool); DiskFault any (pure).
// Sources: the kubelet's eviction/helpers.go and eviction_manager.go (localStorageEviction), whose
//          texts these are.

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "json/value.h"

namespace muster::agent {

// A pod made the tree. What is deeper or has more entries cannot be measured and counts as
// kUnmeasurable, which is above every limit.
inline constexpr int kMaxUsageDepth = 100;
inline constexpr int64_t kMaxUsageEntries = 1'000'000;
inline constexpr int64_t kUnmeasurable = int64_t{1} << 60;

// Bytes on disk of everything below; a file with several names counts once.
int64_t DiskUsage(const std::string& path);

// Of the node's disk at least a tenth stays free, but of a large one no more than this: a
// workstation's is often fuller than that.
inline constexpr int64_t kMaxDiskReserveBytes = int64_t{4} << 30;

struct DiskRoom {
  int64_t total = 0, available = 0;
  int64_t reserve = 0;  // must stay available
};
// Of the file system that holds `path`; zeros if there is none.
DiskRoom MeasureRoom(const std::string& path);

struct PodDisk {
  std::map<std::string, int64_t> volumes;     // emptyDirs on disk, by name
  std::map<std::string, int64_t> containers;  // layers and logs
  int64_t Total() const;
};

PodDisk MeasureDisk(const json::Value& pod, const std::string& data_dir);

// Whether anything of the pod limits its disk: only then is it worth measuring.
bool LimitsDisk(const json::Value& pod);
// The message with which the pod is evicted; "" if it keeps its limits.
std::string DiskFault(const json::Value& pod, const PodDisk& disk);
// The message of a pod that is evicted because the node's disk is full.
std::string LowDiskMessage(const json::Value& pod, const PodDisk& disk, int64_t threshold,
                           int64_t available);

}  // namespace muster::agent
