// The Enhanced Packet Block of pcapng (draft-ietf-opsawg-pcapng), as downloads write it:
// little-endian, without options, with a timestamp in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/byte_order.h"

namespace capfleet {

inline constexpr uint32_t kEnhancedPacketBlock = 6;
/// Before the packet's bytes: type, length, interface, timestamp, captured and original length.
inline constexpr uint32_t kPacketBlockHeaderBytes = 28;
/// The length again.
inline constexpr uint32_t kBlockTrailerBytes = 4;
/// The option that ends a list of options.
inline constexpr uint32_t kEndOfOptionsBytes = 4;

/// Blocks and options end on a multiple of four bytes.
inline constexpr uint32_t blockPadded(uint32_t bytes) { return (bytes + 3) & ~uint32_t{3}; }

struct PacketBlock {
  uint32_t interfaceNumber;
  int64_t timestampNs;
  uint32_t capturedLength;
  uint32_t originalLength;
};

/// Size of a block without options.
inline constexpr size_t packetBlockBytes(uint32_t capturedLength) {
  return size_t{kPacketBlockHeaderBytes} + blockPadded(capturedLength) + kBlockTrailerBytes;
}

inline void storeBlockTime(uint8_t* p, int64_t timestampNs) {
  const auto ticks = static_cast<uint64_t>(timestampNs);
  storeLe32(p + 12, static_cast<uint32_t>(ticks >> 32));
  storeLe32(p + 16, static_cast<uint32_t>(ticks));
}

/// Writes everything but the packet's bytes, which follow the header, and must be written after
/// this call.
inline void storePacketBlock(uint8_t* p, const PacketBlock& block) {
  const auto bytes = static_cast<uint32_t>(packetBlockBytes(block.capturedLength));
  // The padding; in a block without bytes this is the original length, which is written below.
  storeLe32(p + bytes - 2 * kBlockTrailerBytes, 0);
  storeLe32(p, kEnhancedPacketBlock);
  storeLe32(p + 4, bytes);
  storeLe32(p + 8, block.interfaceNumber);
  storeBlockTime(p, block.timestampNs);
  storeLe32(p + 20, block.capturedLength);
  storeLe32(p + 24, block.originalLength);
  storeLe32(p + bytes - kBlockTrailerBytes, bytes);
}

inline uint32_t blockType(const uint8_t* p) { return loadLe32(p); }
/// Total length, of any block.
inline uint32_t blockBytes(const uint8_t* p) { return loadLe32(p + 4); }

inline PacketBlock loadPacketBlock(const uint8_t* p) {
  const uint64_t ticks = (uint64_t{loadLe32(p + 12)} << 32) | loadLe32(p + 16);
  return {loadLe32(p + 8), static_cast<int64_t>(ticks), loadLe32(p + 20), loadLe32(p + 24)};
}

}  // namespace capfleet
