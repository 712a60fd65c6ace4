#include "vendor_time/a7130_trailer.h"

#include <cstdlib>

#include "os/byte_order.h"
#include "packet/pcap_format.h"
#include "vendor_time/trailer_search.h"

namespace capfleet {

namespace {

constexpr size_t kEthernetHeaderBytes = 14;
constexpr size_t kFixedBytes = 12;  // seconds, nanoseconds, flags, device, port: always the last
constexpr size_t kOriginalFcsBytes = 4;
constexpr uint8_t kHasExtensions = 0x02;
constexpr int64_t kFarthestNs = int64_t{30} * 24 * 3600 * kNanosPerSecond;

/// The trailer of one device.
struct Hop {
  int64_t timeNs;
  uint16_t device;
  uint8_t port;
  /// Offset of its first byte, where a trailer of the previous hop ends. Nullopt: the extensions
  /// are invalid, so only the fixed bytes are known.
  std::optional<size_t> begin;
};

/// Steps backwards over the extensions that end at `end`. Each ends in a word that says how many
/// words precede it, and whether it is the last.
std::optional<size_t> beginOfExtensions(std::span<const uint8_t> frame, size_t end) {
  constexpr uint32_t kLongForm = 0x1F;
  constexpr uint32_t kIsLast = 0x20;
  while (end >= kEthernetHeaderBytes + 4) {
    const uint32_t word = loadBe32(&frame[end - 4]);
    const bool isLong = (word & 0x1F) == kLongForm;
    const size_t before = 4 * (isLong ? ((word >> 6) & 0x3FF) + 1 : (word >> 6) & 3);
    end -= 4;
    if (before > end) return std::nullopt;
    end -= before;
    if ((word & kIsLast) != 0) return end;
  }
  return std::nullopt;
}

std::optional<size_t> beginOfTrailer(std::span<const uint8_t> frame, uint8_t flags) {
  const size_t fixed = frame.size() - kFixedBytes;
  const auto extensions = (flags & kHasExtensions) != 0 ? beginOfExtensions(frame, fixed) : fixed;
  if (!extensions || *extensions < kEthernetHeaderBytes + kOriginalFcsBytes) return std::nullopt;
  return *extensions - kOriginalFcsBytes;
}

/// The trailer that ends where `frame` does.
std::optional<Hop> readHop(std::span<const uint8_t> frame, int64_t nicNs) {
  if (frame.size() < kEthernetHeaderBytes + kOriginalFcsBytes + kFixedBytes) return std::nullopt;
  const uint8_t* fixed = &frame[frame.size() - kFixedBytes];
  const int64_t seconds = loadBe32(fixed);
  const int64_t nanoseconds = loadBe32(fixed + 4);
  if (nanoseconds >= kNanosPerSecond || seconds <= 3600) return std::nullopt;
  const int64_t timeNs = seconds * kNanosPerSecond + nanoseconds;
  if (std::abs(timeNs - nicNs) > kFarthestNs) return std::nullopt;
  return Hop{timeNs, loadBe16(fixed + 9), fixed[11], beginOfTrailer(frame, fixed[8])};
}

}  // namespace

std::optional<A7130Trailer> readA7130Trailer(const PacketView& packet) {
  return findTrailer(packet, [&](std::span<const uint8_t> frame) -> std::optional<A7130Trailer> {
    const auto last = readHop(frame, packet.nicNs);
    if (!last) return std::nullopt;
    Hop first = *last;
    while (first.begin) {
      // The FCS after the trailer of the previous hop is the first field of this one.
      const auto before = readHop(frame.first(*first.begin), packet.nicNs);
      if (!before) break;
      first = *before;
    }
    return A7130Trailer{first.timeNs, first.device, first.port, last->device};
  });
}

}  // namespace capfleet
