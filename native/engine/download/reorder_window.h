// Sorts records by their rewritten time within a bounded window, so that a download in a vendor's
// time is ordered although its packets arrive in NIC time order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace capfleet {

/// Holds whole output records; allocates once. Not thread-safe.
///
/// Use: before each add(), take records out while hasRoomFor() is false; at the end, take out all
/// that are left. Records are returned by time; for equal times in the order of add().
class ReorderWindow {
 public:
  struct Limits {
    int64_t nicNs = 10'000'000;  ///< NIC time between the oldest record inside and a new one
    uint32_t packets = 65'536;
    size_t bytes = size_t{16} << 20;  ///< 10 ms at 10 Gbit/s and a little more
  };

  struct Record {
    int64_t timeNs;
    std::span<const uint8_t> bytes;  ///< valid until the next add()
  };

  /// REQUIRES: limits.packets > 0.
  explicit ReorderWindow(const Limits& limits);

  /// Whether a record may be added without exceeding a limit. Always true for an empty window and
  /// records of up to limits.bytes.
  bool hasRoomFor(int64_t nicNs, size_t recordBytes) const;
  /// Returns the place for the record's bytes, which must be written before the next call.
  /// REQUIRES: hasRoomFor() is true, recordBytes <= limits.bytes.
  uint8_t* add(int64_t timeNs, int64_t nicNs, size_t recordBytes);

  bool empty() const { return oldest_ == end_; }
  /// The next record. REQUIRES: !empty().
  Record next() const;
  /// Removes next(); its bytes stay valid until the next add(). REQUIRES: !empty().
  void pop();

  /// Records that were returned after one with a later time: the window was too small for them.
  uint64_t latePackets() const { return latePackets_; }

 private:
  struct Held {
    int64_t nicNs;
    size_t offset;  ///< offset in bytes_
    size_t length;
    bool isInside;
  };
  struct Entry {
    int64_t timeNs;
    uint64_t number;  ///< call number of add(): records with equal times keep their order
  };
  static bool isAfter(const Entry& a, const Entry& b);

  Held& held(uint64_t number) { return held_[number & ringMask_]; }
  const Held& held(uint64_t number) const { return held_[number & ringMask_]; }
  Entry& inRun(uint64_t place) { return run_[place & ringMask_]; }
  const Entry& inRun(uint64_t place) const { return run_[place & ringMask_]; }
  bool findPlace(size_t recordBytes, size_t& offset) const;
  bool isNextInRun() const;

  Limits limits_;
  const uint64_t ringMask_;           ///< mask for held_ and run_, whose sizes are a power of two
  std::unique_ptr<uint8_t[]> bytes_;  ///< a ring; each record is in one piece
  std::unique_ptr<Held[]> held_;      ///< a ring of records oldest_ to end_
  /// Most records arrive in order: a ring of entries, each not before its predecessor.
  std::unique_ptr<Entry[]> run_;
  uint64_t runBegin_ = 0;
  uint64_t runEnd_ = 0;
  std::vector<Entry> heap_;  ///< the others
  uint64_t oldest_ = 0;      ///< number of the oldest record inside; end_ if empty
  uint64_t end_ = 0;         ///< number of the next record
  int64_t latestNs_;         ///< the latest time that came out so far
  uint64_t latePackets_ = 0;
};

}  // namespace capfleet
