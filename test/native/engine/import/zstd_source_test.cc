#include "import/zstd_source.h"

#include <gtest/gtest.h>

#include "support/compressed_bytes.h"
#include "support/decoded_bytes.h"
#include "support/read_steps.h"

namespace capfleet::test {
namespace {

DecodedBytes decode(const Bytes& input, size_t inputPiece = SIZE_MAX, size_t outputPiece = 4096) {
  ZstdSource source(std::make_unique<MemorySource>(input, inputPiece));
  return readAll(source, outputPiece);
}

TEST(ZstdSource, DecodesManyFramesCutAtAnyPlace) {
  Bytes input, expected;
  const Bytes skippable = {0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3};
  for (const size_t bytes : {0, 1, 1000, 0, 200'000, 3}) {
    append(input, skippable);
    append(input, zstdFrame(sampleBytes(bytes)));
    append(expected, sampleBytes(bytes));
  }
  for (const size_t inputPiece : {1, 2, 3, 7, 100, 65536, 1 << 24}) {
    for (const size_t outputPiece : {100, 5000, 1 << 20}) {
      const auto decoded = decode(input, inputPiece, outputPiece);
      EXPECT_EQ(decoded.failure, "") << inputPiece << " " << outputPiece;
      EXPECT_TRUE(decoded.bytes == expected) << inputPiece << " " << outputPiece;
    }
  }
}

TEST(ZstdSource, DeliversWhatComesBeforeAnEarlyEnd) {
  const Bytes sample = sampleBytes(3000);
  const Bytes whole = zstdFrame(sample);
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    const auto decoded = decode(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut)));
    EXPECT_NE(decoded.failure, "") << cut;
    ASSERT_LE(decoded.bytes.size(), sample.size());
    EXPECT_TRUE(std::equal(decoded.bytes.begin(), decoded.bytes.end(), sample.begin())) << cut;
  }
}

TEST(ZstdSource, NamesDamage) {
  Bytes input = zstdFrame(sampleBytes(3000));
  append(input, Bytes{1, 2, 3, 4, 5});
  const auto decoded = decode(input);
  EXPECT_EQ(decoded.bytes, sampleBytes(3000));
  EXPECT_NE(decoded.failure.find("zstd data is damaged"), std::string::npos);
}

/// A frame that asks its decoder for a window of 2^windowLog bytes: of an unknown size, it asks for
/// all of it.
Bytes frameWithWindow(const Bytes& sample, int windowLog) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, windowLog);
  Bytes input(ZSTD_compressBound(sample.size()));
  ZSTD_inBuffer in{sample.data(), sample.size(), 0};
  ZSTD_outBuffer out{input.data(), input.size(), 0};
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_continue);
  EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  input.resize(out.pos);
  return input;
}

TEST(ZstdSource, DecodesFramesWithALongWindow) {
  const Bytes sample = sampleBytes(100'000);
  const Bytes input = frameWithWindow(sample, 27);
  EXPECT_EQ(decode(input).failure, "");
  EXPECT_TRUE(decode(input).bytes == sample);
}

TEST(ZstdSource, RefusesFramesThatWantMoreMemoryThanTheLongestWindow) {
  for (const int windowLog : {28, 31}) {
    const auto decoded = decode(frameWithWindow(sampleBytes(100'000), windowLog));
    EXPECT_NE(decoded.failure.find("too much memory"), std::string::npos) << decoded.failure;
    EXPECT_TRUE(decoded.bytes.empty());
  }
}

}  // namespace
}  // namespace capfleet::test
