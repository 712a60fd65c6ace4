// What a scan did, apart from the packets it returned.
#pragma once

#include <cstdint>

namespace capfleet {

struct ScanCounts {
  uint64_t packets = 0;           ///< looked at: in the range, before any filter
  uint64_t bytes = 0;             ///< size of these packets as PCAP records
  uint64_t passedBlocks = 0;      ///< not read, because their addresses rule out every packet
  uint64_t ruledOutSegments = 0;  ///< of which no file was opened
  uint64_t corruptBlocks = 0;
  uint64_t vendorTimeFallbacks = 0;  ///< packets that passed and kept their NIC time
  uint64_t latePackets = 0;          ///< delivered after one with a later time

  /// A skipped block: its packets were excluded by its sieve.
  void addPassed(uint32_t blockPackets, uint32_t blockBytes) {
    packets += blockPackets;
    bytes += blockBytes;
    passedBlocks++;
  }

  ScanCounts& operator+=(const ScanCounts& other) {
    packets += other.packets;
    bytes += other.bytes;
    passedBlocks += other.passedBlocks;
    ruledOutSegments += other.ruledOutSegments;
    corruptBlocks += other.corruptBlocks;
    vendorTimeFallbacks += other.vendorTimeFallbacks;
    latePackets += other.latePackets;
    return *this;
  }
};

}  // namespace capfleet
