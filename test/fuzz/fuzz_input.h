// Splits a fuzz target's input: a few small numbers first, the rest is bytes.
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

  /// A little-endian number of `count` bytes; missing bytes are 0.
  uint64_t take(int count) {
    uint64_t value = 0;
    for (int i = 0; i < count && !bytes_.empty(); i++) {
      value |= uint64_t{bytes_.front()} << (8 * i);
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }

  /// The number of bytes given by the `count` bytes before them, or all remaining bytes. They are
  /// valid as long as the fuzz target's input.
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
