#include "store/packet_count.h"

#include <gtest/gtest.h>

#include "support/seed.h"
#include "support/stored_streams.h"

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

/// Bursts, pauses, and times that go back: blocks of many milliseconds that overlap.
std::vector<StoredPacket> burstyPackets(std::mt19937_64& random, size_t count) {
  std::vector<StoredPacket> packets;
  int64_t nowNs = kStartNs + static_cast<int64_t>(randomBelow(random, 20'000'000));
  for (size_t i = 0; i < count; i++) {
    nowNs += static_cast<int64_t>(randomBelow(random, 30'000)) - 10'000;
    if (random() % 40 == 0) nowNs += static_cast<int64_t>(randomBelow(random, 30'000'000));
    if (random() % 200 == 0) nowNs += static_cast<int64_t>(randomBelow(random, 2'000'000'000));
    if (random() % 100 == 0) nowNs -= static_cast<int64_t>(randomBelow(random, 3'000'000));
    nowNs = std::max(nowNs, kStartNs);
    packets.push_back(numberedPacket(nowNs, static_cast<uint32_t>(i), randomBelow(random, 200)));
  }
  return packets;
}

void addBurstyStreams(StoredStreams& store, std::mt19937_64& random) {
  store.packetsPerBlock = 1 + randomBelow(random, 200);
  store.segmentBytes = 5000 + randomBelow(random, 100'000);
  for (size_t i = 1 + randomBelow(random, 3); i > 0; i--) {
    store.addStream(burstyPackets(random, 1 + randomBelow(random, 2000)));
  }
}

/// Whole milliseconds between the first packet and the last, and the two other instants outside of
/// all.
std::vector<int64_t> wholeMilliseconds(const StoredStreams& store, std::mt19937_64& random) {
  const auto all = store.inRange(0, INT64_MAX);
  const int64_t firstNs = all.front().timestampNs, endNs = all.back().timestampNs + 1;
  std::vector<int64_t> boundaries{firstNs, endNs};
  for (size_t i = randomBelow(random, 60); i > 0; i--) {
    // Near a packet, so that boundaries split the bursts too.
    const int64_t ns = all[randomBelow(random, all.size())].timestampNs;
    const int64_t boundary = ns - ns % kNanosPerMillisecond;
    if (boundary > firstNs) boundaries.push_back(boundary);
  }
  std::sort(boundaries.begin(), boundaries.end());
  return boundaries;
}

void removeFiles(const StoredStreams& store, const std::string& ending) {
  for (const auto& stream : store.paths()) {
    for (const std::string& segment : stream) std::filesystem::remove(segment + ending);
  }
}

Result<std::vector<IntervalCount>> tryCount(const StoredStreams& store,
                                            std::vector<int64_t> boundaries) {
  PacketCount count(store.streams(), std::move(boundaries));
  for (;;) {
    const Result<bool> isCounted = count.step();
    if (!isCounted) return isCounted.error();
    if (*isCounted) return count.counts();
  }
}

std::vector<IntervalCount> countAll(const StoredStreams& store, std::vector<int64_t> boundaries) {
  const auto counts = tryCount(store, std::move(boundaries));
  EXPECT_TRUE(counts) << (counts ? "" : counts.error().message);
  return counts ? *counts : std::vector<IntervalCount>{};
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
  for (int i = 0; i < turns(40, 12); i++) {
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

  const auto straddling =
      tryCount(store, {0, store.inRange(0, INT64_MAX)[5].timestampNs, INT64_MAX});
  ASSERT_FALSE(straddling);
  EXPECT_EQ(straddling.error().code, Code::kAgedOut);
}

TEST(PacketCount, ReadsNoPacketWhenBoundariesAreWholeMilliseconds) {
  auto random = seededRandom();
  size_t refused = 0;
  for (int i = 0; i < 30; i++) {
    StoredStreams store;
    addBurstyStreams(store, random);
    const auto boundaries = wholeMilliseconds(store, random);
    removeFiles(store, ".pcap");
    expectCounts(countAll(store, boundaries), boundaries, store);
    // Without tallies the same boundaries need the packets.
    removeFiles(store, ".tally");
    if (!tryCount(store, boundaries)) refused++;
  }
  EXPECT_GT(refused, 15u) << "boundaries hardly ever cut a block: the test shows nothing";
}

TEST(PacketCount, IsTheSameFromTalliesAndFromPackets) {
  auto random = seededRandom();
  for (int i = 0; i < 20; i++) {
    StoredStreams store;
    addBurstyStreams(store, random);
    auto boundaries = wholeMilliseconds(store, random);
    for (int64_t& boundary : boundaries) {
      if (random() % 4 == 0) boundary += static_cast<int64_t>(randomBelow(random, 900'000));
    }
    std::sort(boundaries.begin(), boundaries.end());
    expectCounts(countAll(store, boundaries), boundaries, store);
    removeFiles(store, ".tally");
    expectCounts(countAll(store, boundaries), boundaries, store);
  }
}

TEST(PacketCount, ReadsABlockOnlyWhereABoundaryCutsAMillisecondWithPackets) {
  StoredStreams store;
  std::vector<StoredPacket> packets;
  for (const int64_t ms : {10, 20, 21, 30}) {
    packets.push_back(numberedPacket(ms * kNanosPerMillisecond + 500, 0, 50));
  }
  store.addStream(packets);
  removeFiles(store, ".pcap");
  const std::vector<int64_t> between{0, 15'000'001, 20'000'000, 21'000'000, 25'123'456, 40'000'000};
  expectCounts(countAll(store, between), between, store);
  // Boundaries before the block's first packet and after its last one split nothing.
  const std::vector<int64_t> around{10'000'499, 20'000'000, 30'000'501};
  expectCounts(countAll(store, around), around, store);
  EXPECT_FALSE(tryCount(store, {0, 20'000'001, 40'000'000}));
}

TEST(PacketCount, ReadsTheBlocksWhoseTalliesAreDamaged) {
  auto random = seededRandom();
  for (int i = 0; i < 60; i++) {
    StoredStreams store;
    store.packetsPerBlock = 50;
    store.addStream(burstyPackets(random, 400));
    const auto boundaries = wholeMilliseconds(store, random);
    const std::string path = store.paths()[0][0] + ".tally";
    Bytes bytes = readFile(path);
    ASSERT_FALSE(bytes.empty());
    const size_t at = randomBelow(random, bytes.size());
    if (i % 2 == 0) bytes.resize(at);
    if (i % 2 == 1) bytes[at] ^= static_cast<uint8_t>(1 + randomBelow(random, 255));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    expectCounts(countAll(store, boundaries), boundaries, store);
  }
}

TEST(PacketCount, ReadsTheBlocksWhenTheTallyIsNoFile) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(burstyPackets(random, 400));
  const auto boundaries = wholeMilliseconds(store, random);
  removeFiles(store, ".tally");
  std::filesystem::create_directory(store.paths()[0][0] + ".tally");
  expectCounts(countAll(store, boundaries), boundaries, store);
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
