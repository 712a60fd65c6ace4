// Packets to be returned: selected, sliced and rewritten from blocks into a slab of whole PCAP
// records, or pcapng blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "filter/packet_filter.h"
#include "os/buffer_pool.h"
#include "packet/pcapng_block.h"
#include "store/block_reader.h"

namespace capfleet {

/// Whole records, or pcapng blocks, in a slab, in timestamp order.
struct PacketBatch {
  SlabPtr slab;
  uint64_t packets = 0;
  int64_t firstNs = 0;  ///< timestamps of the first and last packet, when there are any
  int64_t lastNs = 0;
  /// Packets that were read since the previous batch and left out: outside the range, or by a
  /// filter.
  uint64_t excluded = 0;

  size_t room() const { return kSlabBytes - slab->size; }
  /// The room without what is reserved, of which less may be left.
  size_t roomBeside(size_t reservedBytes) const {
    const size_t used = slab->size + reservedBytes;
    return used < kSlabBytes ? kSlabBytes - used : 0;
  }
  /// Counts packets whose bytes are in the slab now. They follow those counted before.
  void count(uint64_t newPackets, int64_t newFirstNs, int64_t newLastNs);
};

/// Appends those of the records [first, last) of a block that match the transform's filter to the
/// batch, changed as the transform specifies except for their time; the others count as excluded.
/// Returns the first record that did not fit, or `last`.
uint32_t appendPackets(const LoadedBlock& block, uint32_t first, uint32_t last,
                       const PacketTransform& transform, PacketFilter& filter, PacketBatch& batch);

/// A packet as it is returned: without what `transform` strips and slices off.
struct OutputPacket {
  OutputPacket(const PacketView& packet, const PacketTransform& transform);

  size_t recordBytes() const {
    return interfaceNumber ? packetBlockBytes(capturedLength) : kRecordHeaderBytes + capturedLength;
  }
  /// Writes the record, or block, with this time to `to`, which has room for it.
  void store(uint8_t* to, int64_t timestampNs) const;

  StrippedPacket stripped;
  uint32_t capturedLength;
  bool toMicroseconds;
  std::optional<uint32_t> interfaceNumber;  ///< of a pcapng block; empty: a PCAP record
};

}  // namespace capfleet
