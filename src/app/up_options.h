// src/app/up_options.h
//
// What `muster up` and `muster down` were asked to do.
//
// Thread: any (values).

#pragma once

#include <cstdint>
#include <string>

#include "agent/network/address_ranges.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/command.h"

namespace muster::app {

inline constexpr uint16_t kDefaultApiPort = 6443;
inline constexpr size_t kMaxInstanceTypesBytes = 512 * 1024;  // kept in a ConfigMap

struct UpOptions {
  // Absolute. By default $MUSTER_DATA_DIR, else `~/.muster`, for root `/var/lib/muster`.
  std::string data_dir;
  std::string listen_host = "127.0.0.1";
  uint16_t listen_port = kDefaultApiPort;
  bool detach = false;
  int simulate_gpus = 0;
  std::string simulated_gpu_model = "Simulated-GPU";
  int gpu_steady_seconds = 30;
  int gpu_idle_seconds = 1800;
  int simulate_nodes = 0;
  std::string instance_types;               // text of the file of --instance-types; "" without one
  Duration node_start_delay = seconds(10);  // of nodes that a NodePool adds
  std::string node_name;                    // lower-case host name, at the first start
  bool node_name_given = false;             // as --node-name
  int kubelet_port = 10250;
  bool pull_images = true;   // else every image name means the machine itself
  int64_t pod_max_pids = 0;  // of one pod; 0: no limit
  bool schedules = true;     // else `muster scheduler` does, in a process of its own
  bool controls = true;      // else a kube-controller-manager does; training jobs stay ours
  Duration horizontal_pod_autoscaler_sync_period = seconds(15);
  bool verbose = false;
  agent::AddressRanges ranges;  // kept in the data directory, chosen at the first start
};

struct DownOptions {
  std::string data_dir;
  bool purge = false;
};

// The two commands with their flags, and what the flags mean (Invalid or BadRequest says what is
// wrong). Whoever runs them says so in `run_offline` (app/up.h).
cli::Command DeclareUp();
cli::Command DeclareDown();
Result<UpOptions> UpOptionsOf(const cli::Arguments& arguments);
Result<DownOptions> DownOptionsOf(const cli::Arguments& arguments);

// A machine's name as the name of a Node (a DNS-1123 subdomain): "My_Box" -> "my-box".
std::string NodeNameOf(std::string_view host_name);
// BadRequest for "" and "/".
Result<std::string> AbsoluteDataDir(const std::string& dir);

// "4" or "4:H100" -> count and model (the model stays as it was when none is named).
Status ParseSimulatedGpus(const std::string& text, int& count, std::string& model);
// "127.0.0.1:6443", "0.0.0.0:0", "[::1]:6443".
Status ParseListen(const std::string& text, std::string& host, uint16_t& port);

}  // namespace muster::app
