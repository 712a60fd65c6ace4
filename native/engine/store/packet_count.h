// Exact counts of packets per time interval, from the indexes wherever they suffice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/result.h"
#include "store/block_reader.h"
#include "store/segment_entry.h"
#include "store/tally_reader.h"

namespace capfleet {

struct IntervalCount {
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< as PCAP records
};

/// Counts the packets of half-open intervals [boundaries[i], boundaries[i + 1]), as a download
/// without filters would deliver them. A block within one interval is counted from its index entry,
/// any other from its tally. A block is read only if a boundary splits a millisecond in which it
/// has packets, or if its tally is missing or damaged. Damage of a block is detected only if the
/// block is read; it is then left out, as in a download. Not thread-safe, but each step() may be
/// called by another thread.
class PacketCount {
 public:
  /// REQUIRES: boundaries ascend.
  PacketCount(std::vector<StreamSegments> streams, std::vector<int64_t> boundariesNs);

  /// Does a few milliseconds of work. True when everything is counted. Fails with kAgedOut,
  /// kStoreUnavailable and kStoreCorrupt; the count is then finished.
  Result<bool> step();
  /// The counts of the intervals, in their order.
  const std::vector<IntervalCount>& counts() const { return counts_; }

 private:
  Status openSegment();
  size_t positionOf(int64_t timestampNs) const;
  void add(size_t position, IntervalCount count);
  Result<uint64_t> countBlock(const BlockEntry& entry);
  bool countTally(const BlockEntry& entry, size_t position);
  Result<uint64_t> countPackets(const BlockEntry& entry, size_t interval);

  const std::vector<StreamSegments> streams_;
  const std::vector<int64_t> boundariesNs_;
  BlockReader reader_;
  std::vector<IntervalCount> counts_;
  size_t nextStream_ = 0;
  size_t nextSegment_ = 0;          ///< of the next stream
  std::string segment_;             ///< path of the open one
  std::vector<BlockEntry> blocks_;  ///< of the open segment
  size_t nextBlock_ = 0;
  std::optional<TallyReader> tallies_;  ///< of the open segment
  std::optional<SegmentFile> file_;     ///< of the open segment, once a block of it is read
};

}  // namespace capfleet
