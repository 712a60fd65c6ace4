// The time between two readings of a counter that wraps around.
#pragma once

#include <cstdint>

namespace capfleet {

/// Nanoseconds of one tick, as a fraction.
struct TickLength {
  int64_t numerator;
  int64_t denominator;

  bool operator==(const TickLength&) const = default;
};

/// Time from one reading to another, in nanoseconds rounded down, of a counter with `bits` bits
/// that has advanced by `ticks` (modulo its wrap). Of all distances that differ by whole wraps,
/// before and after, it is the one closest to `expectedNs`. REQUIRES: bits <= 32, ticks < 2^bits,
/// |expectedNs| < 2^63 / 2, 0 < numerator <= 10^6, 0 < denominator <= 10.
int64_t counterDistanceNs(uint32_t ticks, unsigned bits, TickLength tick, int64_t expectedNs);

}  // namespace capfleet
