// The link types in whose packets network packets are found, and how their packets begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "packet/pcap_format.h"

namespace capfleet {

inline constexpr uint16_t kIpv4Type = 0x0800;
inline constexpr uint16_t kIpv6Type = 0x86dd;

/// What precedes the network packet.
struct LinkHeader {
  size_t bytes;   ///< length of the header
  size_t typeAt;  ///< offset of the EtherType; meaningless if `isRawIp`
  bool isRawIp;   ///< no header: the packet begins with IPv4 or IPv6
  /// The only version of IP that packets of this link type may have; 0: both, or any type.
  unsigned onlyVersion;
};

/// Null for link types in whose packets nothing is found.
inline std::optional<LinkHeader> linkHeaderOf(uint32_t linkTypeWord) {
  switch (linkTypeOf(linkTypeWord)) {
    case kLinkTypeEthernet:
      return LinkHeader{14, 12, false, 0};
    case 12:   // raw IP, as some programs write it
    case 101:  // raw IP
      return LinkHeader{0, 0, true, 0};
    case 113:  // Linux cooked
      return LinkHeader{16, 14, false, 0};
    case 228:
      return LinkHeader{0, 0, true, 4};
    case 229:
      return LinkHeader{0, 0, true, 6};
    case 276:  // Linux cooked, version 2
      return LinkHeader{20, 0, false, 0};
    default:
      return std::nullopt;
  }
}

}  // namespace capfleet
