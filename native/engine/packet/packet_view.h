// A stored packet as the filters and the vendor clocks see it.
#pragma once

#include <cstdint>
#include <span>

namespace capfleet {

/// The whole stored record, before any filter or slice. Borrowed: the bytes belong to the creator
/// of the view.
struct PacketView {
  std::span<const uint8_t> captured;
  uint32_t originalLength;
  int64_t nicNs;          ///< the stored timestamp: 0 <= nicNs < kTimestampEndNs
  uint32_t linkTypeWord;  ///< link type word of the packet's segment, including FCS bits
  uint32_t stream;        ///< index of the download's stream
  uint32_t port;          ///< capture port
};

}  // namespace capfleet
