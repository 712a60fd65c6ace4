// Where an Ethernet frame has network addresses, in words of 32 bits. Blocks are described and
// filters interpreted with this one table, so that they cannot disagree.
#pragma once

#include <cstdint>
#include <span>

#include "os/byte_order.h"
#include "packet/ethernet_payload.h"

namespace capfleet {

/// What a word is part of. An IPv4 address is one word, whether in IPv4, ARP or RARP. Only address
/// tables distinguish the networks and whole addresses after the words.
enum class AddressPart : uint8_t {
  kIpv4 = 1,
  kIpv6First,
  kIpv6Second,
  kIpv6Third,
  kIpv6Fourth,
  kIpv4Net24,  ///< the word with the low 8 bits 0
  kIpv4Net16,  ///< the word with the low 16 bits 0
  kIpv6Net48,
  kIpv6Net64,
  kIpv6Whole,
};

/// Whether it is a word of a frame, and not derived from one.
inline constexpr bool isWordOfFrame(AddressPart part) { return part <= AddressPart::kIpv6Fourth; }

struct AddressWord {
  AddressPart part;
  uint32_t value;  ///< the first byte of the address is the highest
};

/// A word after an EtherType: the offset is relative to the EtherType.
struct AddressField {
  uint32_t offset;
  AddressPart part;
};

inline constexpr uint32_t kEtherTypeOffset = 12;
inline constexpr uint32_t kVlanTagBytes = 4;
/// Addresses after more VLAN tags are ignored.
inline constexpr uint32_t kMostAddressTags = 2;

/// The address words of a frame with this EtherType, source first.
inline std::span<const AddressField> addressFields(uint32_t etherType) {
  using enum AddressPart;
  static constexpr AddressField kInIpv4[] = {{14, kIpv4}, {18, kIpv4}};
  static constexpr AddressField kInArp[] = {{16, kIpv4}, {26, kIpv4}};
  static constexpr AddressField kInIpv6[] = {
      {10, kIpv6First}, {14, kIpv6Second}, {18, kIpv6Third}, {22, kIpv6Fourth},
      {26, kIpv6First}, {30, kIpv6Second}, {34, kIpv6Third}, {38, kIpv6Fourth}};
  switch (etherType) {
    case 0x0800:
      return kInIpv4;
    case 0x0806:
    case 0x8035:
      return kInArp;
    case 0x86DD:
      return kInIpv6;
    default:
      return {};
  }
}

/// Calls `visit(AddressWord)` for each word of the frame that was captured completely.
template <typename Visit>
void forEachAddressWord(std::span<const uint8_t> frame, Visit visit) {
  for (uint32_t at = kEtherTypeOffset; at + 2 <= frame.size(); at += kVlanTagBytes) {
    const uint16_t etherType = loadBe16(&frame[at]);
    if (isVlanTag(etherType) && at < kEtherTypeOffset + kMostAddressTags * kVlanTagBytes) continue;
    for (const AddressField& field : addressFields(etherType)) {
      if (at + field.offset + 4 > frame.size()) continue;
      visit(AddressWord{field.part, loadBe32(&frame[at + field.offset])});
    }
    return;
  }
}

}  // namespace capfleet
