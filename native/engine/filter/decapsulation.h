// Packets without the headers around what they carry: the innermost packet of a tunnel, which
// FilterBPFDecap applies to, or what Strip leaves of a packet.
//
// At most 16 headers are read; anything truncated, encrypted, unknown or invalid ends the search at
// the frame reached so far.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "packet/link_header.h"
#include "packet/packet_view.h"

namespace capfleet {

/// Kinds of headers, to be combined.
using HeaderKinds = uint8_t;
/// 802.1Q and QinQ tags, and VN-Tag.
inline constexpr HeaderKinds kTags = 1;
/// MPLS, including the control word and the Ethernet header around an Ethernet frame in it.
inline constexpr HeaderKinds kLabels = 2;
/// PPPoE, IP in IP, GRE (IP, Ethernet, MPLS, PPP of PPTP, ERSPAN I, II and III), VXLAN, VXLAN-GPE,
/// GENEVE, GTP-U, CAPWAP data with Ethernet or IEEE 802.11; with everything in front of them.
inline constexpr HeaderKinds kTunnels = 4;
/// The time header D28B of vendor A, security group tags, LLC/SNAP.
inline constexpr HeaderKinds kOtherHeaders = 8;
inline constexpr HeaderKinds kAllHeaders = kTags | kLabels | kTunnels | kOtherHeaders;

/// A packet in pieces, which are one after the other. They point into the packet that it was made
/// from.
struct StrippedPacket {
  std::span<const uint8_t> head;      ///< up to the type field
  std::array<uint8_t, 2> type{};      ///< the type field
  size_t typeBytes = 0;               ///< 2, or 0 if only `payload` has bytes
  std::span<const uint8_t> headRest;  ///< of the link-layer header, after the type field
  std::span<const uint8_t> payload;
  uint32_t originalLength = 0;

  size_t size() const { return head.size() + typeBytes + headRest.size() + payload.size(); }
  /// Writes the first `bytes` bytes. REQUIRES: at most size().
  void store(uint8_t* out, size_t bytes) const;
};

/// The packet without headers of these kinds, for the same link type. Tags and labels are those in
/// front of the first network packet, unless tunnels are removed too: then also those inside.
///
/// A packet that had no link-layer header of its own gets the nearest one around it; in cooked
/// captures every packet keeps that of the outermost one, with another type. A raw IP packet is
/// only replaced by one of a version that the link type allows. Bytes after the inner packet (FCS,
/// trailers) stay. The original length is reduced by what was removed, and not below 0. Packets of
/// other link types than those of linkHeaderOf() stay unchanged.
StrippedPacket withoutHeaders(const PacketView& packet, HeaderKinds removed);

/// What a packet carries, after tags, labels and other headers of its link layer. Borrowed bytes.
struct NetworkPacket {
  uint16_t type;  ///< an EtherType
  std::span<const uint8_t> bytes;
};

/// Null for other link types than those of linkHeaderOf(), and for packets that are shorter than
/// the header of their link layer.
std::optional<NetworkPacket> networkPacketOf(const PacketView& packet);

/// A frame as a filter sees it. Borrowed bytes.
struct FilterView {
  std::span<const uint8_t> captured;
  uint32_t originalLength;  ///< `len` in filters
};

/// Buffer for a frame that does not exist contiguously. One per thread or scan; reused for every
/// packet.
struct DecapScratch {
  std::vector<uint8_t> bytes;
};

/// The packet without headers of all kinds, in one piece: in `packet` or in `scratch`, and valid
/// while both are unchanged. A packet from which nothing is removed is its own view, with the same
/// pointer.
FilterView decapsulate(const PacketView& packet, DecapScratch& scratch);

}  // namespace capfleet
