// Scans one slice: merges its inputs by time and fills one slab after another, so that a slice of
// any size needs bounded memory and can wait between slabs without holding a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "download/packet_batch.h"
#include "download/passed_blocks.h"
#include "download/scan_counts.h"
#include "download/slice_plan.h"
#include "download/vendor_time_stage.h"
#include "filter/packet_filter.h"
#include "merge/merge_tree.h"
#include "store/block_reader.h"

namespace capfleet {

/// A slice with more inputs than this must be scanned alone, and holds pieces of their blocks.
inline constexpr size_t kMostWholeBlocks = 256;

/// What all slices of a download share.
struct ScanContext {
  PacketTransform transform;
  int64_t beginNs;  ///< earlier packets are read for a vendor's clock at most
  int64_t endNs;
  PassedBlocks passed;
  BlockReader reader;
  /// Takes the packets of all slices in order; null in NIC time.
  std::unique_ptr<VendorTimeStage> vendorTimes;
  std::atomic<bool> isCancelled = false;

  ScanContext(PacketTransform aTransform, int64_t aBeginNs, int64_t anEndNs,
              BlockConditions conditions = {})
      : transform(std::move(aTransform)),
        beginNs(aBeginNs),
        endNs(anEndNs),
        passed(std::move(conditions), beginNs, endNs) {}
};

enum class ScanStep {
  kFull,   ///< the batch has no room for the next packet; go on with an empty one
  kPause,  ///< a few MiB were scanned; go on with the same batch after giving others a turn
  kDone,   ///< the slice is finished, or the download is cancelled
};

/// Not thread-safe, but each fill() may be called by a different thread. Of each input it holds a
/// block and its tables; with more than kMostWholeBlocks inputs 64 MiB in total, or of each input
/// what fits into 16 KiB, and at least one packet.
class SliceScan {
 public:
  /// `context` and `plan`, which contains the slice, must outlive the scan. `endNs` may end the
  /// slice earlier than planned. With `maxSpanNs` the scan ends before the first packet that is
  /// this much or more after the first one that it returns; in a vendor's time the stage does that.
  /// With a vendor's time, REQUIRES: slices are scanned one after another, the final one last.
  SliceScan(ScanContext& context, const SlicePlan& plan, const Slice& slice, int64_t endNs,
            std::optional<int64_t> maxSpanNs);
  ~SliceScan();

  /// Appends packets to the batch. Fails if the disk does; the scan is then finished.
  Result<ScanStep> fill(PacketBatch& batch, ScanCounts& counts);

 private:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  struct Input {
    const Run* run;
    uint32_t nextBlock;  ///< the one loaded, or the next to load
    uint32_t endBlock;
    uint32_t sharedBlock;  ///< also read by the previous slice; kNoBlock if there is none
    std::shared_ptr<SegmentFile> file;
    uint32_t fileSegment = 0;
    std::unique_ptr<LoadedBlock> block;  ///< or a piece of it
    uint32_t position = 0;               ///< next record of `block`
    uint32_t nextRecord = 0;   ///< in the next block: the first record after what was loaded
    int64_t nextRecordNs = 0;  ///< its timestamp, where it is neither the first nor the end
  };

  /// Neighbouring blocks [first, end) of one file.
  struct BlockGroup {
    uint32_t first;
    uint32_t end;
    size_t bytes;
  };

  static std::vector<Input> inputsOf(const SlicePlan& plan, const Slice& slice);
  bool hasNext() const;
  Status openFile(Input& input);
  bool canCopyWhole(const Input& input, uint32_t block) const;
  BlockGroup nextGroup(Input& input, size_t room) const;
  Result<bool> copyWholeBlocks(Input& input, PacketBatch& batch, ScanCounts& counts);
  Status loadBlock(Input& input, PacketBatch& batch, ScanCounts& counts);
  void beginBlock(Input& input, const LoadedBlock& block, PacketBatch& batch, ScanCounts& counts);
  uint64_t countBesideRange(const Input& input, const LoadedBlock& block) const;
  void hold(Input& input, std::unique_ptr<LoadedBlock> block);
  bool mergeRecords(PacketBatch& batch, ScanCounts& counts);
  bool appendFromWinner(PacketBatch& batch, ScanCounts& counts);
  uint32_t runEnd(const Input& input) const;
  void finishLoaded(Input& input);
  void release(std::unique_ptr<LoadedBlock> block);
  void nextBlock(Input& input);
  int64_t keyOf(const Input& input) const;
  std::vector<int64_t> keys() const;
  void rekey(Input& input);
  void noteCheck(const Input& input, uint32_t block, bool isIntact, ScanCounts& counts);

  ScanContext& context_;
  const SlicePlan& plan_;
  const bool isFinal_;
  int64_t beginNs_;
  int64_t endNs_;
  std::optional<int64_t> maxSpanNs_;  ///< until the first packet has been found
  PacketFilter filter_;
  VendorTimeStage* const vendorTimes_;  ///< null in NIC time
  std::vector<Input> inputs_;
  const std::optional<size_t> pieceBytes_;  ///< maximum an input may hold; empty: a whole block
  MergeTree tree_;
  uint64_t bytesSincePause_ = 0;
};

}  // namespace capfleet
