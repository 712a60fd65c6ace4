#include "filter/compile_limits.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "filter/allowed_system_calls.h"

namespace capfleet {
namespace {

constexpr rlim_t kMemoryBytes = rlim_t{256} << 20;
/// Standard streams, and what a sanitizer opens.
constexpr rlim_t kDescriptors = 8;
/// Wall time, in case the caller fails to kill this process. Far more than any caller waits,
/// because on a busy machine the CPU time may take that long to accumulate.
constexpr unsigned kAlarmSeconds = 60;

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(resource, &both);
}

/// Address space in use now: shared libraries and, in a sanitizer build, terabytes of shadow
/// memory.
rlim_t addressSpaceInUse() {
  unsigned long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  std::fclose(file);
  return rlim_t{pages} * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

/// A helper that cannot be confined must not read untrusted input.
void confine() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (allowFewSystemCalls()) return;
  std::fprintf(stderr, "this machine cannot sandbox the filter compilers (seccomp: %s)\n",
               std::strerror(errno));
  std::_Exit(1);
#endif
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
  confine();
}

}  // namespace capfleet
