// The cage of capfleet-bpf-compile.
#pragma once

namespace capfleet {

/// Bounds this process for good: 2 s of processor time, 256 MiB of memory above what it has now,
/// few descriptors, no core file, death with its parent, no network, no new program. Limits that
/// need a right which this process lacks (an empty network namespace) are left out; the memory and
/// time limits always hold. Call it before reading any untrusted byte.
void limitThisProcess();

}  // namespace capfleet
