// Writes the blocks of one capture port to its segments, and loses none while the disk fails.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/capture_block.h"
#include "store/segment_files.h"

namespace capfleet {

struct StreamWriterOptions {
  std::string captureFolder;  ///< exists; the port's folder is made in it with the first block
  uint32_t port = 0;
  PcapFileHeader header;
  /// Roll before a block would take a segment past this; a segment holds at least one block.
  uint64_t segmentBytes = uint64_t{1} << 30;
  /// The highest number that a segment of this port has had. Numbers continue after it, and after
  /// those of all segments in the folder.
  uint32_t lastNumber = 0;
};

using CaptureBlocks = std::vector<std::unique_ptr<CaptureBlock>>;

/// Not thread-safe. Blocks stay in memory until they are safe on disk. After any failure
/// (kStoreFull, kStoreUnavailable) the segment is truncated after its last committed block and ends
/// there; anything written after it is not trusted, but written again to the next segment.
class StreamWriter {
 public:
  explicit StreamWriter(StreamWriterOptions options) : options_(std::move(options)) {}

  /// Adds a block that is not empty.
  void add(std::unique_ptr<CaptureBlock> block);

  /// Passes all blocks to the kernel. After a failure: retries from the last committed block.
  Status write();

  /// Writes, then makes everything durable. Blocks that have become safe are returned by
  /// takeSafe().
  Status commit();

  /// Commits and ends the segment.
  Status close();

  /// Blocks that have become durable since the last call.
  CaptureBlocks takeSafe();
  /// Drops what is not on disk; commit() then succeeds.
  CaptureBlocks giveUp();

  /// Bytes of the blocks held in memory because they are not safe on disk.
  uint64_t heldBytes() const { return heldBytes_; }
  bool hasHeld() const { return !held_.empty(); }
  /// The segments that have ended and were not taken, oldest first. They follow those that existed
  /// before.
  const std::vector<SegmentSummary>& finished() const { return finished_; }
  std::vector<SegmentSummary> takeFinished() { return std::exchange(finished_, {}); }

 private:
  Status writeHeld();
  Status commitHeld();
  Status makeRoom(uint32_t blockBytes);
  Status openFolder(const std::string& folder);
  Status openSegment();
  Status endSegment();
  /// Leaves a segment whose end cannot be trusted.
  Status leaveDamaged();

  const StreamWriterOptions options_;
  std::deque<std::unique_ptr<CaptureBlock>> held_;  ///< in order; the first `written_` are written
  size_t written_ = 0;
  uint64_t heldBytes_ = 0;
  CaptureBlocks safe_;

  std::optional<SegmentFiles> segment_;
  bool isDamaged_ = false;
  uint32_t lastNumber_ = 0;  ///< number of the newest segment
  bool hasFolder_ = false;
  std::vector<SegmentSummary> finished_;
};

}  // namespace capfleet
