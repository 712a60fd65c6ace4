#include "merge/duplicate_window.h"

#include <algorithm>
#include <cstring>

#include "filter/decapsulation.h"
#include "merge/record_hash.h"
#include "os/byte_order.h"
#include "packet/ethernet_payload.h"
#include "packet/link_header.h"

namespace capfleet {

namespace {

constexpr size_t kVlanTagBytes = 4;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;

}  // namespace

DuplicateWindow::DuplicateWindow(const DuplicateOptions& options)
    : options_(options), seen_(kRemembered), newest_(kRemembered) {}

uint64_t DuplicateWindow::originalOf(const Packet& packet) {
  fingerprint_ = fingerprintOf(packet);
  const uint64_t oldest = added_ < kRemembered ? 1 : added_ - kRemembered + 1;
  for (uint64_t number = newest_[fingerprint_.hash % kRemembered]; number >= oldest;) {
    const Seen& seen = seen_[number % kRemembered];
    if (packet.key - seen.key > options_.spanNs) return 0;
    if (seen.fingerprint == fingerprint_) return number;
    number = seen.before;
  }
  return 0;
}

void DuplicateWindow::add(const Packet& packet) {
  uint64_t& newest = newest_[fingerprint_.hash % kRemembered];
  added_++;
  seen_[added_ % kRemembered] = {packet.key, fingerprint_, newest};
  newest = added_;
}

DuplicateWindow::Fingerprint DuplicateWindow::fingerprintOf(const Packet& packet) const {
  if (options_.key == DuplicateKey::kIp) {
    if (const auto ofIp = fingerprintOfIp(packet)) return *ofIp;
  }
  const std::span<const uint8_t> payload = payloadOf(packet);
  return {hashBytes(payload, 0), static_cast<uint32_t>(payload.size())};
}

/// Null if there is no complete IP header after tags and labels.
std::optional<DuplicateWindow::Fingerprint> DuplicateWindow::fingerprintOfIp(const Packet& packet) {
  const auto captured = packet.captured;
  const PacketView whole{
      captured, static_cast<uint32_t>(captured.size()), 0, packet.linkTypeWord, 0, 0};
  const std::optional<NetworkPacket> network = networkPacketOf(whole);
  if (!network) return std::nullopt;
  const std::span<const uint8_t> ip = network->bytes;
  uint8_t header[kIpv6Bytes];
  size_t headerBytes = kIpv4Bytes;
  size_t length = ip.size();
  if (network->type == kIpv4Type && ip.size() >= kIpv4Bytes && ip[0] >> 4 == 4) {
    std::memcpy(header, ip.data(), headerBytes);
    header[8] = header[10] = header[11] = 0;  // TTL and checksum
    const size_t total = loadBe16(&ip[2]);
    if (total >= kIpv4Bytes) length = std::min(length, total);
  } else if (network->type == kIpv6Type && ip.size() >= kIpv6Bytes && ip[0] >> 4 == 6) {
    headerBytes = kIpv6Bytes;
    std::memcpy(header, ip.data(), headerBytes);
    header[7] = 0;  // hop limit
    const size_t total = loadBe16(&ip[4]);
    if (total > 0) length = std::min(length, kIpv6Bytes + total);
  } else {
    return std::nullopt;
  }
  const uint64_t ofHeader = hashBytes({header, headerBytes}, 1);
  const auto rest = ip.subspan(headerBytes, length - headerBytes);
  return Fingerprint{hashBytes(rest, ofHeader), static_cast<uint32_t>(length)};
}

std::span<const uint8_t> DuplicateWindow::payloadOf(const Packet& packet) {
  const auto captured = packet.captured;
  const auto link = linkHeaderOf(packet.linkTypeWord);
  if (!link) return captured;
  size_t payload = link->bytes;
  size_t typeAt = link->typeAt;
  while (!link->isRawIp && payload <= captured.size() && isVlanTag(loadBe16(&captured[typeAt]))) {
    payload += kVlanTagBytes;
    typeAt = payload - 2;
  }
  return captured.subspan(std::min(payload, captured.size()));
}

}  // namespace capfleet
