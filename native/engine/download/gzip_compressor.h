// gzip: the fast level with ISA-L, which is several times faster than zlib at the same size, and
// thorough ones with libdeflate.
#pragma once

#include <memory>

#include "download/slab_compressor.h"

namespace capfleet {

/// REQUIRES: 1 <= level <= 12. Groups are single slabs.
std::unique_ptr<SlabCompressor> makeGzipCompressor(int level);

}  // namespace capfleet
