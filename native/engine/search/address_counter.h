// Counts the packets of a PCAP by address: what an address or network exchanged, and when.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "filter/address_needs.h"
#include "packet/packet_view.h"

namespace capfleet {

/// What was counted for one question.
struct AddressCount {
  uint64_t packets = 0;
  uint64_t bytes = 0;   ///< original lengths
  int64_t firstNs = 0;  ///< smallest timestamp; meaningless without packets
  int64_t lastNs = 0;   ///< largest timestamp
};

/// Not thread-safe.
class AddressCounter {
 public:
  /// Networks or single addresses: ranges of which the length is a power of two, and the start a
  /// multiple of it. Question i is the i-th of `networks4`, or after those the i-th of `networks6`.
  AddressCounter(std::span<const AddressRange<uint32_t>> networks4,
                 std::span<const AddressRange<Ipv6Address>> networks6);

  /// Counts the packet once for each question of which it has an address.
  void add(const PacketView& packet);

  const std::vector<AddressCount>& counts() const { return counts_; }

 private:
  struct Hash {
    size_t operator()(const Ipv6Address& address) const;
  };
  /// Questions by the network's first address, for each prefix length that occurs. Only one
  /// question has the same network.
  template <typename Address, typename Hasher>
  struct OfLength {
    Address mask;
    std::unordered_map<Address, uint32_t, Hasher> questions;
  };

  void count(uint32_t question, const PacketView& packet);
  void lookUp(uint32_t address, const PacketView& packet);
  void lookUp(const Ipv6Address& address, const PacketView& packet);

  std::vector<OfLength<uint32_t, std::hash<uint32_t>>> lengths4_;
  std::vector<OfLength<Ipv6Address, Hash>> lengths6_;
  std::vector<AddressCount> counts_;
  std::vector<uint64_t> countedFor_;  ///< by question: the number of the packet that counted last
  uint64_t packet_ = 0;
};

}  // namespace capfleet
