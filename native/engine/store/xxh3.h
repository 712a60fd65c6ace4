// XXH3-64, the checksum of index parts, blocks and tallies, at once or in pieces.
#pragma once

// Pieces need the state's full definition; inlining lets the compiler use the widest vectors.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <span>

namespace capfleet {

inline uint64_t xxh3(std::span<const uint8_t> bytes, uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

/// XXH3-64 of bytes that come in pieces; equal to xxh3() of them all. Not thread-safe.
class Xxh3Stream {
 public:
  Xxh3Stream() { reset(); }
  void reset() { XXH3_64bits_reset(&state_); }
  void add(std::span<const uint8_t> bytes) {
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace capfleet
