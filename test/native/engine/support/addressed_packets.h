// Frames with few addresses, in the right places or where they do not belong, whole or cut off.
#pragma once

#include <array>
#include <random>
#include <string>

#include "packet/pcap_format.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// The addresses that packets and filters of these tests use.
inline constexpr uint32_t kAddressCount = 6;

inline Bytes ipv4Address(uint32_t i) {
  return {10, 0, static_cast<uint8_t>(i / 3), static_cast<uint8_t>(i)};
}
inline std::string ipv4Text(uint32_t i) {
  return "10.0." + std::to_string(i / 3) + "." + std::to_string(i);
}

/// Some share their first words, and two differ only in the first one.
inline Bytes ipv6Address(uint32_t i) {
  Bytes address(16);
  address[0] = 0x20;
  address[1] = i == 5 ? 2 : 1;
  address[7] = static_cast<uint8_t>(i / 2);
  address[15] = static_cast<uint8_t>(i == 5 ? 4 : i);
  return address;
}
inline std::string ipv6Text(uint32_t i) {
  return std::string(i == 5 ? "2002" : "2001") + ":0:0:" + std::to_string(i / 2) +
         ":0:0:0:" + std::to_string(i == 5 ? 4 : i);
}

/// Appends a frame as a record.
inline void appendRecord(Bytes& block, const Bytes& captured) {
  Bytes header(kRecordHeaderBytes);
  const auto bytes = static_cast<uint32_t>(captured.size());
  storeRecordHeader(header.data(), {1'700'000'000'000'000'000, bytes, bytes});
  append(block, header);
  append(block, captured);
}

inline Bytes ipv4Frame(uint32_t source, uint32_t destination) {
  Bytes frame(64);
  frame[12] = 8;
  storeLe32(&frame[26], __builtin_bswap32(source));
  storeLe32(&frame[30], __builtin_bswap32(destination));
  return frame;
}

inline void putBytes(Bytes& packet, size_t at, const Bytes& bytes) {
  for (const uint8_t byte : bytes) {
    if (at < packet.size()) packet[at] = byte;
    at++;
  }
}

/// A frame whose bytes after the EtherTypes are random, except for address-like values at the right
/// places, at wrong ones, or at those of another protocol. Often shorter than it should be.
inline Bytes addressedFrame(std::mt19937_64& random) {
  static constexpr std::array<uint16_t, 9> kTypes = {0x0800, 0x0800, 0x0800, 0x86DD, 0x86DD,
                                                     0x0806, 0x8035, 0x8847, 0x0042};
  static constexpr std::array<uint16_t, 4> kTags = {0x8100, 0x88A8, 0x9100, 0x9200};
  Bytes packet(40 + randomBelow(random, 60));
  for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random() % 3 == 0 ? random() : 0);
  size_t at = 12;
  for (size_t tags = random() % 2 == 0 ? 0 : randomBelow(random, 5); tags > 0; tags--, at += 4) {
    const uint16_t tag = kTags[randomBelow(random, kTags.size())];
    putBytes(packet, at, {static_cast<uint8_t>(tag >> 8), static_cast<uint8_t>(tag), 0, 7});
  }
  const uint16_t type = kTypes[randomBelow(random, kTypes.size())];
  putBytes(packet, at, {static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type)});
  if (type == 0x0800) {
    putBytes(packet, at + 2,
             {0x45, 0, 0, 60, 0, 0, static_cast<uint8_t>(random() % 8 == 0 ? 0x20 : 0), 0, 64,
              static_cast<uint8_t>(random() % 2 == 0 ? 6 : 17)});
  }
  for (const size_t offset : {14u, 18u, 16u, 26u, 10u}) {
    if (random() % 3 != 0) continue;
    const auto i = static_cast<uint32_t>(randomBelow(random, kAddressCount));
    putBytes(packet, at + offset + (random() % 8 == 0 ? random() % 8 : 0), ipv4Address(i));
  }
  if (type == 0x86DD || random() % 8 == 0) {
    for (const size_t offset : {10u, 26u}) {
      const auto i = static_cast<uint32_t>(randomBelow(random, kAddressCount));
      putBytes(packet, at + offset, ipv6Address(i));
    }
  }
  if (random() % 4 == 0) packet.resize(randomBelow(random, packet.size() + 1));
  return packet;
}

/// A libpcap expression about some of these addresses and their usual context.
inline std::string addressFilter(std::mt19937_64& random, int depth = 3) {
  const auto i = static_cast<uint32_t>(randomBelow(random, kAddressCount));
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[randomBelow(random, from.size())];
  };
  if (depth > 0 && random() % 3 != 0) {
    const std::string left = addressFilter(random, depth - 1);
    const std::string right = addressFilter(random, depth - 1);
    return pick({"(" + left + ") and (" + right + ")", "(" + left + ") or (" + right + ")",
                 "not (" + left + ")", "(" + left + ") and not (" + right + ")",
                 "vlan and (" + left + ")", "(" + left + ") or (vlan and (" + right + "))",
                 "vlan and vlan and (" + left + ")", "mpls and (" + left + ")"});
  }
  const std::string v4 = ipv4Text(i);
  const std::string v6 = ipv6Text(i);
  return pick({"host " + v4,
               "host " + v4,
               "src host " + v4,
               "dst host " + v4,
               "ip host " + v4,
               "arp host " + v4,
               "rarp host " + v4,
               "ip6 host " + v6,
               "host " + v6,
               "src host " + v6,
               "dst " + v6,
               "net 10.0.0.0/24",
               "net 10.0.0.0/30",
               "ip6 net 2001::/32",
               "ip6 net 2001:0:0:1::/64",
               "host " + v4 + " and port 53",
               "tcp",
               "ip",
               "ip6",
               "arp",
               "vlan",
               "vlan 7",
               "ip[12:4] = 0x0a000001",
               "ip[16:4] != 0x0a000001",
               "ether[26:4] = 0x0a000001",
               "ether[12:2] = 0x0800 and ether[30:4] = 0x0a000102",
               "ether[30:4] > 0x0a000001",
               "ip[6:2] & 0x1fff = 0",
               "len > 60",
               "ether[14:4] = 0x45000000",
               "ether[len - 4:4] = 0x0a000001"});
}

}  // namespace capfleet::test
