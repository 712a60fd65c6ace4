#include "merge/record_hash.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace capfleet {

namespace {
constexpr size_t kTimestampBytes = 8;
}

uint64_t hashBytes(std::span<const uint8_t> bytes, uint64_t seed) {
  // On x86 the header above makes this name refer to the dispatching function.
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t hashRecord(std::span<const uint8_t> record, uint64_t seed) {
  return hashBytes(record.subspan(kTimestampBytes), seed);
}

}  // namespace capfleet
