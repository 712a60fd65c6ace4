// The trailer that vendor B's 3550 devices append to every frame (TSMode vendorB3550 and the field
// c3550.srcport of FilterFrame).
#pragma once

#include <cstdint>
#include <optional>

#include "packet/packet_view.h"

namespace capfleet {

struct C3550Trailer {
  int64_t timeNs;  ///< nanoseconds since 1970, rounded down from units of 2^-40 s
  uint8_t device;
  uint8_t port;  ///< ingress port, as the device numbers them
};

/// Nullopt if the frame is truncated, is not Ethernet or has no trailer with a time within 7 days
/// of the NIC's. A captured FCS is detected automatically. Thread-safe, allocates nothing.
std::optional<C3550Trailer> readC3550Trailer(const PacketView& packet);

}  // namespace capfleet
