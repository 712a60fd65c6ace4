// The system calls that a compile helper may make.
#pragma once

namespace capfleet {

/// Permanently restricts this process to reading and writing what is open already, using memory
/// that is not executable, reading clocks, and exiting. Every other system call fails with EPERM,
/// and one of another architecture kills the process. Returns false with errno set if the kernel
/// refuses this.
bool allowFewSystemCalls();

}  // namespace capfleet
