// Converts the timestamps of a pcapng interface (if_tsresol, if_tsoffset) to nanoseconds.
#pragma once

#include <cstdint>
#include <optional>

namespace capfleet {

class PcapngTimestamp {
 public:
  /// `resolution` is the byte of if_tsresol: a negative power of ten, or of two if its top bit is
  /// set. `offsetSeconds` is if_tsoffset.
  explicit PcapngTimestamp(uint8_t resolution = 6, int64_t offsetSeconds = 0);

  /// Nanoseconds since 1970, fractions truncated; nullopt if PCAP cannot represent the instant.
  std::optional<int64_t> toNanos(uint64_t ticks) const;

 private:
  // Nanoseconds = ticks * multiplier / divisor / 2^shift + offset.
  uint64_t multiplier_ = 1;
  uint64_t divisor_ = 1;
  uint8_t shift_ = 0;
  int64_t offsetSeconds_;
};

}  // namespace capfleet
