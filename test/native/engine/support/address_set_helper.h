// Sets of addresses as the engine takes them.
#pragma once

#include <gtest/gtest.h>

#include "filter/address_set.h"
#include "support/addressed_packets.h"

namespace capfleet::test {

/// Ranges as bytes; IPv6 addresses have 16.
struct MadeSet {
  std::vector<AddressRange<uint32_t>> four;
  std::vector<std::pair<Bytes, Bytes>> six;

  Bytes packed() const {
    Bytes bytes(4 + four.size() * 8);
    storeLe32(bytes.data(), static_cast<uint32_t>(four.size()));
    uint8_t* at = bytes.data() + 4;
    for (const auto& [first, last] : four) {
      storeLe32(at, __builtin_bswap32(first));
      storeLe32(at + 4, __builtin_bswap32(last));
      at += 8;
    }
    for (const auto& [first, last] : six) {
      append(bytes, first);
      append(bytes, last);
    }
    return bytes;
  }
};

inline std::shared_ptr<const AddressSet> addressSet(const MadeSet& made) {
  auto set = AddressSet::parse(made.packed());
  EXPECT_TRUE(set);
  return *set;
}

/// Some addresses of addressedFrame(), and networks that hold some of them.
inline MadeSet randomSet(std::mt19937_64& random) {
  MadeSet made;
  do {
    for (size_t i = randomBelow(random, 4); i > 0; i--) {
      const auto address = static_cast<uint32_t>(randomBelow(random, 40));
      const uint32_t first = 0x0a000000 + address / 3 * 256 + address;
      made.four.push_back({first, first + (random() % 4 == 0 ? 300 : 0)});
    }
    for (size_t i = randomBelow(random, 3); i > 0; i--) {
      const Bytes first = ipv6Address(static_cast<uint32_t>(randomBelow(random, kAddressCount)));
      Bytes last = first;
      if (random() % 4 == 0) last[15] = 0xff;
      if (random() % 8 == 0) std::fill(last.begin() + 8, last.end(), uint8_t{0xff});
      made.six.push_back({first, last});
    }
  } while (made.four.empty() && made.six.empty());
  return made;
}

}  // namespace capfleet::test
