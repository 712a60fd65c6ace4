// When addresses may have been seen: judged by the address tables, the sieves and the indexes of
// stored segments, without reading packets.
#pragma once

#include <cstdint>
#include <vector>

#include "filter/address_needs.h"
#include "os/result.h"
#include "store/address_table.h"
#include "store/segment_entry.h"

namespace capfleet {

/// Times from `firstNs` to `lastNs`, both included.
struct SeenSpan {
  int64_t firstNs;
  int64_t lastNs;
  bool operator==(const SeenSpan&) const = default;
};

/// Finds for each question, which is an address or a network, times that contain every packet with
/// one of its addresses. A time that was found may have no such packet: of the segments that a
/// table knows, about one in a hundred is not ruled out although it has none. Not thread-safe, but
/// each step() may be called by another thread.
class AddressSearch {
 public:
  /// Spans that are closer than this are joined.
  static constexpr int64_t kJoinedNs = 1'000'000'000;
  /// A question has at most this many spans: of more, those with the smallest gaps are joined.
  static constexpr size_t kMostSpans = 256;
  /// All questions together have at most this many spans, or one each: with many questions that are
  /// seen often, each has fewer.
  static constexpr size_t kMostSpansOfAll = 65'536;

  /// Only packets in [beginNs, endNs) are asked for.
  AddressSearch(std::vector<StreamSegments> streams, int64_t beginNs, int64_t endNs,
                std::vector<AddressNeeds> questions);

  /// Looks into one table of addresses, and into the segments that it does not rule out. True when
  /// nothing is left. Fails with kAgedOut if a segment was removed meanwhile, kStoreUnavailable and
  /// kStoreCorrupt; the search is then finished.
  Result<bool> step();

  /// The spans of each question, ascending and apart. REQUIRES: step() has returned true.
  const std::vector<std::vector<SeenSpan>>& spans() const { return spans_; }
  /// Segments in the range, and those of them of which no file was opened.
  uint64_t segments() const { return segments_; }
  uint64_t ruledOutSegments() const { return ruledOutSegments_; }
  /// Segments that may have packets and were not looked into, because the sieves of others were
  /// enough work: each of their spans is that of the whole segment.
  uint64_t wholeSegments() const { return wholeSegments_; }

 private:
  using Questions = std::vector<uint32_t>;

  bool isInRange(const SegmentEntry& entry) const;
  Status searchTable(const StreamSegments& stream, uint32_t table);
  Status searchSegment(const StreamSegments& stream, const SegmentEntry& entry,
                       const Questions& questions);
  Status searchBlocks(const StreamSegments& stream, const SegmentEntry& entry,
                      const Questions& questions);
  void add(uint32_t question, int64_t firstNs, int64_t lastNs);
  void reduceAll();

  const std::vector<StreamSegments> streams_;
  const int64_t beginNs_;
  const int64_t endNs_;
  const std::vector<AddressNeeds> questions_;
  std::vector<std::vector<SeenSpan>> spans_;
  size_t totalSpans_ = 0;          ///< in `spans_`
  size_t mostSpans_ = kMostSpans;  ///< of a question
  /// Newest first, so that those are looked into most closely.
  size_t streamsLeft_;
  size_t segmentsLeft_;  ///< of the stream before `streamsLeft_`
  uint64_t sieveBytesLeft_;
  uint64_t segments_ = 0;
  uint64_t ruledOutSegments_ = 0;
  uint64_t wholeSegments_ = 0;
};

}  // namespace capfleet
