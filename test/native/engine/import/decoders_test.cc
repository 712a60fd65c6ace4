#include "import/decoders.h"

#include <gtest/gtest.h>

#include "support/compressed_bytes.h"
#include "support/decoded_bytes.h"
#include "support/places.h"
#include "support/read_steps.h"

namespace capfleet::test {
namespace {

/// A format: how its data is made, and decoded.
struct Format {
  Bytes (*encode)(const Bytes& bytes);
  std::unique_ptr<ByteSource> (*decode)(std::unique_ptr<ByteSource> input);
};
const Format kGzip{gzipMember, decodeGzip};
const Format kZstd{zstdFrame, decodeZstd};
const Format kXz{xzStream, decodeXz};
const Format kLz4{lz4Frame, decodeLz4};
const Format kBzip2{bzip2Stream, decodeBzip2};

DecodedBytes decode(const Format& format, const Bytes& input, size_t inputPiece = SIZE_MAX,
                    size_t outputPiece = 4096) {
  const auto source = format.decode(std::make_unique<MemorySource>(input, inputPiece));
  return readAll(*source, outputPiece);
}

void decodesInAnyPieces(const Format& format, const Bytes& input, const Bytes& expected) {
  for (const size_t inputPiece : {1, 2, 3, 7, 100, 65536, 1 << 24}) {
    for (const size_t outputPiece : {100, 5000, 1 << 20}) {
      const auto decoded = decode(format, input, inputPiece, outputPiece);
      EXPECT_EQ(decoded.failure, "") << inputPiece << " " << outputPiece;
      EXPECT_TRUE(decoded.bytes == expected) << inputPiece << " " << outputPiece;
    }
  }
}

TEST(Decoders, DecodeManyGzipMembersCutAtAnyPlace) {
  Bytes input, expected;
  for (const size_t bytes : {0, 1, 1000, 0, 40'000, 3}) {
    append(input, gzipMember(sampleBytes(bytes)));
    append(expected, sampleBytes(bytes));
  }
  decodesInAnyPieces(kGzip, input, expected);
}

TEST(Decoders, DecodeManyZstdFramesCutAtAnyPlace) {
  Bytes input, expected;
  const Bytes skippable = {0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3};
  for (const size_t bytes : {0, 1, 1000, 0, 200'000, 3}) {
    append(input, skippable);
    append(input, zstdFrame(sampleBytes(bytes)));
    append(expected, sampleBytes(bytes));
  }
  decodesInAnyPieces(kZstd, input, expected);
}

TEST(Decoders, DecodeManyStreamsOfOtherFormatsCutAtAnyPlace) {
  for (const Format& format : {kXz, kLz4, kBzip2}) {
    Bytes input, expected;
    for (const size_t bytes : {0, 1, 1000, 0, 70'000, 3}) {
      append(input, format.encode(sampleBytes(bytes)));
      append(expected, sampleBytes(bytes));
    }
    decodesInAnyPieces(format, input, expected);
  }
}

TEST(Decoders, DeliverWhatComesBeforeAnEarlyEnd) {
  const Bytes sample = sampleBytes(3000);
  for (const Format& format : {kGzip, kZstd, kXz, kLz4, kBzip2}) {
    const Bytes whole = format.encode(sample);
    for (const size_t cut : somePlaces(1, whole.size())) {
      const Bytes begin(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut));
      const auto decoded = decode(format, begin);
      EXPECT_NE(decoded.failure, "") << cut;
      ASSERT_LE(decoded.bytes.size(), sample.size());
      EXPECT_TRUE(std::equal(decoded.bytes.begin(), decoded.bytes.end(), sample.begin())) << cut;
    }
  }
}

TEST(Decoders, IgnorePaddingAndReportOtherBytesBehindGzipData) {
  Bytes input = gzipMember(sampleBytes(100));
  input.resize(input.size() + 600);
  EXPECT_EQ(decode(kGzip, input).failure, "");
  EXPECT_EQ(decode(kGzip, input).bytes, sampleBytes(100));
  input.push_back('x');
  EXPECT_NE(decode(kGzip, input).failure.find("follow"), std::string::npos);
  EXPECT_EQ(decode(kGzip, input).bytes, sampleBytes(100));
}

TEST(Decoders, NoticeAWrongGzipChecksum) {
  Bytes input = gzipMember(sampleBytes(3000));
  input[input.size() - 6] ^= 1;
  EXPECT_NE(decode(kGzip, input).failure.find("checksum"), std::string::npos);
}

TEST(Decoders, SurviveEveryFlippedBitOfGzipData) {
  const Bytes sample = sampleBytes(300);
  Bytes input = gzipMember(sample);
  for (size_t bit = 0; bit < input.size() * 8; ++bit) {
    input[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    const auto decoded = decode(kGzip, input);
    EXPECT_TRUE(decoded.failure != "" || decoded.bytes == sample) << bit;
    input[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
}

TEST(Decoders, NameDamageOfZstdData) {
  Bytes input = zstdFrame(sampleBytes(3000));
  append(input, Bytes{1, 2, 3, 4, 5});
  const auto decoded = decode(kZstd, input);
  EXPECT_EQ(decoded.bytes, sampleBytes(3000));
  EXPECT_NE(decoded.failure.find("zstd data is damaged"), std::string::npos);
}

TEST(Decoders, NoticeDamageOfXzLz4AndBzip2Data) {
  const Bytes sample = sampleBytes(300);
  for (const auto& [format, name] :
       {std::pair(kXz, "xz"), std::pair(kLz4, "lz4"), std::pair(kBzip2, "bzip2")}) {
    Bytes input = format.encode(sample);
    for (size_t bit = 0; bit < input.size() * 8; ++bit) {
      input[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      const auto decoded = decode(format, input);
      EXPECT_TRUE(decoded.failure != "" || decoded.bytes == sample) << name << " " << bit;
      input[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
    append(input, Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    const auto decoded = decode(format, input);
    EXPECT_EQ(decoded.bytes, sample) << name;
    EXPECT_NE(decoded.failure.find(std::string("the ") + name + " data is damaged: "),
              std::string::npos)
        << decoded.failure;
  }
}

TEST(Decoders, RefuseXzDataThatWantsMoreMemoryThanItsHighestLevel) {
  lzma_options_lzma options;
  ASSERT_FALSE(lzma_lzma_preset(&options, 1));
  options.dict_size = uint32_t{1} << 27;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  const Bytes sample = sampleBytes(1000);
  Bytes input(5000);
  size_t end = 0;
  ASSERT_EQ(
      lzma_stream_buffer_encode(const_cast<lzma_filter*>(filters), LZMA_CHECK_CRC32, nullptr,
                                sample.data(), sample.size(), input.data(), &end, input.size()),
      LZMA_OK);
  input.resize(end);
  EXPECT_NE(decode(kXz, input).failure.find("more memory"), std::string::npos);
}

/// A frame that requires a window of 2^windowLog bytes: because its size is unknown, the decoder
/// allocates all of it.
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

TEST(Decoders, DecodeZstdFramesWithALongWindow) {
  const Bytes sample = sampleBytes(100'000);
  const Bytes input = frameWithWindow(sample, 27);
  EXPECT_EQ(decode(kZstd, input).failure, "");
  EXPECT_TRUE(decode(kZstd, input).bytes == sample);
}

TEST(Decoders, RefuseZstdFramesThatWantMoreMemoryThanTheLongestWindow) {
  for (const int windowLog : {28, 31}) {
    const auto decoded = decode(kZstd, frameWithWindow(sampleBytes(100'000), windowLog));
    EXPECT_NE(decoded.failure.find("too much memory"), std::string::npos) << decoded.failure;
    EXPECT_TRUE(decoded.bytes.empty());
  }
}

}  // namespace
}  // namespace capfleet::test
