#include "agent/node/driver_files.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "agent/runtime/files.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using Part = DriverFile::Part;

struct Known {
  std::string_view name;
  Part part;
};
// Libraries without ".so". A driver has others, too: those are of the graphics.
constexpr Known kLibraries[] = {
    {"libnvidia-ml", Part::kUtility},
    {"libnvidia-cfg", Part::kUtility},
    {"libnvidia-nscq", Part::kUtility},
    {"libcuda", Part::kCompute},
    {"libcudadebugger", Part::kCompute},
    {"libnvidia-opencl", Part::kCompute},
    {"libnvidia-gpucomp", Part::kCompute},
    {"libnvidia-ptxjitcompiler", Part::kCompute},
    {"libnvidia-fatbinaryloader", Part::kCompute},
    {"libnvidia-allocator", Part::kCompute},
    {"libnvidia-compiler", Part::kCompute},
    {"libnvidia-pkcs11", Part::kCompute},
    {"libnvidia-pkcs11-openssl3", Part::kCompute},
    {"libnvidia-nvvm", Part::kCompute},
    {"libnvidia-nvvm70", Part::kCompute},
    {"libnvidia-tileiras", Part::kCompute},
    {"libnvidia-encode", Part::kVideo},
    {"libnvidia-opticalflow", Part::kVideo},
    {"libnvcuvid", Part::kVideo},
    {"libvdpau_nvidia", Part::kVideo},
};
constexpr Known kPrograms[] = {
    {"nvidia-smi", Part::kUtility},
    {"nvidia-debugdump", Part::kUtility},
    {"nvidia-persistenced", Part::kUtility},
    {"nvidia-cuda-mps-control", Part::kCompute},
    {"nvidia-cuda-mps-server", Part::kCompute},
};
// What may be said in NVIDIA_DRIVER_CAPABILITIES. compat32 is for 32-bit programs: there are none.
constexpr Known kCapabilities[] = {
    {"utility", Part::kUtility},   {"compute", Part::kCompute},  {"video", Part::kVideo},
    {"graphics", Part::kGraphics}, {"display", Part::kGraphics}, {"ngx", Part::kGraphics},
    {"compat32", Part::kUtility},
};

// Where libraries are on a machine, beside the folder of the driver's own.
constexpr const char* kMachineLibraryDirs[] = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"};
// Where every dynamic linker looks: Red Hat's in the first, all others in the second.
constexpr std::string_view kLinkerDirs[] = {"/usr/lib64", "/usr/lib"};

constexpr std::string_view kSearchVariable = "LD_LIBRARY_PATH=";
constexpr std::string_view kCapabilitiesVariable = "NVIDIA_DRIVER_CAPABILITIES=";

std::string Resolve(const std::string& path) {
  char* const resolved = realpath(path.c_str(), nullptr);
  std::string out = resolved == nullptr ? "" : resolved;
  free(resolved);
  return out;
}

void FindLibraries(const std::string& dir, const std::string& ending,
                   std::vector<DriverFile>& out) {
  for (std::string& name : ListDir(dir)) {
    const size_t so = name.find(".so");
    // All of the driver's have one of these in their names; the others' links are not worth a look.
    const bool may_be = name.find("nv") != std::string::npos || name.starts_with("libcuda");
    if (!may_be || !name.starts_with("lib") || so == std::string::npos) continue;
    std::string source = Resolve(dir + "/" + name);
    if (!source.ends_with(ending)) continue;
    const auto known = std::find_if(
        std::begin(kLibraries), std::end(kLibraries),
        [&](const Known& library) { return library.name == std::string_view(name).substr(0, so); });
    out.push_back({std::move(name), std::move(source),
                   known == std::end(kLibraries) ? Part::kGraphics : known->part, false});
  }
}

void FindPrograms(const std::string& library_dir, std::vector<DriverFile>& out) {
  const std::string dirs[] = {library_dir + "/../bin", "/usr/bin", "/usr/local/bin",
                              library_dir + "/../../bin"};
  for (const Known& program : kPrograms) {
    for (const std::string& dir : dirs) {
      std::string source = Resolve(fmt::format("{}/{}", dir, program.name));
      if (source.empty() || access(source.c_str(), X_OK) != 0) continue;
      out.push_back({std::string(program.name), std::move(source), program.part, true});
      break;
    }
  }
}

// The value of the variable that `start` ("NAME=") begins, or nullptr.
std::string* FindVariable(std::vector<std::string>& environment, std::string_view start) {
  for (std::string& entry : environment) {
    if (entry.starts_with(start)) return &entry;
  }
  return nullptr;
}

Result<std::set<Part>> WantedParts(std::vector<std::string>& environment) {
  const std::string* entry = FindVariable(environment, kCapabilitiesVariable);
  const std::string_view said =
      entry == nullptr ? "" : std::string_view(*entry).substr(kCapabilitiesVariable.size());
  if (Trim(said).empty()) return std::set{Part::kUtility, Part::kCompute};
  std::set<Part> out;
  for (const std::string_view item : SplitNonEmpty(said, ',')) {
    const std::string_view word = Trim(item);
    if (word == "all")
      return std::set{Part::kUtility, Part::kCompute, Part::kVideo, Part::kGraphics};
    const auto known =
        std::find_if(std::begin(kCapabilities), std::end(kCapabilities),
                     [&](const Known& capability) { return capability.name == word; });
    if (known == std::end(kCapabilities)) {
      return Error(Reason::kInvalid,
                   "NVIDIA_DRIVER_CAPABILITIES is {:?}, and {:?} is no capability: use compute, "
                   "utility, video, graphics, display, ngx or compat32, with commas between them, "
                   "or all",
                   said, word);
    }
    out.insert(known->part);
  }
  return out;
}

// "libcuda.so" is for those who link programs; programs themselves ask with a number.
bool HasNumber(const std::string& name) { return !name.ends_with(".so"); }

}  // namespace

std::vector<DriverFile> FindDriverFiles(const std::string& driver_library) {
  std::vector<DriverFile> out;
  const size_t slash = driver_library.find_last_of('/');
  const size_t so = driver_library.find(".so.", slash == std::string::npos ? 0 : slash);
  if (slash == std::string::npos || so == std::string::npos) return out;
  const std::string dir = driver_library.substr(0, slash);
  const std::string ending = driver_library.substr(so);  // ".so.570.86.15"
  FindLibraries(dir, ending, out);
  for (const char* more : kMachineLibraryDirs) FindLibraries(more, ending, out);
  // The driver's own folder comes first of those that have the same name.
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto same = std::unique(out.begin(), out.end(),
                                [](const auto& a, const auto& b) { return a.name == b.name; });
  out.erase(same, out.end());
  if (out.size() > kMaxDriverFiles) {
    LOG_WARN("agent: the driver has {} names of libraries, only {} are shown in pods", out.size(),
             kMaxDriverFiles);
    out.resize(kMaxDriverFiles);
  }
  FindPrograms(dir, out);
  return out;
}

Status AddDriverFiles(const std::vector<DriverFile>& files, ContainerSpec& spec) {
  ASSIGN_OR_RETURN(const std::set<Part> wanted, WantedParts(spec.environment));
  const auto add = [&](const DriverFile& file, std::string_view dir) {
    spec.mounts.push_back({.source = file.source,
                           .target = fmt::format("{}/{}", dir, file.name),
                           .read_only = true,
                           .resolved = true});
  };
  bool libraries = false;
  for (const DriverFile& file : files) {
    if (!wanted.contains(file.part)) continue;
    if (file.program) {
      add(file, "/usr/bin");
      continue;
    }
    libraries = true;
    add(file, kDriverLibraryDir);
    for (const std::string_view dir : kLinkerDirs) {
      if (HasNumber(file.name)) add(file, dir);
    }
  }
  if (!libraries) return Status::Ok();
  std::string* const search = FindVariable(spec.environment, kSearchVariable);
  if (search == nullptr) {
    spec.environment.push_back(fmt::format("{}{}", kSearchVariable, kDriverLibraryDir));
    return Status::Ok();
  }
  const std::string_view dirs = std::string_view(*search).substr(kSearchVariable.size());
  const std::vector<std::string_view> named = SplitNonEmpty(dirs, ':');
  if (std::find(named.begin(), named.end(), kDriverLibraryDir) == named.end())
    *search += fmt::format("{}{}", dirs.empty() ? "" : ":", kDriverLibraryDir);
  return Status::Ok();
}

}  // namespace muster::agent
