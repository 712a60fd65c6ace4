// Selects the next of several inputs: the one with the smallest key, the first of equal ones.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

namespace capfleet {

/// A tournament tree in which each inner node stores its loser, so that an increased key costs
/// log2(n) comparisons, and no branch on who wins: with many inputs a CPU would mispredict it every
/// other time, which costs more than everything else. Not thread-safe.
class MergeTree {
 public:
  /// The key of an input that has ended. No other input may have it.
  static constexpr int64_t kEnded = std::numeric_limits<int64_t>::max();

  /// REQUIRES: at least one key, and fewer than 2^31; all greater than the minimum of the type.
  explicit MergeTree(std::vector<int64_t> keys) {
    assert(!keys.empty());
    // In a complete tree, the inputs of a left branch precede those of the right one.
    keys.resize(std::bit_ceil(keys.size()), kEnded);
    size_ = static_cast<uint32_t>(keys.size());
    losers_.resize(size_);
    winner_ = play(1, keys);
  }

  uint32_t winner() const { return winner_.input; }
  int64_t winnerKey() const { return winner_.key; }
  bool hasEnded() const { return winner_.key == kEnded; }

  /// Gives the winner a new key, which must not be smaller.
  void replaceWinner(int64_t key) {
    uint32_t input = winner_.input;
    for (uint32_t at = input + size_; at > 1; at /= 2) {
      Player& loser = losers_[at / 2];
      const int64_t isRight = at % 2;
      // All bits set if they change places. Written so that no compiler turns it into a jump.
      const int64_t change = -int64_t{loser.key - isRight < key};
      const int64_t keys = (loser.key ^ key) & change;
      const uint32_t inputs = (loser.input ^ input) & static_cast<uint32_t>(change);
      loser.key ^= keys;
      loser.input ^= inputs;
      key ^= keys;
      input ^= inputs;
    }
    winner_ = {key, input};
  }

  /// The winner stays the winner while its next key is below this one.
  int64_t winnerStaysBelow() const {
    int64_t bound = kEnded;
    for (uint32_t at = winner_.input + size_; at > 1; at /= 2) {
      const int64_t key = losers_[at / 2].key;
      const bool isLeft = at % 2 == 0;
      bound = std::min(bound, key + (isLeft && key != kEnded ? 1 : 0));
    }
    return bound;
  }

 private:
  struct Player {
    int64_t key;
    uint32_t input;
  };

  Player play(uint32_t node, const std::vector<int64_t>& keys) {
    if (node >= size_) return {keys[node - size_], node - size_};
    const Player left = play(2 * node, keys);
    const Player right = play(2 * node + 1, keys);
    const bool isLeft = left.key <= right.key;
    losers_[node] = isLeft ? right : left;
    return isLeft ? left : right;
  }

  uint32_t size_;
  Player winner_{};
  std::vector<Player> losers_;  ///< by node; the first is unused
};

/// Decides when it pays to call winnerStaysBelow() and take several records of the winner at once:
/// usually inputs alternate after a few records, and only one that has won several times in a row
/// is likely to continue.
class WinStreak {
 public:
  /// Records who has the next record. Returns whether it has won often enough.
  bool isLongWith(uint32_t winner) {
    wins_ = winner == last_ ? wins_ + 1 : 1;
    last_ = winner;
    return wins_ >= kWinsBeforeRun;
  }

 private:
  static constexpr uint32_t kWinsBeforeRun = 4;
  static constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

  uint32_t last_ = kNobody;
  uint32_t wins_ = 0;
};

}  // namespace capfleet
