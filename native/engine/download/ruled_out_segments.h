// The segments that a download skips without opening any of their files, because the address tables
// of their ports say that none of their packets match the filter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "download/scan_counts.h"
#include "download/segment_condition.h"
#include "store/segment_entry.h"

namespace capfleet {

/// Not thread-safe. Keeps the result of one table per stream.
class RuledOutSegments {
 public:
  /// Nothing is ruled out without conditions, or with ones that are not useful. Segments that are
  /// not completely in [beginNs, endNs) are always read, because it is not known how many of their
  /// packets are in the range.
  RuledOutSegments(BlockConditions conditions, int64_t beginNs, int64_t endNs)
      : condition_(std::move(conditions)), beginNs_(beginNs), endNs_(endNs) {}

  /// What the segment counts if it is ruled out. `number` is that of the stream.
  std::optional<ScanCounts> countsOf(const StreamSegments& stream, uint32_t number,
                                     const SegmentEntry& segment);

  /// Bytes of address tables that were read since the last call.
  uint64_t takeReadBytes() { return std::exchange(readBytes_, 0); }

 private:
  /// The segments of a stream that are in one table.
  struct Neighbours {
    std::optional<uint32_t> table;  ///< nullopt: none was read
    uint64_t ruledOut = 0;
    std::array<uint32_t, kSegmentsPerAddressTable> blocks{};
  };
  void read(Neighbours& neighbours, const StreamSegments& stream, uint32_t table);

  const SegmentCondition condition_;
  const int64_t beginNs_;
  const int64_t endNs_;
  std::vector<Neighbours> streams_;
  uint64_t readBytes_ = 0;
};

}  // namespace capfleet
