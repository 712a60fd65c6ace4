// The frame that FilterBPFDecap applies to: the innermost one of a tunnelled packet.
//
// Stripped headers: 802.1Q and QinQ tags, VN-Tag, the time header D28B of vendor A, LLC/SNAP, MPLS,
// PPPoE, IP in IP, GRE (IP, Ethernet, MPLS, PPP of PPTP, ERSPAN I, II and III), VXLAN, VXLAN-GPE,
// GENEVE, GTP-U, CAPWAP data with Ethernet or IEEE 802.11. At most 16 headers; anything truncated,
// encrypted, unknown or invalid ends the search at the frame reached so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packet/packet_view.h"

namespace capfleet {

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

/// The innermost frame of an Ethernet packet, tags removed, always beginning with an Ethernet
/// header: inner packets that start at IP get one with the addresses of the nearest Ethernet header
/// around them. Bytes after the inner packet (FCS, trailers) stay in the view; `originalLength` is
/// reduced by as many bytes as the view lost in front. The view points into `packet` or into
/// `scratch` and is valid while both are unchanged. A packet without tunnel or tag, and one of
/// another link type (filters are compiled for the link type of the capture), is its own view, with
/// the same pointer.
FilterView decapsulate(const PacketView& packet, DecapScratch& scratch);

}  // namespace capfleet
