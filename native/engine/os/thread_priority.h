// Threads that must not wait for the processor, and threads that may.
#pragma once

namespace capfleet {

/// Puts the calling thread before others as far as this process may: real time at its lowest
/// priority, else the best nice value, else as it was.
void raiseThreadPriority();

/// Puts the calling thread before those of ordinary programs, and behind those in real time: the
/// best nice value that this process may have, else as it was.
void preferThread();

/// Puts the calling thread behind all others, of the processor and of the disk.
void lowerThreadPriority();

}  // namespace capfleet
