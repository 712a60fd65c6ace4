// Downloads that begin inside their body, compared with the tail of the whole one.
#include <gtest/gtest.h>

#include <fstream>

#include "support/bpf_helper.h"
#include "support/decompressed_bytes.h"
#include "support/random_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

const Compression kCompressions[] = {{}, {Codec::kGzip, 1}, {Codec::kGzip, 6}, {Codec::kZstd, 1}};

bool oneOf(std::mt19937_64& random, size_t many) { return randomBelow(random, many) == 0; }

void fillStore(StoredStreams& store, std::mt19937_64& random) {
  store.packetsPerBlock = 1 + randomBelow(random, 60);
  store.segmentBytes = 2000 + randomBelow(random, 60000);
  for (size_t left = 1 + randomBelow(random, 4); left > 0; left--) {
    const Clock clock = kClocks[randomBelow(random, std::size(kClocks))];
    store.addStream(randomPackets(random, clock, randomBelow(random, 1200), 200));
  }
}

/// Random options of a body; half of the time only a range.
DownloadOptions randomQuery(const StoredStreams& store, std::mt19937_64& random) {
  DownloadOptions options = store.options();
  options.scanBytes = 1 + randomBelow(random, 40000);
  if (!oneOf(random, 3)) options.windowBytes = 1 + randomBelow(random, 100'000);
  if (oneOf(random, 2)) {
    options.beginNs = kStartNs + static_cast<int64_t>(randomBelow(random, 4000)) - 500;
    options.endNs = options.beginNs + static_cast<int64_t>(randomBelow(random, 6000));
  }
  if (oneOf(random, 3)) options.limits.bytes = 24 + randomBelow(random, 200'000);
  if (oneOf(random, 3)) options.limits.packets = 1 + randomBelow(random, 2000);
  if (oneOf(random, 4)) options.toMicroseconds = true;
  if (oneOf(random, 2)) return options;
  if (oneOf(random, 2)) options.filter = parsed(compiled("ether[0] & 3 = 1"));
  if (oneOf(random, 2)) options.sliceBytes = 1 + static_cast<uint32_t>(randomBelow(random, 150));
  if (oneOf(random, 3)) options.tsMaxNs = 1 + static_cast<int64_t>(randomBelow(random, 3000));
  if (oneOf(random, 3)) options.clock.source = TimeSource::kA7130;
  return options;
}

/// A position in a body: near its file header or its end, or anywhere.
uint64_t randomPosition(const Bytes& whole, std::mt19937_64& random) {
  switch (randomBelow(random, 5)) {
    case 0:
      return randomBelow(random, 42);
    case 1:
      return whole.size() - std::min(randomBelow(random, 30), whole.size());
    case 2:
      return whole.size() + randomBelow(random, 2) * randomBelow(random, 1 << 30);
    default:
      return randomBelow(random, whole.size() + 1);
  }
}

Bytes tailOf(const Bytes& whole, uint64_t position) {
  const auto skipped = static_cast<ptrdiff_t>(std::min<uint64_t>(position, whole.size()));
  return {whole.begin() + skipped, whole.end()};
}

uint64_t packetsBefore(const Bytes& whole, uint64_t position) {
  uint64_t packets = 0;
  for (size_t at = 24; at < whole.size(); packets++) {
    at += 16 + loadLe32(&whole[at + 8]);
    if (at > position) break;
  }
  return packets;
}

void expectTotalsOfTheWhole(const DownloadTotals& got, const DownloadTotals& whole) {
  EXPECT_EQ(got.packets, whole.packets);
  EXPECT_EQ(got.bytes, whole.bytes);
  EXPECT_EQ(got.firstNs, whole.firstNs);
  EXPECT_EQ(got.lastNs, whole.lastNs);
  EXPECT_EQ(got.isTruncated, whole.isTruncated);
  EXPECT_EQ(got.nextNs, whole.nextNs);
  if (whole.isTruncated) return;  // how far the scan has come by then is random
  EXPECT_EQ(got.corruptBlocks, whole.corruptBlocks);
  EXPECT_EQ(got.vendorTimeFallbacks, whole.vendorTimeFallbacks);
  EXPECT_EQ(got.latePackets, whole.latePackets);
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

TEST(ContinuedDownload, IsTheTailOfTheWholeForAnyQueryAndPosition) {
  auto random = seededRandom();
  for (int i = 0; i < turns(60); i++) {
    StoredStreams store;
    fillStore(store, random);
    if (oneOf(random, 3)) damageSome(store, random);
    DownloadOptions options = randomQuery(store, random);
    DownloadBench bench;
    // With warm caches, as in a process that has read the store; otherwise cold, as in a new
    // process.
    if (!oneOf(random, 4)) options.checkedBlocks = std::make_shared<CheckedBlocks>();
    const auto undisturbed = bench.open(options);
    const Bytes whole = readBody(*undisturbed);
    for (int j = 0; j < 6; j++) {
      options.afterBytes = randomPosition(whole, random);
      options.compression = kCompressions[randomBelow(random, std::size(kCompressions))];
      const auto download = bench.open(options);
      const Bytes body = readBody(*download, randomBelow(random, 3));
      EXPECT_EQ(download->totals().outputBytes, body.size());
      const Codec codec = options.compression.codec;
      EXPECT_TRUE(codec == Codec::kNone || !body.empty()) << "a member or frame, if an empty one";
      ASSERT_EQ(codec == Codec::kNone ? body : decompressed(codec, body),
                tailOf(whole, options.afterBytes))
          << "after " << options.afterBytes << " of " << whole.size();
      expectTotalsOfTheWhole(download->totals(), undisturbed->totals());
      EXPECT_EQ(download->totals().skippedPackets, packetsBefore(whole, options.afterBytes));
    }
  }
}

/// Steady streams side by side, which were downloaded once.
struct ReadStore {
  explicit ReadStore(size_t streams, std::mt19937_64& random) {
    store.packetsPerBlock = 20;
    for (size_t i = 0; i < streams; i++) {
      store.addStream(randomPackets(random, Clock::kSteady, 4000, 200));
    }
    options = store.options();
    options.scanBytes = 8 * kBlockBytes;
    options.checkedBlocks = std::make_shared<CheckedBlocks>();
    whole = readBody(*bench.open(options));
  }
  /// What a continued download may read in addition to what it sends: a slice or two, with the
  /// blocks at its ends.
  uint64_t mostWaste() const {
    return 2 * options.scanBytes + 4 * kBlockBytes * options.streams.size();
  }

  static constexpr uint64_t kBlockBytes = 20 * 216;  ///< at most
  DownloadBench bench;
  StoredStreams store;
  DownloadOptions options;
  Bytes whole;
};

TEST(ContinuedDownload, ReadsNothingOfWhatLiesFarBeforeThePosition) {
  auto random = seededRandom();
  for (const size_t streams : {1u, 2u, 4u}) {
    ReadStore read(streams, random);
    for (int i = 0; i < 20; i++) {
      const uint64_t position = randomBelow(random, read.whole.size());
      read.options.afterBytes = position;
      const auto download = read.bench.open(read.options);
      ASSERT_EQ(readBody(*download), tailOf(read.whole, position));
      EXPECT_LE(download->totals().readBytes, read.whole.size() - position + read.mostWaste());
    }
  }
}

TEST(ContinuedDownload, DoesNotEvenOpenSegmentsThatLieBeforeThePosition) {
  auto random = seededRandom();
  StoredStreams store;
  store.segmentBytes = 50'000;
  store.addStream(randomPackets(random, Clock::kSteady, 3000, 200));
  const auto segments = store.paths()[0];
  ASSERT_GE(segments.size(), 4u);
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.scanBytes = 1;
  options.checkedBlocks = std::make_shared<CheckedBlocks>();
  const Bytes whole = readBody(*bench.open(options));
  for (size_t i = 0; i < 3; i++) std::filesystem::remove(segments[i] + ".pcap");
  options.afterBytes = 3 * store.segmentBytes;
  EXPECT_EQ(readBody(*bench.open(options)), tailOf(whole, options.afterBytes));
}

TEST(ContinuedDownload, ReadsBlocksThatNobodyReadBeforeBecauseTheyMayBeDamaged) {
  auto random = seededRandom();
  ReadStore read(1, random);
  const std::string segment = read.store.paths()[0][0];
  damage(segment, readSegmentIndex(segment)->blocks[10]);
  const uint64_t position = read.whole.size() / 2;
  // A download that has read the block while it was intact continues after what it sent.
  read.options.afterBytes = position;
  EXPECT_EQ(readBody(*read.bench.open(read.options)), tailOf(read.whole, position));

  read.options.checkedBlocks = std::make_shared<CheckedBlocks>();
  read.options.afterBytes = 0;
  const Bytes damaged = readBody(*DownloadBench().open(read.store.options()));
  ASSERT_LT(damaged.size(), read.whole.size());
  read.options.afterBytes = position;
  for (const bool wasRead : {false, true}) {
    const auto download = read.bench.open(read.options);
    EXPECT_EQ(readBody(*download), tailOf(damaged, position));
    EXPECT_EQ(download->totals().corruptBlocks, 1u);
    EXPECT_EQ(download->totals().readBytes + 24 < damaged.size(), wasRead);
  }
}

TEST(ContinuedDownload, KnowsThatABlockWasMarkedOrItsMarkTakenAwaySinceItWasRead) {
  auto random = seededRandom();
  ReadStore read(1, random);
  const std::string segment = read.store.paths()[0][0];
  const auto index = readSegmentIndex(segment);
  SegmentIndex marked = *index;
  marked.blocks[10] = marked.blocks[10].asDamaged();
  for (int i = 0; i < 3; i++) {
    for (const SegmentIndex& now : {marked, *index}) {
      const Bytes bytes = serialiseIndex(now);
      std::ofstream(segment + ".idx", std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      read.options.afterBytes = 0;
      const Bytes whole = readBody(*DownloadBench().open(read.store.options()));
      ASSERT_EQ(whole.size() == read.whole.size(), now.blocks == index->blocks);
      for (const bool wasRead : {false, true}) {
        read.options.afterBytes = whole.size() / 2;
        const auto download = read.bench.open(read.options);
        EXPECT_EQ(readBody(*download), tailOf(whole, read.options.afterBytes));
        EXPECT_EQ(download->totals().corruptBlocks, whole.size() < read.whole.size() ? 1u : 0u);
        EXPECT_EQ(download->totals().packets, packetsBefore(whole, whole.size()));
        // Everything cached was dropped with the old index.
        EXPECT_EQ(download->totals().readBytes < whole.size() / 2 + read.mostWaste(), wasRead);
      }
    }
  }
}

TEST(ContinuedDownload, AnswersItsFirstPartAtOnceHoweverFarThePositionIs) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 3000, 200));
  for (const Compression compression : kCompressions) {
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.compression = compression;
    options.afterBytes = INT64_MAX;
    const auto download = bench.open(options);
    const Download::Answer first = nextPart(*download);
    ASSERT_TRUE(first);
    ASSERT_NE(*first, nullptr);
    EXPECT_EQ((*first)->size == 0, compression.codec == Codec::kNone);
    download->release(first->get());
    EXPECT_EQ(*nextPart(*download), nullptr);
  }
}

}  // namespace
}  // namespace capfleet::test
