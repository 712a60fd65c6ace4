#include "download/stream_compressor.h"

#include <gtest/gtest.h>
#include <libdeflate.h>
#include <zstd.h>

#include <cstring>
#include <future>
#include <tuple>

#include "support/seed.h"
#include "support/stored_packets.h"

namespace capfleet::test {
namespace {

constexpr Compression kGzip{Codec::kGzip, 1};
constexpr Compression kZstd{Codec::kZstd, -1};

/// A thread pool and a slab pool, whose destructor checks that no slab was lost.
class StreamCompressorTest : public ::testing::Test {
 protected:
  ~StreamCompressorTest() override {
    workers_.reset();  // ends when all tasks have ended
    EXPECT_EQ(slabs_->outstanding(), 0u);
  }

  std::shared_ptr<StreamCompressor> create(Compression compression, bool hasSmallGroups = false) {
    return StreamCompressor::create(compression, *workers_, slabs_, hasSmallGroups);
  }

  void setThreads(unsigned threads) { workers_ = std::make_unique<WorkerPool>(threads); }

  size_t slabsInUse() const { return slabs_->outstanding(); }

 private:
  std::unique_ptr<WorkerPool> workers_ = std::make_unique<WorkerPool>(2);
  std::shared_ptr<BufferPool> slabs_ = std::make_shared<BufferPool>();
};

StreamCompressor::Answer nextPart(StreamCompressor& compressor) {
  std::promise<StreamCompressor::Answer> promise;
  compressor.next([&](StreamCompressor::Answer answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

Bytes bytesOf(const SlabPtr& slab) { return {slab->bytes.get(), slab->bytes.get() + slab->size}; }

/// Bytes that are hard to compress. REQUIRES: a multiple of 8.
Bytes randomBytes(size_t count) {
  auto random = seededRandom();
  Bytes bytes(count);
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&bytes[i], &word, sizeof word);
  }
  return bytes;
}

/// The uncompressed sizes of the zstd frames in `body`.
std::vector<size_t> frameSizes(const Bytes& body) {
  std::vector<size_t> sizes;
  for (size_t at = 0; at < body.size();) {
    sizes.push_back(ZSTD_getFrameContentSize(&body[at], body.size() - at));
    at += ZSTD_findFrameCompressedSize(&body[at], body.size() - at);
  }
  return sizes;
}

Bytes unzstd(const Bytes& body) {
  Bytes plain;
  for (size_t at = 0; at < body.size();) {
    const size_t used = ZSTD_findFrameCompressedSize(&body[at], body.size() - at);
    Bytes frame(ZSTD_getFrameContentSize(&body[at], used));
    EXPECT_EQ(ZSTD_decompress(frame.data(), frame.size(), &body[at], used), frame.size());
    append(plain, frame);
    at += used;
  }
  return plain;
}

/// Writes everything in pieces, takes a part whenever there is no space, and takes the rest at the
/// end.
Bytes compressed(StreamCompressor& compressor, std::span<const uint8_t> bytes, size_t pieceBytes) {
  Bytes body;
  const auto take = [&] {
    const StreamCompressor::Answer part = nextPart(compressor);
    EXPECT_TRUE(part);
    if (!part || *part == nullptr) return false;
    append(body, bytesOf(*part));
    return true;
  };
  while (!bytes.empty()) {
    const size_t written = compressor.write(bytes.first(std::min(pieceBytes, bytes.size())));
    bytes = bytes.subspan(written);
    if (written == 0 && !take()) return body;
  }
  compressor.end();
  while (take()) {
  }
  return body;
}

TEST_F(StreamCompressorTest, KeepsTheOrderInWholeGroups) {
  const Bytes plain = randomBytes(20'456'784);
  for (const size_t pieceBytes : {size_t{77'777}, size_t{5'000'000}}) {
    const auto compressor = create(kZstd);
    const Bytes body = compressed(*compressor, plain, pieceBytes);
    EXPECT_EQ(unzstd(body), plain);
    const std::vector<size_t> sizes = frameSizes(body);
    EXPECT_EQ(sizes.size(), 3u);
    EXPECT_EQ(sizes.front(), 8 * kSlabBytes);
    compressor->close();
  }
}

TEST_F(StreamCompressorTest, SmallGroupsAreOneSlabEach) {
  const Bytes plain = randomBytes(10 * kSlabBytes + 8);
  const auto compressor = create(kZstd, true);
  const Bytes body = compressed(*compressor, plain, 300'000);
  EXPECT_EQ(unzstd(body), plain);
  const std::vector<size_t> sizes = frameSizes(body);
  EXPECT_EQ(sizes.size(), 11u);
  EXPECT_EQ(sizes.front(), kSlabBytes);
  compressor->close();
}

TEST_F(StreamCompressorTest, NoByteIsOneEmptyMember) {
  const auto compressor = create(kGzip);
  const Bytes body = compressed(*compressor, {}, 1);
  libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
  size_t made = 1;
  uint8_t nothing;
  EXPECT_EQ(libdeflate_gzip_decompress(inflater, body.data(), body.size(), &nothing, 1, &made),
            LIBDEFLATE_SUCCESS);
  EXPECT_EQ(made, 0u);
  libdeflate_free_decompressor(inflater);
}

TEST_F(StreamCompressorTest, ItsMemoryIsBounded) {
  const Bytes plain = randomBytes(size_t{96} << 20);
  for (const auto& [threads, compression, hasSmallGroups, slabs] :
       {std::tuple{2u, kGzip, false, 7u}, std::tuple{2u, kZstd, false, 44u},
        std::tuple{2u, kGzip, true, 5u}, std::tuple{2u, kZstd, true, 6u},
        std::tuple{16u, kGzip, false, 35u}, std::tuple{16u, kZstd, false, 78u},
        std::tuple{16u, kGzip, true, 5u}, std::tuple{16u, kZstd, true, 6u}}) {
    setThreads(threads);
    const auto compressor = create(compression, hasSmallGroups);
    // More than twice as much as it may hold.
    const std::span given(plain.data(), std::min(plain.size(), (2 * slabs + 8) * kSlabBytes));
    size_t written = 0;
    while (written < given.size()) {
      const size_t count = compressor->write(given.subspan(written));
      EXPECT_LE(slabsInUse(), slabs);
      written += count;
      if (count > 0) continue;
      ASSERT_TRUE(nextPart(*compressor));
    }
    compressor->close();
  }
}

TEST_F(StreamCompressorTest, FlushLetsOutWhatIsThere) {
  const Bytes plain = randomBytes(1000);
  const auto compressor = create(kZstd);
  ASSERT_EQ(compressor->write(plain), plain.size());
  compressor->flush();
  const StreamCompressor::Answer part = nextPart(*compressor);
  ASSERT_TRUE(part);
  EXPECT_EQ(unzstd(bytesOf(*part)), plain);
  compressor->flush();  // nothing
  compressor->end();
  const StreamCompressor::Answer end = nextPart(*compressor);
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, nullptr);
}

TEST_F(StreamCompressorTest, APartStaysAsItIsUntilTheSecondNextAfterIt) {
  const Bytes plain = randomBytes(8 * kSlabBytes);
  const auto compressor = create(kGzip);
  size_t written = compressor->write(plain);
  const SlabPtr first = *nextPart(*compressor);
  const Bytes asItWas = bytesOf(first);
  written += compressor->write(std::span(plain).subspan(written));
  ASSERT_TRUE(nextPart(*compressor));
  compressor->write(std::span(plain).subspan(written));
  EXPECT_EQ(bytesOf(first), asItWas);
}

TEST_F(StreamCompressorTest, ClosingEndsItAtAnyPlace) {
  const Bytes plain = randomBytes(16 * kSlabBytes);
  for (const Compression compression : {kGzip, kZstd, Compression{Codec::kZstd, 22}}) {
    for (const bool isWaiting : {false, true}) {
      const auto compressor = create(compression);
      compressor->write(plain);
      std::promise<StreamCompressor::Answer> waiting;
      if (isWaiting) {
        compressor->next([&](StreamCompressor::Answer part) { waiting.set_value(part); });
      }
      compressor->close();
      compressor->close();
      // The answer is a part if one was taken before.
      if (isWaiting) waiting.get_future().wait();
      const StreamCompressor::Answer after = nextPart(*compressor);
      ASSERT_FALSE(after);
      EXPECT_EQ(after.error().code, Code::kCancelled);
    }
  }
}

}  // namespace
}  // namespace capfleet::test
