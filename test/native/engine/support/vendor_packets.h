// Builds frames as switches stamp them, byte by byte, and reads real ones.
#pragma once

#include <string>

#include "packet/packet_view.h"
#include "packet/pcap_format.h"
#include "support/capture_bytes.h"

namespace capfleet::test {

constexpr int64_t kSecondNs = 1'000'000'000;
/// 2023-11-14T22:13:20Z, where most tests happen.
constexpr int64_t kNowSeconds = 1'700'000'000;
constexpr int64_t kNowNs = kNowSeconds * kSecondNs;

/// A packet that owns its bytes.
struct HeldPacket {
  Bytes bytes = {};
  int64_t nicNs = kNowNs;
  uint32_t linkTypeWord = 1;
  uint32_t stream = 0;
  uint32_t cutBytes = 0;  ///< bytes of the frame that were not captured

  PacketView view() const {
    return {bytes, static_cast<uint32_t>(bytes.size()) + cutBytes, nicNs, linkTypeWord, stream, 0};
  }
};

/// Bit by bit, as in the standard; it shares nothing with the engine's implementation.
inline uint32_t slowCrc32(std::span<const uint8_t> bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

/// Appends big-endian fields.
class FrameBytes {
 public:
  /// A frame with an Ethernet header and `payloadBytes` meaningless bytes.
  static FrameBytes plain(size_t payloadBytes = 50) {
    FrameBytes frame;
    frame.ethernet(0x1234);
    for (size_t i = 0; i < payloadBytes; i++) frame.put(0xA0 + i % 16, 1);
    return frame;
  }

  /// The `count` bytes of a number; `count` may be more than 8.
  FrameBytes& put(uint64_t value, int count) {
    for (int i = count - 1; i >= 0; i--) {
      bytes_.push_back(i < 8 ? static_cast<uint8_t>(value >> (8 * i)) : uint8_t{0});
    }
    return *this;
  }
  FrameBytes& ethernet(uint16_t etherType, const std::vector<uint16_t>& vlans = {}) {
    put(0x02AABBCCDDEE, 6).put(0x00F211223344, 6);
    for (const uint16_t vlan : vlans) put(vlan == vlans.back() ? 0x8100 : 0x88A8, 2).put(vlan, 2);
    return put(etherType, 2);
  }
  FrameBytes& add(std::span<const uint8_t> more) {
    append(bytes_, more);
    return *this;
  }
  /// The frame check sequence of all bytes so far.
  FrameBytes& fcs() {
    const uint32_t crc = slowCrc32(bytes_);
    return put(__builtin_bswap32(crc), 4);
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

/// The key frame that a 7150 sends once per second.
struct KeyFrameFields {
  uint64_t tick = 0;
  int64_t utcNs = kNowNs;
  int64_t nicNs = kNowNs;
  bool isV2 = true;
  std::vector<uint16_t> vlans = {};
  uint8_t protocol = 253;
};

inline HeldPacket keyFrame(const KeyFrameFields& fields) {
  FrameBytes frame;
  frame.ethernet(0x0800, fields.vlans);
  frame.put(0x4500, 2).put(fields.isV2 ? 82 : 66, 2).put(0, 4).put(64, 1).put(fields.protocol, 1);
  frame.put(0, 2).put(0, 4).put(0xFFFFFFFF, 4);
  frame.put(fields.tick, 8).put(static_cast<uint64_t>(fields.utcNs), 8).put(0, 8);
  if (fields.isV2) frame.put(1, 8).put(1, 8);
  frame.put(fields.tick, 8).put(0, 8).put(0, 2).put(0, 2).put(2, 1).put(0, 1);
  frame.put(0, 4);  // its own tick
  return {.bytes = frame.bytes(), .nicNs = fields.nicNs};
}

/// A tick in its form inside a packet.
inline uint32_t wordOf(uint64_t tick) {
  const auto low = static_cast<uint32_t>(tick & 0x7FFFFFFF);
  return ((low & 0x7FFFFF80) << 1) | (low & 0x7F);
}

/// All packets of a PCAP file, as one stream.
inline std::vector<HeldPacket> packetsOfPcap(const std::string& path) {
  const Bytes file = readFile(path);
  const bool isNano = loadLe32(file.data()) == kPcapMagicNanos;
  std::vector<HeldPacket> packets;
  for (size_t at = kPcapFileHeaderBytes; at + kRecordHeaderBytes <= file.size();) {
    const uint32_t captured = loadLe32(&file[at + 8]);
    HeldPacket packet;
    packet.nicNs =
        loadLe32(&file[at]) * kSecondNs + int64_t{loadLe32(&file[at + 4])} * (isNano ? 1 : 1000);
    packet.linkTypeWord = loadLe32(&file[20]);
    packet.cutBytes = loadLe32(&file[at + 12]) - captured;
    at += kRecordHeaderBytes;
    packet.bytes.assign(file.begin() + static_cast<std::ptrdiff_t>(at),
                        file.begin() + static_cast<std::ptrdiff_t>(at + captured));
    at += captured;
    packets.push_back(std::move(packet));
  }
  return packets;
}

}  // namespace capfleet::test
