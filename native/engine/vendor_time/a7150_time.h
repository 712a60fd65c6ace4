// The time of packets from vendor A's 7150 switches: a 31-bit tick counter in each packet, and
// about once a second a key frame that relates a tick to a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "packet/packet_view.h"

namespace capfleet {

/// The clock of one stream. Not thread-safe, allocates nothing.
///
/// The key frame that applies to a packet is the last one stored before it whose NIC time is at
/// most kMaxKeyFrameAgeNs before the packet's, and not after it. One whose UTC is 0 or later than a
/// PCAP record can represent comes from a switch that has no time yet, and does not apply to any
/// packet.
class A7150Clock {
 public:
  /// Drift of the counter makes an older key frame useless.
  static constexpr int64_t kMaxKeyFrameAgeNs = 30'000'000'000;

  enum class Mode {
    kOverwrite,  ///< the tick replaces the FCS
    kInsert,     ///< the tick is in front of the FCS
  };

  /// The packet's time in nanoseconds since 1970; nullopt if the packet is truncated, is not an
  /// Ethernet frame, has no tick or no key frame applies. REQUIRES: all packets of the stream, in
  /// stored order.
  std::optional<int64_t> timeOf(const PacketView& packet, Mode mode);

 private:
  struct KeyFrame {
    int64_t nicNs;
    int64_t utcNs;
    uint32_t tick;
  };
  static std::optional<KeyFrame> readKeyFrame(const PacketView& packet);
  const KeyFrame* governing(int64_t nicNs) const;

  /// More than arrive in 30 s. The last one is not the one that applies only if the NIC's clock has
  /// just stepped back.
  std::array<KeyFrame, 64> keyFrames_;
  uint64_t keyFrameCount_ = 0;  ///< the last is at (count - 1) % size
};

}  // namespace capfleet
