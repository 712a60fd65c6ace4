// XXH3-64 of a whole block or its sieve, with the widest vectors that this processor supports. The
// value is that of xxh3.h; only for this many bytes is the run-time dispatch worthwhile.
#pragma once

#include <cstdint>
#include <span>

namespace capfleet {

uint64_t blockChecksum(std::span<const uint8_t> bytes, uint64_t seed = 0);

}  // namespace capfleet
