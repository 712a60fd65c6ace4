// The cage of the compile helpers: capfleet-bpf-compile and capfleet-regex-compile.
#pragma once

#include <cstdint>

namespace capfleet {

/// Bounds this process for good: processor time, 256 MiB of memory above what it has now, no core
/// file, death with its parent, and few system calls (allowed_system_calls.h): it opens nothing,
/// starts nothing and reaches no other process and no network. An empty network namespace is left
/// out if this process lacks the right to make one. If the kernel refuses the limit on system
/// calls, the process ends with status 1. Builds with a sanitizer lack that limit. Call it before
/// reading any untrusted byte.
void limitThisProcess(uint32_t cpuSeconds);

}  // namespace capfleet
