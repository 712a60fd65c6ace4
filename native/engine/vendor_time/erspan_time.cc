#include "vendor_time/erspan_time.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "os/byte_order.h"
#include "packet/ethernet_payload.h"
#include "packet/pcap_format.h"
#include "vendor_time/frame_check_sequence.h"

namespace capfleet {

namespace {

constexpr int64_t kFarthestAbsoluteNs = int64_t{7} * 24 * 3600 * kNanosPerSecond;
constexpr int64_t kFarthestCounterNs = kNanosPerSecond;
constexpr unsigned kCounterBits = 32;
/// An attacker can invent sessions; those beyond this many keep their NIC time.
constexpr size_t kMaxSessions = 65'536;
constexpr uint8_t kIpProtocolGre = 47;

enum Granularity : uint8_t { k100Micros, k100Nanos, kIeee1588, kVendor };

/// The payload after the packet's outer IP header, and that header's source.
struct OuterPayload {
  std::array<uint8_t, 16> source{};
  uint8_t ipVersion;
  uint8_t protocol;
  std::span<const uint8_t> bytes;
};

std::optional<OuterPayload> ipv4Payload(std::span<const uint8_t> ip) {
  if (ip.size() < 20) return std::nullopt;
  const size_t headerBytes = size_t{4} * (ip[0] & 0x0F);
  const bool isFirstFragment = (loadBe16(&ip[6]) & 0x1FFF) == 0;
  if (headerBytes < 20 || headerBytes > ip.size() || !isFirstFragment) return std::nullopt;
  OuterPayload outer{.ipVersion = 4, .protocol = ip[9], .bytes = ip.subspan(headerBytes)};
  std::memcpy(&outer.source[12], &ip[12], 4);
  return outer;
}

std::optional<OuterPayload> ipv6Payload(std::span<const uint8_t> ip) {
  constexpr size_t kHeaderBytes = 40;
  constexpr int kMostExtensions = 8;
  if (ip.size() < kHeaderBytes) return std::nullopt;
  OuterPayload outer{.ipVersion = 6, .protocol = ip[6], .bytes = ip.subspan(kHeaderBytes)};
  std::memcpy(outer.source.data(), &ip[8], 16);
  for (int i = 0; i < kMostExtensions && outer.protocol != kIpProtocolGre; i++) {
    const auto extension = outer.bytes;
    if (extension.size() < 8) return std::nullopt;
    size_t bytes = 8;
    switch (outer.protocol) {
      case 0:   // hop-by-hop options
      case 43:  // routing
      case 60:  // destination options
        bytes = size_t{8} * (extension[1] + 1U);
        break;
      case 44:  // fragment
        if ((loadBe16(&extension[2]) & 0xFFF8) != 0) return std::nullopt;
        break;
      case 51:  // authentication
        bytes = size_t{4} * (extension[1] + 2U);
        break;
      default:
        return std::nullopt;
    }
    if (bytes > extension.size()) return std::nullopt;
    outer.protocol = extension[0];
    outer.bytes = extension.subspan(bytes);
  }
  return outer;
}

std::optional<OuterPayload> outerPayload(std::span<const uint8_t> frame) {
  const auto payload = ethernetPayload(frame);
  if (!payload || payload->bytes.empty()) return std::nullopt;
  const int version = payload->bytes[0] >> 4;
  if (payload->etherType == 0x0800 && version == 4) return ipv4Payload(payload->bytes);
  if (payload->etherType == 0x86DD && version == 6) return ipv6Payload(payload->bytes);
  return std::nullopt;
}

/// The ERSPAN header in a GRE packet, or empty.
std::span<const uint8_t> erspanOf(std::span<const uint8_t> gre) {
  constexpr uint16_t kHasChecksum = 0x8000, kHasRouting = 0x4000, kHasKey = 0x2000,
                     kHasSequence = 0x1000, kVersion = 0x0007, kErspan3 = 0x22EB;
  if (gre.size() < 4 || loadBe16(&gre[2]) != kErspan3) return {};
  const uint16_t flags = loadBe16(gre.data());
  if ((flags & (kVersion | kHasRouting)) != 0) return {};
  size_t bytes = 4;
  for (const uint16_t field : {kHasChecksum, kHasKey, kHasSequence}) {
    if ((flags & field) != 0) bytes += 4;
  }
  return bytes <= gre.size() ? gre.subspan(bytes) : std::span<const uint8_t>{};
}

bool isNear(int64_t timeNs, int64_t nicNs, int64_t limitNs) {
  return std::abs(timeNs - nicNs) <= limitNs;
}

int64_t nearestSecond(int64_t nicNs, int64_t nanoseconds) {
  const int64_t sameSecond = nicNs / kNanosPerSecond * kNanosPerSecond + nanoseconds;
  if (sameSecond - nicNs > kNanosPerSecond / 2) return sameSecond - kNanosPerSecond;
  if (nicNs - sameSecond > kNanosPerSecond / 2) return sameSecond + kNanosPerSecond;
  return sameSecond;
}

/// Vendors' units differ. The two known ones, 1 ns and 2.4 ns, are distinguished by the counter's
/// distance since the session's first packet; within less than a millisecond that is unreliable.
std::optional<TickLength> vendorTick(uint32_t ticks, int64_t nicDistanceNs) {
  constexpr TickLength kOneNano{1, 1};
  constexpr TickLength kSlow{12, 5};
  if (nicDistanceNs < 1'000'000) return std::nullopt;
  const auto errorOf = [&](TickLength tick) {
    return std::abs(counterDistanceNs(ticks, kCounterBits, tick, nicDistanceNs) - nicDistanceNs);
  };
  return errorOf(kSlow) < errorOf(kOneNano) ? kSlow : kOneNano;
}

std::optional<TickLength> standardTick(uint8_t granularity) {
  if (granularity == k100Micros) return TickLength{100'000, 1};
  if (granularity == k100Nanos) return TickLength{100, 1};
  return std::nullopt;
}

}  // namespace

struct ErspanClock::Header {
  SessionKey key;
  uint32_t timestamp;
  bool hasUpperBits = false;  ///< `upper` continues `timestamp`
  bool hasSeconds = false;    ///< `upper` is seconds since 1970
  uint32_t upper = 0;
};

std::optional<ErspanClock::Header> ErspanClock::readHeader(const PacketView& packet) {
  constexpr size_t kHeaderBytes = 12;
  constexpr size_t kSubheaderBytes = 8;
  if (linkTypeOf(packet.linkTypeWord) != kLinkTypeEthernet) return std::nullopt;
  const auto outer = outerPayload(packet.captured);
  if (!outer || outer->protocol != kIpProtocolGre) return std::nullopt;
  const auto erspan = erspanOf(outer->bytes);
  if (erspan.size() < kHeaderBytes || erspan[0] >> 4 != 2) return std::nullopt;
  const auto session = static_cast<uint16_t>(loadBe16(&erspan[2]) & 0x3FF);
  const uint8_t flags = erspan[11];
  const auto granularity = static_cast<uint8_t>((flags >> 1) & 3);
  Header header{.key = {outer->source, outer->ipVersion, granularity, session},
                .timestamp = loadBe32(&erspan[4])};
  if ((flags & 1) == 0) return header;
  if (erspan.size() < kHeaderBytes + kSubheaderBytes) return std::nullopt;
  const int platform = erspan[12] >> 2;
  header.hasUpperBits = platform == 0 || platform == 3 || platform == 7;
  header.hasSeconds = platform == 5 || platform == 6;
  header.upper = loadBe32(&erspan[16]);
  return header;
}

std::optional<int64_t> ErspanClock::timeOf(const PacketView& packet) {
  const auto header = readHeader(packet);
  if (!header) return std::nullopt;
  if (header->key.granularity == kIeee1588) {
    const int64_t nanoseconds = header->timestamp;
    if (nanoseconds >= kNanosPerSecond) return std::nullopt;
    if (!header->hasSeconds) return nearestSecond(packet.nicNs, nanoseconds);
    const int64_t timeNs = int64_t{header->upper} * kNanosPerSecond + nanoseconds;
    if (!isNear(timeNs, packet.nicNs, kFarthestAbsoluteNs)) return std::nullopt;
    return timeNs;
  }
  if (header->key.granularity == kVendor && header->hasUpperBits) {
    const uint64_t timeNs = uint64_t{header->upper} << 32 | header->timestamp;
    if (timeNs >= uint64_t{kTimestampEndNs}) return std::nullopt;
    const auto signedNs = static_cast<int64_t>(timeNs);
    if (!isNear(signedNs, packet.nicNs, kFarthestAbsoluteNs)) return std::nullopt;
    return signedNs;
  }
  return freeRunningTime(*header, packet.nicNs);
}

std::optional<int64_t> ErspanClock::freeRunningTime(const Header& header, int64_t nicNs) {
  Session* session = findSession(header, nicNs);
  if (session == nullptr) return std::nullopt;
  const uint32_t ticks = header.timestamp - session->counter;
  const int64_t nicDistanceNs = nicNs - session->nicNs;
  if (!session->tick) session->tick = vendorTick(ticks, nicDistanceNs);
  if (!session->tick) return std::nullopt;
  const int64_t timeNs =
      session->nicNs + counterDistanceNs(ticks, kCounterBits, *session->tick, nicDistanceNs);
  if (!isNear(timeNs, nicNs, kFarthestCounterNs)) return std::nullopt;
  return timeNs;
}

/// The packet's session, created here if it is new; null if there are too many.
ErspanClock::Session* ErspanClock::findSession(const Header& header, int64_t nicNs) {
  const auto found = sessions_.find(header.key);
  if (found != sessions_.end()) return &found->second;
  if (sessions_.size() >= kMaxSessions) return nullptr;
  const Session begun{nicNs, header.timestamp, standardTick(header.key.granularity)};
  return &sessions_.emplace(header.key, begun).first->second;
}

}  // namespace capfleet
