#include "store/block_checksum.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace capfleet {

uint64_t blockChecksum(std::span<const uint8_t> bytes, uint64_t seed) {
  // On x86 the header above makes these names refer to the dispatching functions.
  if (seed == 0) return XXH3_64bits(bytes.data(), bytes.size());
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace capfleet
