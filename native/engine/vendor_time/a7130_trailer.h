// The trailer that vendor A's 7130 devices append to every frame (TSMode vendorA7130 and the
// a7130.* fields of FilterFrame).
#pragma once

#include <cstdint>
#include <optional>

#include "packet/packet_view.h"

namespace capfleet {

/// A frame that passed several devices has a trailer of each: the first hop's is innermost.
struct A7130Trailer {
  int64_t timeNs;  ///< written by the first hop, nanoseconds since 1970
  uint16_t firstHopDevice;
  uint8_t firstHopPort;
  uint16_t lastHopDevice;
};

/// Nullopt if the frame is truncated, is not Ethernet or has no trailer with a time within 30 days
/// of the NIC's. A captured FCS is detected automatically. Thread-safe, allocates nothing.
std::optional<A7130Trailer> readA7130Trailer(const PacketView& packet);

}  // namespace capfleet
