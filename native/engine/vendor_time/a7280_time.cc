#include "vendor_time/a7280_time.h"

#include <cstdlib>

#include "os/byte_order.h"
#include "packet/pcap_format.h"
#include "vendor_time/frame_check_sequence.h"

namespace capfleet {

namespace {

/// The instant closest to the NIC's with these low 16 bits of its seconds.
int64_t nearestTo(int64_t nicNs, uint16_t lowSeconds, uint32_t nanoseconds) {
  const int64_t nicSeconds = nicNs / kNanosPerSecond;
  const auto difference =
      static_cast<int16_t>(static_cast<uint16_t>(lowSeconds - static_cast<uint16_t>(nicSeconds)));
  return (nicSeconds + difference) * kNanosPerSecond + nanoseconds;
}

}  // namespace

std::optional<int64_t> readA7280HeaderTime(const PacketView& packet) {
  constexpr uint32_t kEtherTypeAndSubtype = 0xD28B0001;
  constexpr uint16_t kIsUtc = 0x0100;  // else TAI; in real captures the label changes nothing
  constexpr uint16_t kIsR3 = 0x0001;   // the hardware's generation
  constexpr uint16_t k64Bits = 0x0010;
  constexpr uint16_t k48Bits = 0x0020;
  const auto frame = packet.captured;
  if (linkTypeOf(packet.linkTypeWord) != kLinkTypeEthernet || frame.size() < 24) {
    return std::nullopt;
  }
  if (loadBe32(&frame[12]) != kEtherTypeAndSubtype) return std::nullopt;
  const auto format = static_cast<uint16_t>(loadBe16(&frame[16]) & ~(kIsUtc | kIsR3));
  if (format == k48Bits) {
    const uint32_t nanoseconds = loadBe32(&frame[20]);
    if (nanoseconds >= kNanosPerSecond) return std::nullopt;
    return nearestTo(packet.nicNs, loadBe16(&frame[18]), nanoseconds);
  }
  if (format != k64Bits || frame.size() < 26) return std::nullopt;
  const int64_t seconds = loadBe32(&frame[18]);
  const int64_t nanoseconds = loadBe32(&frame[22]);
  if (seconds == 0 || nanoseconds >= kNanosPerSecond) return std::nullopt;
  return seconds * kNanosPerSecond + nanoseconds;
}

std::optional<int64_t> readA7280MacTime(const PacketView& packet, int64_t limitNs) {
  constexpr uint16_t kLldp = 0x88CC;  // made by the switch, under its real address
  const auto frame = packet.captured;
  if (linkTypeOf(packet.linkTypeWord) != kLinkTypeEthernet || frame.size() < 12) {
    return std::nullopt;
  }
  if (frame.size() >= 14 && loadBe16(&frame[12]) == kLldp) return std::nullopt;
  const uint32_t nanoseconds = loadBe32(&frame[8]);
  if (nanoseconds >= kNanosPerSecond) return std::nullopt;
  const int64_t timeNs = nearestTo(packet.nicNs, loadBe16(&frame[6]), nanoseconds);
  if (std::abs(timeNs - packet.nicNs) > limitNs) return std::nullopt;
  return timeNs;
}

}  // namespace capfleet
