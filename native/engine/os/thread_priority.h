// Threads that must not wait for the processor, and threads that may.
#pragma once

namespace capfleet {

/// Puts the calling thread before others as far as this process may: real time at its lowest
/// priority, else the best nice value, else as it was.
void raiseThreadPriority();

/// Puts the calling thread behind all others, of the processor and of the disk.
void lowerThreadPriority();

}  // namespace capfleet
