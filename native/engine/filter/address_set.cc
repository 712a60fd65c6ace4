#include "filter/address_set.h"

#include <algorithm>

#include "filter/packet_addresses.h"

namespace capfleet {
namespace {

/// Sorts the ranges and joins those that overlap.
template <typename Address>
std::vector<AddressRange<Address>> normalized(std::vector<AddressRange<Address>> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const AddressRange<Address>& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].last) {
      ranges[kept - 1].last = std::max(ranges[kept - 1].last, range.last);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  return ranges;
}

template <typename Address>
bool isInOne(const std::vector<AddressRange<Address>>& ranges, const Address& address) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](const Address& one, const auto& range) { return one < range.first; });
  return after != ranges.begin() && address <= std::prev(after)->last;
}

}  // namespace

Result<std::shared_ptr<const AddressSet>> AddressSet::parse(std::span<const uint8_t> bytes) {
  auto ranges = parseAddressRanges(bytes);
  if (!ranges) return ranges.error();
  return std::shared_ptr<const AddressSet>(
      new AddressSet(std::move(ranges->four), std::move(ranges->six)));
}

AddressSet::AddressSet(std::vector<AddressRange<uint32_t>> ranges4,
                       std::vector<AddressRange<Ipv6Address>> ranges6)
    : ranges4_(normalized(std::move(ranges4))),
      ranges6_(normalized(std::move(ranges6))),
      needs_(ranges4_, ranges6_) {
  for (const auto& [first, last] : ranges4_) {
    for (uint32_t half = first >> 16; half <= last >> 16; half++) halves4_.set(half);
  }
}

bool AddressSet::holds(uint32_t address) const {
  return halves4_.test(address >> 16) && isInOne(ranges4_, address);
}

bool AddressSet::holds(const Ipv6Address& address) const { return isInOne(ranges6_, address); }

bool AddressSet::accepts(const PacketView& packet) const {
  return findAddress(packet, [&](auto address) { return holds(address); });
}

}  // namespace capfleet
