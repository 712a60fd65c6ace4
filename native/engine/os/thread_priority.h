// Threads that must not wait for the processor.
#pragma once

namespace capfleet {

/// Puts the calling thread before others as far as this process may: real time at its lowest
/// priority, else the best nice value, else as it was.
void raiseThreadPriority();

}  // namespace capfleet
