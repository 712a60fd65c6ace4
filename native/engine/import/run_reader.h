// Reads back a sorted run: the packets of the segments in one folder, in stored order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "import/capture_file_reader.h"
#include "os/result.h"

namespace capfleet {

/// A folder of segments, numbered from 1, whose packets are ordered by timestamp.
struct SortedRun {
  std::string directory;
  uint32_t segmentCount = 0;
  bool isFlat = true;  ///< as in SegmentFilesOptions
};

/// Not thread-safe. Uses one buffer of CaptureFileReader::kMinBufferBytes.
class RunReader {
 public:
  explicit RunReader(SortedRun run) : run_(std::move(run)) {}

  /// Advances to the next packet; false at the end. Fails with kStoreUnavailable or kStoreCorrupt.
  Result<bool> advance();

  /// The packet of the last advance(); its bytes are valid until the next.
  const CaptureRecord& packet() const { return packet_; }

 private:
  Status openNextSegment();

  SortedRun run_;
  uint32_t openedSegments_ = 0;
  std::unique_ptr<CaptureFileReader> segment_;
  CaptureRecord packet_;
};

}  // namespace capfleet
