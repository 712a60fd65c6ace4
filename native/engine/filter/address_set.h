// FilterAddresses: a set of IPv4 and IPv6 addresses and networks, of which a packet must bear one.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "filter/address_needs.h"
#include "os/result.h"
#include "packet/packet_view.h"

namespace capfleet {

/// A packet matches if one of its addresses (packet_addresses.h) is in the set. Immutable, so any
/// number of threads may share one.
class AddressSet {
 public:
  /// From ranges as parseAddressRanges() reads them, and fails like it.
  static Result<std::shared_ptr<const AddressSet>> parse(std::span<const uint8_t> bytes);

  /// False for packets of a link type without linkHeaderOf(), and for those that end before the
  /// address.
  bool accepts(const PacketView& packet) const;

  /// What a block or a segment must hold so that one of its packets may be accepted.
  const AddressNeeds& needs() const { return needs_; }

 private:
  AddressSet(std::vector<AddressRange<uint32_t>> ranges4,
             std::vector<AddressRange<Ipv6Address>> ranges6);

  bool holds(uint32_t address) const;
  bool holds(const Ipv6Address& address) const;
  /// Ascending, without overlaps.
  std::vector<AddressRange<uint32_t>> ranges4_;
  std::vector<AddressRange<Ipv6Address>> ranges6_;
  AddressNeeds needs_;
  /// By the high half of an IPv4 address: whether the set may hold it.
  std::bitset<65536> halves4_;
};

}  // namespace capfleet
