#include "vendor_time/counter_distance.h"

namespace capfleet {

namespace {

// Ticks times numerator of an hour-long distance exceed 64 bits.
__extension__ typedef __int128 Int128;

Int128 floorDivide(Int128 dividend, Int128 divisor) {
  const Int128 quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

}  // namespace

int64_t counterDistanceNs(uint32_t ticks, unsigned bits, TickLength tick, int64_t expectedNs) {
  const Int128 wrap = (Int128{1} << bits) * tick.numerator;
  const Int128 distance = Int128{ticks} * tick.numerator;
  const Int128 missing = Int128{expectedNs} * tick.denominator - distance;
  const Int128 wraps = floorDivide(2 * missing + wrap, 2 * wrap);
  return static_cast<int64_t>(floorDivide(distance + wraps * wrap, tick.denominator));
}

}  // namespace capfleet
