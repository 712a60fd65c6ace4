// Which system calls a compile helper may make.
#pragma once

namespace capfleet {

/// Lets this process, for good, do no more than read and write what is open already, use memory
/// that holds no program, read clocks, and end. Every other system call fails with EPERM, and one
/// of another architecture kills the process. False with errno set if the kernel refuses this.
bool allowFewSystemCalls();

}  // namespace capfleet
