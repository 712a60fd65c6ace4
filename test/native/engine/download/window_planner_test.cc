// Plans of a download window by window, compared with one window for the whole range.
#include "download/window_planner.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "os/byte_order.h"
#include "store/segment_index.h"
#include "store/xxh3.h"
#include "support/growing_segment.h"
#include "support/random_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr uint64_t kOneWindow = UINT64_MAX;

bool oneOf(std::mt19937_64& random, size_t many) { return randomBelow(random, many) == 0; }

/// Streams of many segments, side by side or one after another, also in the wrong order.
void fillStore(StoredStreams& store, std::mt19937_64& random) {
  store.packetsPerBlock = 1 + randomBelow(random, 30);
  store.segmentBytes = 1000 + randomBelow(random, 20'000);
  for (size_t left = 1 + randomBelow(random, 5); left > 0; left--) {
    const Clock clock = kClocks[randomBelow(random, std::size(kClocks))];
    std::vector<StoredPacket> packets = randomPackets(random, clock, randomBelow(random, 900), 200);
    const auto laterNs = static_cast<int64_t>(randomBelow(random, 5000));
    for (StoredPacket& packet : packets) packet.timestampNs += laterNs;
    store.addStream(packets);
  }
}

DownloadOptions randomQuery(const StoredStreams& store, std::mt19937_64& random) {
  DownloadOptions options = store.options();
  options.scanBytes = 1 + randomBelow(random, 20'000);
  if (oneOf(random, 2)) {
    options.beginNs = kStartNs + static_cast<int64_t>(randomBelow(random, 5000)) - 500;
    options.endNs = options.beginNs + static_cast<int64_t>(randomBelow(random, 6000));
  }
  if (oneOf(random, 4)) options.limits.packets = 1 + randomBelow(random, 2000);
  if (oneOf(random, 4)) options.tsMaxNs = 1 + static_cast<int64_t>(randomBelow(random, 3000));
  if (oneOf(random, 4)) {
    options.frameFilter = {{FrameField::kCapturePort, randomBelow(random, 2) == 0, {0}}};
  }
  if (oneOf(random, 3)) options.clock.source = TimeSource::kA7150Insert;
  return options;
}

void damageSome(const StoredStreams& store, std::mt19937_64& random) {
  for (const auto& segments : store.paths()) {
    for (const std::string& segment : segments) {
      const auto index = readSegmentIndex(segment);
      for (const BlockEntry& block : index->blocks) {
        if (oneOf(random, 20)) damage(segment, block);
      }
    }
  }
}

void expectSameTotals(const DownloadTotals& got, const DownloadTotals& expected) {
  EXPECT_EQ(got.packets, expected.packets);
  EXPECT_EQ(got.bytes, expected.bytes);
  EXPECT_EQ(got.skippedPackets, expected.skippedPackets);
  EXPECT_EQ(got.firstNs, expected.firstNs);
  EXPECT_EQ(got.lastNs, expected.lastNs);
  EXPECT_EQ(got.isTruncated, expected.isTruncated);
  EXPECT_EQ(got.nextNs, expected.nextNs);
  if (expected.isTruncated) return;  // how far the scan has come by then is random
  EXPECT_EQ(got.corruptBlocks, expected.corruptBlocks);
  EXPECT_EQ(got.vendorTimeFallbacks, expected.vendorTimeFallbacks);
  EXPECT_EQ(got.latePackets, expected.latePackets);
}

TEST(WindowPlanner, DeliversTheSameInAnyNumberOfWindows) {
  auto random = seededRandom();
  for (int i = 0; i < turns(150); i++) {
    StoredStreams store;
    fillStore(store, random);
    if (oneOf(random, 3)) damageSome(store, random);
    DownloadBench bench;
    DownloadOptions options = randomQuery(store, random);
    options.windowBytes = kOneWindow;
    const auto whole = bench.open(options);
    const Bytes expected = readBody(*whole);
    for (const uint64_t windowBytes : {uint64_t{1}, 1 + randomBelow(random, 60'000)}) {
      options.windowBytes = windowBytes;
      const auto download = bench.open(options);
      ASSERT_EQ(readBody(*download), expected) << "in windows of " << windowBytes << " bytes";
      expectSameTotals(download->totals(), whole->totals());
      const bool isWhole = !options.limits.packets && !options.tsMaxNs;
      if (isWhole && options.clock.source == TimeSource::kNic) {
        EXPECT_EQ(download->totals().readPackets, whole->totals().readPackets);
        EXPECT_EQ(download->totals().excludedPackets, whole->totals().excludedPackets);
      }
    }
  }
}

/// The plans of all windows.
std::vector<std::shared_ptr<const SlicePlan>> plansOf(const std::vector<StreamSegments>& streams,
                                                      WindowOptions options) {
  WindowPlanner planner(streams, std::move(options));
  std::vector<std::shared_ptr<const SlicePlan>> plans;
  for (;;) {
    const Result<WindowPlanner::Step> step = planner.step();
    if (!step) {
      ADD_FAILURE() << step.error().message;
      return plans;
    }
    if (step->plan) plans.push_back(step->plan);
    if (step->isFinished) return plans;
  }
}

WindowOptions everything() {
  WindowOptions options;
  options.endNs = INT64_MAX;
  return options;
}

/// Fills the store with `count` segments for each stream, of ten packets each.
void fillSideBySide(StoredStreams& store, size_t streams, uint32_t count) {
  store.segmentBytes = 24 + 10 * (16 + 100);
  for (size_t stream = 0; stream < streams; stream++) {
    std::vector<StoredPacket> packets;
    for (uint32_t i = 0; i < count * 10; i++) {
      // Each stream starts a third of a segment after the previous one.
      packets.push_back(
          numberedPacket(static_cast<int64_t>(1'000 + 100 * i + 333 * stream), i, 100));
    }
    store.addStream(packets);
  }
}

TEST(WindowPlanner, HoldsTheIndexesOfAWindowWhateverTheRangeIs) {
  constexpr uint32_t kSegments = 150;
  for (const size_t streams : {1u, 4u}) {
    StoredStreams store;
    fillSideBySide(store, streams, kSegments);
    const auto plans = plansOf(store.streams(), everything());
    ASSERT_GT(plans.size(), kSegments * streams / 100)
        << "small segments end a window by their number";
    std::set<std::string> all;
    for (const auto& plan : plans) {
      EXPECT_LE(plan->segments.size(), 64 + 2 * streams);
      for (const auto& segment : plan->segments) all.insert(segment->path);
    }
    EXPECT_EQ(all.size(), kSegments * streams);
  }
}

TEST(WindowPlanner, ReadsNoIndexBeyondTheFirstWindow) {
  StoredStreams store;
  fillSideBySide(store, 1, 150);
  for (size_t i = 100; i < 150; i++) std::filesystem::remove(store.paths()[0][i] + ".idx");
  WindowPlanner planner(store.streams(), everything());
  const Result<WindowPlanner::Step> step = planner.step();
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_TRUE(step->plan);
  // Nor a segment outside the range.
  WindowOptions options;
  options.beginNs = 1'000 + 50 * 1'000;
  options.endNs = options.beginNs + 1'000;
  const auto plans = plansOf(store.streams(), options);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0]->segments.size(), 1u);
}

TEST(WindowPlanner, DoesNotCutWhereManyRunSideBySide) {
  // All begin within one segment's time: if windows were cut there, each would read one block of
  // each again.
  StoredStreams store;
  for (uint32_t stream = 0; stream < 200; stream++) {
    store.addStream({numberedPacket(1'000 + stream, stream, 100),
                     numberedPacket(1'000'000 + stream, stream, 100)});
  }
  EXPECT_EQ(plansOf(store.streams(), everything()).size(), 1u);
}

TEST(WindowPlanner, CountsASegmentWithPacketsFromBeforeTheTimeInTheLog) {
  StoredStreams store;
  fillSideBySide(store, 1, 3);
  std::vector<StreamSegments> streams = store.streams();
  streams[0].segments[2].minNs += 500;
  WindowPlanner planner(streams, everything());
  uint64_t corruptBlocks = 0, plannedDamaged = 0;
  for (bool isFinished = false; !isFinished;) {
    const Result<WindowPlanner::Step> step = planner.step();
    ASSERT_TRUE(step) << step.error().message;
    corruptBlocks += step->corruptBlocks;
    isFinished = step->isFinished;
    if (!step->plan) continue;
    for (const auto& segment : step->plan->segments) {
      plannedDamaged += segment->index.damagedBlocks;
    }
  }
  EXPECT_GT(corruptBlocks + plannedDamaged, 0u);
}

TEST(WindowPlanner, FailsWhereADamagedSegmentHasPacketsBeforeWhatTheLogSays) {
  StoredStreams store;
  fillSideBySide(store, 1, 3);
  std::vector<StreamSegments> streams = store.streams();
  streams[0].segments[2].minNs += 500;
  streams[0].segments[2].flags |= kSegmentDamaged;
  streams[0].segments.push_back(streams[0].segments[2]);
  streams[0].segments.erase(streams[0].segments.begin() + 2);
  WindowOptions options = everything();
  options.windowBytes = 1;
  WindowPlanner planner(streams, options);
  std::optional<Error> error;
  while (!error) {
    const Result<WindowPlanner::Step> step = planner.step();
    if (!step) error = step.error();
    ASSERT_TRUE(!step || !step->isFinished) << "packets were left out";
  }
  EXPECT_EQ(error->code, Code::kStoreCorrupt);
}

TEST(WindowPlanner, CountsASegmentWhoseIndexIsOfAnotherVersionAndGoesOn) {
  StoredStreams store;
  fillSideBySide(store, 1, 5);
  // A damaged index is rebuilt; files written by a later capfleet are left alone.
  uint8_t header[kIndexHeaderBytes];
  storeIndexHeader(header, 0, {});
  storeLe32(header + 8, 77);
  storeLe64(header + 56, xxh3({header, 56}));
  std::ofstream(store.paths()[0][2] + ".idx", std::ios::binary)
      .write(reinterpret_cast<const char*>(header), sizeof header);
  DownloadBench bench;
  DownloadOptions options = store.options();
  for (const uint64_t windowBytes : {uint64_t{1}, kOneWindow}) {
    options.windowBytes = windowBytes;
    const auto download = bench.open(options);
    EXPECT_EQ(packetsOf(readBody(*download)).size(), 40u);
    EXPECT_EQ(download->totals().corruptBlocks, 1u);
  }
}

TEST(WindowPlanner, TellsOfARemovedSegmentAfterThePacketsBeforeIt) {
  StoredStreams store;
  fillSideBySide(store, 1, 5);
  for (const char* ending : {".idx", ".pcap"}) {
    std::filesystem::remove(store.paths()[0][3] + ending);
  }
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.windowBytes = kOneWindow;
  const auto atOnce = bench.tryOpen(options);
  ASSERT_FALSE(atOnce);
  EXPECT_EQ(atOnce.error().code, Code::kAgedOut);
  options.windowBytes = 1;
  const auto download = bench.open(options);
  Bytes body;
  for (;;) {
    const Download::Answer part = nextPart(*download);
    if (!part) {
      EXPECT_EQ(part.error().code, Code::kAgedOut);
      break;
    }
    ASSERT_NE(*part, nullptr) << "an incomplete download must not end well";
    append(body, {(*part)->bytes.get(), (*part)->size});
    download->release(part->get());
  }
  EXPECT_EQ(packetsOf(body).size(), 30u);
}

TEST(WindowPlanner, ReadsAllThatASegmentHasGrownSinceTheCallerLooked) {
  GrowingStream stream;
  stream.append(numberedPacket(2000, 1, 60));
  stream.flush();
  DownloadOptions options = stream.options(1);
  // The clock steps back, and then far ahead.
  stream.append(numberedPacket(500, 2, 60));
  stream.flush();
  stream.append(numberedPacket(900'000, 3, 60));
  stream.flush();
  options.windowBytes = 1;
  DownloadBench bench;
  EXPECT_EQ(packetsOf(readBody(*bench.open(options))).size(), 3u);
  options.beginNs = 800'000;
  EXPECT_EQ(packetsOf(readBody(*bench.open(options))).size(), 1u);
}

}  // namespace
}  // namespace capfleet::test
