// zstd: frames with checksum and content size, readable with a window of 8 MiB.
#pragma once

#include <memory>

#include "download/slab_compressor.h"

namespace capfleet {

/// REQUIRES: -5 <= level <= 22, not 0.
std::unique_ptr<SlabCompressor> makeZstdCompressor(int level);

}  // namespace capfleet
