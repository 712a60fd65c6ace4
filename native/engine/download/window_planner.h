// Plans a download while it runs, one stretch of time after another, so that neither its first byte
// nor its memory depends on the length of its range.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "download/ruled_out_segments.h"
#include "download/slice_plan.h"
#include "store/segment_entry.h"

namespace capfleet {

/// About this many bytes of the store are planned at a time.
inline constexpr uint64_t kWindowBytes = 16 * kSliceBytes;

struct WindowOptions {
  int64_t beginNs = 0;  ///< beginNs <= NIC timestamp < endNs; not negative
  int64_t endNs = 0;
  /// How long before the range packets are read for a vendor's clock: each plan then is one slice.
  /// Nullopt: NIC time.
  std::optional<int64_t> lookBackNs;
  uint64_t sliceBytes = kSliceBytes;
  uint64_t windowBytes = kWindowBytes;
  /// What a packet of the download needs, as far as address tables can tell.
  BlockConditions conditions;
  /// What is known about the store's blocks; may be null.
  std::shared_ptr<CheckedBlocks> checkedBlocks;
};

/// Divides the range into windows of time, according to the log's data about the segments, and
/// plans each from the indexes of the segments that overlap it. An index is read when the first
/// window needs it, and dropped after the last one. Since packets are in time order, the successive
/// plans return what one plan of the whole range would. Not thread-safe, but each step() may be
/// called by a different thread.
class WindowPlanner {
 public:
  WindowPlanner(std::vector<StreamSegments> streams, WindowOptions options);

  struct Step {
    /// Plan of the next window, or of segments that were ruled out, without slices; null = not
    /// finished yet.
    std::shared_ptr<const SlicePlan> plan;
    /// Blocks that are lost because their index is damaged, in the segments that this step read.
    uint64_t corruptBlocks = 0;
    bool isFinished = false;  ///< no further plan comes, after the one of this step
  };
  /// Does some milliseconds of work, part of which is reading a few indexes. REQUIRES: no step was
  /// the last one. Fails with kAgedOut and kStoreUnavailable, and with kStoreCorrupt if an index
  /// contradicts the log; planning has then ended.
  Result<Step> step();

 private:
  /// A segment of the download, by its place in `streams_`.
  struct Place {
    uint32_t stream;
    uint32_t number;  ///< among the stream's segments
    bool operator<(const Place& other) const {
      return stream != other.stream ? stream < other.stream : number < other.number;
    }
  };
  struct OpenSegment {
    Place place;
    std::shared_ptr<IndexedSegment> segment;
    int64_t maxNs;
  };

  SegmentEntry& entryAt(Place place) { return streams_[place.stream].segments[place.number]; }
  Result<Step> readGrowing();
  void order();
  void passRuledOut(uint64_t& readBytes);
  bool isRuledOut(Place place, uint64_t& readBytes);
  bool chooseWindow();
  Status openNext(Step& step, uint64_t& readBytes);
  Result<std::shared_ptr<IndexedSegment>> readSegment(Place place, Step& step);
  Status checkTimes(const IndexedSegment& segment);
  std::shared_ptr<const SlicePlan> planWindow();

  const WindowOptions options_;
  const int64_t readFromNs_;  ///< the range with the look-back before it
  std::vector<StreamSegments> streams_;

  std::vector<Place> growing_;               ///< whose indexes are still to be read
  std::vector<OpenSegment> grown_;           ///< whose indexes have been
  std::optional<std::vector<Place>> order_;  ///< all that reach into the range, by smallest time
  size_t next_ = 0;  ///< index in `order_`: the first that no window has reached
  int64_t windowBeginNs_;
  std::optional<int64_t> windowEndNs_;  ///< chosen; its segments are being opened
  size_t windowEnd_ = 0;                ///< index in `order_`: after the last segment of the window
  std::vector<OpenSegment> open_;       ///< by place
  RuledOutSegments ruledOut_;
  ScanCounts ruledOutCounts_;  ///< of no plan yet
};

}  // namespace capfleet
