// src/gpu/probe_process.h
//
// ProbeProcess: a child process that loads the NVML library and asks the driver. A driver that
// hangs, even in the kernel, stalls nobody else: the child is killed when it is over time, and no
// other one is started until it is gone. A library that crashes or leaks takes only the child.
//
// Life cycle: the child is started by the first Read() and again after it died; destroy to end it.
// Thread:     the loop thread. In the child: its only one.
// Protocol:   JSON over SOCK_SEQPACKET: {"anew": bool} -> an Inventory, or {"error", "reason"}.
// Invariants: at most one child, however often the driver hangs.

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gpu/prober.h"
#include "loop/asio_loop.h"

namespace muster::gpu {

inline constexpr size_t kMaxProbeMessageBytes = 128 * 1024;
// Initializing many GPUs that nobody uses takes seconds each.
inline constexpr Duration kFirstProbeDeadline = seconds(60);
inline constexpr Duration kProbeDeadline = seconds(10);

// The first argument of the program when it is to be the child. Not for users.
inline constexpr std::string_view kProbeCommand = "internal-gpu-probe";
// The library that the child loads instead of libnvidia-ml.so.1; an environment variable.
inline constexpr const char* kNvmlLibraryVariable = "MUSTER_NVML_LIBRARY";
// The library that this variable names, else NVIDIA's.
std::string NvmlLibrary();

struct ProbeChild {
  int fd = -1;  // our end
  pid_t pid = -1;
};

// Executes this program with kProbeCommand.
Result<ProbeChild> ExecuteProbe();
// main() of the child: serves `fd` until its other end is closed.
[[noreturn]] void ServeProbe(int fd);
[[noreturn]] void ServeExecutedProbe();

class ProbeProcess final : public Prober {
 public:
  using Launch = std::function<Result<ProbeChild>()>;
  struct Deadlines {
    Duration first = kFirstProbeDeadline;  // of a child that has yet to load the library
    Duration later = kProbeDeadline;
  };

  ProbeProcess(AsioLoop& loop, Launch launch, Deadlines deadlines);
  ~ProbeProcess() override;

  void Read(bool anew, Done done) override;
  void Rest() override;

 private:
  Status Start();
  void End();
  bool Reaped();
  void ReapWhenItEnds();
  void ForgetEnd();
  void OnReadable();
  void Answer(Result<Inventory> answer);

  AsioLoop& loop_;
  Launch launch_;
  Deadlines deadlines_;
  ProbeChild child_;
  bool answered_before_ = false;  // the present child has
  std::unique_ptr<FdWatch> watch_;
  int ended_fd_ = -1;  // readable once the child that End() killed is over
  std::unique_ptr<FdWatch> ended_watch_;
  Done done_;
  TimerId deadline_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::gpu
