#include "download/slab_compressor.h"

#include <cassert>

#include "download/gzip_compressor.h"
#include "download/zstd_compressor.h"

namespace capfleet {

std::unique_ptr<SlabCompressor> makeCompressor(Compression compression) {
  assert(compression.codec != Codec::kNone);
  if (compression.codec == Codec::kZstd) return makeZstdCompressor(compression.level);
  return makeGzipCompressor(compression.level);
}

uint32_t slabsPerGroup(Codec codec) { return codec == Codec::kZstd ? 4 : 1; }

uint32_t compressedSlabs(Codec codec, size_t rawSlabs) {
  if (codec == Codec::kNone) return 0;
  // gzip: incompressible bytes grow by less than the headroom of the one slab. zstd: they grow by
  // less than a slab.
  return static_cast<uint32_t>(codec == Codec::kGzip ? rawSlabs : rawSlabs + 1);
}

}  // namespace capfleet
