#include "filter/compile_limits.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace capfleet {
namespace {

constexpr rlim_t kMemoryBytes = rlim_t{256} << 20;
/// Standard streams and one database of names (services, protocols) at a time.
constexpr rlim_t kDescriptors = 8;
/// Wall time, should the caller forget to kill this process. Far beyond what any caller waits: on a
/// busy machine the processor time may take so long to come.
constexpr unsigned kAlarmSeconds = 60;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "say here which audit architecture this is"
#endif

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(resource, &both);
}

/// Address space in use now: shared libraries and, in a sanitized build, terabytes of shadow.
rlim_t addressSpaceInUse() {
  unsigned long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  std::fclose(file);
  return rlim_t{pages} * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

/// Makes socket(), connect(), execve() and their kin fail with EACCES.
void denySystemCalls() {
  constexpr sock_filter kDeny = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EACCES};
  constexpr sock_filter kAllow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, arch)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 6, kArchitecture},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 4, 0, SYS_socket},
      {BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_connect},
      {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_execve},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_execveat},
      kAllow,
      kDeny,
  };
  const sock_fprog program{static_cast<unsigned short>(sizeof filter / sizeof filter[0]), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  }
}

}  // namespace

void limitThisProcess(uint32_t cpuSeconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kAlarmSeconds);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, cpuSeconds);
  limit(RLIMIT_AS, addressSpaceInUse() + kMemoryBytes);
  limit(RLIMIT_NOFILE, kDescriptors);
  unshare(CLONE_NEWNET);
  denySystemCalls();
}

}  // namespace capfleet
