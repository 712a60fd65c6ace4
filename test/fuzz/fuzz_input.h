// Takes a fuzz target's input apart: a few small numbers first, the rest is bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace capfleet::fuzz {

/// Stops the run: the property does not hold.
inline void require(bool holds) {
  if (!holds) std::abort();
}

class FuzzInput {
 public:
  explicit FuzzInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  /// A little-endian number of `count` bytes; 0 for what is missing.
  uint64_t take(int count) {
    uint64_t value = 0;
    for (int i = 0; i < count && !bytes_.empty(); i++) {
      value |= uint64_t{bytes_.front()} << (8 * i);
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }

  /// As many bytes as a number of `count` bytes before them says, or all that are left. They stay
  /// valid as long as the input that the target was given.
  std::span<const uint8_t> takeBytes(int count) {
    const uint64_t length = take(count);
    const auto taken = bytes_.first(std::min<uint64_t>(length, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

  std::span<const uint8_t> rest() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace capfleet::fuzz
