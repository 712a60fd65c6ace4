// Scans one slice: merges its inputs by time and fills one slab after the other, so that a slice of
// any size needs a bounded memory and can wait between slabs without holding a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "block_reader.h"
#include "merge_heap.h"
#include "packet_batch.h"
#include "slice_plan.h"

namespace capfleet {

/// What all slices of a download share.
struct ScanContext {
  SlicePlan plan;
  PacketTransform transform;
  BlockReader reader;
  std::atomic<bool> isCancelled = false;

  ScanContext(SlicePlan aPlan, PacketTransform aTransform)
      : plan(std::move(aPlan)), transform(std::move(aTransform)), reader(plan.segments) {}
};

/// Work done, apart from what was delivered.
struct ScanCounts {
  uint64_t packets = 0;  ///< looked at: in the slice's time, before any filter
  uint64_t bytes = 0;    ///< of those, as PCAP records
  uint64_t corruptBlocks = 0;
};

enum class ScanStep {
  kFull,   ///< the batch has no room for the next packet; go on with an empty one
  kPause,  ///< a few MiB were scanned; go on with the same batch after giving others a turn
  kDone,   ///< the slice is finished, or the download is cancelled
};

/// Not thread-safe, but fill() may be called by another thread each time.
class SliceScan {
 public:
  /// `context` must outlive the scan. `endNs` may end the slice earlier than planned. With
  /// `maxSpanNs` the scan ends before the first packet that is this much or more after the first
  /// one that it delivers.
  SliceScan(ScanContext& context, const Slice& slice, int64_t endNs,
            std::optional<int64_t> maxSpanNs);
  ~SliceScan();

  /// Appends packets to the batch. Fails when the disk does; the scan is then finished.
  Result<ScanStep> fill(PacketBatch& batch, ScanCounts& counts);
  /// Where the scan ends; earlier than at first once `maxSpanNs` has a first packet to count from.
  int64_t endNs() const { return endNs_; }

 private:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  struct Input {
    const Run* run;
    uint32_t nextBlock;  ///< the one loaded, or the next to load
    uint32_t endBlock;
    uint32_t sharedBlock;  ///< the slice before reads this one too; kNoBlock if there is none
    std::shared_ptr<File> file;
    uint32_t fileSegment = 0;
    std::unique_ptr<LoadedBlock> block;
    uint32_t position = 0;  ///< next record of `block`
  };

  /// Neighbouring blocks [first, end) of one file.
  struct BlockGroup {
    uint32_t first;
    uint32_t end;
    size_t bytes;
  };

  Status openFile(Input& input);
  bool canCopyWhole(const Input& input, uint32_t block) const;
  BlockGroup nextGroup(Input& input, size_t room) const;
  Result<bool> copyWholeBlocks(Input& input, PacketBatch& batch, ScanCounts& counts);
  Status loadBlock(Input& input, ScanCounts& counts);
  bool appendFromTop(PacketBatch& batch);
  uint32_t runEnd(const Input& input) const;
  void finishBlock(Input& input);
  void updateTop(const Input& input);
  void countCorrupt(const Input& input, uint32_t block, ScanCounts& counts);

  ScanContext& context_;
  int64_t beginNs_;
  int64_t endNs_;
  std::optional<int64_t> maxSpanNs_;  ///< until the first packet has been found
  std::vector<Input> inputs_;
  MergeHeap heap_;
  uint64_t bytesSincePause_ = 0;
};

}  // namespace capfleet
