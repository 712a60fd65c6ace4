// The time that vendor A's 7280 switches write into a packet: in a header after the MAC addresses
// (TSMode vendorA7280_eth64) or in place of the source MAC address (vendorA7280_mac48).
#pragma once

#include <cstdint>
#include <optional>

#include "packet/packet_view.h"

namespace capfleet {

/// From the header with EtherType D28B, in its 64-bit form or its 48-bit form. Nullopt if there is
/// none or its version is unknown. Nanoseconds since 1970. Thread-safe.
std::optional<int64_t> readA7280HeaderTime(const PacketView& packet);

/// From the source MAC address. Such an address is not marked: one whose time differs from the NIC
/// time by more than `limitNs` is a real address, hence nullopt. Nanoseconds since 1970.
/// Thread-safe.
std::optional<int64_t> readA7280MacTime(const PacketView& packet, int64_t limitNs);

}  // namespace capfleet
