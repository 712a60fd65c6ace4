// What a download will read, decided from the indexes alone: which blocks, in which order, cut into
// slices that threads can scan at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "packet/packet_origin.h"
#include "store/checked_blocks.h"
#include "store/segment_index.h"

namespace capfleet {

/// One block of a segment that may hold packets of the range.
struct PlannedBlock {
  BlockEntry entry;
  uint32_t segment;  ///< index into SlicePlan::segments
  uint32_t number;   ///< in the segment's index
};

/// Consecutive blocks of one stream, each starting no earlier than the one before ends. A stream
/// whose clock never stepped back is one run.
struct Run {
  std::vector<PlannedBlock> blocks;
};

/// The blocks [firstBlock, endBlock) of a run that overlap a slice's time.
struct SliceInput {
  uint32_t run;  ///< index into SlicePlan::runs
  uint32_t firstBlock;
  uint32_t endBlock;
  bool firstIsShared;  ///< the slice before reads the first block too
};

/// All packets of the inputs with beginNs <= timestamp < endNs. Slices do not overlap in what they
/// deliver, and their results one after the other are the download.
struct Slice {
  int64_t beginNs;
  int64_t endNs;
  std::vector<SliceInput> inputs;  ///< by ascending run
};

/// Runs are in the order that decides between equal timestamps: by stream, then by position.
struct SlicePlan {
  std::vector<std::string> segments;                   ///< paths without ending
  std::vector<PacketOrigin> origins;                   ///< of each segment's packets
  std::vector<std::shared_ptr<SegmentChecks>> checks;  ///< of each segment's blocks
  std::vector<Run> runs;
  std::vector<Slice> slices;
  uint32_t mostInputs = 0;  ///< of one slice
};

/// One stream's segments in recording order, with their indexes.
struct IndexedSegment {
  std::string path;  ///< without ending
  SegmentIndex index;
  /// What is known of its blocks, and what a scan finds; never null.
  std::shared_ptr<SegmentChecks> checks = std::make_shared<SegmentChecks>();
};
using IndexedStream = std::vector<IndexedSegment>;

/// Enough for one thread to be worth the hand-over.
inline constexpr uint64_t kSliceBytes = uint64_t{4} << 20;

/// A plan with one slice, or none: all that reaches into the range, from `lookBackNs` before it on.
/// Streams without a block in the range itself are left out.
SlicePlan planOneSlice(const std::vector<IndexedStream>& streams, int64_t beginNs, int64_t endNs,
                       int64_t lookBackNs);

/// Plans the download of [beginNs, endNs) of these streams. Slices hold about `sliceBytes` of the
/// store, more where several runs overlap or many packets share a timestamp.
SlicePlan planSlices(const std::vector<IndexedStream>& streams, int64_t beginNs, int64_t endNs,
                     uint64_t sliceBytes = kSliceBytes);

}  // namespace capfleet
