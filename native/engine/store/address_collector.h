// Collects the addresses of a segment while it is written, for its capture's address tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "packet/address_words.h"

namespace capfleet {

/// A line of 512 bits, of which a key sets four. The last one is never set, because a page of a
/// table has its checksum in that place.
inline constexpr size_t kLineWords = 8;
inline constexpr uint32_t kLineBits = 511;
/// A key is in the line with the number `lineOf(key) % lines`.
inline constexpr uint32_t kMostLines = 16'384;
/// Lines are looked at in parts of this size, a page of memory.
inline constexpr size_t kPartWords = 512;

inline uint32_t lineOf(uint64_t key) { return static_cast<uint32_t>(key >> 36); }

/// Calls `visit(bit)` for the four bits of a key in its line.
template <typename Visit>
void forEachBitOf(uint64_t key, Visit visit) {
  for (int probe = 0; probe < 4; probe++, key >>= 9) {
    const auto piece = static_cast<uint32_t>(key & kLineBits);
    visit(piece == kLineBits ? 0 : piece);
  }
}

/// Which words came lately, exactly: packets mostly have the addresses of others before them.
template <uint32_t kBits>
class RecentWords {
 public:
  RecentWords() { words_[slotOf(0)] = 1; }

  /// Whether the word was not among the recent ones; it is now.
  bool isNew(uint32_t word) {
    uint32_t& recent = words_[slotOf(word)];
    if (recent == word) return false;
    recent = word;
    return true;
  }

 private:
  static uint32_t slotOf(uint32_t word) { return word * 0x9E3779B1u >> (32 - kBits); }
  std::array<uint32_t, size_t{1} << kBits> words_{};
};

/// Takes 1.1 MiB. Not thread-safe.
class AddressCollector {
 public:
  AddressCollector();

  /// Adds a word of the present frame. REQUIRES: the words of a frame come in its order.
  void add(AddressWord word) {
    if (word.part == AddressPart::kIpv4) {
      if (recent4_.isNew(word.value)) addIpv4(word.value);
      return;
    }
    if (word.part == AddressPart::kIpv6First) endFrame();
    pending_[pendingWords_++] = word.value;
    if (pendingWords_ == pending_.size()) addIpv6();
  }

  /// No further word of the frame follows.
  void endFrame() {
    if (pendingWords_ > 0) addPending();
  }

  /// Adds all frames of a block, which are whole records.
  void addBlock(std::span<const uint8_t> block);

  /// The lines of a segment with this size: as few as keep false matches rare. None if it has too
  /// many addresses for its size. Call it once.
  std::vector<uint64_t> takeLines(uint64_t segmentBytes);

 private:
  void addIpv4(uint32_t address);
  void addIpv6();
  void addPending();
  void set(uint64_t key);

  struct Free {
    void operator()(uint64_t* p) const;
  };
  /// Whether a bit may be set in the part that begins with this word.
  bool& isTouched(size_t word) { return touched_[word / kPartWords]; }

  std::unique_ptr<uint64_t[], Free> words_;  ///< kMostLines lines
  std::array<bool, kMostLines * kLineWords / kPartWords> touched_{};
  RecentWords<14> recent4_;
  RecentWords<10> recentNets24_;
  RecentWords<8> recentNets16_;
  struct Ipv6 {
    uint64_t high;
    uint64_t low;
  };
  std::array<Ipv6, 1024> recent6_{};
  std::array<uint32_t, 4> pending_{};  ///< words of an address of IPv6
  size_t pendingWords_ = 0;
};

}  // namespace capfleet
