#include "filter/allowed_system_calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capfleet {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "say here which audit architecture this is"
#endif
static_assert(std::endian::native == std::endian::little, "lowHalfOf() counts on it");

/// The lower 32 bits of an argument: all that is used of flags and process ids.
constexpr uint32_t lowHalfOf(uint32_t argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + argument * uint32_t{8};
}

/// A seccomp filter that denies what is not allowed. Jumps skip the rest of a rule, to the one for
/// the next call.
class SystemCallFilter {
 public:
  SystemCallFilter() {
    add({BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, arch)});
    add({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kArchitecture});
    add({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
    add({BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)});
  }

  void allow(uint32_t call) {
    add({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call});
    add(kAllow);
  }
  /// Allowed if the argument, counted from 0, has none of the bits.
  void allowWithoutBits(uint32_t call, uint32_t argument, uint32_t bits) {
    add({BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call});
    add({BPF_LD | BPF_W | BPF_ABS, 0, 0, lowHalfOf(argument)});
    add({BPF_JMP | BPF_JSET | BPF_K, 1, 0, bits});
    add(kAllow);
    add(kDeny);
  }
  /// Allowed if the argument, counted from 0, is the value.
  void allowWith(uint32_t call, uint32_t argument, uint32_t value) {
    add({BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call});
    add({BPF_LD | BPF_W | BPF_ABS, 0, 0, lowHalfOf(argument)});
    add({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value});
    add(kAllow);
    add(kDeny);
  }

  bool install() {
    add(kDeny);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  static constexpr sock_filter kAllow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  static constexpr sock_filter kDeny{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM};

  void add(sock_filter instruction) { code_.push_back(instruction); }

  std::vector<sock_filter> code_;
};

/// Alternatives that present and future C libraries may use for the same purpose are grouped.
/// Neither fstat() nor ioctl() is included: standard streams are buffered without them, too.
constexpr uint32_t kHarmless[] = {
    // Input and output.
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_lseek,
    SYS_close,
    // Memory, except mmap and mprotect.
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_getrandom,
    SYS_futex,
    // Clocks.
    SYS_clock_gettime,
    SYS_gettimeofday,
#ifdef SYS_time
    SYS_time,
#endif
    // For continuing after SIGSTOP, exiting, and abort().
    SYS_restart_syscall,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_getpid,
    SYS_gettid,
    SYS_exit,
    SYS_exit_group,
};

constexpr uint32_t kProtectionArgument = 2;

}  // namespace

bool allowFewSystemCalls() {
  SystemCallFilter filter;
  for (const uint32_t call : kHarmless) filter.allow(call);
  filter.allowWithoutBits(SYS_mmap, kProtectionArgument, PROT_EXEC);
  filter.allowWithoutBits(SYS_mprotect, kProtectionArgument, PROT_EXEC);
  filter.allowWith(SYS_tgkill, 0, static_cast<uint32_t>(getpid()));
  return filter.install();
}

}  // namespace capfleet
