// Counts the packets of a block by millisecond while they are written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/block_tally.h"

namespace capfleet {

/// Not thread-safe. Reuses its memory for each block: 16 bytes for each row of the largest.
class TallyBuilder {
 public:
  /// Counts a packet; timestamps may go back. REQUIRES: timestampNs >= 0.
  void add(int64_t timestampNs, uint32_t recordBytes) {
    // Most packets are in the same millisecond as the previous one: one comparison each, no
    // division.
    const auto sinceBeginNs = static_cast<uint64_t>(timestampNs - rowBeginNs_);
    if (sinceBeginNs >= uint64_t{kNanosPerMillisecond}) beginRow(timestampNs);
    rows_.back().packets += 1;
    rows_.back().bytes += recordBytes;
  }

  /// Ends the block: one row for each millisecond that has packets, ascending. Valid until reset(),
  /// which must be called before the next add().
  std::span<const TallyRow> rows();
  void reset();

 private:
  void beginRow(int64_t timestampNs);

  /// No timestamp is less than one millisecond after this.
  static constexpr int64_t kNoRowNs = -kNanosPerMillisecond;

  std::vector<TallyRow> rows_;
  int64_t rowBeginNs_ = kNoRowNs;
};

}  // namespace capfleet
