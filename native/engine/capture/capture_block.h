// A block of a segment in memory, in the layout of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "store/block_counter.h"

namespace capfleet {

/// Filled by one capture thread, then written by the writer thread; owned by one of them at a time.
class CaptureBlock {
 public:
  void clear() { counter_.reset(); }

  bool isEmpty() const { return counter_.isEmpty(); }
  /// See BlockCounter::hasRoom().
  bool hasRoom(uint32_t recordBytes) const { return counter_.hasRoom(recordBytes); }
  /// Where the next record goes. Bytes written there only count after add().
  uint8_t* end() { return bytes_.get() + entry().bytes; }
  /// Adds the record at end().
  void add(int64_t timestampNs, uint32_t recordBytes) { counter_.add(timestampNs, recordBytes); }

  /// Offset, checksum and place of the tally are still to be set.
  const BlockEntry& entry() const { return counter_.entry(); }
  std::span<const uint8_t> bytes() const { return {bytes_.get(), entry().bytes}; }
  /// Nothing may be added to the block after this.
  std::span<const TallyRow> tallyRows() { return counter_.tallyRows(); }

 private:
  std::unique_ptr<uint8_t[]> bytes_ = std::make_unique_for_overwrite<uint8_t[]>(kMaxBlockBytes);
  BlockCounter counter_;
};

}  // namespace capfleet
