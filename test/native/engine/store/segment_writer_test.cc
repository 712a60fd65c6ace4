#include "store/segment_writer.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "support/seed.h"
#include "support/stored_packets.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

SegmentWriterOptions optionsFor(const TempDirectory& directory, uint64_t segmentBytes = 1 << 30) {
  SegmentWriterOptions options;
  options.directory = directory.path();
  options.port = 3;
  options.header.linkTypeWord = 1;
  options.segmentBytes = segmentBytes;
  return options;
}

std::vector<StoredPacket> randomPackets(std::mt19937_64& random, size_t count, size_t maxBytes) {
  std::vector<StoredPacket> packets;
  for (size_t i = 0; i < count; ++i) {
    const auto bytes = Bytes(randomBelow(random, maxBytes + 1), static_cast<uint8_t>(i));
    packets.push_back({static_cast<int64_t>(random() % uint64_t{kTimestampEndNs}),
                       static_cast<uint32_t>(random()), bytes});
  }
  return packets;
}

Status appendAll(SegmentWriter& writer, const std::vector<StoredPacket>& packets) {
  for (const StoredPacket& packet : packets) {
    auto status = writer.append(packet.timestampNs, packet.originalLength, packet.captured);
    if (!status) return status;
  }
  return ok();
}

TEST(SegmentWriter, StoresEveryPacketExactlyOverManyBlocksAndSegments) {
  auto random = seededRandom();
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory, 3'000'000));
  ASSERT_TRUE(writer);
  auto packets = randomPackets(random, 12'000, 1500);
  packets[77].captured.assign(kMaxCapturedLength, 0xAB);
  ASSERT_TRUE(appendAll(*writer, packets));
  const auto segments = writer->close();
  ASSERT_TRUE(segments);
  EXPECT_GT(segments->size(), 3u);
  EXPECT_EQ(storedPackets(directory.path()), packets);
}

TEST(SegmentWriter, TalliesBurstsPausesAndTimesThatGoBack) {
  auto random = seededRandom();
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory, 2'000'000));
  ASSERT_TRUE(writer);
  auto packets = randomPackets(random, 20'000, 300);
  int64_t nowNs = 1'700'000'000'000'000'000;
  for (StoredPacket& packet : packets) {
    if (random() % 50 == 0) nowNs += static_cast<int64_t>(randomBelow(random, 5'000'000'000));
    nowNs += static_cast<int64_t>(randomBelow(random, 60'000)) - 20'000;
    packet.timestampNs = nowNs;
  }
  ASSERT_TRUE(appendAll(*writer, packets));
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(storedPackets(directory.path()), packets);
}

TEST(SegmentWriter, WritesNoTallyOfABlockThatLiesInOneMillisecond) {
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory));
  ASSERT_TRUE(writer);
  for (const int64_t timestampNs : {5'000'000, 5'999'999, 5'000'000}) {
    ASSERT_TRUE(writer->append(timestampNs, 60, Bytes(60)));
  }
  ASSERT_TRUE(writer->close());
  EXPECT_TRUE(readFile(directory.path() + "/00000/00000001.tally").empty());
  EXPECT_EQ(storedPackets(directory.path()).size(), 3u);
}

TEST(SegmentWriter, SummarisesEachSegmentAndRollsBeforeItWouldGrowTooLarge) {
  auto random = seededRandom();
  const TempDirectory directory;
  const uint64_t segmentBytes = 40'000;
  auto writer = SegmentWriter::open(optionsFor(directory, segmentBytes));
  ASSERT_TRUE(writer);
  const auto packets = randomPackets(random, 500, 1500);
  ASSERT_TRUE(appendAll(*writer, packets));
  const auto segments = writer->close();
  ASSERT_TRUE(segments);
  uint64_t count = 0;
  uint32_t number = 0;
  for (const SegmentSummary& segment : *segments) {
    EXPECT_EQ(segment.number, ++number);
    EXPECT_EQ(segment.bytes, std::filesystem::file_size(
                                 groupedSegmentPath(directory.path(), segment.number) + ".pcap"));
    EXPECT_LE(segment.bytes, segmentBytes);
    int64_t minNs = INT64_MAX, maxNs = INT64_MIN;
    for (uint64_t i = count; i < count + segment.packets; ++i) {
      minNs = std::min(minNs, packets[i].timestampNs);
      maxNs = std::max(maxNs, packets[i].timestampNs);
    }
    EXPECT_EQ(segment.minNs, minNs);
    EXPECT_EQ(segment.maxNs, maxNs);
    count += segment.packets;
  }
  EXPECT_EQ(count, packets.size());
}

TEST(SegmentWriter, GivesAPacketThatIsLargerThanASegmentASegmentOfItsOwn) {
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory, 100));
  ASSERT_TRUE(writer);
  const std::vector<StoredPacket> packets(3, {1, 500, Bytes(500, 1)});
  ASSERT_TRUE(appendAll(*writer, packets));
  const auto segments = writer->close();
  ASSERT_TRUE(segments);
  EXPECT_EQ(segments->size(), 3u);
  EXPECT_EQ(storedPackets(directory.path()), packets);
}

TEST(SegmentWriter, MakesNoFileWithoutAPacket) {
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->flush());
  const auto segments = writer->close();
  ASSERT_TRUE(segments);
  EXPECT_TRUE(segments->empty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(SegmentWriter, ShowsEverythingThatWasFlushedWhileItGoesOn) {
  auto random = seededRandom();
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory));
  ASSERT_TRUE(writer);
  std::vector<StoredPacket> all;
  for (int round = 0; round < turns(12, 5); ++round) {
    const auto packets = randomPackets(random, randomBelow(random, 400), 1500);
    ASSERT_TRUE(appendAll(*writer, packets));
    all.insert(all.end(), packets.begin(), packets.end());
    ASSERT_TRUE(writer->flush());
    ASSERT_EQ(storedPackets(directory.path()), all);
  }
}

TEST(SegmentWriter, KeepsBlocksWholeWhenItsBufferIsReleasedInTheMiddle) {
  auto random = seededRandom();
  const TempDirectory directory;
  auto writer = SegmentWriter::open(optionsFor(directory));
  ASSERT_TRUE(writer);
  const auto packets = randomPackets(random, 3000, 400);
  for (const StoredPacket& packet : packets) {
    ASSERT_TRUE(writer->append(packet.timestampNs, packet.originalLength, packet.captured));
    if (randomBelow(random, 20) == 0) {
      ASSERT_TRUE(writer->releaseBuffer());
    }
  }
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(storedPackets(directory.path()), packets);
  const auto index = readSegmentIndex(directory.path() + "/00000/00000001");
  ASSERT_TRUE(index);
  EXPECT_LE(index->blocks.size(), 4u) << "releasing must not cut blocks short";
}

TEST(SegmentWriter, RefusesAFolderThatDoesNotExist) {
  SegmentWriterOptions options;
  options.directory = "/nonexistent-capfleet-folder";
  const auto writer = SegmentWriter::open(options);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::kStoreUnavailable);
  EXPECT_NE(writer.error().message.find(options.directory), std::string::npos);
}

TEST(SegmentWriter, NeverWritesOverAnExistingSegment) {
  for (const std::string name : {"00000/00000001.pcap", "00000/00000001.idx",
                                 "00000/00000001.tally", "00000/00000001.sieve"}) {
    const TempDirectory directory;
    directory.folder("00000");
    directory.file(name, {1, 2, 3});
    auto writer = SegmentWriter::open(optionsFor(directory));
    ASSERT_TRUE(writer);
    const auto status = writer->append(1, 1, Bytes(1));
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, Code::kStoreUnavailable);
    EXPECT_EQ(readFile(directory.path() + "/" + name), (Bytes{1, 2, 3}));
  }
}

/// Appends until the first failure, which must come.
Error appendUntilFailure(const TempDirectory& directory) {
  auto writer = SegmentWriter::open(optionsFor(directory));
  if (!writer) return writer.error();
  Status status = ok();
  for (int i = 0; i < 5000 && status; ++i) status = writer->append(i, 1000, Bytes(1000));
  if (status) status = writer->flush();
  EXPECT_FALSE(status);
  return status.error();
}

TEST(SegmentWriter, SaysThatTheStoreIsFull) {
  const TempDirectory directory;
  if (mount("none", directory.path().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs is not permitted here";
  }
  const Error error = appendUntilFailure(directory);
  umount(directory.path().c_str());
  EXPECT_EQ(error.code, Code::kStoreFull);
  EXPECT_NE(error.message.find("00000001.pcap"), std::string::npos);
}

TEST(SegmentWriter, NamesTheFileAndTheReasonOfAFailedWrite) {
  const TempDirectory directory;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handlerBefore = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limited = before;
  limited.rlim_cur = 100'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const Error error = appendUntilFailure(directory);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handlerBefore);
  EXPECT_EQ(error.code, Code::kStoreUnavailable);
  EXPECT_NE(error.message.find("00000001.pcap: File too large"), std::string::npos)
      << error.message;
}

}  // namespace
}  // namespace capfleet::test
