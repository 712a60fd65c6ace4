#include "store/repair/segment_recovery.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "capture/stream_writer.h"
#include "store/segment_folder.h"
#include "store/segment_path.h"
#include "support/file_faults.h"
#include "support/made_blocks.h"
#include "support/places.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

constexpr uint32_t kPort = 2;

/// A capture folder with one stream, which can be restored.
class InterruptedStream {
 public:
  /// Ten packets in the first block, the others in blocks of ten that are not committed.
  explicit InterruptedStream(size_t packets, size_t committed)
      : packets_(numberedPackets(packets)) {
    StreamWriter writer({directory_.path(), kPort, {1, kMaxCapturedLength}, 1 << 30});
    for (size_t i = 0; i < packets; i += 10) {
      if (i == committed) {
        EXPECT_TRUE(writer.commit());
      }
      writer.add(makeBlock(std::span(packets_).subspan(i, std::min<size_t>(10, packets - i))));
    }
    EXPECT_TRUE(committed == packets ? writer.commit() : writer.write());
    for (const char* ending : {".pcap", ".idx", ".tally", ".sieve"}) {
      files_[ending] = readFile(groupedSegmentPath(folder(), 1) + ending);
    }
  }

  const std::string& captureFolder() const { return directory_.path(); }
  std::string folder() const { return portFolder(directory_.path(), kPort); }
  const std::vector<StoredPacket>& packets() const { return packets_; }
  Bytes& file(const std::string& ending) { return files_[ending]; }

  /// Restores the first segment's files, with this one cut at a byte.
  void restore(const std::string& cutEnding = "", size_t bytes = 0) const {
    std::filesystem::remove_all(folder());
    std::filesystem::create_directories(groupFolder(folder(), 1));
    for (const auto& [ending, content] : files_) {
      Bytes kept = content;
      if (ending == cutEnding) kept.resize(bytes);
      directory_.file("cap2/00000/00000001" + ending, kept);
    }
  }

  Result<RecoveredSegments> recover(bool isSameBoot) const {
    return recoverSegments({directory_.path(), kPort, isSameBoot});
  }

  /// Recovers twice, and expects the first `count` packets, of which `recovered` had no entry.
  void expectRecovered(bool isSameBoot, size_t count, size_t recovered) const {
    const auto first = recover(isSameBoot);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->recoveredPackets, recovered);
    expectStored(*first, count);
    const auto second = recover(isSameBoot);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->rebuiltBlocks, 0u);
    EXPECT_EQ(second->message, "");
    EXPECT_EQ(second->recoveredPackets, 0u);
    EXPECT_EQ(second->cutBytes, 0u);
    expectStored(*second, count);
  }

  void expectStored(const RecoveredSegments& recovered, size_t count) const {
    const std::vector<StoredPacket> expected(packets_.begin(),
                                             packets_.begin() + static_cast<ptrdiff_t>(count));
    if (count == 0) {
      EXPECT_TRUE(recovered.segments.empty());
      EXPECT_FALSE(std::filesystem::exists(folder()));
      return;
    }
    ASSERT_EQ(storedPackets(folder()), expected);
    ASSERT_EQ(recovered.segments.size(), 1u);
    EXPECT_EQ(recovered.segments[0].packets, count);
    EXPECT_EQ(recovered.segments[0].minNs, expected.front().timestampNs);
    EXPECT_EQ(recovered.segments[0].maxNs, expected.back().timestampNs);
    uint64_t sideBytes = 0;
    for (const char* ending : {".idx", ".tally", ".sieve"}) {
      sideBytes += std::filesystem::file_size(groupedSegmentPath(folder(), 1) + ending);
    }
    EXPECT_EQ(recovered.segments[0].sideBytes, sideBytes);
    EXPECT_EQ(recovered.segments[0].bytes,
              std::filesystem::file_size(groupedSegmentPath(folder(), 1) + ".pcap"));
  }

  /// Packets whose records end within the first bytes of the data file.
  size_t wholeWithin(size_t bytes) const {
    size_t end = kPcapFileHeaderBytes, count = 0;
    for (const StoredPacket& packet : packets_) {
      end += kRecordHeaderBytes + packet.captured.size();
      if (end > bytes) break;
      count += 1;
    }
    return count;
  }

 private:
  TempDirectory directory_;
  std::vector<StoredPacket> packets_;
  std::map<std::string, Bytes> files_;
};

/// The packets in the undamaged blocks of the first segment, without verifying checksums.
std::vector<StoredPacket> undamagedPackets(const std::string& folder) {
  const std::string segment = groupedSegmentPath(folder, 1);
  const Bytes data = readFile(segment + ".pcap");
  std::vector<StoredPacket> packets;
  const auto index = readSegmentIndex(segment);
  for (const BlockEntry& block : index->blocks) {
    if (!block.isDamaged()) readBlock(data, block, packets);
  }
  return packets;
}

TEST(SegmentRecovery, KeepsEveryWholeRecordWhenTheProcessDiedAtAnyByteOfTheData) {
  InterruptedStream stream(20, 10);
  const size_t size = stream.file(".pcap").size();
  size_t committedBytes = 0;
  while (stream.wholeWithin(committedBytes) < 10) committedBytes += 1;
  for (const size_t bytes : somePlaces(committedBytes, size + 1)) {
    stream.restore(".pcap", bytes);
    const size_t whole = stream.wholeWithin(bytes);
    stream.expectRecovered(true, whole, whole - 10);
    if (HasFatalFailure()) FAIL() << "cut at byte " << bytes;
  }
}

TEST(SegmentRecovery, KeepsEveryWholeRecordWhenNothingWasIndexed) {
  InterruptedStream stream(20, 1000);
  const size_t size = stream.file(".pcap").size();
  for (const size_t indexBytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}}) {
    stream.file(".idx").resize(indexBytes);
    for (size_t bytes = 0; bytes <= size; bytes += bytes < 100 ? 3 : 29) {
      stream.restore(".pcap", bytes);
      const size_t whole = stream.wholeWithin(bytes);
      stream.expectRecovered(true, whole, whole);
      if (HasFatalFailure()) FAIL() << "cut at byte " << bytes;
    }
  }
}

TEST(SegmentRecovery, TakesAFractionOfAWholeSecondForDamage) {
  constexpr size_t kDamaged = 15;
  for (const auto& [fraction, kept] : {std::pair{999'999'999u, 20u}, {1'000'000'000u, 15u}}) {
    InterruptedStream stream(20, 10);
    size_t offset = kPcapFileHeaderBytes;
    for (size_t i = 0; i < kDamaged; ++i) {
      offset += kRecordHeaderBytes + stream.packets()[i].captured.size();
    }
    storeLe32(&stream.file(".pcap")[offset + 4], fraction);
    stream.restore();
    const auto recovered = stream.recover(true);
    ASSERT_TRUE(recovered) << recovered.error().message;
    ASSERT_EQ(recovered->segments.size(), 1u);
    EXPECT_EQ(recovered->segments[0].packets, kept) << fraction;
  }
}

TEST(SegmentRecovery, CutsAtTheLastEntryAfterAPowerLoss) {
  InterruptedStream stream(30, 20);
  const size_t size = stream.file(".pcap").size();
  // Unsynced data may be anything, including bytes that look like records.
  for (const uint8_t fill : Bytes{0x00, 0xFF, 0x11}) {
    std::fill(stream.file(".pcap").end() - 300, stream.file(".pcap").end(), fill);
    for (size_t bytes = size - 300; bytes <= size; bytes += 7) {
      stream.restore(".pcap", bytes);
      stream.expectRecovered(false, 20, 0);
    }
  }
}

TEST(SegmentRecovery, DropsTheSegmentOfWhichNothingWasIndexedAfterAPowerLoss) {
  InterruptedStream stream(20, 1000);
  for (const size_t indexBytes : {size_t{0}, size_t{63}, size_t{64}}) {
    stream.restore(".idx", indexBytes);
    stream.expectRecovered(false, 0, 0);
  }
}

TEST(SegmentRecovery, TakesTheWholeEntriesOfAnIndexThatEndsAtAnyByte) {
  InterruptedStream stream(40, 30);
  const size_t size = stream.file(".idx").size();
  ASSERT_EQ(size, kIndexHeaderBytes + 3 * kIndexEntryBytes);
  for (const size_t bytes : somePlaces(kIndexHeaderBytes, size + 1)) {
    const size_t indexed = (bytes - kIndexHeaderBytes) / kIndexEntryBytes * 10;
    // Tallies and sieves prove the blocks whose entries are gone.
    stream.restore(".idx", bytes);
    stream.expectRecovered(false, 30, 30 - indexed);
    stream.restore(".idx", bytes);
    stream.expectRecovered(true, 40, 40 - indexed);
    if (HasFatalFailure()) FAIL() << "cut at byte " << bytes;
  }
}

TEST(SegmentRecovery, LosesNothingBeforeAWholeEntryWhateverByteOfTheIndexIsDamaged) {
  InterruptedStream stream(40, 30);
  const Bytes index = stream.file(".idx");
  for (const size_t at : somePlaces(0, index.size())) {
    const bool isSameBoot = at % 2 == 0;
    stream.file(".idx") = index;
    stream.file(".idx")[at] ^= 0x24;
    stream.restore();
    stream.expectRecovered(isSameBoot, isSameBoot ? 40 : 30, isSameBoot ? 10 : 0);
    if (HasFatalFailure()) FAIL() << "byte " << at;
  }
}

TEST(SegmentRecovery, MakesEntriesAgainThatAreLostBeforeAWholeOne) {
  InterruptedStream stream(40, 30);
  const auto second = stream.file(".idx").begin() + kIndexHeaderBytes + kIndexEntryBytes;
  std::fill(second, second + kIndexEntryBytes, 0);
  for (const bool isSameBoot : {false, true}) {
    stream.restore();
    const auto recovered = stream.recover(isSameBoot);
    ASSERT_TRUE(recovered) << recovered.error().message;
    EXPECT_EQ(recovered->rebuiltBlocks, 1u);
    EXPECT_EQ(recovered->damagedBlocks, 0u);
    EXPECT_NE(recovered->message.find("00000001.idx"), std::string::npos);
    stream.expectStored(*recovered, isSameBoot ? 40 : 30);
  }
}

TEST(SegmentRecovery, CutsAfterTheLastWholeEntryWhenNothingIsLeftOfTheLast) {
  InterruptedStream stream(40, 30);
  const auto second = parseIndexEntry(&stream.file(".idx")[kIndexHeaderBytes + kIndexEntryBytes]);
  ASSERT_TRUE(second);
  std::fill(stream.file(".idx").end() - kIndexEntryBytes, stream.file(".idx").end(), 0);
  stream.restore();
  stream.expectRecovered(false, 30, 10);
  stream.restore();
  stream.expectRecovered(true, 40, 20);
  stream.file(".tally").resize(second->tallyOffset + second->tallyBytes);
  stream.file(".sieve").clear();
  stream.restore();
  stream.expectRecovered(false, 20, 0);
  stream.restore();
  stream.expectRecovered(true, 40, 20);
}

/// Two bytes of the last entry are lost: more than its checksum can correct.
TEST(SegmentRecovery, KeepsABlockOfWhichTheLastEntryIsDamaged) {
  InterruptedStream stream(40, 30);
  const Bytes index = stream.file(".idx");
  const size_t last = index.size() - kIndexEntryBytes;
  for (const bool hasSieves : {true, false}) {
    if (!hasSieves) stream.file(".sieve").clear();
    for (size_t at = last; at + 1 < index.size(); at += 3) {
      for (const bool isSameBoot : {false, true}) {
        stream.file(".idx") = index;
        stream.file(".idx")[at] ^= 0x5A;
        stream.file(".idx")[at + 1] ^= 0x5A;
        stream.restore();
        const auto recovered = stream.recover(isSameBoot);
        ASSERT_TRUE(recovered) << recovered.error().message;
        EXPECT_EQ(recovered->rebuiltBlocks, 1u);
        EXPECT_EQ(recovered->damagedBlocks, 0u);
        EXPECT_EQ(recovered->recoveredPackets, isSameBoot ? 10u : 0u);
        stream.expectStored(*recovered, isSameBoot ? 40 : 30);
        if (HasFatalFailure()) FAIL() << "byte " << at;
      }
    }
  }
}

/// The block after a damaged last entry is damaged too: its packets are neither delivered nor cut.
TEST(SegmentRecovery, MarksABlockThatItsDamagedLastEntryContradicts) {
  InterruptedStream stream(40, 30);
  const Bytes data = stream.file(".pcap");
  const size_t begin = [&] {
    size_t bytes = kPcapFileHeaderBytes;
    while (stream.wholeWithin(bytes) < 20) bytes += 1;
    return bytes;
  }();
  const size_t end = [&] {
    size_t bytes = begin;
    while (stream.wholeWithin(bytes) < 30) bytes += 1;
    return bytes;
  }();
  const Bytes index = stream.file(".idx");
  for (const bool isEmptyEntry : {false, true}) {
    stream.file(".idx") = index;
    const auto entry = stream.file(".idx").end() - kIndexEntryBytes;
    if (isEmptyEntry) std::fill(entry, entry + kIndexEntryBytes, 0);
    for (const ptrdiff_t at : {20, 30}) entry[at] ^= isEmptyEntry ? 0 : 0x5A;
    for (size_t at = begin; at < end; at += 7) {
      for (const bool isSameBoot : {true, false}) {
        stream.file(".pcap") = data;
        stream.file(".pcap")[at] ^= 0x41;
        stream.restore();
        const auto recovered = stream.recover(isSameBoot);
        ASSERT_TRUE(recovered) << recovered.error().message;
        ASSERT_EQ(recovered->segments.size(), 1u);
        EXPECT_GE(recovered->damagedBlocks, 1u) << at;
        EXPECT_EQ(recovered->cutBytes, 0u);
        EXPECT_GE(recovered->segments[0].maxNs, stream.packets()[29].timestampNs)
            << at << (isEmptyEntry ? " empty" : "") << (isSameBoot ? " same boot" : "");
        const std::vector<StoredPacket> expected(stream.packets().begin(),
                                                 stream.packets().begin() + 20);
        ASSERT_EQ(undamagedPackets(stream.folder()), expected) << at;
        const auto again = stream.recover(isSameBoot);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->segments[0].packets, 20u);
        EXPECT_EQ(again->damagedBlocks, recovered->damagedBlocks);
      }
    }
  }
}

/// A finished segment of 30 packets in three blocks, and a newer one that holds nothing yet.
class FinishedStream : public InterruptedStream {
 public:
  FinishedStream() : InterruptedStream(30, 30) {}
  void restoreBoth(const std::string& cutEnding = "", size_t bytes = 0) const {
    restore(cutEnding, bytes);
    std::ofstream(groupedSegmentPath(folder(), 2) + ".pcap");
  }
};

TEST(SegmentRecovery, GivesAFinishedSegmentItsIndexBackWhateverByteIsDamaged) {
  FinishedStream stream;
  const Bytes index = stream.file(".idx");
  for (const size_t at : somePlaces(0, index.size())) {
    stream.file(".idx") = index;
    stream.file(".idx")[at] ^= 0x24;
    stream.restoreBoth();
    stream.expectRecovered(at % 2 == 0, 30, 0);
    ASSERT_EQ(readFile(groupedSegmentPath(stream.folder(), 1) + ".idx"), index) << "byte " << at;
  }
}

TEST(SegmentRecovery, NeverCutsAFinishedSegmentWhoseIndexIsCut) {
  FinishedStream stream;
  for (size_t bytes = 0; bytes < stream.file(".idx").size(); bytes += 5) {
    stream.restoreBoth(".idx", bytes);
    const auto recovered = stream.recover(false);
    ASSERT_TRUE(recovered) << recovered.error().message;
    ASSERT_EQ(recovered->segments.size(), 1u);
    EXPECT_EQ(recovered->segments[0].packets, 30u) << "cut at byte " << bytes;
    EXPECT_EQ(recovered->cutBytes, 0u);
    EXPECT_EQ(readFile(groupedSegmentPath(stream.folder(), 1) + ".pcap"), stream.file(".pcap"));
  }
}

TEST(SegmentRecovery, MarksABlockThatIsLostAndKeepsTheOthers) {
  FinishedStream stream;
  const auto second = stream.file(".idx").begin() + kIndexHeaderBytes + kIndexEntryBytes;
  std::fill(second, second + kIndexEntryBytes, 0);
  const size_t firstBytes = [&] {
    size_t bytes = kPcapFileHeaderBytes;
    while (stream.wholeWithin(bytes) < 10) bytes += 1;
    return bytes;
  }();
  stream.file(".pcap")[firstBytes + 40] ^= 1;
  stream.restoreBoth();
  for (int round = 0; round < 2; ++round) {
    const auto recovered = stream.recover(false);
    ASSERT_TRUE(recovered) << recovered.error().message;
    ASSERT_EQ(recovered->segments.size(), 1u);
    EXPECT_EQ(recovered->segments[0].packets, 20u);
    EXPECT_EQ(recovered->segments[0].bytes, stream.file(".pcap").size());
    EXPECT_EQ(recovered->segments[0].minNs, stream.packets().front().timestampNs);
    EXPECT_EQ(recovered->segments[0].maxNs, stream.packets().back().timestampNs);
    EXPECT_EQ(recovered->damagedBlocks, 1u);
    EXPECT_EQ(recovered->rebuiltBlocks, 0u);
    EXPECT_NE(recovered->message, "");
    EXPECT_EQ(readFile(groupedSegmentPath(stream.folder(), 1) + ".pcap"), stream.file(".pcap"));
  }
  const auto index = readSegmentIndex(groupedSegmentPath(stream.folder(), 1));
  ASSERT_TRUE(index);
  ASSERT_EQ(index->blocks.size(), 3u);
  EXPECT_TRUE(index->blocks[1].isDamaged());
}

TEST(SegmentRecovery, CountsTheBlocksOfASegmentWhosePacketsAreGone) {
  for (const bool isNewest : {true, false}) {
    for (const bool isSameBoot : {true, false}) {
      for (const size_t left : {0, 10, 24}) {
        FinishedStream stream;
        isNewest ? stream.restore(".pcap", left) : stream.restoreBoth(".pcap", left);
        const std::string packets = groupedSegmentPath(stream.folder(), 1) + ".pcap";
        if (left == 0) std::filesystem::remove(packets);
        for (int round = 0; round < 2; ++round) {
          const auto recovered = stream.recover(isSameBoot);
          ASSERT_TRUE(recovered) << recovered.error().message;
          EXPECT_EQ(recovered->damagedBlocks, 3u);
          ASSERT_EQ(recovered->segments.size(), 1u);
          EXPECT_EQ(recovered->segments[0].packets, 0u);
          EXPECT_EQ(recovered->segments[0].minNs, stream.packets().front().timestampNs);
          EXPECT_EQ(recovered->segments[0].maxNs, stream.packets().back().timestampNs);
          const Bytes header(stream.file(".pcap").begin(), stream.file(".pcap").begin() + 24);
          Bytes begin = readFile(packets);
          begin.resize(24);
          EXPECT_EQ(begin, header);
        }
      }
    }
  }
}

TEST(SegmentRecovery, MakesNoPacketsOfZerosAfterTheLastOne) {
  InterruptedStream stream(30, 10);
  const size_t bytes = stream.file(".pcap").size();
  stream.file(".pcap").resize(bytes + 4096);
  stream.restore();
  const auto recovered = stream.recover(true);
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->cutBytes, 4096u);
  EXPECT_EQ(recovered->recoveredPackets, 20u);
  stream.expectStored(*recovered, 30);
}

TEST(SegmentRecovery, CutsATailThatCannotBeRead) {
  InterruptedStream stream(30, 10);
  stream.restore();
  const auto bytes = static_cast<long>(stream.file(".pcap").size());
  const BadSector last(groupedSegmentPath(stream.folder(), 1) + ".pcap", bytes - 1, bytes);
  const auto recovered = stream.recover(true);
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_GT(recovered->cutBytes, 0u);
  stream.expectStored(*recovered, 10);
}

TEST(SegmentRecovery, DoesNotTouchSegmentsThatAreKnownToBeFinished) {
  FinishedStream stream;
  stream.file(".idx")[70] ^= 1;
  stream.restoreBoth();
  const auto recovered = recoverSegments({stream.captureFolder(), kPort, false, 1});
  ASSERT_TRUE(recovered);
  EXPECT_TRUE(recovered->segments.empty());
  EXPECT_EQ(readFile(groupedSegmentPath(stream.folder(), 1) + ".idx"), stream.file(".idx"));
  EXPECT_FALSE(std::filesystem::exists(groupedSegmentPath(stream.folder(), 2) + ".pcap"));
}

TEST(SegmentRecovery, KnowsFlatSegmentsOfStoresOfFormatOne) {
  FinishedStream stream;
  stream.restore();
  for (const char* ending : kSegmentEndings) {
    std::filesystem::rename(groupedSegmentPath(stream.folder(), 1) + ending,
                            segmentPath(stream.folder(), 1) + ending);
  }
  const auto recovered = stream.recover(true);
  ASSERT_TRUE(recovered) << recovered.error().message;
  ASSERT_EQ(recovered->segments.size(), 1u);
  EXPECT_TRUE(recovered->segments[0].isFlat);
  EXPECT_EQ(storedPackets(stream.folder()), stream.packets());
}

TEST(SegmentRecovery, LeavesOlderSegmentsAndRemovesAnEmptyNewestOne) {
  InterruptedStream stream(30, 10);
  stream.restore();
  ASSERT_TRUE(stream.recover(true));
  std::ofstream(groupedSegmentPath(stream.folder(), 2) + ".pcap");
  stream.expectRecovered(true, 30, 0);
  EXPECT_FALSE(std::filesystem::exists(groupedSegmentPath(stream.folder(), 2) + ".idx"));
}

TEST(SegmentRecovery, DoesNotTouchAnOlderSegmentThatIsWhole) {
  InterruptedStream stream(30, 10);
  stream.restore();
  ASSERT_TRUE(stream.recover(true));
  std::ofstream(groupedSegmentPath(stream.folder(), 2) + ".pcap");
  const std::filesystem::file_time_type longAgo{};
  for (const char* ending : {".pcap", ".idx", ".tally", ".sieve"}) {
    std::filesystem::last_write_time(groupedSegmentPath(stream.folder(), 1) + ending, longAgo);
  }
  ASSERT_TRUE(stream.recover(false));
  for (const char* ending : {".pcap", ".idx", ".tally", ".sieve"}) {
    const auto path = groupedSegmentPath(stream.folder(), 1) + ending;
    EXPECT_EQ(std::filesystem::last_write_time(path), longAgo) << path;
  }
}

TEST(SegmentRecovery, FindsNothingWhereNothingIs) {
  const TempDirectory directory;
  const auto recovered = recoverSegments({directory.path(), 5, true});
  ASSERT_TRUE(recovered);
  EXPECT_TRUE(recovered->segments.empty());
}

TEST(SegmentRecovery, RemovesTheFolderWhoseFirstSegmentWasNeverMade) {
  const TempDirectory directory;
  const std::string folder = portFolder(directory.path(), 5);
  std::filesystem::create_directory(folder);
  const std::string others = folder + "/notes.txt";
  std::ofstream(others) << "not ours";
  ASSERT_TRUE(recoverSegments({directory.path(), 5, true}));
  EXPECT_TRUE(std::filesystem::exists(others));

  std::filesystem::remove(others);
  const auto recovered = recoverSegments({directory.path(), 5, true});
  ASSERT_TRUE(recovered);
  EXPECT_TRUE(recovered->segments.empty());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(SegmentRecovery, CanBeInterruptedAtAnyCallAndRunAgain) {
  InterruptedStream stream(40, 30);
  // The second entry is lost, and the third torn.
  std::fill(stream.file(".idx").begin() + 64, stream.file(".idx").begin() + 128, 0);
  stream.file(".idx").resize(250);
  long calls;
  {
    stream.restore();
    FileFaults counting({.from = -1, .count = 0});
    ASSERT_TRUE(stream.recover(true));
    calls = counting.calls();
  }
  ASSERT_GT(calls, 8);
  for (const bool isShort : {false, true}) {
    for (long call = 0; call < calls; ++call) {
      stream.restore();
      {
        // From this call on the process is dead.
        FileFaults faults({call, 1'000'000, EIO, isShort});
        static_cast<void>(stream.recover(true));
      }
      const auto recovered = stream.recover(true);
      ASSERT_TRUE(recovered) << recovered.error().message;
      stream.expectStored(*recovered, 40);
      if (HasFatalFailure()) FAIL() << "interrupted at call " << call;
    }
  }
}

}  // namespace
}  // namespace capfleet::test
