// Takes a fuzz target's input apart: a few small numbers first, the rest is bytes.
#pragma once

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

  std::span<const uint8_t> rest() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace capfleet::fuzz
