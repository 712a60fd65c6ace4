// Compresses bytes into single gzip members and zstd frames.
#pragma once

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include "support/temp_directory.h"

namespace capfleet::test {

inline Bytes gzipMember(const Bytes& bytes) {
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.flush = NO_FLUSH;
  Bytes out(bytes.size() * 2 + 1000);
  Bytes input = bytes;
  stream.next_in = input.data();
  stream.avail_in = static_cast<uint32_t>(input.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uint32_t>(out.size());
  EXPECT_EQ(isal_deflate(&stream), COMP_OK);
  out.resize(stream.total_out);
  return out;
}

inline Bytes zstdFrame(const Bytes& bytes) {
  Bytes out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
  return out;
}

}  // namespace capfleet::test
