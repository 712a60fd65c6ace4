#include "filter/address_needs.h"

#include "os/byte_order.h"

namespace capfleet {
namespace {

/// Looking for more addresses in each sieve would take longer than reading the block.
constexpr uint64_t kMostSieved = 16384;

/// Address tables are asked for at most this many addresses and networks of a set.
constexpr size_t kMostPrefixes = 65'536;
/// A range becomes at most this many networks, and larger ones otherwise.
constexpr uint64_t kMostOfRange = 256;

/// A network of IPv6 with more than a few addresses has too many.
bool areFew(std::span<const AddressRange<uint32_t>> ranges4,
            std::span<const AddressRange<Ipv6Address>> ranges6) {
  uint64_t count = 0;
  for (const auto& [first, last] : ranges4) count += uint64_t{last} - first + 1;
  for (const auto& [first, last] : ranges6) {
    const bool isSmall = first.high == last.high && last.low - first.low < kMostSieved;
    count += isSmall ? last.low - first.low + 1 : kMostSieved + 1;
  }
  return count <= kMostSieved;
}

Ipv6Address loadIpv6(const uint8_t* p) { return {loadBe64(p), loadBe64(p + 8)}; }

}  // namespace

Result<AddressRanges> parseAddressRanges(std::span<const uint8_t> bytes) {
  constexpr size_t kCountBytes = 4, kRange4Bytes = 8, kRange6Bytes = 32;
  const Error malformed{Code::kBadParameter, "the ranges of addresses are malformed"};
  if (bytes.size() <= kCountBytes) return malformed;
  const uint64_t count4 = loadLe32(bytes.data());
  bytes = bytes.subspan(kCountBytes);
  if (count4 > bytes.size() / kRange4Bytes) return malformed;
  AddressRanges ranges;
  ranges.four.resize(count4);
  for (AddressRange<uint32_t>& range : ranges.four) {
    range = {loadBe32(&bytes[0]), loadBe32(&bytes[4])};
    if (range.last < range.first) return malformed;
    bytes = bytes.subspan(kRange4Bytes);
  }
  if (bytes.size() % kRange6Bytes != 0) return malformed;
  ranges.six.resize(bytes.size() / kRange6Bytes);
  for (AddressRange<Ipv6Address>& range : ranges.six) {
    range = {loadIpv6(&bytes[0]), loadIpv6(&bytes[16])};
    if (range.last < range.first) return malformed;
    bytes = bytes.subspan(kRange6Bytes);
  }
  return ranges;
}

AddressNeeds::AddressNeeds(std::span<const AddressRange<uint32_t>> ranges4,
                           std::span<const AddressRange<Ipv6Address>> ranges6) {
  if (areFew(ranges4, ranges6)) {
    for (const auto& [first, last] : ranges4) {
      for (uint64_t address = first; address <= last; address++) {
        sieved4_.push_back(static_cast<uint32_t>(address));
      }
    }
    for (const auto& [first, last] : ranges6) {
      for (uint64_t i = 0; i <= last.low - first.low; i++) {
        sieved6_.push_back({first.high, first.low + i});
      }
    }
  }
  for (const auto& range : ranges4) addPrefixes(range);
  for (const auto& range : ranges6) addPrefixes(range);
  if (prefixes_.size() > kMostPrefixes) prefixes_ = {};
}

void AddressNeeds::addPrefixes(const AddressRange<uint32_t>& range) {
  const auto add = [&](AddressPart part, uint32_t hostBits) {
    const uint64_t last = range.last >> hostBits;
    for (uint64_t network = range.first >> hostBits; network <= last; network++) {
      if (prefixes_.size() > kMostPrefixes) return;
      prefixes_.push_back({part, {0, network << hostBits}});
    }
  };
  if (range.last - range.first < kMostOfRange) {
    add(AddressPart::kIpv4, 0);
  } else if ((range.last >> 8) - (range.first >> 8) < kMostOfRange) {
    add(AddressPart::kIpv4Net24, 8);
  } else {
    add(AddressPart::kIpv4Net16, 16);
  }
}

void AddressNeeds::addPrefixes(const AddressRange<Ipv6Address>& range) {
  const Ipv6Address first = range.first;
  const Ipv6Address last = range.last;
  const auto add = [&](AddressPart part, uint32_t hostBits) {
    const uint64_t count = (last.high >> hostBits) - (first.high >> hostBits);
    for (uint64_t i = 0; i <= count; i++) {
      if (prefixes_.size() > kMostPrefixes) return;
      prefixes_.push_back({part, {((first.high >> hostBits) + i) << hostBits, 0}});
    }
  };
  if (first.high == last.high && last.low - first.low < kMostOfRange) {
    for (uint64_t i = 0; i <= last.low - first.low; i++) {
      prefixes_.push_back({AddressPart::kIpv6Whole, {first.high, first.low + i}});
    }
  } else if (last.high - first.high < kMostOfRange) {
    add(AddressPart::kIpv6Net64, 0);
  } else if ((last.high >> 16) - (first.high >> 16) < kMostOfRange) {
    add(AddressPart::kIpv6Net48, 16);
  } else {
    add(AddressPart::kIpv6First, 32);
  }
}

}  // namespace capfleet
