// Where the scan of a download that starts inside its body begins: the slices wholly before the
// position are skipped, and their contents are known without reading them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "download/slice_scan.h"

namespace capfleet {

/// The first slices of a download, and what the scan of them would have delivered.
struct SkippedSlices {
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< as PCAP records
  uint64_t corruptBlocks = 0;
  std::optional<int64_t> firstNs;
  std::optional<int64_t> lastNs;
};

/// The most that may be skipped.
struct SkipLimits {
  uint64_t packets;
  uint64_t bytes;  ///< as PCAP records
};

/// Skips as many slices as certainly stay within the limits and hold only blocks that have been
/// read before: of other blocks it is not known whether they are damaged and therefore left out.
/// Reads only blocks that begin before the range or extend beyond the last slice: at most two of
/// each run, however many bytes precede them. Checks every index entry of the plans.
/// REQUIRES: the scan delivers every packet with its stored size and in stored order
/// (PacketTransform::keepsSizes()), and has no end time of its own. Not thread-safe.
class SliceSkip {
 public:
  /// `context` must outlive this.
  SliceSkip(ScanContext& context, SkipLimits most) : context_(context), left_(most) {}

  /// Skips slices of the plan, which follows those of the previous calls. Returns their number. If
  /// that is less than all, no further plan may be passed. Fails if a block cannot be read.
  Result<size_t> pass(const std::shared_ptr<const SlicePlan>& plan);
  /// Call this after the last plan. Fails if a block cannot be read.
  Status finish();
  const SkippedSlices& skipped() const { return skipped_; }

 private:
  struct Block {
    std::shared_ptr<IndexedSegment> segment;
    BlockEntry entry;
    uint32_t number;
  };

  size_t countSlices(const SlicePlan& plan);
  bool take(const SlicePlan& plan, const PlannedBlock& block);
  Status addSlices(const SlicePlan& plan, size_t slices);
  Status add(const Block& block, int64_t endNs);
  void add(uint64_t packets, uint64_t bytes, int64_t firstNs, int64_t lastNs);

  ScanContext& context_;
  SkipLimits left_;
  SkippedSlices skipped_;
  /// Blocks of the previous plan that extend beyond its end: not counted yet.
  std::vector<Block> open_;
  int64_t openEndNs_ = 0;  ///< of that plan
};

}  // namespace capfleet
