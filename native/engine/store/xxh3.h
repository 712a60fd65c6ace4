// XXH3-64, the checksum of index parts, blocks, tallies and sieves.
#pragma once

// Inlining lets the compiler use the widest vectors.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <span>

namespace capfleet {

inline uint64_t xxh3(std::span<const uint8_t> bytes, uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace capfleet
