#include "download/output_limit.h"

#include <gtest/gtest.h>

#include "support/bpf_helper.h"
#include "support/seed.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr int64_t kStartNs = 1'700'000'000'123'456'789;

std::vector<StoredPacket> steadyPackets(std::mt19937_64& random, size_t count, size_t mostBytes) {
  static uint32_t number = 0;
  std::vector<StoredPacket> packets;
  for (size_t i = 0; i < count; i++) {
    packets.push_back(numberedPacket(
        kStartNs + static_cast<int64_t>(i) * 1000 + static_cast<int64_t>(randomBelow(random, 900)),
        number++, randomBelow(random, mostBytes)));
  }
  return packets;
}

/// How many packets fit, one by one.
size_t fitting(const std::vector<StoredPacket>& packets, const OutputLimit::Limits& limits) {
  uint64_t bytes = 24;
  size_t count = 0;
  for (const StoredPacket& packet : packets) {
    bytes += 16 + packet.captured.size();
    if (bytes > limits.bytes.value_or(UINT64_MAX)) break;
    if (count == limits.packets.value_or(UINT64_MAX)) break;
    count++;
  }
  return count;
}

TEST(OutputLimit, EndsBeforeTheFirstPacketThatPassesIt) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 100;
  for (int i = 0; i < 3; i++) store.addStream(steadyPackets(random, 3000, 1200));
  const auto all = store.inRange(0, INT64_MAX);
  uint64_t allBytes = 24;
  for (const StoredPacket& packet : all) allBytes += 16 + packet.captured.size();
  for (int i = 0; i < turns(60); i++) {
    DownloadOptions options = store.options();
    options.scanBytes = 20'000;
    options.compression = i % 3 == 0 ? Compression{Codec::kZstd, 1} : Compression{};
    if (random() % 2 == 0) options.limits.packets = 1 + randomBelow(random, all.size() + 500);
    if (random() % 2 == 0) options.limits.bytes = 24 + randomBelow(random, allBytes + 50'000);
    DownloadBench bench;
    const auto download = bench.open(options);
    const Bytes body = readBody(*download, randomBelow(random, 3));
    const size_t expected = fitting(all, options.limits);
    const DownloadTotals totals = download->totals();
    ASSERT_EQ(totals.packets, expected);
    EXPECT_EQ(totals.isTruncated, expected < all.size());
    EXPECT_EQ(totals.nextNs.has_value(), totals.isTruncated);
    if (totals.isTruncated) {
      EXPECT_EQ(totals.nextNs, all[expected].timestampNs);
    }
    if (expected > 0) {
      EXPECT_EQ(totals.lastNs, all[expected - 1].timestampNs);
    }
    if (options.compression.codec != Codec::kNone) continue;
    const auto got = packetsOf(body);
    ASSERT_EQ(got.size(), expected);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin()));
    EXPECT_LE(body.size(), options.limits.bytes.value_or(UINT64_MAX));
  }
}

TEST(OutputLimit, ADownloadThatFitsExactlyIsNotTruncated) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(steadyPackets(random, 500, 100));
  DownloadBench bench;
  DownloadOptions options = store.options();
  const Bytes whole = readBody(*bench.open(options));
  options.limits = {whole.size(), 500};
  const auto exact = bench.open(options);
  EXPECT_EQ(readBody(*exact), whole);
  EXPECT_FALSE(exact->totals().isTruncated);
  options.limits.bytes = whole.size() - 1;
  const auto shorter = bench.open(options);
  readBody(*shorter);
  EXPECT_EQ(shorter->totals().packets, 499u);
  EXPECT_TRUE(shorter->totals().isTruncated);
}

TEST(OutputLimit, CountsOnlyPacketsThatPassTheFilter) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 50;
  store.addStream(steadyPackets(random, 5000, 120));
  const BothPrograms programs = compiled("ether[0] & 63 = 1");
  auto expected = store.inRange(0, INT64_MAX);
  std::erase_if(expected, [&](const StoredPacket& packet) {
    return !libpcapAccepts(programs, packet.captured, packet.originalLength);
  });
  ASSERT_GT(expected.size(), 20u);
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.filter = parsed(programs);
  options.limits.packets = 20;
  const auto download = bench.open(options);
  const auto got = packetsOf(readBody(*download));
  EXPECT_EQ(got, std::vector(expected.begin(), expected.begin() + 20));
  EXPECT_EQ(download->totals().nextNs, expected[20].timestampNs);
}

TEST(OutputLimit, LeavesOutEvenTheFirstPacket) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(steadyPackets(random, 10, 100));
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.limits.bytes = 30;
  const auto download = bench.open(options);
  EXPECT_EQ(readBody(*download).size(), 24u);
  EXPECT_EQ(download->totals().nextNs, store.inRange(0, INT64_MAX).front().timestampNs);
  EXPECT_FALSE(download->totals().firstNs.has_value());
}

TEST(OutputLimit, ReadsNextTimestampOfMicrosecondRecords) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(steadyPackets(random, 10, 100));
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.toMicroseconds = true;
  options.limits.packets = 4;
  const auto download = bench.open(options);
  readBody(*download);
  EXPECT_EQ(download->totals().nextNs, store.inRange(0, INT64_MAX)[4].timestampNs / 1000 * 1000);
}

}  // namespace
}  // namespace capfleet::test
