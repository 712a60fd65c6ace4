// The packets that were output within a time window, for dropping duplicates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace capfleet {

/// What equal packets have in common.
enum class DuplicateKey : uint8_t {
  /// Every captured byte after the link-layer header and its VLAN tags.
  kPayload,
  /// An IP packet as routers forward it: the outermost IP packet after tags and labels, without TTL
  /// or hop limit, the checksum of an IPv4 header, and what follows the packet (padding, trailers).
  /// Other packets are compared by their payload.
  kIp,
};

struct DuplicateOptions {
  int64_t spanNs;  ///< a copy comes at most this long after the packet
  DuplicateKey key = DuplicateKey::kPayload;
};

/// A packet is a copy of one of them if both have the same key: equally many bytes, with the same
/// 64-bit hash. Where they come from does not matter. Not thread-safe.
class DuplicateWindow {
 public:
  /// Maximum number of packets remembered: with more inside the window the oldest are forgotten,
  /// and duplicates of them pass.
  static constexpr uint64_t kRemembered = 65536;

  struct Packet {
    std::span<const uint8_t> captured;
    uint32_t linkTypeWord;
    int64_t key;  ///< time; not smaller than the previous packet's
  };

  /// Memory of one, approximately.
  static constexpr uint64_t kHeldBytes = kRemembered * 40;

  explicit DuplicateWindow(const DuplicateOptions& options);

  /// The number of the packet that this one is a copy of, or 0 if it is not a copy. Packets are
  /// numbered by add(), starting at 1. Hashes the packet; the next add() refers to this packet.
  uint64_t originalOf(const Packet& packet);
  /// Records that the packet passed to originalOf() is being output. REQUIRES: that was 0.
  void add(const Packet& packet);

 private:
  struct Fingerprint {
    uint64_t hash;
    uint32_t bytes;  ///< how many were hashed
    bool operator==(const Fingerprint&) const = default;
  };
  struct Seen {
    int64_t key;
    Fingerprint fingerprint;
    uint64_t before;  ///< number of the previous packet in the same chain, or 0
  };

  Fingerprint fingerprintOf(const Packet& packet) const;
  static std::optional<Fingerprint> fingerprintOfIp(const Packet& packet);
  static std::span<const uint8_t> payloadOf(const Packet& packet);

  const DuplicateOptions options_;
  std::vector<Seen> seen_;        ///< a ring in the order in which they passed, chained by hash
  std::vector<uint64_t> newest_;  ///< number of each chain's newest packet, or 0
  uint64_t added_ = 0;            ///< packets are numbered from 1 on
  Fingerprint fingerprint_{};
};

}  // namespace capfleet
