// Sorts the packets of a device that does not guarantee their order, and drops those outside of the
// requested time, before a merge takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "merge/record_input.h"
#include "packet/pcap_format.h"

namespace capfleet {

/// Holds each record back until a record that is `ns` later has arrived, or until more than `bytes`
/// are held. Records are released by time, for equal times in order of arrival: packets that are at
/// most `ns` late are sorted. An even later packet is released at once, and the figures of
/// records() count it as out of order. The output depends on the records alone, not on the pieces
/// in which they arrive.
///
/// If the device falls silent, the packets of its last second stay here until its next packet
/// arrives or its stream ends. A merge has to wait for that next packet anyway. No timer releases
/// them: later packets could then not be sorted any more, and the order would depend on the
/// network. Followed streams have no window: devices that need one are not asked to follow.
///
/// If the stream breaks off, held records stay. The place where the device continues is found with
/// the marks of the stream, which are in the device's order, and not with those of records(). Not
/// thread-safe.
class SortWindow {
 public:
  struct Limits {
    int64_t ns = kNanosPerSecond;
    size_t bytes = size_t{4} << 20;  ///< limit of held records, including overhead
    /// Records before `fromNs`, and at `toNs` or later, are dropped: some devices include the end
    /// of a range, or round it to whole seconds. The stream counts them, records() does not.
    int64_t fromNs = 0;
    int64_t toNs = std::numeric_limits<int64_t>::max();
  };

  explicit SortWindow(const Limits& limits);

  /// Takes all available records of the stream, after which their bytes may be reused. REQUIRES:
  /// nanoseconds, records() has none available.
  void takeAll(RecordInput& stream);
  /// The stream has ended: everything held is released.
  void end();
  /// Drops everything that was not passed on to a merge.
  void forget();

  /// The output, as an input of a merge.
  RecordInput& records() { return records_; }

 private:
  struct Held {
    int64_t timeNs;
    uint64_t number;  ///< records of the same time keep their order
    std::unique_ptr<uint8_t[]> bytes;
    uint32_t length;
  };

  static bool isAfter(const Held& a, const Held& b);
  void clearReleased();
  bool isInRange(int64_t timeNs) const;
  void hold(int64_t timeNs, std::span<const uint8_t> record);
  bool isFirstInRun() const;
  int64_t firstTimeNs() const;
  void releaseFirst();

  const Limits limits_;
  /// Most records arrive in order: each not before its predecessor.
  std::deque<Held> run_;
  std::vector<Held> heap_;  ///< the others
  uint64_t taken_ = 0;
  size_t heldBytes_ = 0;
  int64_t latestNs_ = 0;
  std::vector<uint8_t> released_;  ///< bytes that records_ refers to
  RecordInput records_;
};

}  // namespace capfleet
