// What a download will read for a stretch of time, determined from the indexes alone: which blocks,
// in which order, divided into slices that threads can scan concurrently.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "download/scan_counts.h"
#include "packet/packet_origin.h"
#include "store/checked_blocks.h"
#include "store/segment_file.h"
#include "store/segment_index.h"

namespace capfleet {

/// One block of a segment that may hold packets of the range.
struct PlannedBlock {
  BlockEntry entry;
  uint32_t segment;  ///< index into SlicePlan::segments
  uint32_t number;   ///< number in the segment's index
};

/// Consecutive blocks of one stream, each starting no earlier than the previous one ends. A stream
/// whose clock never stepped back is one run.
struct Run {
  std::vector<PlannedBlock> blocks;
};

/// The blocks [firstBlock, endBlock) of a run that overlap a slice's time.
struct SliceInput {
  uint32_t run;  ///< index into SlicePlan::runs
  uint32_t firstBlock;
  uint32_t endBlock;
  bool firstIsShared;  ///< the previous slice reads the first block too
};

/// All packets of the inputs with beginNs <= timestamp < endNs. Slices do not overlap in what they
/// return, and their concatenated results are the download.
struct Slice {
  int64_t beginNs;
  int64_t endNs;
  std::vector<SliceInput> inputs;  ///< by ascending run
  /// The last slice of a download in a vendor's time, without inputs: returns what is still waiting
  /// to be sorted.
  bool isFinal = false;
};

/// The blocks of a segment that a download skips, once its sieves have been read.
struct PassedOfSegment {
  std::atomic<bool> isKnown = false;
  std::mutex mutex;
  /// The checksum of each block that can be skipped, or 0, by its number.
  std::vector<uint64_t> checksums;
};

/// A segment whose index has been read, shared by all slices that read it.
struct IndexedSegment {
  const std::string path;  ///< without ending
  const PacketOrigin origin;
  const SegmentIndex index;
  /// What is known about its blocks, extended by a scan; never null.
  const std::shared_ptr<SegmentChecks> checks;
  SharedSegmentFile file;
  PassedOfSegment passed;

  IndexedSegment(std::string aPath, SegmentIndex anIndex, uint32_t stream = 0,
                 std::shared_ptr<SegmentChecks> someChecks = std::make_shared<SegmentChecks>())
      : path(std::move(aPath)),
        origin{anIndex.header.linkTypeWord, stream, anIndex.port},
        index(std::move(anIndex)),
        checks(std::move(someChecks)),
        file(path) {}
};
/// Segments of one stream in recording order.
using IndexedStream = std::vector<std::shared_ptr<IndexedSegment>>;

/// A stretch of a download's time.
struct PlanRange {
  int64_t beginNs = 0;
  int64_t endNs = 0;
  /// The download also reads what lies before beginNs, with an earlier plan: blocks that extend
  /// across beginNs are read by both.
  bool isContinued = false;
};

/// Runs are in the order that decides between equal timestamps: by stream, then by position.
struct SlicePlan {
  std::vector<std::shared_ptr<IndexedSegment>> segments;
  std::vector<Run> runs;
  std::vector<Slice> slices;
  PlanRange range;
  /// Segments that were ruled out since the previous plan; they count once this plan is reached.
  ScanCounts ruledOut;

  /// Whether an earlier plan also reads the first block of the run. It reads no other one: the
  /// second begins no earlier than the first ends, and so not before the range.
  bool isBegunBefore(const Run& run) const {
    return range.isContinued && run.blocks.front().entry.minNs < range.beginNs;
  }
};

/// Enough work for one thread to be worth the overhead.
inline constexpr uint64_t kSliceBytes = uint64_t{4} << 20;

/// A plan with one slice, or none.
SlicePlan planOneSlice(const std::vector<IndexedStream>& streams, PlanRange range);

/// Plans the download of the range of these streams. Slices hold about `sliceBytes` of the store,
/// more if several runs overlap or many packets share a timestamp.
SlicePlan planSlices(const std::vector<IndexedStream>& streams, PlanRange range,
                     uint64_t sliceBytes = kSliceBytes);

}  // namespace capfleet
