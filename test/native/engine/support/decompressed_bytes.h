// Reads compressed bodies with the libraries of the formats, not with the engine.
#pragma once

#include <gtest/gtest.h>
#include <libdeflate.h>
#include <zstd.h>

#include "download/compression.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// Decompresses members or frames one after another, as gzip and zstd do.
inline Bytes decompressed(Codec codec, const Bytes& from) {
  Bytes out;
  Bytes piece(size_t{8} << 20);
  size_t at = 0;
  libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
  while (at < from.size()) {
    size_t used = 0;
    size_t made = 0;
    if (codec == Codec::kGzip) {
      EXPECT_EQ(libdeflate_gzip_decompress_ex(inflater, &from[at], from.size() - at, piece.data(),
                                              piece.size(), &used, &made),
                LIBDEFLATE_SUCCESS);
    } else {
      used = ZSTD_findFrameCompressedSize(&from[at], from.size() - at);
      EXPECT_FALSE(ZSTD_isError(used));
      EXPECT_NE(ZSTD_getFrameContentSize(&from[at], used), ZSTD_CONTENTSIZE_UNKNOWN);
      made = ZSTD_decompress(piece.data(), piece.size(), &from[at], used);
      EXPECT_FALSE(ZSTD_isError(made));
    }
    if (::testing::Test::HasFailure()) break;
    append(out, {piece.data(), made});
    at += used;
  }
  libdeflate_free_decompressor(inflater);
  return out;
}

}  // namespace capfleet::test
