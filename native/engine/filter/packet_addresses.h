// The network addresses of a packet that filters for addresses look at: the outermost source and
// destination, or the sender's and target's IPv4 address of ARP and RARP, as "host" of
// pcap-filter(7), but also after one or two VLAN tags.
#pragma once

#include <cstdint>
#include <span>

#include "filter/address_needs.h"
#include "os/byte_order.h"
#include "packet/address_words.h"
#include "packet/link_header.h"
#include "packet/packet_view.h"

namespace capfleet {

/// The type and payload after one or two VLAN tags. The payload of a frame with more tags begins
/// with another tag, which has no addresses.
struct UntaggedPayload {
  uint16_t etherType;
  std::span<const uint8_t> payload;
};
inline UntaggedPayload untagged(uint16_t etherType, std::span<const uint8_t> payload) {
  for (uint32_t tags = 0; tags < kMostAddressTags; tags++) {
    if (!isVlanTag(etherType) || payload.size() < kVlanTagBytes) break;
    etherType = loadBe16(&payload[2]);
    payload = payload.subspan(kVlanTagBytes);
  }
  return {etherType, payload};
}

/// Calls `visit` with each address that was captured completely, as uint32_t or Ipv6Address, until
/// it returns true; returns whether it did. Finds none in packets of a link type for which
/// linkHeaderOf() returns nothing.
template <typename Visit>
bool findAddress(const PacketView& packet, Visit visit) {
  const auto findIn = [&](UntaggedPayload found) {
    const std::span<const uint8_t> payload = found.payload;
    if (found.etherType == kIpv6Type) {
      for (const size_t at : {size_t{8}, size_t{24}}) {
        if (payload.size() < at + 16) return false;
        if (visit(Ipv6Address{loadBe64(&payload[at]), loadBe64(&payload[at + 8])})) return true;
      }
      return false;
    }
    // The offsets of the fields are relative to the EtherType.
    for (const AddressField& field : addressFields(found.etherType)) {
      const size_t at = field.offset - 2;
      if (payload.size() >= at + 4 && visit(loadBe32(&payload[at]))) return true;
    }
    return false;
  };
  const std::span<const uint8_t> bytes = packet.captured;
  const std::optional<LinkHeader> link = linkHeaderOf(packet.linkTypeWord);
  if (!link) return false;
  if (link->isRawIp) {
    if (bytes.empty()) return false;
    if (bytes[0] >> 4 == 4) return findIn({kIpv4Type, bytes});
    return bytes[0] >> 4 == 6 && findIn({kIpv6Type, bytes});
  }
  if (bytes.size() < link->bytes) return false;
  return findIn(untagged(loadBe16(&bytes[link->typeAt]), bytes.subspan(link->bytes)));
}

}  // namespace capfleet
