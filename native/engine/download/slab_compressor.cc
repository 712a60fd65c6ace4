#include "download/slab_compressor.h"

#include <algorithm>
#include <cassert>

#include "download/gzip_compressor.h"
#include "download/zstd_compressor.h"

namespace capfleet {

std::unique_ptr<SlabCompressor> makeCompressor(Compression compression) {
  assert(compression.codec != Codec::kNone);
  if (compression.codec == Codec::kZstd) return makeZstdCompressor(compression.level);
  return makeGzipCompressor(compression.level);
}

bool isSlow(const Compression& compression) {
  constexpr int kSlowGzipLevel = 8;
  constexpr int kSlowZstdLevel = 10;
  return compression.level >= (compression.codec == Codec::kGzip ? kSlowGzipLevel : kSlowZstdLevel);
}

/// Larger zstd frames are smaller and faster overall, because a frame starts with an empty window.
/// But the tables of its slow levels grow with them, to 140 MiB per thread.
uint32_t slabsPerGroup(const Compression& compression) {
  if (compression.codec != Codec::kZstd) return 1;
  return isSlow(compression) ? 4 : 8;
}

/// The limits are for memory. Four zstd threads already produce more than 10 Gbit/s can carry.
uint32_t groupsAtOnce(const Compression& compression, unsigned threads) {
  return std::clamp(threads, 2u, compression.codec == Codec::kZstd ? 4u : 16u);
}

GroupLimits usualGroups(const Compression& compression, unsigned threads) {
  return {.slabs = slabsPerGroup(compression), .atOnce = groupsAtOnce(compression, threads)};
}

uint32_t compressedSlabs(Codec codec, size_t rawSlabs) {
  if (codec == Codec::kNone) return 0;
  // gzip: incompressible bytes grow by less than the headroom of the one slab. zstd: by less than a
  // slab.
  return static_cast<uint32_t>(codec == Codec::kGzip ? rawSlabs : rawSlabs + 1);
}

}  // namespace capfleet
