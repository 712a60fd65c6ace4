// Where a stored packet comes from.
#pragma once

#include <cstdint>

namespace capfleet {

struct PacketOrigin {
  uint32_t linkTypeWord = 0;
  uint32_t stream = 0;  ///< index of the download's stream
  uint32_t port = 0;    ///< capture port
};

}  // namespace capfleet
