#include "search/address_counter.h"

#include <algorithm>

#include "filter/packet_addresses.h"

namespace capfleet {

size_t AddressCounter::Hash::operator()(const Ipv6Address& address) const {
  uint64_t hash = address.high * 0x9E3779B97F4A7C15 + address.low;
  hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15;
  return static_cast<size_t>(hash ^ hash >> 29);
}

AddressCounter::AddressCounter(std::span<const AddressRange<uint32_t>> networks4,
                               std::span<const AddressRange<Ipv6Address>> networks6)
    : counts_(networks4.size() + networks6.size()), countedFor_(counts_.size()) {
  uint32_t question = 0;
  const auto put = [&](auto& lengths, const auto& first, const auto& mask) {
    auto found = std::ranges::find(lengths, mask, [](const auto& one) { return one.mask; });
    if (found == lengths.end()) {
      lengths.push_back({mask, {}});
      found = std::prev(lengths.end());
    }
    found->questions.emplace(first, question++);
  };
  for (const auto& [first, last] : networks4) put(lengths4_, first, ~(last ^ first));
  for (const auto& [first, last] : networks6) {
    put(lengths6_, first, Ipv6Address{~(last.high ^ first.high), ~(last.low ^ first.low)});
  }
}

void AddressCounter::add(const PacketView& packet) {
  packet_++;
  findAddress(packet, [&](const auto& address) {
    lookUp(address, packet);
    return false;
  });
}

void AddressCounter::lookUp(uint32_t address, const PacketView& packet) {
  for (const auto& [mask, questions] : lengths4_) {
    const auto found = questions.find(address & mask);
    if (found != questions.end()) count(found->second, packet);
  }
}

void AddressCounter::lookUp(const Ipv6Address& address, const PacketView& packet) {
  for (const auto& [mask, questions] : lengths6_) {
    const auto found = questions.find({address.high & mask.high, address.low & mask.low});
    if (found != questions.end()) count(found->second, packet);
  }
}

void AddressCounter::count(uint32_t question, const PacketView& packet) {
  // Both addresses of a packet may be in one network.
  if (countedFor_[question] == packet_) return;
  countedFor_[question] = packet_;
  AddressCount& count = counts_[question];
  const int64_t ns = packet.nicNs;
  count.firstNs = count.packets == 0 ? ns : std::min(count.firstNs, ns);
  count.lastNs = count.packets == 0 ? ns : std::max(count.lastNs, ns);
  count.packets++;
  count.bytes += packet.originalLength;
}

}  // namespace capfleet
