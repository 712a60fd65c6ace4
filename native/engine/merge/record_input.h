// One PCAP stream as an input of a merge: complete records in the bytes that have arrived.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "merge/pcapng_records.h"
#include "merge/record_copy.h"
#include "os/byte_order.h"
#include "packet/pcap_format.h"

namespace capfleet {

struct RecordInputOptions {
  bool nanoseconds = true;  ///< unit of timestamp fractions; false = microseconds
  bool widens = false;      ///< fractions become nanoseconds
  bool bigEndian = false;   ///< byte order of the stream; records are little-endian in any case
  int64_t alignNs = 0;      ///< subtracted from every timestamp; less than a century
  bool marksTail = false;   ///< keep the tail's mark also while the packets are in order
  bool marksAll = false;    ///< the tail is all packets
  /// Records begin with a tag, and are as far apart as betweenTaggedRecords() says
  /// (merge/pcapng_records.h). Only whole ones are shown.
  bool isTagged = false;
};

/// Packets at the end of those consumed: how many, and the hash of all of them in order.
struct RecordMark {
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< bytes of their records
  uint64_t hash = 0;
};

/// What was consumed of an input. Times are in the unit of its fractions, since the epoch.
struct RecordFigures {
  uint64_t packets = 0;
  uint64_t bytes = 0;       ///< record bytes: 16-byte headers and captured bytes
  uint64_t outOfOrder = 0;  ///< packets with an earlier timestamp than one before them
  int64_t firstTime = 0;
  int64_t lastTime = 0;  ///< the latest
  RecordMark ties;       ///< packets with the latest timestamp, if none was out of order
  RecordMark tail;       ///< the last packets; of 64 or more in one piece the last 64, or all
};

/// Provides the records of a stream one after another, wherever the bytes of its pieces end. A
/// fraction of a second or more, which occurs in practice, counts as the later instant that it adds
/// up to. Not thread-safe.
class RecordInput {
 public:
  explicit RecordInput(const RecordInputOptions& options);
  RecordInput(const RecordInput&) = delete;
  RecordInput& operator=(const RecordInput&) = delete;

  /// Passes the next bytes of the stream, without its file header. They must stay valid until all
  /// their records have been consumed (hasRecord() is false again), or forget(). With alignNs or
  /// bigEndian, and if microseconds are widened, record headers in them are modified. REQUIRES: no
  /// record is available.
  void show(std::span<uint8_t> bytes);
  /// Drops what was passed and not consumed, including the beginning of a record.
  void forget();

  /// Whether a complete record is available.
  bool hasRecord() const { return recordBytes_ != 0; }
  /// The record; valid until it is consumed. REQUIRES: hasRecord().
  std::span<const uint8_t> record() const { return {next_, recordBytes_}; }
  /// Its timestamp, in the unit of the fraction. REQUIRES: hasRecord().
  int64_t time() const { return time_; }
  /// The running maximum of the timestamps up to that record. REQUIRES: hasRecord().
  int64_t key() const { return time_ > lastTime_ ? time_ : lastTime_; }
  /// Advances to the next record. REQUIRES: hasRecord().
  void take() {
    count();
    next_ += recordBytes_;
    if (isTagged()) passGap();
    look();
  }
  /// Consumes up to `count` records and returns how many; if `hash` is given, it is continued over
  /// them.
  uint64_t skip(uint64_t count, uint64_t* hash);

  /// The captured length of a record that claims more than allowed: nothing follows any more.
  std::optional<uint32_t> impossibleLength() const { return impossibleLength_; }
  /// Bytes of an incomplete record.
  size_t partialBytes() const { return partial_.size(); }
  /// A copy of what was passed and not consumed, in the byte order of the stream. REQUIRES:
  /// timestamps are unchanged, no impossible length.
  std::vector<uint8_t> untaken() const;
  RecordFigures figures();

  int64_t unitNs() const { return unitNs_; }
  bool isTagged() const { return mostCaptured_ > kMaxCapturedLength; }

 private:
  /// Finds the record at next_, and prefetches it: with many inputs it is read much later.
  void look() {
    const auto room = static_cast<size_t>(end_ - next_);
    if (room >= kRecordHeaderBytes) [[likely]] {
      const uint32_t captured = loadLe32(next_ + 8);
      if (captured <= mostCaptured_ && kRecordHeaderBytes + captured <= room) [[likely]] {
        recordBytes_ = kRecordHeaderBytes + captured;
        time_ = int64_t{loadLe32(next_)} * unitsPerSecond_ + loadLe32(next_ + 4);
        prefetchBytes(next_ + kCacheLine, next_ + recordBytes_ + kRecordHeaderBytes);
        return;
      }
    }
    leaveSegment();
  }

  void count() {
    packets_++;
    if (time_ > lastTime_) {
      lastTime_ = time_;
      tiesFrom_ = next_;
    } else if (time_ < lastTime_) {
      outOfOrder_++;
    }
  }

  /// To the next tagged record; nothing follows the last one.
  void passGap() {
    const ptrdiff_t gap = std::min<ptrdiff_t>(betweenTaggedRecords(recordBytes_), end_ - next_);
    gapBytes_ += static_cast<uint64_t>(gap);
    next_ += gap;
  }

  size_t strideAt(const uint8_t* record, const uint8_t* end) const;
  RecordMark extended(RecordMark mark, const uint8_t* from, const uint8_t* to) const;
  void leaveSegment();
  void enterSegment(std::span<uint8_t> segment);
  std::span<uint8_t> completePartial(std::span<uint8_t> bytes);
  std::span<uint8_t> extendPartial(size_t wanted, std::span<uint8_t> bytes);
  uint32_t shownLength(const uint8_t* record) const;
  size_t rewriteRecords(std::span<uint8_t> segment) const;
  void rewriteTime(uint8_t* record) const;
  void commit();
  void commitTail();

  // Everything that a merge accesses for every record is in one cache line.
  alignas(kCacheLine) const uint8_t* next_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint32_t recordBytes_ = 0;  ///< size of the whole record at next_, or 0
  uint32_t unitsPerSecond_;
  int64_t time_ = 0;
  int64_t lastTime_ = -1;
  uint64_t packets_ = 0;
  const uint8_t* tiesFrom_ =
      nullptr;  ///< here those in ties_ ended and later ones begin, if at all
  const uint32_t mostCaptured_;

  uint64_t outOfOrder_ = 0;
  const uint8_t* segmentBegin_ = nullptr;  ///< taken bytes before it are in the figures already
  /// End of what was passed. After end_ there may be the beginning of a record that was not
  /// rewritten.
  const uint8_t* segmentEnd_ = nullptr;
  std::vector<uint8_t> partial_;  ///< start of a record whose rest has not arrived
  std::vector<uint8_t> joined_;   ///< a record that was partial, as a segment
  std::span<uint8_t> after_;      ///< the segment that follows joined_
  std::optional<uint32_t> impossibleLength_;
  uint64_t bytes_ = 0;
  uint64_t gapBytes_ = 0;  ///< between records that are not in the figures yet
  int64_t firstTime_ = 0;
  RecordMark ties_;
  RecordMark tail_;
  int64_t shownUnitNs_;  ///< unit of the shown records' timestamps
  int64_t unitNs_;       ///< unit of the input's timestamps
  int64_t alignNs_;
  bool bigEndian_;
  bool rewritesTimes_;
  bool marksTail_;
  bool marksAll_;
};

}  // namespace capfleet
