#include "vendor_time/c3550_trailer.h"

#include <cstdlib>

#include "os/byte_order.h"
#include "packet/pcap_format.h"
#include "vendor_time/trailer_search.h"

namespace capfleet {

namespace {

constexpr size_t kEthernetHeaderBytes = 14;
constexpr size_t kTrailerBytes = 16;
constexpr int64_t kFarthestNs = int64_t{7} * 24 * 3600 * kNanosPerSecond;

/// Nanoseconds of a 40-bit fraction of a second, rounded down. The whole product needs 70 bits, so
/// it is computed from the upper 32 bits and the lower 8: floor(floor(x / 2^8) / 2^32) = floor(x /
/// 2^40).
int64_t nanosOfFraction(const uint8_t* fraction) {
  const uint64_t high = loadBe32(fraction);
  const uint64_t low = fraction[4];
  const uint64_t scaled = high * 1'000'000'000 + (low * 1'000'000'000 >> 8);
  return static_cast<int64_t>(scaled >> 32);
}

}  // namespace

std::optional<C3550Trailer> readC3550Trailer(const PacketView& packet) {
  return findTrailer(packet, [&](std::span<const uint8_t> frame) -> std::optional<C3550Trailer> {
    if (frame.size() < kEthernetHeaderBytes + kTrailerBytes) return std::nullopt;
    const uint8_t* trailer = &frame[frame.size() - kTrailerBytes];
    const int64_t timeNs =
        int64_t{loadBe32(trailer + 6)} * kNanosPerSecond + nanosOfFraction(trailer + 10);
    if (std::abs(timeNs - packet.nicNs) > kFarthestNs) return std::nullopt;
    return C3550Trailer{timeNs, trailer[4], trailer[5]};
  });
}

}  // namespace capfleet
