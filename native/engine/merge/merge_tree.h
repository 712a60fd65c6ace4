// Chooses the next of several inputs: the one with the smallest key, the first of equal ones.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

namespace capfleet {

/// A tournament in which each inner node remembers who lost there, so that a key that grows costs
/// log2(n) comparisons, and no branch on who wins: among many inputs a core would guess it wrong
/// every other time, which costs more than all the rest. Not thread-safe.
class MergeTree {
 public:
  /// The key of an input that has ended. No other may have it.
  static constexpr int64_t kEnded = std::numeric_limits<int64_t>::max();

  /// REQUIRES: at least one key, and fewer than 2^31; all greater than the least that there is.
  explicit MergeTree(std::vector<int64_t> keys) {
    assert(!keys.empty());
    // With a whole tree, inputs of a left branch stand before those of the right one.
    keys.resize(std::bit_ceil(keys.size()), kEnded);
    size_ = static_cast<uint32_t>(keys.size());
    losers_.resize(size_);
    winner_ = play(1, keys);
  }

  uint32_t winner() const { return winner_.input; }
  int64_t winnerKey() const { return winner_.key; }
  bool hasEnded() const { return winner_.key == kEnded; }

  /// Gives the winner a new key, which is not smaller.
  void replaceWinner(int64_t key) {
    uint32_t input = winner_.input;
    for (uint32_t at = input + size_; at > 1; at /= 2) {
      Player& loser = losers_[at / 2];
      const int64_t isRight = at % 2;
      // All bits set where they change places. Written so that no compiler makes it a jump.
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

  /// The winner stays the winner as long as its next key is below this one.
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
  std::vector<Player> losers_;  ///< by node; the first is not used
};

/// Says when it pays to ask winnerStaysBelow() and to take several records of the winner at once:
/// mostly inputs alternate after few records, and only one that has won several times in a row is
/// likely to go on.
class WinStreak {
 public:
  /// Notes who has the next record. Whether that one has won often enough.
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
