// Exact counts of packets per interval of time, nearly without reading packets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "block_reader.h"
#include "result.h"

namespace capfleet {

struct IntervalCount {
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< as PCAP records
};

/// Counts the packets of half-open intervals [boundaries[i], boundaries[i + 1]), as a download
/// without filter would deliver them. Blocks that lie in one interval are counted from the index;
/// others are read, and left out when damaged, as a download leaves them out. Not thread-safe, but
/// step() may be called by another thread each time.
class PacketCount {
 public:
  /// `streams` are the paths of segments without ending. REQUIRES: boundaries ascend.
  PacketCount(const std::vector<std::vector<std::string>>& streams,
              std::vector<int64_t> boundariesNs);

  /// Does a few milliseconds of work. True when all is counted. Fails with kStoreUnavailable and
  /// kStoreCorrupt; the count is then finished.
  Result<bool> step();
  /// One for each interval.
  const std::vector<IntervalCount>& counts() const { return counts_; }

 private:
  Status openSegment();
  Result<uint64_t> countBlock(const BlockEntry& entry);
  Result<uint64_t> countPackets(const BlockEntry& entry, size_t interval);

  const std::vector<std::string> segments_;
  const std::vector<int64_t> boundariesNs_;
  BlockReader reader_;
  std::vector<IntervalCount> counts_;
  size_t nextSegment_ = 0;
  std::vector<BlockEntry> blocks_;  ///< of the open segment
  size_t nextBlock_ = 0;
  std::shared_ptr<File> file_;  ///< of the open segment, once a block of it is read
};

}  // namespace capfleet
