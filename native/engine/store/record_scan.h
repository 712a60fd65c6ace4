// Walks the records of a segment without its index, and decides where their blocks end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "os/result.h"
#include "store/block_tally.h"
#include "store/segment_index.h"

namespace capfleet {

/// A block as its records describe it; offset and checksum are set, the place of a tally is not.
struct ScannedBlock {
  BlockEntry entry;
  std::vector<TallyRow> rows;  ///< of its tally
};

/// What 16 zero bytes are where a record may begin: an empty record of 1970, as a file that was
/// imported may have, or the end of the records.
enum class ZeroRecords { kAreRecords, kEnd };

/// Not thread-safe. Never reads outside the range, whatever its bytes are.
class RecordScan {
 public:
  /// Works like File::readAt().
  using ReadAt = std::function<Result<size_t>(uint64_t offset, std::span<uint8_t> out)>;

  /// Walks [offset, end) of the segment file.
  RecordScan(ReadAt readAt, uint64_t offset, uint64_t end,
             ZeroRecords zeroRecords = ZeroRecords::kAreRecords);

  /// Whether a block is one that was written.
  using IsProven = std::function<bool(ScannedBlock& block)>;

  /// The next block, of at most `mostPackets` packets. It ends where `isProven` first holds, which
  /// is tried on the block that a writer would end because of its size, then on each shorter one;
  /// otherwise where a writer would end it. It has 0 packets if no whole record is left; then the
  /// walk is at its end. The search may take 50 ms.
  Result<ScannedBlock> next(uint64_t mostPackets = UINT64_MAX, const IsProven& isProven = {});

  /// Where the next record begins.
  uint64_t offset() const { return offset_; }

 private:
  ScannedBlock blockOf(uint64_t mostPackets, size_t bytes) const;
  uint32_t wholeRecordAt(uint64_t at, uint64_t end) const;

  const ReadAt readAt_;
  uint64_t offset_;
  const uint64_t end_;
  const ZeroRecords zeroRecords_;
  std::vector<uint8_t> buffer_;
};

}  // namespace capfleet
