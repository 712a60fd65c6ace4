// XXH3-64 of a whole block, with the widest vectors that this processor has. The value is that of
// xxh3.h; only blocks are worth the choice at run time.
#pragma once

#include <cstdint>
#include <span>

namespace capfleet {

uint64_t blockChecksum(std::span<const uint8_t> bytes);

}  // namespace capfleet
