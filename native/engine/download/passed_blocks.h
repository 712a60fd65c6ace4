// Which blocks of a plan a download passes over unread: their sieves say that the filter accepts no
// packet of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "download/scan_counts.h"
#include "download/slice_plan.h"
#include "filter/address_condition.h"

namespace capfleet {

/// Thread-safe. The sieves of a segment are read when its first slice is, so that the size of a
/// store does not delay the first byte.
class PassedBlocks {
 public:
  /// None is passed over without a condition, or with one that is not useful. The plan must outlive
  /// this. Blocks that are not wholly in [beginNs, endNs) are always read.
  PassedBlocks(const SlicePlan& plan, std::optional<AddressCondition> condition, int64_t beginNs,
               int64_t endNs);

  /// Whether all blocks of the slice are known to be passed over. Does not read from the disk.
  bool passWhole(const Slice& slice) const;

  struct Rest {
    Slice slice;        ///< without the blocks that are passed over
    ScanCounts passed;  ///< what they hold: it counts as looked at, as if it had been read
  };
  /// What is left to read of the slice. Packets that two slices share count with the first.
  Rest leaveOut(const Slice& slice);

 private:
  struct Segment {
    std::atomic<bool> isKnown = false;
    std::mutex mutex;
    uint64_t plannedBytes = 0;
    /// By number: the checksum of a block that can be passed over, or 0.
    std::vector<uint64_t> passed;
  };
  void readSegment(uint32_t segment);
  bool isPassed(const PlannedBlock& block) const;

  const SlicePlan& plan_;
  const std::optional<AddressCondition> condition_;
  const int64_t beginNs_;
  const int64_t endNs_;
  /// As those of the plan; null when no block is passed over.
  std::unique_ptr<Segment[]> segments_;
};

}  // namespace capfleet
