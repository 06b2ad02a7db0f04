// src/agent/node/driver_files.h
//
// The files of the machine's NVIDIA driver that a container with a GPU needs, when its root is an
// image: the libraries are those of the kernel module, so no image can bring them. They are shown
// read-only: libraries in kDriverLibraryDir, which LD_LIBRARY_PATH then names, and where the
// dynamic linkers of the distributions look without being told; programs in /usr/bin. The image's
// cache of libraries stays as it is: to write a new one, a program of the image would have to run
// before the container's.
//
// Thread: FindDriverFiles reads a few folders (pool); AddDriverFiles any (pure).
// Limits: the first kMaxDriverFiles.
// Source: NVIDIA's container toolkit, whose capabilities these are.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/shim/container_spec.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr size_t kMaxDriverFiles = 128;  // names of files; those beyond are not shown
inline constexpr std::string_view kDriverLibraryDir = "/usr/local/nvidia/lib64";

struct DriverFile {
  enum class Part : uint8_t { kUtility, kCompute, kVideo, kGraphics };
  std::string name;    // "libcuda.so.1", "nvidia-smi"
  std::string source;  // on the machine, links resolved
  Part part{};
  bool program = false;

  bool operator==(const DriverFile&) const = default;
};

// `driver_library` is the driver's libnvidia-ml.so.VERSION with its links resolved: what else ends
// in this VERSION beside it, or where libraries usually are, is the same driver's. Libraries by
// each name that the machine has for them, in the order of names. Empty if there are none.
std::vector<DriverFile> FindDriverFiles(const std::string& driver_library);

// Adds the files that NVIDIA_DRIVER_CAPABILITIES of `spec.environment` asks for; not set:
// "utility,compute". Invalid: it names something else than capabilities.
Status AddDriverFiles(const std::vector<DriverFile>& files, ContainerSpec& spec);

}  // namespace muster::agent
