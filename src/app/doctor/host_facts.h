// src/app/doctor/host_facts.h
//
// HostFacts: what this machine is like, as far as `muster up` depends on it. Collected once
// (probe.h), judged by pure functions (checks.h).
//
// Thread: any (values).

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/network/address_ranges.h"
#include "agent/user_node/limitations.h"
#include "agent/user_node/refusal.h"
#include "agent/volumes/nfs_support.h"
#include "base/time.h"

namespace muster::app {

struct UserFacts {
  uid_t id = 0;
  std::string name;
  bool in_user_namespace = false;  // then even root is not the machine's root
  bool is_root() const { return id == 0; }
};

struct CgroupFacts {
  int version = 0;                   // 0: none
  std::vector<std::string> missing;  // of memory, cpu, pids
  bool delegated = true;             // this user may make groups
};

// An address that `muster up` will listen on.
struct PortFacts {
  std::string what;    // "API server"
  std::string where;   // "127.0.0.1:6443"
  std::string change;  // how to take another one
  bool taken = false;
  std::string holder;  // "nginx (process 12)"; "" if unknown
  // The holder is a muster that this user may look into: where its state is.
  std::string cluster;
};

struct DiskFacts {
  std::string path;  // of the data directory, or where it will be made
  std::string filesystem;
  int64_t total_bytes = 0, free_bytes = 0;
  int64_t total_inodes = 0, free_inodes = 0;  // total 0: the file system does not count them
  std::string error;                          // why nothing can be written there; "" it can
};

struct ClockFacts {
  Time now{};
  std::optional<Time> keys_from;  // when the cluster's own certificate begins
  bool synchronised = true;
};

struct GpuFacts {
  int pci_devices = 0;
  int device_files = 0;
  bool asked = false;   // the driver; it may take seconds
  std::string error;    // of the driver
  std::string summary;  // "driver 580.95: 2 x NVIDIA H100"
};

struct HostFacts {
  UserFacts user;
  std::optional<pid_t> running;    // the muster of this data directory
  agent::RefusalFacts namespaces;  // its error is "" where they can be made
  std::string overlay_error;
  CgroupFacts cgroups;
  bool forwarding = true, forwarding_writable = true;
  std::string nft;        // path; "": missing
  std::string nft_error;  // "": it works
  std::string nft_rules, iptables_legacy_rules;
  std::string ranges_error;
  std::optional<agent::AddressRanges> kept_ranges;  // nullopt: none chosen yet
  std::vector<agent::Ipv4Prefix> destinations;
  std::vector<PortFacts> ports;
  bool about_to_start = true;  // false: somebody only asks, and nobody is about to listen
  DiskFacts disk;
  ClockFacts clock;
  GpuFacts gpu;
  std::map<std::string, int64_t, std::less<>> sysctls;  // those that exist
  std::string python;
  std::vector<std::string> missing_image_programs;
  agent::OutsideMeans outside;  // for an ordinary user's node
  std::string outside_program;
  agent::NfsSupport nfs;
};

}  // namespace muster::app
