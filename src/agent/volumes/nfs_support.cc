#include "agent/volumes/nfs_support.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// Where mount(8) of util-linux looks for the programs of file systems.
constexpr std::array<const char*, 3> kHelpers = {"/sbin/mount.nfs", "/usr/sbin/mount.nfs",
                                                 "/sbin/fs.d/mount.nfs"};

bool KernelKnowsNfs() {
  const auto known = ReadSmallFile("/proc/filesystems");
  if (!known) return false;
  return std::ranges::any_of(SplitNonEmpty(*known, '\n'), [](std::string_view line) {
    const std::string_view name = line.substr(line.rfind('\t') + 1);
    return name == "nfs" || name == "nfs4";
  });
}

// The kernel loads it by itself when it is first mounted.
bool ModuleExists(const std::string& release) {
  return std::ranges::any_of(std::array{"modules.dep", "modules.builtin"}, [&](const char* list) {
    const auto text = ReadSmallFile(fmt::format("/lib/modules/{}/{}", release, list));
    return text && text->contains("/fs/nfs/nfs.ko");
  });
}

}  // namespace

NfsSupport ProbeNfs() {
  NfsSupport support;
  utsname system = {};
  if (uname(&system) == 0) support.release = system.release;
  support.kernel = KernelKnowsNfs() || ModuleExists(support.release);
  support.helper =
      std::ranges::any_of(kHelpers, [](const char* path) { return access(path, X_OK) == 0; });
  return support;
}

std::string MissingForNfs(const NfsSupport& support) {
  std::string out;
  if (!support.kernel) {
    out = fmt::format(
        "the kernel {} has no NFS client: install the package with its module nfs (Debian: "
        "linux-image-{}, Ubuntu: linux-modules-extra-{}, Fedora: kernel-modules), or use a kernel "
        "that has one",
        support.release, support.release, support.release);
  }
  if (!support.helper) {
    out += fmt::format(
        "{}mount.nfs is missing: install nfs-common (Debian, Ubuntu) or nfs-utils "
        "(Fedora, RHEL)",
        out.empty() ? "" : "; ");
  }
  return out;
}

}  // namespace muster::agent
