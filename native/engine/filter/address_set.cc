#include "filter/address_set.h"

#include <algorithm>

#include "os/byte_order.h"
#include "packet/link_header.h"

namespace capfleet {
namespace {

/// Looking for more addresses in each sieve would take longer than reading the block.
constexpr uint64_t kMostSieved = 16384;

/// Address tables are asked for at most this many addresses and networks of a set.
constexpr size_t kMostPrefixes = 65'536;
/// A range becomes at most this many networks, and larger ones otherwise.
constexpr uint64_t kMostOfRange = 256;

Ipv6Address loadIpv6(const uint8_t* p) { return {loadBe64(p), loadBe64(p + 8)}; }

/// Sorts the ranges and joins those that overlap.
template <typename Address>
void normalize(std::vector<AddressRange<Address>>& ranges) {
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
}

template <typename Address>
bool isInOne(const std::vector<AddressRange<Address>>& ranges, const Address& address) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](const Address& one, const auto& range) { return one < range.first; });
  return after != ranges.begin() && address <= std::prev(after)->last;
}

/// The type and payload after one or two VLAN tags. The payload of a frame with more tags begins
/// with another tag, which has no addresses.
struct Untagged {
  uint16_t etherType;
  std::span<const uint8_t> payload;
};
Untagged untagged(uint16_t etherType, std::span<const uint8_t> payload) {
  for (uint32_t tags = 0; tags < kMostAddressTags; tags++) {
    if (!isVlanTag(etherType) || payload.size() < kVlanTagBytes) break;
    etherType = loadBe16(&payload[2]);
    payload = payload.subspan(kVlanTagBytes);
  }
  return {etherType, payload};
}

}  // namespace

Result<std::shared_ptr<const AddressSet>> AddressSet::parse(std::span<const uint8_t> bytes) {
  constexpr size_t kCountBytes = 4, kRange4Bytes = 8, kRange6Bytes = 32;
  const Error malformed{Code::kBadParameter, "the ranges of addresses are malformed"};
  if (bytes.size() <= kCountBytes) return malformed;
  const uint64_t count4 = loadLe32(bytes.data());
  bytes = bytes.subspan(kCountBytes);
  if (count4 > bytes.size() / kRange4Bytes) return malformed;
  std::vector<AddressRange<uint32_t>> ranges4(count4);
  for (AddressRange<uint32_t>& range : ranges4) {
    range = {loadBe32(&bytes[0]), loadBe32(&bytes[4])};
    if (range.last < range.first) return malformed;
    bytes = bytes.subspan(kRange4Bytes);
  }
  if (bytes.size() % kRange6Bytes != 0) return malformed;
  std::vector<AddressRange<Ipv6Address>> ranges6(bytes.size() / kRange6Bytes);
  for (AddressRange<Ipv6Address>& range : ranges6) {
    range = {loadIpv6(&bytes[0]), loadIpv6(&bytes[16])};
    if (range.last < range.first) return malformed;
    bytes = bytes.subspan(kRange6Bytes);
  }
  return std::shared_ptr<const AddressSet>(new AddressSet(std::move(ranges4), std::move(ranges6)));
}

AddressSet::AddressSet(std::vector<AddressRange<uint32_t>> ranges4,
                       std::vector<AddressRange<Ipv6Address>> ranges6)
    : ranges4_(std::move(ranges4)), ranges6_(std::move(ranges6)) {
  normalize(ranges4_);
  normalize(ranges6_);
  for (const auto& [first, last] : ranges4_) {
    for (uint32_t half = first >> 16; half <= last >> 16; half++) halves4_.set(half);
  }
  listForSieves();
  listForTables();
}

/// A network of IPv6 with more than a few addresses has too many.
void AddressSet::listForSieves() {
  uint64_t count = 0;
  for (const auto& [first, last] : ranges4_) count += uint64_t{last} - first + 1;
  for (const auto& [first, last] : ranges6_) {
    const bool isSmall = first.high == last.high && last.low - first.low < kMostSieved;
    count += isSmall ? last.low - first.low + 1 : kMostSieved + 1;
  }
  if (count > kMostSieved) return;
  for (const auto& [first, last] : ranges4_) {
    for (uint64_t address = first; address <= last; address++) {
      sieved4_.push_back(static_cast<uint32_t>(address));
    }
  }
  for (const auto& [first, last] : ranges6_) {
    for (uint64_t i = 0; i <= last.low - first.low; i++) {
      sieved6_.push_back({first.high, first.low + i});
    }
  }
}

void AddressSet::listForTables() {
  for (const auto& range : ranges4_) addPrefixes(range);
  for (const auto& range : ranges6_) addPrefixes(range);
  if (prefixes_.size() > kMostPrefixes) prefixes_ = {};
}

void AddressSet::addPrefixes(const AddressRange<uint32_t>& range) {
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

void AddressSet::addPrefixes(const AddressRange<Ipv6Address>& range) {
  const auto& [first, last] = range;
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

bool AddressSet::holds(uint32_t address) const {
  return halves4_.test(address >> 16) && isInOne(ranges4_, address);
}

bool AddressSet::holds(const Ipv6Address& address) const { return isInOne(ranges6_, address); }

bool AddressSet::accepts(const PacketView& packet) const {
  const std::span<const uint8_t> bytes = packet.captured;
  const std::optional<LinkHeader> link = linkHeaderOf(packet.linkTypeWord);
  if (!link) return false;
  if (link->isRawIp) {
    if (bytes.empty()) return false;
    if (bytes[0] >> 4 == 4) return acceptsPayload(kIpv4Type, bytes);
    return bytes[0] >> 4 == 6 && acceptsPayload(kIpv6Type, bytes);
  }
  if (bytes.size() < link->bytes) return false;
  const auto [etherType, payload] =
      untagged(loadBe16(&bytes[link->typeAt]), bytes.subspan(link->bytes));
  return acceptsPayload(etherType, payload);
}

bool AddressSet::acceptsPayload(uint16_t etherType, std::span<const uint8_t> payload) const {
  if (etherType == kIpv6Type) {
    if (ranges6_.empty()) return false;
    for (const size_t at : {size_t{8}, size_t{24}}) {
      if (payload.size() >= at + 16 && holds(loadIpv6(&payload[at]))) return true;
    }
    return false;
  }
  // The offsets of the fields are relative to the EtherType.
  for (const AddressField& field : addressFields(etherType)) {
    const size_t at = field.offset - 2;
    if (payload.size() >= at + 4 && holds(loadBe32(&payload[at]))) return true;
  }
  return false;
}

}  // namespace capfleet
