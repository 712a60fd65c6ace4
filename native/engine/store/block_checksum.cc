#include "store/block_checksum.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace capfleet {

uint64_t blockChecksum(std::span<const uint8_t> bytes) {
  // On x86 the header above makes this name mean the choosing function.
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace capfleet
