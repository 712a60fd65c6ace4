// FilterAddresses: a set of IPv4 and IPv6 addresses and networks, of which a packet must bear one.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "os/result.h"
#include "packet/address_words.h"
#include "packet/packet_view.h"

namespace capfleet {

/// The first byte of the address is the highest.
struct Ipv6Address {
  uint64_t high;
  uint64_t low;
  auto operator<=>(const Ipv6Address&) const = default;
};

/// Addresses from `first` to `last`, both included.
template <typename Address>
struct AddressRange {
  Address first;
  Address last;
};

/// A whole address, or a network that address tables know: by its part, whose words beyond it are
/// ignored. IPv4 is in the low half of `low`.
struct AddressPrefix {
  AddressPart part;
  Ipv6Address address;
};

/// A packet matches if its source or destination address is in the set, or the sender's or target's
/// IPv4 address of ARP and RARP: as "host" of pcap-filter(7), but also after one or two VLAN tags.
/// Only the outermost addresses count. Immutable, so any number of threads may share one.
class AddressSet {
 public:
  /// Reads 4 bytes little-endian: how many ranges of IPv4 follow, of 4 + 4 bytes; then ranges of
  /// IPv6, of 16 + 16 bytes. Addresses are big-endian. Fails with kBadParameter if the ranges are
  /// malformed or there are none.
  static Result<std::shared_ptr<const AddressSet>> parse(std::span<const uint8_t> bytes);

  /// False for packets of a link type without linkHeaderOf(), and for those that end before the
  /// address.
  bool accepts(const PacketView& packet) const;

  /// Whether there can be blocks of which, judging by their addresses alone, no packet is accepted.
  /// A set with large networks has too many addresses to look for each of them.
  bool isUsefulForSieves() const { return !sieved4_.empty() || !sieved6_.empty(); }

  /// Addresses and networks that together contain the set, for address tables; empty if that takes
  /// too many.
  const std::vector<AddressPrefix>& prefixes() const { return prefixes_; }

  /// False only if no packet of a block of Ethernet frames is accepted whose address words (as
  /// found by forEachAddressWord()) are all among those for which `mayHold(word)` is true.
  /// REQUIRES: isUsefulForSieves().
  template <typename MayHold>
  bool mayAccept(MayHold mayHold) const {
    using enum AddressPart;
    for (const uint32_t address : sieved4_) {
      if (mayHold(AddressWord{kIpv4, address})) return true;
    }
    for (const Ipv6Address& address : sieved6_) {
      if (mayHold(AddressWord{kIpv6Fourth, static_cast<uint32_t>(address.low)}) &&
          mayHold(AddressWord{kIpv6Third, static_cast<uint32_t>(address.low >> 32)}) &&
          mayHold(AddressWord{kIpv6Second, static_cast<uint32_t>(address.high)}) &&
          mayHold(AddressWord{kIpv6First, static_cast<uint32_t>(address.high >> 32)})) {
        return true;
      }
    }
    return false;
  }

 private:
  AddressSet(std::vector<AddressRange<uint32_t>> ranges4,
             std::vector<AddressRange<Ipv6Address>> ranges6);

  bool holds(uint32_t address) const;
  bool holds(const Ipv6Address& address) const;
  /// `protocolAt` is the offset of an EtherType, `payload` what follows it.
  bool acceptsPayload(uint16_t etherType, std::span<const uint8_t> payload) const;
  void listForSieves();
  void listForTables();
  void addPrefixes(const AddressRange<uint32_t>& range);
  void addPrefixes(const AddressRange<Ipv6Address>& range);

  /// Ascending, without overlaps.
  std::vector<AddressRange<uint32_t>> ranges4_;
  std::vector<AddressRange<Ipv6Address>> ranges6_;
  /// By the high half of an IPv4 address: whether the set may hold it.
  std::bitset<65536> halves4_;
  /// All addresses one by one, or empty if they are too many.
  std::vector<uint32_t> sieved4_;
  std::vector<Ipv6Address> sieved6_;
  std::vector<AddressPrefix> prefixes_;
};

}  // namespace capfleet
