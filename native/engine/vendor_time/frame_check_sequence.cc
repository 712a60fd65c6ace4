#include "vendor_time/frame_check_sequence.h"

#include <isa-l/crc.h>

#include "os/byte_order.h"

namespace capfleet {

bool endsInCorrectFcs(std::span<const uint8_t> frame) {
  if (frame.size() <= kFcsBytes) return false;
  const size_t covered = frame.size() - kFcsBytes;
  return crc32_gzip_refl(0, frame.data(), covered) == loadLe32(frame.data() + covered);
}

}  // namespace capfleet
