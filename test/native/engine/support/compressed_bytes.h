// Compresses bytes into single gzip members, zstd and lz4 frames, xz and bzip2 streams.
#pragma once

#include <bzlib.h>
#include <isa-l/igzip_lib.h>
#include <lz4frame.h>
#include <lzma.h>
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

inline Bytes lz4Frame(const Bytes& bytes) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  Bytes out(LZ4F_compressFrameBound(bytes.size(), &preferences));
  out.resize(LZ4F_compressFrame(out.data(), out.size(), bytes.data(), bytes.size(), &preferences));
  return out;
}

inline Bytes xzStream(const Bytes& bytes) {
  Bytes out(lzma_stream_buffer_bound(bytes.size()));
  size_t end = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, nullptr, bytes.data(), bytes.size(),
                                    out.data(), &end, out.size()),
            LZMA_OK);
  out.resize(end);
  return out;
}

inline Bytes bzip2Stream(const Bytes& bytes) {
  Bytes input = bytes;
  input.push_back(0);  // never empty, so that data() is not null
  auto end = static_cast<unsigned>(bytes.size() * 2 + 1000);
  Bytes out(end);
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &end,
                                     reinterpret_cast<char*>(input.data()),
                                     static_cast<unsigned>(bytes.size()), 1, 0, 0),
            BZ_OK);
  out.resize(end);
  return out;
}

}  // namespace capfleet::test
