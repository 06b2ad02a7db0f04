#include "agent/shim/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "agent/runtime/files.h"

namespace muster::agent {

Status TakeCapabilities(uint64_t allowed) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; ++half) {
    const auto bits = static_cast<uint32_t>(allowed >> (32 * half));
    data[half].effective = data[half].permitted = bits;
    data[half].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, data) != 0) return SystemError("set", "capabilities", errno);
  return Status::Ok();
}

Status LayDownCapabilities() { return TakeCapabilities(0); }

Status LimitCapabilities(uint64_t allowed) {
  for (int capability = 0; capability < 64; ++capability) {
    if ((allowed >> capability) & 1) continue;
    const int present = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (present < 0) break;  // beyond the kernel's last capability
    if (present == 1 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return SystemError("drop", "a capability from the bounding set", errno);
    }
  }
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return Status::Ok();
}

Status ForbidNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return SystemError("set", "no_new_privs", errno);
  return Status::Ok();
}

}  // namespace muster::agent
