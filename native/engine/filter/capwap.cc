#include "filter/capwap.h"

#include "os/byte_order.h"

namespace capfleet {

std::optional<CapwapFrame> findCapwapFrame(std::span<const uint8_t> packet) {
  constexpr size_t kMinHeaderBytes = 8;
  constexpr unsigned kNative = 0x01;                       // in byte 2, beside the binding
  constexpr unsigned kFragment = 0x80, kKeepAlive = 0x08;  // in byte 3
  constexpr unsigned kIeee80211 = 1;
  if (packet.size() < kMinHeaderBytes) return std::nullopt;
  // Version 0 and type 0; type 1 is DTLS.
  if (packet[0] != 0) return std::nullopt;
  const size_t headerBytes = size_t{4} * (packet[1] >> 3);
  if (headerBytes < kMinHeaderBytes || (packet[3] & kKeepAlive) != 0) return std::nullopt;
  // The offset is meaningless in a packet that is not a fragment.
  const bool isFragment = (packet[3] & kFragment) != 0;
  if (isFragment && loadBe16(packet.data() + 6) >> 3 != 0) return std::nullopt;
  const bool isNative = (packet[2] & kNative) != 0;
  const unsigned binding = (packet[2] >> 1) & 31;
  if (isNative && binding != kIeee80211) return std::nullopt;
  return CapwapFrame{headerBytes, isNative};
}

std::optional<size_t> wlanHeaderBytes(std::span<const uint8_t> frame) {
  constexpr size_t kThreeAddressBytes = 24, kAddressBytes = 6, kQosBytes = 2, kControlBytes = 4;
  constexpr unsigned kTypeAndVersion = 0x0f, kData = 0x08, kNoData = 0x40, kQos = 0x80;
  constexpr unsigned kDirection = 0x03, kProtected = 0x40, kHasControl = 0x80;
  if (frame.size() < 2) return std::nullopt;
  // Some access points and controllers swap the two bytes of frame control. One byte begins with
  // the version, always 0, the other with the direction, never 0 in data on this path.
  const bool isSwapped = (frame[0] & kDirection) != 0;
  const unsigned kind = frame[isSwapped ? 1 : 0];
  const unsigned flags = frame[isSwapped ? 0 : 1];
  const unsigned direction = flags & kDirection;
  if ((kind & kTypeAndVersion) != kData || direction == 0) return std::nullopt;
  if ((kind & kNoData) != 0 || (flags & kProtected) != 0) return std::nullopt;
  // Later fields are not used to detect a fragment or an aggregate: they may be swapped too. Such
  // data does not begin with an LLC header.
  size_t headerBytes = kThreeAddressBytes;
  if (direction == kDirection) headerBytes += kAddressBytes;
  if ((kind & kQos) == 0) return headerBytes;
  headerBytes += kQosBytes;
  return (flags & kHasControl) != 0 ? headerBytes + kControlBytes : headerBytes;
}

}  // namespace capfleet
