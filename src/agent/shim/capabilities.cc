#include "agent/shim/capabilities.h"

#include <linux/capability.h>

#include <array>
#include <utility>

#include "base/strings.h"

namespace muster::agent {
namespace {

using Named = std::pair<std::string_view, int>;

constexpr auto kCapabilities = std::to_array<Named>({
    {"AUDIT_CONTROL", CAP_AUDIT_CONTROL},
    {"AUDIT_READ", CAP_AUDIT_READ},
    {"AUDIT_WRITE", CAP_AUDIT_WRITE},
    {"BLOCK_SUSPEND", CAP_BLOCK_SUSPEND},
    {"BPF", CAP_BPF},
    {"CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE},
    {"CHOWN", CAP_CHOWN},
    {"DAC_OVERRIDE", CAP_DAC_OVERRIDE},
    {"DAC_READ_SEARCH", CAP_DAC_READ_SEARCH},
    {"FOWNER", CAP_FOWNER},
    {"FSETID", CAP_FSETID},
    {"IPC_LOCK", CAP_IPC_LOCK},
    {"IPC_OWNER", CAP_IPC_OWNER},
    {"KILL", CAP_KILL},
    {"LEASE", CAP_LEASE},
    {"LINUX_IMMUTABLE", CAP_LINUX_IMMUTABLE},
    {"MAC_ADMIN", CAP_MAC_ADMIN},
    {"MAC_OVERRIDE", CAP_MAC_OVERRIDE},
    {"MKNOD", CAP_MKNOD},
    {"NET_ADMIN", CAP_NET_ADMIN},
    {"NET_BIND_SERVICE", CAP_NET_BIND_SERVICE},
    {"NET_BROADCAST", CAP_NET_BROADCAST},
    {"NET_RAW", CAP_NET_RAW},
    {"PERFMON", CAP_PERFMON},
    {"SETFCAP", CAP_SETFCAP},
    {"SETGID", CAP_SETGID},
    {"SETPCAP", CAP_SETPCAP},
    {"SETUID", CAP_SETUID},
    {"SYSLOG", CAP_SYSLOG},
    {"SYS_ADMIN", CAP_SYS_ADMIN},
    {"SYS_BOOT", CAP_SYS_BOOT},
    {"SYS_CHROOT", CAP_SYS_CHROOT},
    {"SYS_MODULE", CAP_SYS_MODULE},
    {"SYS_NICE", CAP_SYS_NICE},
    {"SYS_PACCT", CAP_SYS_PACCT},
    {"SYS_PTRACE", CAP_SYS_PTRACE},
    {"SYS_RAWIO", CAP_SYS_RAWIO},
    {"SYS_RESOURCE", CAP_SYS_RESOURCE},
    {"SYS_TIME", CAP_SYS_TIME},
    {"SYS_TTY_CONFIG", CAP_SYS_TTY_CONFIG},
    {"WAKE_ALARM", CAP_WAKE_ALARM},
});

constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

struct Wish {
  bool all = false;
  uint64_t named = 0;
};

Result<Wish> WishOf(const std::vector<std::string>& names) {
  Wish wish;
  for (const std::string& name : names) {
    const uint64_t bit = CapabilityBit(name);
    const bool all = ToLower(name) == "all";
    if (bit == 0 && !all) return Error(Reason::kInvalid, "no capability is named {:?}", name);
    wish.all |= all;
    wish.named |= bit;
  }
  return wish;
}

}  // namespace

uint64_t DefaultCapabilities() {
  uint64_t mask = 0;
  for (int capability : {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FSETID, CAP_FOWNER, CAP_NET_RAW,
                         CAP_SETGID, CAP_SETUID, CAP_SETFCAP, CAP_SETPCAP, CAP_NET_BIND_SERVICE,
                         CAP_SYS_CHROOT, CAP_KILL, CAP_AUDIT_WRITE}) {
    mask |= Bit(capability);
  }
  return mask;
}

uint64_t GrantableCapabilities() { return DefaultCapabilities() | Bit(CAP_IPC_LOCK); }

uint64_t CapabilityBit(std::string_view name) {
  constexpr std::string_view kPrefix = "cap_";
  std::string lower = ToLower(name);
  if (lower.starts_with(kPrefix)) lower.erase(0, kPrefix.size());
  for (const auto& [known, number] : kCapabilities) {
    if (ToLower(known) == lower) return Bit(number);
  }
  return 0;
}

Result<uint64_t> ContainerCapabilities(const std::vector<std::string>& add,
                                       const std::vector<std::string>& drop) {
  ASSIGN_OR_RETURN(const Wish added, WishOf(add));
  ASSIGN_OR_RETURN(const Wish dropped, WishOf(drop));
  uint64_t mask = added.all ? GrantableCapabilities() : DefaultCapabilities();
  if (dropped.all) mask = 0;
  return (mask | (added.named & GrantableCapabilities())) & ~dropped.named;
}

}  // namespace muster::agent
