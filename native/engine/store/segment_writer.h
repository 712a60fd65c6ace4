// Appends packets of one capture port to its segments, block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "os/result.h"
#include "packet/pcap_format.h"
#include "store/segment_files.h"

namespace capfleet {

struct SegmentWriterOptions {
  std::string directory;  ///< the port's folder (…/<capture>/cap0); must exist
  uint32_t port = 0;
  PcapFileHeader header;
  /// A new segment is started before this size would be exceeded; a segment holds at least one
  /// packet regardless.
  uint64_t segmentBytes = uint64_t{1} << 30;
  /// False for files that need not survive a crash: nothing is synced.
  bool durable = true;
  /// False for files that no download reads.
  bool withSieves = true;
  /// See SegmentFilesOptions.
  bool isFlat = false;
};

/// Not thread-safe. Fails with kStoreFull or kStoreUnavailable. Every failure is final: then the
/// writer can only be destroyed. Destruction without close() leaves the last packets unwritten.
class SegmentWriter {
 public:
  /// Fails if the folder does not exist. Files are created when their first packet arrives; an
  /// existing file is never modified, and append() fails then.
  static Result<SegmentWriter> open(SegmentWriterOptions options);
  SegmentWriter(SegmentWriter&&) noexcept;
  SegmentWriter& operator=(SegmentWriter&&) noexcept;
  ~SegmentWriter();

  /// Appends one packet in arrival order. `captured` is copied. REQUIRES: captured.size() <=
  /// kMaxCapturedLength, 0 <= timestampNs < kTimestampEndNs.
  Status append(int64_t timestampNs, uint32_t originalLength, std::span<const uint8_t> captured);

  /// Ends the open block, then syncs data and tally before the index entries that describe them.
  Status flush();

  /// Writes out the blocks that have ended, and keeps only the open one in the buffer (1 MiB).
  /// Nothing is synced. For owners of many writers of which few are busy.
  Status releaseBuffer();

  /// Flushes and closes. Returns one summary per segment, oldest first.
  Result<std::vector<SegmentSummary>> close();

 private:
  struct State;
  explicit SegmentWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace capfleet
