// src/cli/run_manifest.h
//
// The PyTorchJob that `muster run` makes: one Master and workers-1 Workers, all with the same
// command, in the caller's directory and environment.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "cli/host_mounts.h"
#include "json/value.h"

namespace muster::cli {

inline constexpr int64_t kMaxRunWorkers = 10'000;
// A finished job of `muster run` is kept this long, for describe and logs.
inline constexpr int64_t kFinishedRunTtlSeconds = 24 * 3600;

struct RunSpec {
  std::string name, ns;
  int64_t gpus = 0;          // of each worker
  int64_t workers = 1;       // all processes together
  std::string cpus, memory;  // of each worker; "" = no request
  std::string image;
  std::vector<std::string> command;
  std::string directory;
  Environment environment;
  std::vector<HostMount> mounts;
};

json::Value MakeRunJob(const RunSpec& spec);

// A name from the program: "python train.py" -> "train-x7k2p". REQUIRES: command is not empty.
std::string RunName(const std::vector<std::string>& command, Rng& rng);
// Invalid says what a name may look like (DNS-1035, as the job's services need).
Status CheckRunName(const std::string& name);

}  // namespace muster::cli
