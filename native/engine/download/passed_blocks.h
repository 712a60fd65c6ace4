// The blocks that a download skips without reading them, because their sieves rule out that any of
// their packets matches the filter.
#pragma once

#include <cstdint>

#include "download/scan_counts.h"
#include "download/segment_condition.h"
#include "download/slice_plan.h"
#include "store/block_sieve.h"

namespace capfleet {

/// Thread-safe. The sieves of a segment are read with its first slice, so that the size of a store
/// does not delay the first byte.
class PassedBlocks {
 public:
  /// Nothing is skipped without conditions, or with ones that are not useful. Blocks that are not
  /// completely in [beginNs, endNs) are always read.
  PassedBlocks(BlockConditions conditions, int64_t beginNs, int64_t endNs);

  /// Whether all blocks of the slice are known to be skipped. Does not read from disk.
  bool passWhole(const SlicePlan& plan, const Slice& slice) const;

  struct Rest {
    Slice slice;        ///< without the skipped blocks
    ScanCounts passed;  ///< their content, which counts as if it had been read
  };
  /// The rest of the slice that must be read. Packets shared by two slices count with the first.
  Rest leaveOut(const SlicePlan& plan, const Slice& slice);

 private:
  void readSegment(IndexedSegment& segment) const;
  bool isPassed(const IndexedSegment& segment, const PlannedBlock& block) const;
  bool hasConditions() const { return conditions_.program || conditions_.addresses; }
  bool mayPass(const BlockSieve& sieve) const;
  uint64_t bytesInRange(const IndexedSegment& segment) const;

  const BlockConditions conditions_;  ///< only useful ones
  const int64_t beginNs_;
  const int64_t endNs_;
};

}  // namespace capfleet
