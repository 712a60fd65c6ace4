// A source of an input's bytes: a file, or a decoder for another source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "os/result.h"

namespace capfleet {

/// Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Reads the next bytes into `out` (not empty): at least one, and 0 only at the end. A failure
  /// is final.
  virtual Result<size_t> read(std::span<uint8_t> out) = 0;

  /// Bytes read from the file on disk so far, for progress.
  virtual uint64_t inputBytes() const = 0;
};

}  // namespace capfleet
