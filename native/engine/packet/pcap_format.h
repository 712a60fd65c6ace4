// The classic PCAP file format, as used for segments and for downloads
// (draft-ietf-opsawg-pcap): a 24-byte file header, then records of a 16-byte header and the
// captured bytes.
#pragma once

#include <cstdint>

#include "os/byte_order.h"

namespace capfleet {

inline constexpr uint32_t kPcapMagicMicros = 0xA1B2C3D4;
inline constexpr uint32_t kPcapMagicNanos = 0xA1B23C4D;
inline constexpr uint32_t kPcapFileHeaderBytes = 24;
inline constexpr uint32_t kRecordHeaderBytes = 16;
/// The limit of libpcap and Wireshark; a record that claims more is damage, not a packet.
inline constexpr uint32_t kMaxCapturedLength = 262144;
inline constexpr int64_t kNanosPerSecond = 1'000'000'000;
/// The first instant that PCAP's unsigned 32-bit seconds cannot represent (2106-02-07T06:28:16Z).
inline constexpr int64_t kTimestampEndNs = (int64_t{1} << 32) * kNanosPerSecond;

/// LINKTYPE_ETHERNET, as returned by linkTypeOf().
inline constexpr uint32_t kLinkTypeEthernet = 1;

/// The fields of the file header other than magic and version.
struct PcapFileHeader {
  /// The whole `LinkType and additional information` word: link type in the low 16 bits, FCS
  /// length bits above. Use linkTypeOf() to compare.
  uint32_t linkTypeWord = 0;
  uint32_t snaplen = kMaxCapturedLength;
};

inline uint32_t linkTypeOf(uint32_t linkTypeWord) { return linkTypeWord & 0xFFFF; }

/// Writes the 24 bytes of a little-endian file header.
void storePcapFileHeader(uint8_t* out, const PcapFileHeader& header, bool nanoseconds);

/// One record header of a segment (little-endian, nanoseconds).
struct RecordHeader {
  int64_t timestampNs;
  uint32_t capturedLength;
  uint32_t originalLength;
};

inline RecordHeader loadRecordHeader(const uint8_t* p) {
  return {int64_t{loadLe32(p)} * kNanosPerSecond + loadLe32(p + 4), loadLe32(p + 8),
          loadLe32(p + 12)};
}

inline void storeRecordHeader(uint8_t* p, const RecordHeader& h) {
  storeLe32(p, static_cast<uint32_t>(h.timestampNs / kNanosPerSecond));
  storeLe32(p + 4, static_cast<uint32_t>(h.timestampNs % kNanosPerSecond));
  storeLe32(p + 8, h.capturedLength);
  storeLe32(p + 12, h.originalLength);
}

}  // namespace capfleet
