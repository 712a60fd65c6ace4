// The data channel of CAPWAP (RFC 5415 section 4.3, RFC 5416): frames of wireless stations in
// transit between an access point and its controller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace capfleet {

/// Where the frame of a station begins.
struct CapwapFrame {
  size_t offset;  ///< offset in the packet; may be past its end
  bool isWlan;    ///< IEEE 802.11, else Ethernet
};

/// The frame inside `packet`, a UDP payload. Null if the packet is encrypted, a later fragment, a
/// keep-alive, of another radio technology, or truncated.
std::optional<CapwapFrame> findCapwapFrame(std::span<const uint8_t> packet);

/// Length of the IEEE 802.11 header of `frame`, which may be truncated. An LLC header follows,
/// unless this is a later fragment or an aggregate of packets. Null for a frame without data, with
/// encrypted data, or between stations.
std::optional<size_t> wlanHeaderBytes(std::span<const uint8_t> frame);

}  // namespace capfleet
