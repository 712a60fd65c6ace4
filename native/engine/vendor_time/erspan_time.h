// The time in the ERSPAN type III header of a mirrored packet (TSMode vendorB_erspan3).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "packet/packet_view.h"
#include "vendor_time/counter_distance.h"

namespace capfleet {

/// The clock of one stream. Not thread-safe; allocates once for each session.
///
/// Some devices send a free-running counter instead of a time. It is anchored at the first packet
/// of its session in the capture: times are the NIC's there plus the counter's distances. If the
/// granularity leaves the tick to the vendor, the first packet at least 1 ms after the anchor
/// reveals it; earlier packets keep the NIC's time. At most 65,536 sessions have a clock, the first
/// ones of the stream.
class ErspanClock {
 public:
  /// The packet's time in nanoseconds since 1970; nullopt if it has no ERSPAN III header, or its
  /// time is inconsistent with the NIC's. REQUIRES: all packets of the stream in stored order,
  /// starting with the capture's first.
  std::optional<int64_t> timeOf(const PacketView& packet);

 private:
  /// Outer source address (IPv4 in the last 4 bytes), IP version, session and granularity: each
  /// combination has its own counter.
  struct SessionKey {
    std::array<uint8_t, 16> source;
    uint8_t ipVersion;
    uint8_t granularity;
    uint16_t session;
    auto operator<=>(const SessionKey&) const = default;
  };
  struct Session {
    int64_t nicNs;  ///< NIC time of the first packet
    uint32_t counter;
    std::optional<TickLength> tick;  ///< nullopt: too early to tell
  };
  struct Header;
  static std::optional<Header> readHeader(const PacketView& packet);
  std::optional<int64_t> freeRunningTime(const Header& header, int64_t nicNs);
  Session* findSession(const Header& header, int64_t nicNs);

  std::map<SessionKey, Session> sessions_;
};

}  // namespace capfleet
