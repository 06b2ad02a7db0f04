// src/gpu/nvml.h
//
// Nvml: the NVIDIA Management Library (libnvidia-ml.so.1), loaded at run time; muster neither links
// it nor has its header. Only what is declared in nvml.cc is used.
//
// Life cycle: Open() once; Read() as often as wanted; the library stays loaded.
// Thread:     one at a time. Every call may take seconds, or never return when the driver is stuck:
//             only the probe process (probe_process.h) makes them.

#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "gpu/inventory.h"

namespace muster::gpu {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";
inline constexpr size_t kMaxXidsPerLook = 256;  // more are told at the next look

class Nvml {
 public:
  // NotFound: there is no such library, or it lacks what any NVML since 2012 has.
  static Result<Nvml> Open(const std::string& library);
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  // With `anew` the driver is asked from the beginning: which GPUs there are is else known from the
  // first time, as the library does. NotFound: there is no driver. ServiceUnavailable: it fails.
  Result<Inventory> Read(bool anew);

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace muster::gpu
