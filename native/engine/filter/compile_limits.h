// The sandbox of the compile helpers: capfleet-bpf-compile and capfleet-regex-compile.
#pragma once

#include <cstdint>

namespace capfleet {

/// Permanently limits this process: CPU time, 256 MiB of memory above its present use, no core
/// file, death with its parent, and few system calls (allowed_system_calls.h): it opens nothing,
/// starts nothing and reaches no other process and no network. An empty network namespace is
/// skipped if this process lacks the right to create one. If the kernel refuses the limit on system
/// calls, the process exits with status 1. Sanitizer builds lack that limit. Must be called before
/// reading any untrusted byte.
void limitThisProcess(uint32_t cpuSeconds);

}  // namespace capfleet
