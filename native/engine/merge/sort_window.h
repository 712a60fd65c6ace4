// Sorts the packets of a device that does not vouch for their order, before a merge takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "merge/record_input.h"
#include "packet/pcap_format.h"

namespace capfleet {

/// Holds each record back until a record that is `ns` later has come, or until more than `bytes`
/// are held. Records come out by time, those of the same time as they came: packets that are at
/// most `ns` late are sorted. A packet that is later still comes out at once, and the figures of
/// records() count it as out of order. What comes out depends on the records alone, not on the
/// pieces in which they arrive.
///
/// If the device falls silent, the packets of its last second stay here until its next packet comes
/// or its stream ends. A merge has to wait for that next packet anyway. No timer releases them: the
/// packets after it could not be sorted any more, and the order would depend on the network.
/// Streams that are followed have no window: devices that need one are not asked to follow.
///
/// If the stream breaks off, held records stay. The place where the device continues is found by
/// the marks of the stream, whose order is the device's, and not by those of records(). Not
/// thread-safe.
class SortWindow {
 public:
  struct Limits {
    int64_t ns = kNanosPerSecond;
    size_t bytes = size_t{4} << 20;  ///< of held records and what it takes to hold them
  };

  explicit SortWindow(const Limits& limits);

  /// Takes all records at hand of the stream; the bytes in which they came are free then. REQUIRES:
  /// nanoseconds, records() has none at hand.
  void takeAll(RecordInput& stream);
  /// The stream has ended: all that is held comes out.
  void end();
  /// Drops all that did not go on to a merge.
  void forget();

  /// What comes out, as an input of a merge.
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
  void hold(int64_t timeNs, std::span<const uint8_t> record);
  bool isFirstInRun() const;
  int64_t firstTimeNs() const;
  void releaseFirst();

  const Limits limits_;
  /// Most records come in order: each not before the one in front of it.
  std::deque<Held> run_;
  std::vector<Held> heap_;  ///< the others
  uint64_t taken_ = 0;
  size_t heldBytes_ = 0;
  int64_t latestNs_ = 0;
  std::vector<uint8_t> released_;  ///< what records_ shows
  RecordInput records_;
};

}  // namespace capfleet
