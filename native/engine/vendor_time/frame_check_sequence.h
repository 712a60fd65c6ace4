// The Ethernet frame check sequence at the end of a captured frame. Some captures include it, some
// do not; the trailers and tick counters of switches are before it, or in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "packet/packet_view.h"
#include "packet/pcap_format.h"

namespace capfleet {

inline constexpr size_t kFcsBytes = 4;

/// Whether the packet can end in a trailer or an FCS at all: an Ethernet frame whose end was
/// captured.
inline bool isWholeEthernetFrame(const PacketView& packet) {
  return linkTypeOf(packet.linkTypeWord) == kLinkTypeEthernet &&
         packet.captured.size() >= packet.originalLength;
}

/// The number of FCS bytes that the file header states; nullopt if it does not. They are in bits 28
/// to 31, in units of 2 bytes, if bit 26 is set (draft-ietf-opsawg-pcap).
inline std::optional<size_t> declaredFcsBytes(uint32_t linkTypeWord) {
  if ((linkTypeWord & (uint32_t{1} << 26)) == 0) return std::nullopt;
  return size_t{linkTypeWord >> 28} * 2;
}

/// Whether the last 4 bytes are the CRC-32 of those before.
bool endsInCorrectFcs(std::span<const uint8_t> frame);

}  // namespace capfleet
