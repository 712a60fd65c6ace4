// The sieve of a block proves for most addresses that no packet of the block has them, so that a
// filter for an address can skip the block unread. Sieves are stored one after another in
// <number>.sieve. See FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "packet/address_words.h"
#include "store/address_collector.h"
#include "store/segment_index.h"

namespace capfleet {

/// The four bits that represent an address word in a sieve, 16 bits each: a sieve with fewer bits
/// uses the low ones.
inline uint64_t sieveHash(AddressWord word) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t hash = (uint64_t{static_cast<uint8_t>(word.part)} << 32 | word.value) * kMultiplier;
  hash = (hash ^ hash >> 32) * kMultiplier;
  return hash ^ hash >> 32;
}

/// Borrows its bits from the bytes that it was parsed from.
class BlockSieve {
 public:
  /// `bits` has a power of two bytes.
  explicit BlockSieve(std::span<const uint8_t> bits) : bits_(bits) {}

  /// False only if no packet of the block has the word.
  bool mayHold(AddressWord word) const {
    const size_t mask = bits_.size() * 8 - 1;
    uint64_t hash = sieveHash(word);
    for (int probe = 0; probe < 4; probe++, hash >>= 16) {
      const size_t bit = (hash & 0xFFFF) & mask;
      if ((bits_[bit / 8] >> (bit % 8) & 1) == 0) return false;
    }
    return true;
  }

 private:
  std::span<const uint8_t> bits_;
};

/// Appends the sieve of a block of Ethernet frames to `out`; `number` is that of its entry,
/// starting at 0. `collector` gets the same addresses, unless it is null. REQUIRES: the bytes are
/// whole records, and their checksum is that of the entry.
void appendSieve(std::vector<uint8_t>& out, uint32_t number, std::span<const uint8_t> block,
                 const BlockEntry& entry, AddressCollector* collector = nullptr);

/// The maximum size of a sieve in the file.
inline constexpr size_t kMaxStoredSieveBytes = 16 + 2048;

struct StoredSieve {
  uint32_t number;  ///< of the block's entry
  size_t bytes;     ///< its size in the file
  BlockSieve sieve;
};

/// Which sieve the bytes begin with, as far as they show; its checksum is not compared. Nothing if
/// they are not a whole sieve.
struct SieveHeader {
  uint32_t number;  ///< of the block's entry
  size_t bytes;     ///< its size in the file
};
std::optional<SieveHeader> parseSieveHeader(std::span<const uint8_t> bytes);

/// Whether the sieve that consists of exactly these bytes belongs to a block with this checksum.
bool isSieveOf(std::span<const uint8_t> sieve, uint64_t blockChecksum);

/// The sieve that the bytes begin with. Nothing if it is damaged or does not belong to one of these
/// blocks. The sieve of a damaged block without a checksum may belong to another block, so readers
/// do not use it.
std::optional<StoredSieve> parseSieve(std::span<const uint8_t> bytes,
                                      std::span<const BlockEntry> blocks);

}  // namespace capfleet
