#include "packet_count.h"

#include <gtest/gtest.h>

#include "seed.h"
#include "stored_streams.h"

namespace capfleet::test {
namespace {

constexpr int64_t kStartNs = 1'700'000'000'123'456'789;

std::vector<StoredPacket> jumpyPackets(std::mt19937_64& random, size_t count) {
  std::vector<StoredPacket> packets;
  int64_t nowNs = kStartNs;
  for (size_t i = 0; i < count; i++) {
    nowNs += static_cast<int64_t>(randomBelow(random, 9)) - 3;
    if (random() % 100 == 0) nowNs += static_cast<int64_t>(randomBelow(random, 2000)) - 1000;
    packets.push_back(numberedPacket(nowNs, static_cast<uint32_t>(i), randomBelow(random, 200)));
  }
  return packets;
}

std::vector<IntervalCount> countAll(const StoredStreams& store, std::vector<int64_t> boundaries) {
  PacketCount count(store.paths(), std::move(boundaries));
  for (;;) {
    const Result<bool> isCounted = count.step();
    EXPECT_TRUE(isCounted) << (isCounted ? "" : isCounted.error().message);
    if (!isCounted || *isCounted) return count.counts();
  }
}

void expectCounts(const std::vector<IntervalCount>& got, const std::vector<int64_t>& boundaries,
                  const StoredStreams& store) {
  ASSERT_EQ(got.size(), boundaries.size() - 1);
  for (size_t i = 0; i < got.size(); i++) {
    uint64_t bytes = 0;
    const auto expected = store.inRange(boundaries[i], boundaries[i + 1]);
    for (const StoredPacket& packet : expected) bytes += 16 + packet.captured.size();
    EXPECT_EQ(got[i].packets, expected.size()) << "interval " << i;
    EXPECT_EQ(got[i].bytes, bytes) << "interval " << i;
  }
}

TEST(PacketCount, EqualsAFullScanForAnyBoundaries) {
  auto random = seededRandom();
  for (int i = 0; i < 40; i++) {
    StoredStreams store;
    store.packetsPerBlock = 1 + randomBelow(random, 80);
    store.segmentBytes = 2000 + randomBelow(random, 60'000);
    for (size_t j = randomBelow(random, 4); j > 0; j--) {
      store.addStream(jumpyPackets(random, randomBelow(random, 2000)));
    }
    std::vector<int64_t> boundaries;
    for (size_t j = 2 + randomBelow(random, 40); j > 0; j--) {
      boundaries.push_back(kStartNs - 1500 + static_cast<int64_t>(randomBelow(random, 8000)));
    }
    if (random() % 3 == 0) boundaries.push_back(boundaries.front());  // an empty interval
    std::sort(boundaries.begin(), boundaries.end());
    expectCounts(countAll(store, boundaries), boundaries, store);
  }
}

TEST(PacketCount, ReadsNoBlockThatLiesInOneInterval) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 10;
  store.addStream(jumpyPackets(random, 100));
  // Without its packets the segment can only be counted from the index.
  std::filesystem::remove(store.paths()[0][0] + ".pcap");
  const auto counts = countAll(store, {0, kStartNs - 100'000, kStartNs + 100'000, INT64_MAX});
  EXPECT_EQ(counts[0].packets, 0u);
  EXPECT_EQ(counts[1].packets, 100u);
  EXPECT_EQ(counts[2].packets, 0u);

  PacketCount straddling(store.paths(), {0, store.inRange(0, INT64_MAX)[5].timestampNs, INT64_MAX});
  Result<bool> isCounted = straddling.step();
  while (isCounted && !*isCounted) isCounted = straddling.step();
  ASSERT_FALSE(isCounted);
  EXPECT_EQ(isCounted.error().code, Code::kStoreUnavailable);
}

TEST(PacketCount, LeavesOutADamagedBlockThatItHasToRead) {
  StoredStreams store;
  store.packetsPerBlock = 10;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 40; i++) packets.push_back(numberedPacket(kStartNs + i, i, 50));
  store.addStream(packets);
  std::fstream file(store.paths()[0][0] + ".pcap", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(24 + 15 * 66 + 30);  // in the second block
  file.put(0x55);
  file.close();
  const auto counts = countAll(store, {kStartNs, kStartNs + 15, kStartNs + 40});
  EXPECT_EQ(counts[0].packets, 10u);
  EXPECT_EQ(counts[1].packets, 20u);
}

TEST(PacketCount, OfNoIntervalsOrStreamsIsEmpty) {
  const StoredStreams store;
  EXPECT_TRUE(countAll(store, {}).empty());
  EXPECT_TRUE(countAll(store, {5}).empty());
  EXPECT_EQ(countAll(store, {5, 9})[0].packets, 0u);
}

}  // namespace
}  // namespace capfleet::test
