// A block of a segment while it is in memory: laid out as the file will have it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "segment_index.h"
#include "tally_builder.h"

namespace capfleet {

/// Filled by one capture thread, then written by the writer thread; owned by one of them at a time.
class CaptureBlock {
 public:
  CaptureBlock() { clear(); }

  void clear() {
    entry_ = {.minNs = INT64_MAX, .maxNs = INT64_MIN};
    lastNs_ = INT64_MIN;
    tally_.reset();
  }

  bool isEmpty() const { return entry_.packets == 0; }
  /// Whether the record belongs in this block; one record always fits an empty one.
  /// REQUIRES: recordBytes <= kMaxBlockBytes.
  bool hasRoom(uint32_t recordBytes) const {
    return isEmpty() || entry_.bytes + recordBytes <= kBlockTargetBytes;
  }
  /// Where the next record goes. What is written there counts only after add().
  uint8_t* end() { return bytes_.get() + entry_.bytes; }
  /// Takes the record that lies at end().
  void add(int64_t timestampNs, uint32_t recordBytes) {
    if (timestampNs < lastNs_) entry_.flags |= kBlockUnordered;
    lastNs_ = timestampNs;
    tally_.add(timestampNs, recordBytes);
    entry_.minNs = std::min(entry_.minNs, timestampNs);
    entry_.maxNs = std::max(entry_.maxNs, timestampNs);
    entry_.bytes += recordBytes;
    entry_.packets += 1;
  }

  /// Offset, checksum and tally are still to be set.
  const BlockEntry& entry() const { return entry_; }
  std::span<const uint8_t> bytes() const { return {bytes_.get(), entry_.bytes}; }
  /// The block is not added to after this.
  std::span<const TallyRow> tallyRows() { return tally_.rows(); }

 private:
  std::unique_ptr<uint8_t[]> bytes_ = std::make_unique_for_overwrite<uint8_t[]>(kMaxBlockBytes);
  BlockEntry entry_;
  TallyBuilder tally_;
  int64_t lastNs_ = INT64_MIN;
};

}  // namespace capfleet
