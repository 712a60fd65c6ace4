// The facts about a block's packets, counted one by one while the block is being filled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "store/segment_index.h"
#include "store/tally_builder.h"

namespace capfleet {

/// Not thread-safe. Reuses the memory of its tally for each block.
class BlockCounter {
 public:
  bool isEmpty() const { return entry_.packets == 0; }
  /// Whether the record belongs in this block; one record always fits into an empty one. REQUIRES:
  /// recordBytes <= kMaxBlockBytes.
  bool hasRoom(uint32_t recordBytes) const {
    return isEmpty() || entry_.bytes + recordBytes <= kBlockTargetBytes;
  }

  /// Counts the next record; timestamps may go back. REQUIRES: timestampNs >= 0.
  void add(int64_t timestampNs, uint32_t recordBytes) {
    if (timestampNs < lastNs_) entry_.flags |= kBlockUnordered;
    lastNs_ = timestampNs;
    tally_.add(timestampNs, recordBytes);
    entry_.minNs = std::min(entry_.minNs, timestampNs);
    entry_.maxNs = std::max(entry_.maxNs, timestampNs);
    entry_.bytes += recordBytes;
    entry_.packets += 1;
  }

  /// Offset, checksum and place of the tally are not set yet.
  const BlockEntry& entry() const { return entry_; }
  /// Ends the block: nothing may be added until reset(), which invalidates the rows.
  std::span<const TallyRow> tallyRows() { return tally_.rows(); }

  void reset() {
    entry_ = kNoPackets;
    lastNs_ = INT64_MIN;
    tally_.reset();
  }

 private:
  static constexpr BlockEntry kNoPackets{.minNs = INT64_MAX, .maxNs = INT64_MIN};

  BlockEntry entry_ = kNoPackets;
  int64_t lastNs_ = INT64_MIN;
  TallyBuilder tally_;
};

}  // namespace capfleet
