// The cage of the compile helpers: capfleet-bpf-compile and capfleet-regex-compile.
#pragma once

#include <cstdint>

namespace capfleet {

/// Bounds this process for good: processor time, 256 MiB of memory above what it has now, few
/// descriptors, no core file, death with its parent, no network, no new program. Limits that need
/// a right which this process lacks (an empty network namespace) are left out; the memory and time
/// limits always hold. Call it before reading any untrusted byte.
void limitThisProcess(uint32_t cpuSeconds);

}  // namespace capfleet
