// Explicit loads and stores: structs are never cast onto the bytes of a file.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace capfleet {

static_assert(std::endian::native == std::endian::little,
              "the engine is built for little-endian machines");

inline uint16_t loadLe16(const void* p) {
  uint16_t v;
  std::memcpy(&v, p, 2);
  return v;
}
inline uint32_t loadLe32(const void* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
inline uint64_t loadLe64(const void* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
inline uint16_t loadBe16(const void* p) { return __builtin_bswap16(loadLe16(p)); }
inline uint32_t loadBe32(const void* p) { return __builtin_bswap32(loadLe32(p)); }
inline uint64_t loadBe64(const void* p) { return __builtin_bswap64(loadLe64(p)); }
inline void storeLe16(void* p, uint16_t v) { std::memcpy(p, &v, 2); }
inline void storeLe32(void* p, uint32_t v) { std::memcpy(p, &v, 4); }
inline void storeLe64(void* p, uint64_t v) { std::memcpy(p, &v, 8); }

}  // namespace capfleet
