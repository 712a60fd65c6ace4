// Blocks as a capture thread fills them, of numbered packets.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "capture/packet_intake.h"
#include "support/stored_packets.h"

namespace capfleet::test {

/// Packets that differ in length, time and bytes.
inline std::vector<StoredPacket> numberedPackets(size_t count, size_t first = 0) {
  std::vector<StoredPacket> packets;
  for (size_t i = first; i < first + count; ++i) {
    const auto length = static_cast<uint32_t>(20 + i * 37 % 30);
    packets.push_back({1'700'000'000'000'000'000 + static_cast<int64_t>(i) * 400'000, length,
                       Bytes(length, static_cast<uint8_t>(i))});
  }
  return packets;
}

inline RingPacket ringPacket(const StoredPacket& packet) {
  RingPacket made;
  made.bytes = packet.captured.data();
  made.capturedLength = static_cast<uint32_t>(packet.captured.size());
  made.originalLength = packet.originalLength;
  made.timestampNs = packet.timestampNs;
  return made;
}

inline std::unique_ptr<CaptureBlock> makeBlock(std::span<const StoredPacket> packets) {
  PacketIntake intake(kMaxCapturedLength, std::nullopt);
  auto block = std::make_unique<CaptureBlock>();
  for (const StoredPacket& packet : packets) {
    EXPECT_TRUE(intake.take(ringPacket(packet), *block));
  }
  return block;
}

}  // namespace capfleet::test
