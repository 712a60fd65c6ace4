// Where a download that goes on inside its body begins to scan: the slices that lie wholly before
// the position are passed over, and what they hold is known without reading them.
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

/// What may be passed over at most.
struct SkipLimits {
  uint64_t packets;
  uint64_t bytes;  ///< as PCAP records
};

/// Passes over as many slices as are known to stay within the limits, and to hold only blocks that
/// have been read before: of others nobody knows whether they are damaged, and so left out. Reads
/// only blocks that begin before the range or reach over the end of the last slice: two of each run
/// at most, however many bytes lie before them. Looks at every index entry of the plans.
/// REQUIRES: the scan delivers every packet, of the size and in the order in which it is stored
/// (PacketTransform::keepsSizes()), and ends by no time of its own. Not thread-safe.
class SliceSkip {
 public:
  /// `context` must outlive this.
  SliceSkip(ScanContext& context, SkipLimits most) : context_(context), left_(most) {}

  /// Passes over slices of the plan, which follows those of the calls before. Returns how many; of
  /// no further plan, unless these were all. Fails when a block cannot be read.
  Result<size_t> pass(const std::shared_ptr<const SlicePlan>& plan);
  /// After the last plan. Fails when a block cannot be read.
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
  /// Blocks of the plan before that reach over its end: not counted yet.
  std::vector<Block> open_;
  int64_t openEndNs_ = 0;  ///< of that plan
};

}  // namespace capfleet
