// A stream that is being written while a test reads it.
#pragma once

#include <string>
#include <vector>

#include "store/segment_extent.h"
#include "support/stored_streams.h"

namespace capfleet::test {

class GrowingStream {
 public:
  explicit GrowingStream(uint64_t segmentBytes = uint64_t{1} << 30)
      : folder_(directory_.folder("cap3")),
        writer_(std::move(*SegmentWriter::open({folder_, 3, {1, 262144}, segmentBytes, false}))) {}

  void append(const StoredPacket& packet) {
    ASSERT_TRUE(writer_.append(packet.timestampNs, packet.originalLength, packet.captured));
  }
  void flush() { ASSERT_TRUE(writer_.flush()); }
  std::string segment(uint32_t number) const { return groupedSegmentPath(folder_, number); }

  /// A download of these segments, of which the last one grows.
  DownloadOptions options(uint32_t lastSegment) const {
    DownloadOptions options;
    options.endNs = INT64_MAX;
    StreamSegments& stream = options.streams.emplace_back();
    stream.folder = folder_;
    for (uint32_t i = 1; i <= lastSegment; i++) {
      const Result<SegmentExtent> extent = measureSegment(segment(i), {});
      EXPECT_TRUE(extent);
      stream.segments.push_back(
          entryOf({i, extent->minNs, extent->maxNs, extent->packets, extent->bytes}, 1, 3));
    }
    stream.segments.back().flags |= kSegmentGrowing;
    return options;
  }

 private:
  TempDirectory directory_;
  std::string folder_;
  SegmentWriter writer_;
};

}  // namespace capfleet::test
