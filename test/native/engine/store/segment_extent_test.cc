#include "store/segment_extent.h"

#include <gtest/gtest.h>

#include "support/growing_segment.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

SegmentExtent measured(const std::string& segment, const SegmentExtent& known = {}) {
  const Result<SegmentExtent> extent = measureSegment(segment, known);
  EXPECT_TRUE(extent) << (extent ? "" : extent.error().message);
  return extent ? *extent : SegmentExtent{};
}

TEST(SegmentExtent, FollowsWhatIsFlushedAndNothingElse) {
  GrowingStream stream;
  stream.append(numberedPacket(2000, 1, 60));
  EXPECT_EQ(measured(stream.segment(1)).packets, 0u) << "nothing is flushed yet";
  stream.flush();
  const SegmentExtent first = measured(stream.segment(1));
  EXPECT_EQ(first.packets, 1u);
  EXPECT_EQ(first.bytes, 24u + 16 + 60);
  EXPECT_EQ(first.port, 3u);
  EXPECT_EQ(first.minNs, 2000);
  EXPECT_EQ(first.maxNs, 2000);
  stream.append(numberedPacket(1000, 2, 60));
  stream.append(numberedPacket(9000, 3, 60));
  EXPECT_EQ(measured(stream.segment(1), first).indexBytes, first.indexBytes);
  stream.flush();
  const SegmentExtent second = measured(stream.segment(1), first);
  EXPECT_EQ(second.packets, 3u);
  EXPECT_EQ(second.minNs, 1000);
  EXPECT_EQ(second.maxNs, 9000);
  EXPECT_EQ(second.bytes, 24u + 3 * 76);
}

TEST(SegmentExtent, IsTheSameInStepsAndAtOnce) {
  auto random = seededRandom();
  GrowingStream stream;
  SegmentExtent known;
  for (uint32_t i = 0; i < 200; i++) {
    stream.append(numberedPacket(static_cast<int64_t>(random() % 100'000), i, i));
    if (random() % 3 == 0) stream.flush();
    if (i > 10 && random() % 4 == 0) known = measured(stream.segment(1), known);
  }
  stream.flush();
  known = measured(stream.segment(1), known);
  const SegmentExtent whole = measured(stream.segment(1));
  EXPECT_EQ(known.packets, 200u);
  EXPECT_EQ(known.packets, whole.packets);
  EXPECT_EQ(known.bytes, whole.bytes);
  EXPECT_EQ(known.minNs, whole.minNs);
  EXPECT_EQ(known.maxNs, whole.maxNs);
  EXPECT_EQ(known.indexBytes, whole.indexBytes);
}

TEST(SegmentExtent, LeavesOutATornEntryAndReadsItOnceItIsWhole) {
  GrowingStream stream;
  stream.append(numberedPacket(1000, 1, 60));
  stream.flush();
  stream.append(numberedPacket(2000, 2, 60));
  stream.flush();
  const std::string path = stream.segment(1) + ".idx";
  const Bytes index = readFile(path);
  std::filesystem::resize_file(path, index.size() - 10);
  const SegmentExtent torn = measured(stream.segment(1));
  EXPECT_EQ(torn.packets, 1u);
  std::ofstream(path, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(index.data()) + index.size() - 10, 10);
  EXPECT_EQ(measured(stream.segment(1), torn).packets, 2u);
}

TEST(SegmentExtent, ReadsAnIndexThatWasCutAnew) {
  GrowingStream stream;
  for (int64_t i = 0; i < 3; i++) {
    stream.append(numberedPacket(1000 * i, static_cast<uint32_t>(i), 60));
    stream.flush();
  }
  const SegmentExtent known = measured(stream.segment(1));
  std::filesystem::resize_file(stream.segment(1) + ".idx", 64 + 64);
  EXPECT_EQ(measured(stream.segment(1), known).packets, 1u);
}

TEST(SegmentExtent, SaysThatASegmentWasRemoved) {
  GrowingStream stream;
  stream.append(numberedPacket(1000, 1, 60));
  stream.flush();
  EXPECT_EQ(measureSegment(stream.segment(2), {}).error().code, Code::kAgedOut);
}

TEST(SegmentExtent, OfAFinishedSegmentAllBytesCount) {
  GrowingStream stream;
  for (int64_t i = 0; i < 3; i++) {
    stream.append(numberedPacket(1000 * i, static_cast<uint32_t>(i), 60));
    stream.flush();
  }
  const std::string segment = stream.segment(1);
  const Bytes index = readFile(segment + ".idx");
  const SegmentExtent whole = measured(segment);
  const auto expectWhole = [&] {
    const auto found = measureFinishedSegment(segment);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->packets, 3u);
    EXPECT_EQ(found->bytes, whole.bytes);
    EXPECT_EQ(found->maxNs, whole.maxNs);
    EXPECT_EQ(found->port, whole.port);
    EXPECT_EQ(found->damagedBlocks, 0u);
  };
  for (const size_t left : {index.size(), index.size() - 10, index.size() - 64, size_t{64}}) {
    std::filesystem::resize_file(segment + ".idx", left);
    expectWhole();
  }
  std::filesystem::remove(segment + ".idx");
  expectWhole();

  std::ofstream(segment + ".idx", std::ios::binary)
      .write(reinterpret_cast<const char*>(index.data()),
             static_cast<std::streamsize>(index.size()));
  std::filesystem::resize_file(segment + ".pcap", whole.bytes - 1);
  const auto cut = measureFinishedSegment(segment);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->packets, 2u);
  EXPECT_EQ(cut->damagedBlocks, 1u);
  std::filesystem::remove(segment + ".pcap");
  EXPECT_EQ(measureFinishedSegment(segment).error().code, Code::kAgedOut);
}

TEST(SegmentExtent, FindsTheBlocksWhoseEntriesAreDamaged) {
  GrowingStream stream;
  SegmentExtent known;
  for (int64_t i = 0; i < 4; i++) {
    stream.append(numberedPacket(1000 * i, static_cast<uint32_t>(i), 60));
    stream.flush();
    if (i == 0) known = measured(stream.segment(1));
  }
  const SegmentExtent whole = measured(stream.segment(1));
  const std::string path = stream.segment(1) + ".idx";
  const Bytes index = readFile(path);
  for (const size_t at : {0u, 20u, 64u, 128u, 200u}) {
    Bytes damaged = index;
    std::fill_n(damaged.begin() + static_cast<ptrdiff_t>(at), 30, 0xEE);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(damaged.data()),
               static_cast<std::streamsize>(damaged.size()));
    for (const SegmentExtent& extent :
         {measured(stream.segment(1)), measured(stream.segment(1), known)}) {
      EXPECT_EQ(extent.port, 3u);
      EXPECT_EQ(extent.packets, 4u) << at;
      EXPECT_EQ(extent.minNs, whole.minNs);
      EXPECT_EQ(extent.maxNs, whole.maxNs);
      EXPECT_EQ(extent.bytes, whole.bytes);
      EXPECT_EQ(extent.damagedBlocks, 0u);
    }
  }
}

TEST(SegmentExtent, ADownloadTakesWhatTheIndexSaysAtItsStart) {
  GrowingStream stream;
  stream.append(numberedPacket(1000, 1, 60));
  stream.flush();
  DownloadBench bench;
  const auto download = bench.open(stream.options(1));
  stream.append(numberedPacket(2000, 2, 60));
  stream.flush();
  EXPECT_EQ(packetsOf(readBody(*download)).size(), 1u);
  EXPECT_EQ(packetsOf(readBody(*bench.open(stream.options(1)))).size(), 2u);
}

TEST(SegmentExtent, OnlyOfAFinishedSegmentIsATornLastEntryALoss) {
  GrowingStream stream;
  for (int64_t i = 0; i < 2; i++) {
    stream.append(numberedPacket(1000 * i, static_cast<uint32_t>(i), 60));
    stream.flush();
  }
  const std::string path = stream.segment(1) + ".idx";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  DownloadBench bench;
  const auto growing = bench.open(stream.options(1));
  EXPECT_EQ(packetsOf(readBody(*growing)).size(), 1u);
  EXPECT_EQ(growing->totals().corruptBlocks, 0u);
  DownloadOptions options = stream.options(1);
  options.streams[0].segments[0].flags &= ~kSegmentGrowing;
  const auto finished = bench.open(options);
  EXPECT_EQ(packetsOf(readBody(*finished)).size(), 1u);
  EXPECT_EQ(finished->totals().corruptBlocks, 1u);
}

}  // namespace
}  // namespace capfleet::test
