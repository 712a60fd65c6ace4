#include "download/download.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "support/bpf_helper.h"
#include "support/random_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

void expectSame(const std::vector<StoredPacket>& got, const std::vector<StoredPacket>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); i++) ASSERT_EQ(got[i], expected[i]) << "packet " << i;
}

TEST(Download, DeliversEveryPacketOnceInOrder) {
  auto random = seededRandom();
  for (int i = 0; i < turns(120); i++) {
    StoredStreams store;
    store.packetsPerBlock = 1 + randomBelow(random, 60);
    store.segmentBytes = 2000 + randomBelow(random, 60000);
    const size_t streams = 1 + randomBelow(random, 5);
    for (size_t j = 0; j < streams; j++) {
      const Clock clock = kClocks[randomBelow(random, std::size(kClocks))];
      store.addStream(randomPackets(random, clock, randomBelow(random, 1500), 200));
    }
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.scanBytes = 1 + randomBelow(random, 40000);
    if (random() % 2 == 0) {
      options.beginNs = kStartNs + static_cast<int64_t>(randomBelow(random, 4000)) - 500;
      options.endNs = options.beginNs + static_cast<int64_t>(randomBelow(random, 4000));
    }
    const auto expected = store.inRange(options.beginNs, options.endNs);
    const auto download = bench.open(options);
    expectSame(packetsOf(readBody(*download, randomBelow(random, 4))), expected);
    const DownloadTotals totals = download->totals();
    EXPECT_EQ(totals.packets, expected.size());
    EXPECT_EQ(totals.readPackets, expected.size());
    EXPECT_EQ(totals.readBytes, totals.bytes);
    EXPECT_EQ(totals.outputBytes, totals.bytes + 24);
    EXPECT_EQ(totals.corruptBlocks, 0u);
    const size_t beside = store.inRange(0, INT64_MAX).size() - expected.size();
    EXPECT_LE(totals.excludedPackets, beside) << "each is counted once, however it is sliced";
    EXPECT_EQ(totals.firstNs.has_value(), !expected.empty());
    if (expected.empty()) continue;
    EXPECT_EQ(totals.firstNs, expected.front().timestampNs);
    EXPECT_EQ(totals.lastNs, expected.back().timestampNs);
  }
}

TEST(Download, PartsOfARangeConcatenateToTheWhole) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 40;
  for (const Clock clock : kClocks) store.addStream(randomPackets(random, clock, 3000, 100));
  const auto expected = store.inRange(0, INT64_MAX);
  for (int i = 0; i < turns(30); i++) {
    std::set<int64_t> cuts{0, INT64_MAX};
    for (int j = 0; j < 5; j++)
      cuts.insert(expected[randomBelow(random, expected.size())].timestampNs);
    DownloadBench bench;
    std::vector<StoredPacket> got;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); cut++) {
      DownloadOptions options = store.options();
      options.beginNs = *cut;
      options.endNs = *std::next(cut);
      options.scanBytes = 10000;
      const auto part = packetsOf(readBody(*bench.open(options)));
      got.insert(got.end(), part.begin(), part.end());
    }
    expectSame(got, expected);
  }
}

TEST(Download, StaysWithinItsSlabsWhateverTheDataAndTheConsumer) {
  // The worst case: a single timestamp, so that nothing can be split by time.
  StoredStreams store;
  uint32_t number = 0;
  for (int i = 0; i < 2; i++) {
    std::vector<StoredPacket> packets;
    for (int j = 0; j < 200; j++) packets.push_back(numberedPacket(kStartNs, number++, 60000));
    store.addStream(packets);
  }
  DownloadBench bench;
  const auto download = bench.open(store.options());
  Bytes body;
  for (;;) {
    const Download::Answer answer = nextPart(*download);
    ASSERT_TRUE(answer);
    if (*answer == nullptr) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a slow consumer
    EXPECT_LE(bench.slabsInUse(), 9u) << "8 of packets and the file header";
    append(body, {(*answer)->bytes.get(), (*answer)->size});
    download->release(answer->get());
  }
  expectSame(packetsOf(body), store.inRange(0, INT64_MAX));
}

TEST(Download, CopiesWholeBlocksAndTrimsTheEdges) {
  // Large enough for several slabs; one ordered stream takes the path that does not parse packets.
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 9000, 2000));
  const auto all = store.inRange(0, INT64_MAX);
  for (int i = 0; i < turns(10, 2); i++) {
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.beginNs = all[randomBelow(random, all.size() / 2)].timestampNs;
    options.endNs = all[all.size() / 2 + randomBelow(random, all.size() / 2)].timestampNs;
    expectSame(packetsOf(readBody(*bench.open(options), 3)),
               store.inRange(options.beginNs, options.endNs));
  }
}

TEST(Download, FiltersLikeLibpcap) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 50;
  for (const Clock clock : kClocks) store.addStream(randomPackets(random, clock, 3000, 120));
  for (const char* expression :
       {"greater 100", "ether[0] & 3 = 1", "len % 11 == 5", "ether[0:4] = 77"}) {
    const BothPrograms programs = compiled(expression);
    std::vector<StoredPacket> expected = store.inRange(0, INT64_MAX);
    std::erase_if(expected, [&](const StoredPacket& packet) {
      return !libpcapAccepts(programs, packet.captured, packet.originalLength);
    });
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.filter = parsed(programs);
    options.scanBytes = 20000;
    const auto download = bench.open(options);
    expectSame(packetsOf(readBody(*download)), expected);
    EXPECT_EQ(download->totals().readPackets, 12000u);
    EXPECT_EQ(download->totals().packets, expected.size());
    EXPECT_EQ(download->totals().excludedPackets, 12000u - expected.size());
  }
}

TEST(Download, CountsWhatIsLeftOutWhenThePacketsBehindItAreHandedOut) {
  StoredStreams store;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 24000; i++) packets.push_back(numberedPacket(kStartNs + i, i, 1000));
  store.addStream(packets);
  for (const Codec codec : {Codec::kNone, Codec::kGzip}) {
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.filter = parsed(compiled("ether[0] & 1 = 1"));
    options.scanBytes = 200000;
    options.compression.codec = codec;
    options.compression.level = codec == Codec::kNone ? 0 : 1;
    const auto download = bench.open(options);
    // Every second packet passes; the last one of a slice may not.
    constexpr uint64_t kSlices = 200;
    const auto hasReadAhead = [&] {
      const DownloadTotals totals = download->totals();
      return totals.readPackets > totals.packets * 2 + 4 * kSlices;
    };
    uint64_t before = 0;
    bool mustReadAhead = true;
    for (;;) {
      const Download::Answer answer = nextPart(*download);
      ASSERT_TRUE(answer);
      if (mustReadAhead && download->totals().packets > 0) {
        // Nothing is read meanwhile, so the download fills all of its slabs.
        const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!hasReadAhead() && std::chrono::steady_clock::now() < limit) {
          std::this_thread::yield();
        }
        EXPECT_TRUE(hasReadAhead()) << "else nothing is shown";
        mustReadAhead = false;
      }
      const DownloadTotals totals = download->totals();
      EXPECT_GE(totals.excludedPackets, before);
      before = totals.excludedPackets;
      EXPECT_LE(totals.excludedPackets, totals.packets + kSlices);
      if (*answer == nullptr) break;
      download->release(answer->get());
    }
    EXPECT_EQ(before, 12000u);
  }
}

TEST(Download, CountsWhatItReadsBesideItsRange) {
  StoredStreams store;
  store.packetsPerBlock = 100;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 1000; i++) packets.push_back(numberedPacket(kStartNs + i, i, 100));
  store.addStream(packets);
  for (const uint64_t scanBytes : {uint64_t{1000}, uint64_t{30000}, kSliceBytes}) {
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.scanBytes = scanBytes;
    options.beginNs = kStartNs + 130;
    options.endNs = kStartNs + 345;
    const auto download = bench.open(options);
    EXPECT_EQ(packetsOf(readBody(*download)).size(), 215u);
    EXPECT_EQ(download->totals().excludedPackets, 30u + 55u) << scanBytes;
  }
}

TEST(Download, CutsPacketsAndRoundsTimestampsDown) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 50;
  store.addStream(randomPackets(random, Clock::kJitter, 2000, 300));
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.sliceBytes = 64;
  options.toMicroseconds = true;
  const auto download = bench.open(options);
  EXPECT_EQ(download->snaplen(), 64u);
  Bytes body = readBody(*download);
  ASSERT_EQ(loadLe32(body.data()), kPcapMagicMicros);
  EXPECT_EQ(loadLe32(body.data() + 16), 64u);
  size_t at = 24;
  for (const StoredPacket& packet : store.inRange(0, INT64_MAX)) {
    const uint32_t captured = std::min<uint32_t>(64, static_cast<uint32_t>(packet.captured.size()));
    ASSERT_LE(at + 16 + captured, body.size());
    EXPECT_EQ(loadLe32(&body[at]), packet.timestampNs / kNanosPerSecond);
    EXPECT_EQ(loadLe32(&body[at + 4]), packet.timestampNs % kNanosPerSecond / 1000);
    EXPECT_EQ(loadLe32(&body[at + 8]), captured);
    EXPECT_EQ(loadLe32(&body[at + 12]), packet.originalLength);
    EXPECT_EQ(std::memcmp(&body[at + 16], packet.captured.data(), captured), 0);
    at += 16 + captured;
  }
  EXPECT_EQ(at, body.size());
}

TEST(Download, EndsAtTheSpanAfterTheFirstPacketThatPasses) {
  auto random = seededRandom();
  for (int i = 0; i < turns(40); i++) {
    StoredStreams store;
    store.packetsPerBlock = 30;
    for (int j = 0; j < 3; j++) {
      const Clock clock = kClocks[randomBelow(random, std::size(kClocks))];
      store.addStream(randomPackets(random, clock, 1000, 100));
    }
    DownloadOptions options = store.options();
    options.scanBytes = 5000;
    options.tsMaxNs = 1 + static_cast<int64_t>(randomBelow(random, 3000));
    options.beginNs = kStartNs + static_cast<int64_t>(randomBelow(random, 2000));
    auto expected = store.inRange(options.beginNs, INT64_MAX);
    if (random() % 2 == 0) {
      const BothPrograms programs =
          compiled("ether[3] > 200");  // high byte first: the number's low
      options.filter = parsed(programs);
      std::erase_if(expected, [&](const StoredPacket& packet) {
        return !libpcapAccepts(programs, packet.captured, packet.originalLength);
      });
    }
    std::erase_if(expected, [&, firstNs = expected.empty() ? 0 : expected.front().timestampNs](
                                const StoredPacket& packet) {
      return packet.timestampNs >= firstNs + *options.tsMaxNs;
    });
    DownloadBench bench;
    expectSame(packetsOf(readBody(*bench.open(options))), expected);
  }
}

TEST(Download, LeavesOutADamagedBlockAndCountsItOnce) {
  auto random = seededRandom();
  for (const bool isMerged : {false, true}) {
    StoredStreams store;
    store.packetsPerBlock = 30;
    store.addStream(randomPackets(random, Clock::kSteady, 3000, 200));
    if (isMerged) store.addStream(randomPackets(random, Clock::kSteady, 3000, 200));
    const std::string segment = store.paths()[0][0];
    const auto index = readSegmentIndex(segment);
    ASSERT_TRUE(index);
    ASSERT_EQ(index->blocks.size(), 100u);
    std::set<Bytes> lost;
    for (const size_t number : {17u, 50u, 51u, 99u}) {
      std::vector<StoredPacket> packets;
      readBlock(readFile(segment + ".pcap"), index->blocks[number], packets);
      for (const StoredPacket& packet : packets) lost.insert(packet.captured);
      damage(segment, index->blocks[number]);
    }
    auto expected = store.inRange(0, INT64_MAX);
    std::erase_if(expected,
                  [&](const StoredPacket& packet) { return lost.contains(packet.captured); });
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.scanBytes = 3000;  // many time cuts, so that slices share blocks
    const auto download = bench.open(options);
    expectSame(packetsOf(readBody(*download)), expected);
    EXPECT_EQ(download->totals().corruptBlocks, 4u);
  }
}

TEST(Download, CountsBlocksBehindTheEndOfATruncatedSegmentAsCorrupt) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 30;
  store.addStream(randomPackets(random, Clock::kSteady, 300, 200));
  const std::string segment = store.paths()[0][0];
  const auto index = readSegmentIndex(segment);
  ASSERT_TRUE(index);
  std::filesystem::resize_file(segment + ".pcap", index->blocks[4].offset + 5);
  DownloadBench bench;
  const auto download = bench.open(store.options());
  const auto all = store.inRange(0, INT64_MAX);
  expectSame(packetsOf(readBody(*download)), {all.begin(), all.begin() + 120});
  EXPECT_EQ(download->totals().corruptBlocks, 6u);
}

TEST(Download, FailsWhenASegmentHasVanishedAfterGivingWhatCameBefore) {
  auto random = seededRandom();
  StoredStreams store;
  store.segmentBytes = 100'000;
  store.addStream(randomPackets(random, Clock::kSteady, 3000, 200));
  const auto paths = store.paths()[0];
  ASSERT_GE(paths.size(), 3u);
  std::filesystem::remove(paths[1] + ".pcap");
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.scanBytes = 1;
  const auto download = bench.open(options);
  Bytes body;
  for (;;) {
    const Download::Answer answer = nextPart(*download);
    if (!answer) {
      EXPECT_EQ(answer.error().code, Code::kAgedOut);
      EXPECT_NE(answer.error().message.find(paths[1]), std::string::npos);
      break;
    }
    ASSERT_NE(*answer, nullptr) << "a short body must not end as if it were whole";
    append(body, {(*answer)->bytes.get(), (*answer)->size});
    download->release(answer->get());
  }
  const auto got = packetsOf(body);
  const auto all = store.inRange(0, INT64_MAX);
  ASSERT_LT(got.size(), all.size());
  expectSame(got, {all.begin(), all.begin() + static_cast<ptrdiff_t>(got.size())});
  EXPECT_FALSE(nextPart(*download)) << "the failure stays";
}

TEST(Download, OfNothingIsTheBareFileHeader) {
  DownloadBench bench;
  DownloadOptions options;
  options.endNs = INT64_MAX;
  options.emptyLinkTypeWord = 113;
  const auto empty = bench.open(options);
  const Bytes body = readBody(*empty);
  EXPECT_EQ(body.size(), 24u);
  EXPECT_EQ(loadLe32(&body[20]), 113u);
  EXPECT_TRUE(nextPart(*empty)) << "the end stays the end";

  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 100, 100), 228);
  options.streams = store.streams();
  options.beginNs = options.endNs = kStartNs + 100;
  EXPECT_EQ(loadLe32(&readBody(*bench.open(options))[20]), 228u);
}

TEST(Download, RefusesToMixLinkTypes) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 10, 100), 1);
  store.addStream(randomPackets(random, Clock::kSteady, 10, 100), 113);
  DownloadBench bench;
  const auto mixed = bench.tryOpen(store.options());
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::kMixedLinkType);
}

TEST(Download, StopsAtAnyMomentAndLosesNoSlab) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 4000, 6000));
  store.addStream(randomPackets(random, Clock::kJitter, 4000, 6000));
  const Compression compressions[] = {{}, {Codec::kGzip, 1}, {Codec::kZstd, 1}};
  for (int i = 0; i < turns(60); i++) {
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.compression = compressions[i % 3];
    const auto download = bench.open(options);
    for (size_t parts = randomBelow(random, 12); parts > 0; parts--) {
      const Download::Answer answer = nextPart(*download);
      ASSERT_TRUE(answer);
      if (*answer != nullptr) download->release(answer->get());
    }
    std::promise<bool> answered;
    download->next([&](const Download::Answer& answer) {
      answered.set_value(static_cast<bool>(answer));
      if (answer && *answer) download->release(answer->get());
    });
    std::thread closer([&] { download->close(); });
    answered.get_future().get();
    closer.join();
    download->close();
    const Download::Answer after = nextPart(*download);
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().code, Code::kCancelled);
  }
}

TEST(Download, MayBeDroppedWithPartsUnreleased) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 3000, 3000));
  SlabPtr kept;
  {
    DownloadBench bench;
    const auto download = bench.open(store.options());
    ASSERT_TRUE(nextPart(*download));
    kept = *nextPart(*download);
  }
  EXPECT_EQ(kept.use_count(), 1) << "the slab belongs to who looks at it, and is never refilled";
}

TEST(Download, ConsumersThatHoldPartsDoNotBlockEachOther) {
  auto random = seededRandom();
  StoredStreams store;
  for (int i = 0; i < 3; i++) store.addStream(randomPackets(random, Clock::kSteady, 2500, 3000));
  const auto expected = store.inRange(0, INT64_MAX);
  DownloadBench bench;
  std::vector<std::thread> consumers;
  for (size_t held = 0; held < 4; held++) {
    consumers.emplace_back([&, held] {
      const auto download = bench.open(store.options());
      expectSame(packetsOf(readBody(*download, held)), expected);
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
}

}  // namespace
}  // namespace capfleet::test
