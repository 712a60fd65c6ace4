// Reads a ByteSource to its end or failure.
#pragma once

#include "os/byte_source.h"
#include "support/temp_directory.h"

namespace capfleet::test {

struct DecodedBytes {
  Bytes bytes;
  std::string failure;  ///< empty if the source ended without an error
};

inline DecodedBytes readAll(ByteSource& source, size_t pieceBytes = 4096) {
  DecodedBytes decoded;
  Bytes piece(pieceBytes);
  for (;;) {
    const auto count = source.read(piece);
    if (!count) {
      EXPECT_EQ(count.error().code, Code::kBadCaptureFile);
      decoded.failure = count.error().message;
      return decoded;
    }
    if (*count == 0) return decoded;
    append(decoded.bytes, {piece.data(), *count});
  }
}

/// Bytes that compress moderately.
inline Bytes sampleBytes(size_t count) {
  Bytes bytes;
  uint32_t state = 1;
  while (bytes.size() < count) {
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<uint8_t>((state >> 24) & 0x1F));
  }
  return bytes;
}

}  // namespace capfleet::test
