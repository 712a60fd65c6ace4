// The sieve of a block says of most addresses that no packet of the block bears them, so that a
// filter for an address passes over the block unread. A piece of <number>.sieve. See FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "packet/address_words.h"
#include "store/segment_index.h"

namespace capfleet {

/// The four bits that stand for an address word in a sieve, 16 bits for each: a sieve of fewer bits
/// takes the low ones.
inline uint64_t sieveHash(AddressWord word) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t hash = (uint64_t{static_cast<uint8_t>(word.part)} << 32 | word.value) * kMultiplier;
  hash = (hash ^ hash >> 32) * kMultiplier;
  return hash ^ hash >> 32;
}

/// Borrows its bits from the bytes that it was parsed from.
class BlockSieve {
 public:
  /// `bits` are as many bytes as a power of two.
  explicit BlockSieve(std::span<const uint8_t> bits) : bits_(bits) {}

  /// False only when no packet of the block bears the word.
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

/// Appends the sieve of a block of Ethernet frames to `out`; `number` is that of its entry, from 0
/// on. REQUIRES: the bytes are whole records, and their checksum is that of the entry.
void appendSieve(std::vector<uint8_t>& out, uint32_t number, std::span<const uint8_t> block,
                 const BlockEntry& entry);

/// No sieve takes more bytes of the file.
inline constexpr size_t kMaxStoredSieveBytes = 16 + 2048;

struct StoredSieve {
  uint32_t number;  ///< of the block's entry
  size_t bytes;     ///< that it takes of the file
  BlockSieve sieve;
};

/// Which sieve the bytes begin with, as far as they tell; its checksum is not compared. Nothing
/// when they are no whole sieve.
struct SieveHeader {
  uint32_t number;  ///< of the block's entry
  size_t bytes;     ///< that it takes of the file
};
std::optional<SieveHeader> parseSieveHeader(std::span<const uint8_t> bytes);

/// Whether the sieve, of which these are all bytes, is that of a block with this checksum.
bool isSieveOf(std::span<const uint8_t> sieve, uint64_t blockChecksum);

/// The sieve that the bytes begin with. Nothing when it is damaged or of a block that is not one of
/// these. That of a damaged block without a checksum may be another one's: no reader uses it.
std::optional<StoredSieve> parseSieve(std::span<const uint8_t> bytes,
                                      std::span<const BlockEntry> blocks);

}  // namespace capfleet
