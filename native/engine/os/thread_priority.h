// Threads that must not wait for a CPU, and threads that may.
#pragma once

namespace capfleet {

/// Gives the calling thread precedence as far as this process is allowed to: real time at its
/// lowest priority, else the best nice value, else unchanged.
void raiseThreadPriority();

/// Gives the calling thread precedence over ordinary programs, but not over real-time threads: the
/// best nice value that this process may have, else unchanged.
void preferThread();

/// Gives all other threads precedence over the calling one, for CPU and disk.
void lowerThreadPriority();

}  // namespace capfleet
