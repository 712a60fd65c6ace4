#include "import/gzip_source.h"

#include <gtest/gtest.h>

#include "support/compressed_bytes.h"
#include "support/decoded_bytes.h"
#include "support/read_steps.h"

namespace capfleet::test {
namespace {

DecodedBytes decode(const Bytes& input, size_t inputPiece = SIZE_MAX, size_t outputPiece = 4096) {
  GzipSource source(std::make_unique<MemorySource>(input, inputPiece));
  return readAll(source, outputPiece);
}

TEST(GzipSource, DecodesManyMembersCutAtAnyPlace) {
  Bytes input, expected;
  for (const size_t bytes : {0, 1, 1000, 0, 40'000, 3}) {
    append(input, gzipMember(sampleBytes(bytes)));
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

TEST(GzipSource, IgnoresPaddingAndReportsOtherBytesBehindTheData) {
  Bytes input = gzipMember(sampleBytes(100));
  input.resize(input.size() + 600);
  EXPECT_EQ(decode(input).failure, "");
  EXPECT_EQ(decode(input).bytes, sampleBytes(100));
  input.push_back('x');
  EXPECT_NE(decode(input).failure.find("follow"), std::string::npos);
  EXPECT_EQ(decode(input).bytes, sampleBytes(100));
}

TEST(GzipSource, DeliversWhatComesBeforeAnEarlyEnd) {
  const Bytes sample = sampleBytes(3000);
  const Bytes whole = gzipMember(sample);
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    const auto decoded = decode(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut)));
    EXPECT_NE(decoded.failure, "") << cut;
    ASSERT_LE(decoded.bytes.size(), sample.size());
    EXPECT_TRUE(std::equal(decoded.bytes.begin(), decoded.bytes.end(), sample.begin())) << cut;
  }
}

TEST(GzipSource, NoticesAWrongChecksum) {
  Bytes input = gzipMember(sampleBytes(3000));
  input[input.size() - 6] ^= 1;
  EXPECT_NE(decode(input).failure.find("checksum"), std::string::npos);
}

TEST(GzipSource, SurvivesEveryFlippedBit) {
  const Bytes sample = sampleBytes(300);
  Bytes input = gzipMember(sample);
  for (size_t bit = 0; bit < input.size() * 8; ++bit) {
    input[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    const auto decoded = decode(input);
    EXPECT_TRUE(decoded.failure != "" || decoded.bytes == sample) << bit;
    input[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
}

}  // namespace
}  // namespace capfleet::test
