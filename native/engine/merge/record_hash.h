// A 64-bit hash of packets, for finding equal ones.
#pragma once

#include <cstdint>
#include <span>

namespace capfleet {

/// XXH3 of the bytes, seeded: to hash several pieces in a row pass the previous hash. Fast, and not
/// resistant to deliberate collisions.
uint64_t hashBytes(std::span<const uint8_t> bytes, uint64_t seed);

/// hashBytes() of a PCAP record without its timestamp, which may have been rewritten.
uint64_t hashRecord(std::span<const uint8_t> record, uint64_t seed);

}  // namespace capfleet
