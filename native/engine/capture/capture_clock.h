// The two clocks of a capture: packets carry wall time, waiting is measured in steady time.
#pragma once

#include <cstdint>
#include <ctime>

namespace capfleet {

inline int64_t readClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline int64_t wallNs() { return readClockNs(CLOCK_REALTIME); }
inline int64_t steadyNs() { return readClockNs(CLOCK_MONOTONIC); }

/// One instant on both clocks.
struct Instant {
  int64_t wallNs = 0;  ///< since 1970
  int64_t steadyNs = 0;
  static Instant now() { return {capfleet::wallNs(), capfleet::steadyNs()}; }
};

}  // namespace capfleet
