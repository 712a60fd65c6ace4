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
  /// Roll before a segment would exceed this; a segment holds at least one packet all the same.
  uint64_t segmentBytes = uint64_t{1} << 30;
  /// False for files that need not survive a crash: nothing is synced.
  bool durable = true;
  /// False for files that no download reads.
  bool withSieves = true;
  /// As in SegmentFilesOptions.
  bool isFlat = false;
};

/// Not thread-safe. Fails with kStoreFull or kStoreUnavailable; every failure is final: the writer
/// then only accepts destruction. Destruction without close() leaves the last packets unwritten.
class SegmentWriter {
 public:
  /// Fails when the folder does not exist. Files are made when their first packet comes; one that
  /// exists already is never touched, append() then fails.
  static Result<SegmentWriter> open(SegmentWriterOptions options);
  SegmentWriter(SegmentWriter&&) noexcept;
  SegmentWriter& operator=(SegmentWriter&&) noexcept;
  ~SegmentWriter();

  /// Appends one packet in arrival order. `captured` is copied.
  /// REQUIRES: captured.size() <= kMaxCapturedLength, 0 <= timestampNs < kTimestampEndNs.
  Status append(int64_t timestampNs, uint32_t originalLength, std::span<const uint8_t> captured);

  /// Ends the open block, then syncs data and tally before the index entries that describe them.
  Status flush();

  /// Writes out the blocks that have ended, and of the buffer (1 MiB) keeps only the open one.
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
