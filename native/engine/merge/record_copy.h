// Copies single records: for so few bytes a call would cost as much as the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace capfleet {

inline constexpr size_t kCacheLine = 64;

inline constexpr size_t kLeastCopyBytes = 16;

/// Copies a record. REQUIRES: kLeastCopyBytes at least.
inline void copyRecord(uint8_t* to, const uint8_t* from, size_t bytes) {
  size_t at = 0;
  for (; at + 64 <= bytes; at += 64) std::memcpy(to + at, from + at, 64);
  for (; at + 16 <= bytes; at += 16) std::memcpy(to + at, from + at, 16);
  std::memcpy(to + bytes - 16, from + bytes - 16, 16);
}

/// Prefetches the bytes of a record that is read later; of a large one the beginning.
inline void prefetchBytes(const uint8_t* from, const uint8_t* to) {
  constexpr ptrdiff_t kMostBytes = 2048;
  if (to - from > kMostBytes) to = from + kMostBytes;
  for (; from < to; from += kCacheLine) __builtin_prefetch(from);
}

}  // namespace capfleet
