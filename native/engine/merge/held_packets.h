// The last packets of a merge that leaves copies out and writes pcapng. Each is held until no copy
// of it can follow, because its block says which copies were left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "merge/merged_interfaces.h"

namespace capfleet {

/// Blocks in the order of the output. How long a packet is held depends on the packets alone, so
/// the same merge always writes the same bytes. Not thread-safe.
class HeldPackets {
 public:
  /// Beyond this the oldest packet leaves, and its block does not mention the copies that follow.
  static constexpr size_t kMostBytes = size_t{1} << 20;
  /// What a block says about copies. With fewer bytes, or if the copies had fewer, it only counts
  /// them.
  static constexpr size_t kMostCommentBytes = 4096;

  /// `spanNs`: a copy comes at most this long after the packet.
  explicit HeldPackets(int64_t spanNs) : spanNs_(spanNs) {}

  /// Adds the next packet, of this key, and returns where the caller writes its blocks: the last
  /// `blockBytes` are the packet's. Valid until the next call.
  uint8_t* add(int64_t key, size_t announcedBytes, size_t blockBytes);
  /// Records that a copy from this interface was left out, whose block would have had `blockBytes`.
  /// `packet` is its original, as numbered by add() from 1 on; ignored if that has left.
  void leaveOut(uint64_t packet, const MergedInterfaces::Interface& from, size_t blockBytes);

  bool isEmpty() const { return held_.empty(); }
  /// Whether the oldest packet must not, or need not, be held if a packet of this key follows.
  bool isDue(int64_t key) const;

  struct Front {
    size_t bytes;  ///< with what the block says about copies
    size_t added;  ///< the latter
  };
  /// The size of the oldest packet, with at most `mostAdded` about copies. REQUIRES: there is one.
  Front front(size_t mostAdded);
  /// Writes the oldest packet, as front() was called last.
  void take(uint8_t* to);

 private:
  struct Copies {
    const MergedInterfaces::Interface* from;
    uint64_t packets;
  };
  struct Held {
    int64_t key;
    size_t announcedBytes;
    std::vector<uint8_t> bytes;
    std::vector<Copies> copies;  ///< in the order in which they came
    size_t leftOutBytes = 0;     ///< of their blocks
  };

  static std::string textOf(const std::vector<Copies>& copies, bool isNamed);

  const int64_t spanNs_;
  std::deque<Held> held_;
  size_t heldBytes_ = 0;
  uint64_t taken_ = 0;                       ///< packets that have left
  std::vector<uint8_t> added_;               ///< to the oldest packet: an option
  std::vector<std::vector<uint8_t>> spare_;  ///< small ones, to be used again
};

}  // namespace capfleet
