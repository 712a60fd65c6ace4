// The packets that passed a merge within a time window, for dropping duplicates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capfleet {

/// A packet is a duplicate of one of them if that came from another input, has the same captured
/// length, and the same 64-bit hash after its link-layer header (on Ethernet including the VLAN
/// tags; other link types are compared completely). Not thread-safe.
class DuplicateWindow {
 public:
  /// Maximum number of packets remembered: with more inside the window the oldest are forgotten,
  /// and duplicates of them pass.
  static constexpr uint64_t kRemembered = 65536;

  struct Packet {
    std::span<const uint8_t> record;
    uint32_t input;
    int64_t key;  ///< not smaller than the previous packet's
  };

  DuplicateWindow(int64_t spanNs, uint32_t linkTypeWord);

  /// Hashes the packet; add() then refers to the same one.
  bool hasSeen(const Packet& packet);
  /// Records that the packet passed to hasSeen() is being output.
  void add(const Packet& packet);

 private:
  struct Seen {
    int64_t key;
    uint64_t hash;
    uint32_t bytes;
    uint32_t input;
    uint64_t before;  ///< number of the previous packet in the same chain, or 0
  };

  std::span<const uint8_t> payloadOf(std::span<const uint8_t> record) const;

  const int64_t spanNs_;
  const bool isEthernet_;
  std::vector<Seen> seen_;        ///< a ring in the order in which they passed, chained by hash
  std::vector<uint64_t> newest_;  ///< number of each chain's newest packet, or 0
  uint64_t added_ = 0;            ///< packets are numbered from 1 on
  uint64_t hash_ = 0;
};

}  // namespace capfleet
