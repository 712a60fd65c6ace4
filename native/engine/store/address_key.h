// The 64-bit keys under which address tables find addresses, networks and the words of addresses.
#pragma once

#include <array>
#include <cstdint>

#include "os/byte_order.h"
#include "packet/address_words.h"
#include "store/xxh3.h"

namespace capfleet {

/// The key of a word, or of a network of IPv4.
inline uint64_t addressKey(AddressWord word) {
  std::array<uint8_t, 4> bytes;
  storeLe32(bytes.data(), __builtin_bswap32(word.value));
  return xxh3(bytes, static_cast<uint64_t>(word.part));
}

/// The key of a whole address of IPv6, or of one of its networks; `part` is one of those. The first
/// byte of the address is the highest of `high`.
inline uint64_t ipv6Key(AddressPart part, uint64_t high, uint64_t low) {
  if (part != AddressPart::kIpv6Whole) low = 0;
  if (part == AddressPart::kIpv6Net48) high &= ~uint64_t{0xFFFF};
  std::array<uint8_t, 16> bytes;
  storeLe64(bytes.data(), __builtin_bswap64(high));
  storeLe64(bytes.data() + 8, __builtin_bswap64(low));
  return xxh3(bytes, static_cast<uint64_t>(part));
}

}  // namespace capfleet
