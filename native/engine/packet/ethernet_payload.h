// The payload of an Ethernet frame, after its VLAN tags.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "os/byte_order.h"

namespace capfleet {

struct EthernetPayload {
  uint16_t etherType;  ///< never that of a VLAN tag
  std::span<const uint8_t> bytes;
};

inline bool isVlanTag(uint16_t etherType) {
  return etherType == 0x8100 || etherType == 0x88A8 || etherType == 0x9100 || etherType == 0x9200;
}

/// The payload, as a view into `frame`; nullopt if that ends early or has over 16 tags.
inline std::optional<EthernetPayload> ethernetPayload(std::span<const uint8_t> frame) {
  constexpr size_t kAddressBytes = 12;
  constexpr size_t kMostTags = 16;
  for (size_t at = kAddressBytes; at <= kAddressBytes + 4 * kMostTags; at += 4) {
    if (frame.size() < at + 2) return std::nullopt;
    const uint16_t etherType = loadBe16(&frame[at]);
    if (!isVlanTag(etherType)) return EthernetPayload{etherType, frame.subspan(at + 2)};
  }
  return std::nullopt;
}

}  // namespace capfleet
