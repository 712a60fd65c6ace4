#include "capture/stream_writer.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "store/segment_folder.h"
#include "store/segment_path.h"
#include "support/file_faults.h"
#include "support/made_blocks.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

constexpr size_t kPacketsPerBlock = 10;

StreamWriterOptions optionsFor(const TempDirectory& directory, uint64_t segmentBytes = 1 << 30) {
  return {directory.path(), 2, {1, kMaxCapturedLength}, segmentBytes};
}

std::vector<StoredPacket> storedIn(const TempDirectory& directory) {
  const std::string folder = portFolder(directory.path(), 2);
  return std::filesystem::exists(folder) ? storedPackets(folder) : std::vector<StoredPacket>{};
}

uint64_t packetsOf(const CaptureBlocks& blocks) {
  uint64_t packets = 0;
  for (const auto& block : blocks) packets += block->entry().packets;
  return packets;
}

TEST(StreamWriter, StoresBlocksOverManySegmentsAndSaysWhatIsSafe) {
  const TempDirectory directory;
  StreamWriter writer(optionsFor(directory, 20'000));
  const auto packets = numberedPackets(1000);
  for (size_t i = 0; i < packets.size(); i += kPacketsPerBlock) {
    writer.add(makeBlock(std::span(packets).subspan(i, kPacketsPerBlock)));
  }
  ASSERT_TRUE(writer.write());
  const uint64_t before = packetsOf(writer.takeSafe());
  EXPECT_LT(before, packets.size()) << "the last segment is not synced yet";
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(before + packetsOf(writer.takeSafe()), packets.size());
  EXPECT_EQ(writer.heldBytes(), 0u);
  EXPECT_EQ(storedIn(directory), packets);
  const size_t ended = writer.finished().size();
  ASSERT_TRUE(writer.close());
  EXPECT_EQ(writer.finished().size(), ended + 1);
  uint64_t count = 0;
  for (const SegmentSummary& segment : writer.finished()) {
    EXPECT_LE(segment.bytes, 20'000u);
    count += segment.packets;
  }
  EXPECT_EQ(count, packets.size());
}

TEST(StreamWriter, ContinuesBehindTheSegmentsThatAreThere) {
  const TempDirectory directory;
  const auto packets = numberedPackets(40);
  for (size_t i = 0; i < 40; i += 20) {
    StreamWriter writer(optionsFor(directory));
    writer.add(makeBlock(std::span(packets).subspan(i, 20)));
    ASSERT_TRUE(writer.close());
    ASSERT_EQ(writer.finished().size(), 1u);
    EXPECT_EQ(writer.finished()[0].number, i / 20 + 1);
  }
  EXPECT_EQ(storedIn(directory), packets);
}

TEST(StreamWriter, NumbersItsSegmentsAfterAllThatWereThere) {
  const TempDirectory directory;
  const std::string folder = directory.folder("cap2");
  directory.file("cap2/00000007.pcap", {});
  const auto packets = numberedPackets(10);
  const auto numberAfter = [&](uint32_t lastNumber) {
    StreamWriterOptions options = optionsFor(directory);
    options.lastNumber = lastNumber;
    StreamWriter writer(options);
    writer.add(makeBlock(packets));
    EXPECT_TRUE(writer.close());
    return writer.finished().at(0).number;
  };
  EXPECT_EQ(numberAfter(0), 8u) << "after a segment of a store of format 1";
  EXPECT_EQ(numberAfter(998), 999u) << "after segments that were removed";
  EXPECT_EQ(numberAfter(998), 1000u);
  EXPECT_TRUE(std::filesystem::exists(folder + "/00000/00000999.pcap"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/00001/00001000.pcap"));
}

/// Segments are numbered consecutively, and no other files are left: recovery would report them as
/// damage.
void expectNothingElse(const TempDirectory& directory,
                       const std::vector<SegmentSummary>& finished) {
  std::vector<FoundSegment> found, expected;
  const std::string folder = portFolder(directory.path(), 2);
  for (const SegmentSummary& segment : finished) {
    found.push_back({segment.number, segment.isFlat});
    expected.push_back({static_cast<uint32_t>(found.size()), false});
    uint64_t sideBytes = 0;
    for (const char* ending : {".idx", ".tally", ".sieve"}) {
      sideBytes += std::filesystem::file_size(groupedSegmentPath(folder, segment.number) + ending);
    }
    EXPECT_EQ(segment.sideBytes, sideBytes);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(*listSegments(folder), expected);
}

/// Writes blocks with an occasional commit, and retries until everything is safe. Returns the
/// number of calls.
long writeThrough(const TempDirectory& directory, FileFault fault,
                  const std::vector<StoredPacket>& packets) {
  StreamWriter writer(optionsFor(directory, 3'000));
  FileFaults faults(fault);
  uint64_t safe = 0;
  for (size_t i = 0; i < packets.size(); i += kPacketsPerBlock) {
    writer.add(makeBlock(std::span(packets).subspan(i, kPacketsPerBlock)));
    // Whether these succeed depends on the fault; nothing may be lost either way.
    static_cast<void>(i % 40 == 0 ? writer.commit() : writer.write());
    safe += packetsOf(writer.takeSafe());
    // What was acknowledged is on the disk, whatever failed: its entries are there.
    uint64_t indexed = 0;
    for (const SegmentSummary& segment : writer.finished()) indexed += segment.packets;
    EXPECT_LE(indexed, safe);
  }
  for (int tries = 0; tries < 100 && !writer.close(); ++tries) {
  }
  safe += packetsOf(writer.takeSafe());
  EXPECT_EQ(safe, packets.size());
  EXPECT_FALSE(writer.hasHeld());
  const long calls = faults.calls();
  expectNothingElse(directory, writer.finished());
  return calls;
}

TEST(StreamWriter, LosesAndDoublesNothingWhenAnyCallFailsOnce) {
  const auto packets = numberedPackets(200);
  long calls;
  {
    const TempDirectory directory;
    calls = writeThrough(directory, {.from = -1, .count = 0}, packets);
    ASSERT_EQ(storedIn(directory), packets);
  }
  ASSERT_GT(calls, 50);
  auto random = seededRandom();
  // With fewer turns, every second call on average: there are many of each kind.
  const size_t mostSteps = turns(100) < 100 ? 3 : 1;
  // A full disk accepts a part of the written data; a broken one accepts nothing.
  for (const int errorNumber : {ENOSPC, EIO}) {
    for (long call = 0; call < calls;
         call += static_cast<long>(1 + randomBelow(random, mostSteps))) {
      const TempDirectory directory;
      writeThrough(directory, {call, 1, errorNumber, errorNumber == ENOSPC}, packets);
      ASSERT_EQ(storedIn(directory), packets) << "call " << call << ", error " << errorNumber;
    }
  }
}

TEST(StreamWriter, LosesAndDoublesNothingWhenTheDiskFailsForAWhile) {
  auto random = seededRandom();
  const auto packets = numberedPackets(200);
  for (int round = 0; round < turns(100); ++round) {
    const TempDirectory directory;
    const FileFault fault{static_cast<long>(randomBelow(random, 150)),
                          static_cast<long>(1 + randomBelow(random, 30)), EIO,
                          randomBelow(random, 2) == 0};
    writeThrough(directory, fault, packets);
    ASSERT_EQ(storedIn(directory), packets)
        << "from call " << fault.from << ", " << fault.count << " calls";
  }
}

TEST(StreamWriter, GivesUpWhatTheDiskNeverTookAndKeepsWhatItDid) {
  const TempDirectory directory;
  const auto packets = numberedPackets(60);
  StreamWriter writer(optionsFor(directory));
  writer.add(makeBlock(std::span(packets).first(20)));
  ASSERT_TRUE(writer.commit());
  FileFaults faults({0, 1'000'000, EIO, false});
  writer.add(makeBlock(std::span(packets).subspan(20, 40)));
  EXPECT_FALSE(writer.commit());
  EXPECT_FALSE(writer.commit());
  EXPECT_EQ(packetsOf(writer.giveUp()), 40u);
  EXPECT_FALSE(writer.hasHeld());
  faults.mend();
  ASSERT_TRUE(writer.close());
  ASSERT_EQ(writer.finished().size(), 1u);
  EXPECT_EQ(writer.finished()[0].packets, 20u);
}

}  // namespace
}  // namespace capfleet::test
