// Exact counts of packets per interval of time, from the indexes wherever they can tell.
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
/// without filter would deliver them. A block that lies in one interval is counted from its index
/// entry, any other from its tally. A block is read only when a boundary cuts a millisecond in
/// which it has packets, or when its tally is missing or damaged. Only of a block that is read it
/// is seen whether it is damaged; it is then left out, as a download leaves it out. Not
/// thread-safe, but step() may be called by another thread each time.
class PacketCount {
 public:
  /// REQUIRES: boundaries ascend.
  PacketCount(std::vector<StreamSegments> streams, std::vector<int64_t> boundariesNs);

  /// Does a few milliseconds of work. True when all is counted. Fails with kAgedOut,
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
