#include "download/slab_compressor.h"

#include <gtest/gtest.h>

#include "support/decompressed_bytes.h"
#include "support/seed.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr Compression kAll[] = {
    {Codec::kGzip, 1}, {Codec::kGzip, 2}, {Codec::kGzip, 3},  {Codec::kGzip, 4}, {Codec::kGzip, 6},
    {Codec::kGzip, 8}, {Codec::kGzip, 9}, {Codec::kZstd, -1}, {Codec::kZstd, 3}, {Codec::kZstd, 22},
};

/// Fills the slab with bytes that compress well, badly or not at all.
void fill(Slab& slab, size_t bytes, uint32_t alphabet, std::mt19937_64& random) {
  slab.size = bytes;
  for (size_t i = 0; i < bytes; i++) slab.bytes[i] = static_cast<uint8_t>(random() % alphabet);
}

TEST(SlabCompressor, RoundTripsAnyBytes) {
  auto random = seededRandom();
  BufferPool pool;
  const std::atomic<bool> isCancelled = false;
  constexpr uint32_t kAlphabets[] = {1, 7, 256};
  size_t next = 0;
  for (const Compression compression : kAll) {
    const auto compressor = makeCompressor(compression);
    // With fewer turns one alphabet for each level, in turn.
    for (int turn = 0; turn < turns(3); turn++) {
      const uint32_t alphabet = kAlphabets[next++ % std::size(kAlphabets)];
      std::vector<SlabPtr> raw;
      Bytes expected;
      for (uint32_t i = 0; i < slabsPerGroup(compression); i++) {
        raw.push_back(pool.take());
        // Full slabs of random bytes are the case in which the output grows.
        const size_t bytes = alphabet == 256 ? kSlabBytes : 1 + randomBelow(random, kSlabBytes);
        fill(*raw.back(), bytes, alphabet, random);
        append(expected, {raw.back()->bytes.get(), bytes});
      }
      std::vector<SlabPtr> out(compressedSlabs(compression.codec, raw.size()));
      for (SlabPtr& slab : out) slab = pool.take();
      ASSERT_TRUE(compressor->compress(raw, out, isCancelled));
      Bytes compressed;
      for (const SlabPtr& slab : out) append(compressed, {slab->bytes.get(), slab->size});
      EXPECT_EQ(decompressed(compression.codec, compressed), expected)
          << "codec " << static_cast<int>(compression.codec) << " level " << compression.level;
      for (SlabPtr& slab : raw) pool.give(std::move(slab));
      for (SlabPtr& slab : out) pool.give(std::move(slab));
    }
  }
}

TEST(SlabCompressor, ZstdStopsSoonWhenCancelled) {
  auto random = seededRandom();
  BufferPool pool;
  const SlabPtr raw = pool.take();
  fill(*raw, kSlabBytes, 20, random);
  const std::vector<SlabPtr> out{pool.take(), pool.take()};
  const std::atomic<bool> isCancelled = true;
  const Status status = makeCompressor({Codec::kZstd, 22})->compress({&raw, 1}, out, isCancelled);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
}

TEST(SlabCompressor, CompressedDownloadsDecompressToTheSamePcap) {
  auto random = seededRandom();
  StoredStreams store;
  std::vector<StoredPacket> packets;
  const auto count = static_cast<uint32_t>(turns(5000, 1500));
  for (uint32_t i = 0; i < count; i++) {
    packets.push_back(numberedPacket(1'700'000'000'000'000'000 + i, i, randomBelow(random, 3000)));
  }
  store.addStream(packets);
  DownloadBench bench;
  const Bytes plain = readBody(*bench.open(store.options()));
  for (const Compression compression : kAll) {
    DownloadOptions options = store.options();
    options.compression = compression;
    const auto download = bench.open(options);
    const Bytes body = readBody(*download, 2);
    EXPECT_EQ(decompressed(compression.codec, body), plain) << "level " << compression.level;
    EXPECT_EQ(download->totals().outputBytes, body.size());
    EXPECT_EQ(download->totals().bytes, plain.size() - 24);
    EXPECT_EQ(download->totals().packets, packets.size());
    EXPECT_LT(body.size(), plain.size());
  }
}

}  // namespace
}  // namespace capfleet::test
