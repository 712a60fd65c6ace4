// gzip: the fast level by ISA-L, which compresses several times faster than zlib at the same size,
// and thorough ones by libdeflate.
#pragma once

#include <memory>

#include "download/slab_compressor.h"

namespace capfleet {

/// REQUIRES: 1 <= level <= 12. Groups are single slabs.
std::unique_ptr<SlabCompressor> makeGzipCompressor(int level);

}  // namespace capfleet
