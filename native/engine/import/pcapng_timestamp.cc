#include "import/pcapng_timestamp.h"

#include "packet/pcap_format.h"

namespace capfleet {

namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

constexpr uint8_t kPowerOfTwo = 0x80;
constexpr uint8_t kNanoExponent = 9;
/// 10^19 is the largest power of ten in 64 bits; dividing 64 bits by more yields zero.
constexpr uint8_t kMaxDivisorExponent = 19;

uint64_t powerOfTen(unsigned exponent) {
  uint64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

}  // namespace

PcapngTimestamp::PcapngTimestamp(uint8_t resolution, int64_t offsetSeconds)
    : offsetSeconds_(offsetSeconds) {
  const auto exponent = static_cast<uint8_t>(resolution & ~kPowerOfTwo);
  if ((resolution & kPowerOfTwo) != 0) {
    multiplier_ = static_cast<uint64_t>(kNanosPerSecond);
    shift_ = exponent;
  } else if (exponent <= kNanoExponent) {
    multiplier_ = powerOfTen(kNanoExponent - exponent);
  } else if (exponent - kNanoExponent <= kMaxDivisorExponent) {
    divisor_ = powerOfTen(exponent - kNanoExponent);
  } else {
    multiplier_ = 0;
  }
}

std::optional<int64_t> PcapngTimestamp::toNanos(uint64_t ticks) const {
  // 64 bits of ticks times at most 30 bits: exact in 128.
  Uint128 scaled = Uint128{ticks} * multiplier_;
  if (divisor_ != 1) scaled /= divisor_;
  const Int128 nanos = static_cast<Int128>(scaled >> shift_) +
                       Int128{offsetSeconds_} * static_cast<Int128>(kNanosPerSecond);
  if (nanos < 0 || nanos >= kTimestampEndNs) return std::nullopt;
  return static_cast<int64_t>(nanos);
}

}  // namespace capfleet
