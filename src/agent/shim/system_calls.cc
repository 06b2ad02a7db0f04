#include "agent/shim/system_calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

// The numbers of one architecture.
struct Numbers {
  uint32_t architecture;
  std::vector<uint32_t> refused;
  std::vector<uint32_t> with_flags;  // refused with CLONE_NEWUSER in the first argument
  uint32_t clone3;
};

std::vector<Numbers> Architectures() {
  std::vector<Numbers> out;
#ifdef __x86_64__
  out.push_back({AUDIT_ARCH_X86_64,
                 {SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf},
                 {SYS_unshare, SYS_clone},
                 SYS_clone3});
  // 32-bit programs on the same kernel (arch/x86/entry/syscalls/syscall_32.tbl).
  out.push_back({AUDIT_ARCH_I386, {286, 287, 288, 357}, {310, 120}, 435});
#elif defined(__aarch64__)
  out.push_back({AUDIT_ARCH_AARCH64,
                 {SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf},
                 {SYS_unshare, SYS_clone},
                 SYS_clone3});
#endif
  return out;
}

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

sock_filter Load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
sock_filter SkipUnless(uint16_t test, uint32_t value, size_t count) {
  return BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), value, 0,
                  static_cast<uint8_t>(count));
}
sock_filter Return(uint32_t what) { return BPF_STMT(BPF_RET | BPF_K, what); }

// What is done with the calls of one architecture; every way through it returns.
std::vector<sock_filter> Rules(const Numbers& numbers) {
  std::vector<sock_filter> out = {Load(offsetof(seccomp_data, nr))};
#ifdef __x86_64__
  constexpr uint32_t kX32Bit = 0x4000'0000;
  if (numbers.architecture == AUDIT_ARCH_X86_64) {
    out.push_back(SkipUnless(BPF_JGE, kX32Bit, 1));
    out.push_back(Return(kUnknown));
  }
#endif
  for (uint32_t number : numbers.refused) {
    out.push_back(SkipUnless(BPF_JEQ, number, 1));
    out.push_back(Return(kRefuse));
  }
  out.push_back(SkipUnless(BPF_JEQ, numbers.clone3, 1));
  out.push_back(Return(kUnknown));
  for (uint32_t number : numbers.with_flags) {
    out.push_back(SkipUnless(BPF_JEQ, number, 4));
    out.push_back(Load(offsetof(seccomp_data, args)));  // little endian: the low half
    out.push_back(SkipUnless(BPF_JSET, CLONE_NEWUSER, 1));
    out.push_back(Return(kRefuse));
    out.push_back(Return(SECCOMP_RET_ALLOW));
  }
  out.push_back(Return(SECCOMP_RET_ALLOW));
  return out;
}

std::vector<sock_filter> Program() {
  std::vector<sock_filter> out = {Load(offsetof(seccomp_data, arch))};
  for (const Numbers& numbers : Architectures()) {
    const std::vector<sock_filter> rules = Rules(numbers);
    out.push_back(SkipUnless(BPF_JEQ, numbers.architecture, rules.size()));
    out.insert(out.end(), rules.begin(), rules.end());
  }
  out.push_back(Return(kUnknown));
  return out;
}

}  // namespace

Status FilterSystemCalls() {
  std::vector<sock_filter> program = Program();
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  // Without the flag, older kernels slow every branch of the container down.
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) == 0)
    return Status::Ok();
  return SystemError("install", "the filter of system calls", errno);
}

}  // namespace muster::agent
