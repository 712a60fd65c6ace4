// What a block or a segment must hold so that a packet in it may have an address of some ranges.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "os/result.h"
#include "packet/address_words.h"

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

struct AddressRanges {
  std::vector<AddressRange<uint32_t>> four;
  std::vector<AddressRange<Ipv6Address>> six;
};

/// Reads 4 bytes little-endian: how many ranges of IPv4 follow, of 4 + 4 bytes; then ranges of
/// IPv6, of 16 + 16 bytes. Addresses are big-endian. Fails with kBadParameter if the ranges are
/// malformed or there are none.
Result<AddressRanges> parseAddressRanges(std::span<const uint8_t> bytes);

/// A whole address, or a network that address tables know: by its part, whose words beyond it are
/// ignored. IPv4 is in the low half of `low`.
struct AddressPrefix {
  AddressPart part;
  Ipv6Address address;
};

/// Immutable.
class AddressNeeds {
 public:
  AddressNeeds(std::span<const AddressRange<uint32_t>> ranges4,
               std::span<const AddressRange<Ipv6Address>> ranges6);

  /// Whether there can be blocks of which, judging by their addresses alone, no packet matches.
  /// Large networks have too many addresses to look for each of them.
  bool isUsefulForSieves() const { return !sieved4_.empty() || !sieved6_.empty(); }

  /// Addresses and networks that together contain the ranges, for address tables; empty if that
  /// takes too many.
  const std::vector<AddressPrefix>& prefixes() const { return prefixes_; }

  /// False only if no packet of a block of Ethernet frames matches whose address words (as found by
  /// forEachAddressWord()) are all among those for which `mayHold(word)` is true. REQUIRES:
  /// isUsefulForSieves().
  template <typename MayHold>
  bool mayMatch(MayHold mayHold) const {
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
  void addPrefixes(const AddressRange<uint32_t>& range);
  void addPrefixes(const AddressRange<Ipv6Address>& range);

  /// All addresses one by one, or empty if they are too many.
  std::vector<uint32_t> sieved4_;
  std::vector<Ipv6Address> sieved6_;
  std::vector<AddressPrefix> prefixes_;
};

}  // namespace capfleet
