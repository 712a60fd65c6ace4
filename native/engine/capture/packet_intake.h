// Turns a packet from the kernel into a record in a block: VLAN tag, snaplen, filter, counts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "capture/capture_block.h"
#include "filter/bpf_evaluator.h"

namespace capfleet {

/// RMON size classes, by bytes on the wire: the FCS, which the kernel does not provide, counts as
/// four. Classes 1024_1518 and 1024_2047 overlap, as their names say.
inline constexpr size_t kSizeClasses = 12;

/// A packet in the kernel's ring. The kernel removes the VLAN tag and provides it separately.
struct RingPacket {
  const uint8_t* bytes = nullptr;
  uint32_t capturedLength = 0;
  uint32_t originalLength = 0;  ///< without the tag beside it
  int64_t timestampNs = 0;
  bool hasVlanTag = false;
  uint16_t vlanProtocol = 0;
  uint16_t vlanTag = 0;
};

/// Counts since the intake was created.
struct IntakeCounts {
  uint64_t packets = 0;        ///< taken: stored and filtered
  uint64_t originalBytes = 0;  ///< original bytes of these packets
  uint64_t filteredPackets = 0;
  uint64_t recordBytes = 0;  ///< written to blocks
  int64_t lastPacketNs = 0;
  /// Here the classes do not overlap: 1024_1518 is followed by 1519_2047.
  std::array<uint64_t, kSizeClasses> sizes{};
};

/// One per capture thread; not thread-safe.
class PacketIntake {
 public:
  /// REQUIRES: 1 <= snaplen <= kMaxCapturedLength. The filter sees whole packets, tags restored.
  PacketIntake(uint32_t snaplen, std::optional<BpfEvaluator> filter)
      : snaplen_(snaplen), filter_(std::move(filter)) {}

  /// Writes the packet's record to the end of the block, unless the filter rejects it. False if the
  /// block has no room: the packet must then be passed again with another block.
  bool take(const RingPacket& packet, CaptureBlock& block);

  const IntakeCounts& counts() const { return counts_; }

 private:
  void count(const RingPacket& packet, uint32_t originalLength);

  const uint32_t snaplen_;
  const std::optional<BpfEvaluator> filter_;
  IntakeCounts counts_;
};

}  // namespace capfleet
