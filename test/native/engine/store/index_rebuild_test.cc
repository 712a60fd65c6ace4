#include "store/index_rebuild.h"

#include <gtest/gtest.h>

#include "store/block_checksum.h"
#include "store/segment_entry.h"
#include "store/segment_path.h"
#include "store/segment_writer.h"
#include "support/made_blocks.h"
#include "support/places.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

constexpr size_t kBlocks = 8;
constexpr size_t kPacketsPerBlock = 10;

/// A finished segment of eight blocks, whose files can be damaged and restored.
class FinishedSegment {
 public:
  explicit FinishedSegment(uint32_t linkTypeWord = kLinkTypeEthernet)
      : packets_(numberedPackets(kBlocks * kPacketsPerBlock)) {
    const std::string folder = directory_.folder("cap2");
    SegmentWriterOptions options{folder, 2, {linkTypeWord, kMaxCapturedLength}};
    options.durable = false;
    auto writer = SegmentWriter::open(options);
    for (size_t i = 0; i < packets_.size(); i++) {
      const StoredPacket& packet = packets_[i];
      EXPECT_TRUE(writer->append(packet.timestampNs, packet.originalLength, packet.captured));
      if (i % kPacketsPerBlock == kPacketsPerBlock - 1) {
        EXPECT_TRUE(writer->flush());
      }
    }
    const SegmentSummary summary = writer->close()->at(0);
    path_ = storedSegmentPath(folder, summary.number, summary.isFlat);
    entry_.port = 2;
    entry_.number = 1;
    entry_.minNs = summary.minNs;
    entry_.maxNs = summary.maxNs;
    entry_.packets = summary.packets;
    entry_.bytes = summary.bytes;
    entry_.linkTypeWord = linkTypeWord;
    entry_.snaplen = kMaxCapturedLength;
    for (const char* ending : kSegmentEndings) files_[ending] = readFile(path_ + ending);
    blocks_ = readSegmentIndex(path_)->blocks;
    EXPECT_EQ(blocks_.size(), kBlocks);
  }

  const std::string& path() const { return path_; }
  const Bytes& file(const std::string& ending) const { return files_.at(ending); }
  const SegmentEntry& entry() const { return entry_; }
  const std::vector<BlockEntry>& blocks() const { return blocks_; }

  void write(const std::string& ending, const Bytes& bytes) const {
    std::ofstream out(path_ + ending, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  void remove(const std::string& ending) const { std::filesystem::remove(path_ + ending); }

  /// Reads with the entry of the log, and expects that every undamaged block consists of stored
  /// packets, and that its bytes match. Returns the packets.
  std::vector<StoredPacket> readable(const SegmentIndex& index) const {
    const Bytes data = readFile(path_ + ".pcap");
    std::vector<StoredPacket> found;
    uint64_t end = kPcapFileHeaderBytes;
    uint32_t damaged = 0;
    for (const BlockEntry& block : index.blocks) {
      EXPECT_EQ(block.offset, end);
      end = block.end();
      damaged += block.isDamaged();
      if (block.isDamaged() ||
          blockChecksum({data.data() + block.offset, block.bytes}) != block.checksum) {
        continue;
      }
      readBlock(data, block, found);
    }
    EXPECT_EQ(end, entry_.bytes);
    EXPECT_EQ(index.damagedBlocks, damaged);
    return found;
  }
  /// The packets of the blocks except one of them.
  std::vector<StoredPacket> without(size_t block) const {
    std::vector<StoredPacket> kept = packets_;
    const auto first = kept.begin() + static_cast<ptrdiff_t>(block * kPacketsPerBlock);
    kept.erase(first, first + kPacketsPerBlock);
    return kept;
  }
  const std::vector<StoredPacket>& packets() const { return packets_; }

 private:
  TempDirectory directory_;
  std::vector<StoredPacket> packets_;
  std::string path_;
  SegmentEntry entry_;
  std::map<std::string, Bytes> files_;
  std::vector<BlockEntry> blocks_;
};

Bytes withoutEntries(Bytes index, size_t first, size_t count, uint8_t fill) {
  const auto at = index.begin() + static_cast<ptrdiff_t>(kIndexHeaderBytes + first * 64);
  std::fill(at, at + static_cast<ptrdiff_t>(count * 64), fill);
  return index;
}

TEST(IndexRebuild, CorrectsAnyDamagedByte) {
  const FinishedSegment segment;
  for (const size_t at : somePlaces(0, segment.file(".idx").size())) {
    Bytes index = segment.file(".idx");
    index[at] ^= static_cast<uint8_t>(1 + at * 37 % 255);
    segment.write(".idx", index);
    const auto read = readSegmentIndex(segment.path(), &segment.entry());
    ASSERT_TRUE(read) << "byte " << at << ": " << read.error().message;
    ASSERT_EQ(read->blocks, segment.blocks()) << "byte " << at;
    ASSERT_EQ(read->port, 2u);
    ASSERT_EQ(read->header.linkTypeWord, kLinkTypeEthernet);
    ASSERT_EQ(read->rebuiltBlocks, at < kIndexHeaderBytes ? 0u : 1u);
  }
}

TEST(IndexRebuild, MakesLostEntriesAgainFromThePackets) {
  for (const uint32_t linkType : {kLinkTypeEthernet, 101u}) {
    const FinishedSegment segment(linkType);
    for (size_t first = 0; first < kBlocks; first++) {
      for (const uint8_t fill : Bytes{0, 0xFF, 0x55}) {
        segment.write(".idx", withoutEntries(segment.file(".idx"), first, 1, fill));
        const auto read = readSegmentIndex(segment.path(), &segment.entry());
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->blocks, segment.blocks()) << "entry " << first;
        EXPECT_EQ(read->rebuiltBlocks, 1u);
      }
    }
  }
}

TEST(IndexRebuild, FindsEveryPacketAlthoughSeveralEntriesAreLost) {
  const FinishedSegment segment;
  for (size_t first = 0; first < kBlocks; first++) {
    for (size_t count = 2; first + count <= kBlocks; count++) {
      segment.write(".idx", withoutEntries(segment.file(".idx"), first, count, 0));
      const auto read = readSegmentIndex(segment.path(), &segment.entry());
      ASSERT_TRUE(read) << read.error().message;
      // Their ends are found by tally and sieve, wherever the writer ended them.
      EXPECT_EQ(read->blocks, segment.blocks()) << first << ", " << count;
      EXPECT_EQ(segment.readable(*read), segment.packets());
    }
  }
}

TEST(IndexRebuild, FindsEveryPacketWithoutAnIndex) {
  const FinishedSegment segment;
  Bytes garbage = segment.file(".idx");
  for (size_t i = 0; i < garbage.size(); i++) garbage[i] = static_cast<uint8_t>(i * 37);
  for (const Bytes& index : {Bytes{}, Bytes(10, 1), Bytes(64, 0), garbage}) {
    segment.write(".idx", index);
    const auto read = readSegmentIndex(segment.path(), &segment.entry());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(segment.readable(*read), segment.packets());
  }
  segment.remove(".idx");
  const auto read = readSegmentIndex(segment.path(), &segment.entry());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(segment.readable(*read), segment.packets());
}

TEST(IndexRebuild, FindsEveryPacketBehindAnIndexThatIsCutAnywhere) {
  const FinishedSegment segment;
  for (size_t bytes = 0; bytes < segment.file(".idx").size(); bytes += 7) {
    Bytes index = segment.file(".idx");
    index.resize(bytes);
    segment.write(".idx", index);
    const auto read = readSegmentIndex(segment.path(), &segment.entry());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(segment.readable(*read), segment.packets()) << "cut at byte " << bytes;
  }
}

/// Whatever byte of a block is damaged together with its entry, no other packet is lost, and none
/// is delivered that was never stored.
TEST(IndexRebuild, NeitherInventsNorLosesPacketsWhenABlockIsDamagedToo) {
  constexpr size_t kDamaged = 3;
  for (const bool hasSieves : {true, false}) {
    const FinishedSegment segment;
    if (!hasSieves) segment.remove(".sieve");
    segment.write(".idx", withoutEntries(segment.file(".idx"), kDamaged, 1, 0));
    const BlockEntry block = segment.blocks()[kDamaged];
    for (const size_t at : somePlaces(block.offset, block.end())) {
      Bytes data = segment.file(".pcap");
      data[at] ^= 0x41;
      segment.write(".pcap", data);
      const auto read = readSegmentIndex(segment.path(), &segment.entry());
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_EQ(segment.readable(*read), segment.without(kDamaged)) << "byte " << at;
      ASSERT_EQ(read->damagedBlocks, 1u);
      ASSERT_EQ(read->blocks[kDamaged].packets, 0u);
      EXPECT_LE(read->blocks[kDamaged].minNs, segment.blocks()[kDamaged].minNs);
      EXPECT_GE(read->blocks[kDamaged].maxNs, segment.blocks()[kDamaged].maxNs);
    }
  }
}

/// Whichever neighbouring entries are lost, a block whose sieve contradicts its bytes is not
/// trusted.
TEST(IndexRebuild, InventsNothingWhenABlockIsDamagedAmongSeveralLostEntries) {
  auto random = seededRandom();
  const FinishedSegment segment;
  for (int round = 0; round < turns(200, 50); round++) {
    const size_t first = randomBelow(random, kBlocks - 1);
    const size_t count = 2 + randomBelow(random, kBlocks - first - 1);
    const size_t wrong = first + randomBelow(random, count);
    const BlockEntry block = segment.blocks()[wrong];
    Bytes data = segment.file(".pcap");
    data[block.offset + randomBelow(random, block.bytes)] ^=
        static_cast<uint8_t>(1 + random() % 255);
    segment.write(".pcap", data);
    segment.write(".idx", withoutEntries(segment.file(".idx"), first, count, 0));
    const auto read = readSegmentIndex(segment.path(), &segment.entry());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_GE(read->damagedBlocks, 1u);
    std::vector<StoredPacket> expected;
    for (size_t i = 0; i < kBlocks * kPacketsPerBlock; i++) {
      const size_t at = i / kPacketsPerBlock;
      // Neither the end of the block nor what follows it among the lost entries is known.
      if (at < wrong || at >= first + count) expected.push_back(segment.packets()[i]);
    }
    const std::vector<StoredPacket> found = segment.readable(*read);
    for (const StoredPacket& packet : found) {
      ASSERT_NE(std::find(segment.packets().begin(), segment.packets().end(), packet),
                segment.packets().end());
    }
    for (const StoredPacket& packet : expected) {
      ASSERT_NE(std::find(found.begin(), found.end(), packet), found.end())
          << first << ", " << count << ", " << wrong;
    }
  }
}

/// The tally of a block after a marked one is found by where it ends.
TEST(IndexRebuild, ProvesABlockBehindAMarkedOneByItsTally) {
  for (const bool isKept : {true, false}) {
    const FinishedSegment segment(101);
    SegmentIndex index = *readSegmentIndex(segment.path());
    Bytes tallies = segment.file(".tally");
    if (!isKept) {
      const auto at = tallies.begin() + static_cast<ptrdiff_t>(index.blocks[2].tallyOffset);
      tallies.erase(at, at + index.blocks[2].tallyBytes);
      for (size_t i = 3; i < kBlocks; i++)
        index.blocks[i].tallyOffset -= index.blocks[2].tallyBytes;
      segment.write(".tally", tallies);
    }
    index.blocks[2] = index.blocks[2].asDamaged();
    segment.write(".idx", withoutEntries(serialiseIndex(index), 3, 1, 0));
    SegmentEntry entry = segment.entry();
    entry.flags |= kSegmentDamaged;
    const auto read = readSegmentIndex(segment.path(), &entry);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->blocks, index.blocks);
  }
}

TEST(IndexRebuild, DoesNotTakeZerosForPackets) {
  const FinishedSegment segment;
  segment.remove(".sieve");
  segment.remove(".tally");
  Bytes data = segment.file(".pcap");
  const BlockEntry block = segment.blocks()[4];
  // Records of 16 zero bytes would be packets of 1970 without bytes.
  Bytes zeros(block.bytes / 16 * 16);
  Bytes index = segment.file(".idx");
  ASSERT_NE(block.bytes % 16, 0u) << "else the walk would come out exactly";
  std::copy(zeros.begin(), zeros.end(), data.begin() + static_cast<ptrdiff_t>(block.offset));
  segment.write(".pcap", data);
  segment.write(".idx", withoutEntries(index, 4, 1, 0));
  const auto read = readSegmentIndex(segment.path(), &segment.entry());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(segment.readable(*read), segment.without(4));
}

TEST(IndexRebuild, TakesAsManyBytesAsTheLogSays) {
  const FinishedSegment segment;
  Bytes data = segment.file(".pcap");
  data.resize(data.size() + 100, 7);
  segment.write(".pcap", data);
  const auto read = readSegmentIndex(segment.path(), &segment.entry());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->blocks, segment.blocks());
}

TEST(IndexRebuild, LeavesWhatIsBeingAppended) {
  const FinishedSegment segment;
  Bytes index = segment.file(".idx");
  index.resize(index.size() - 10);
  segment.write(".idx", index);
  SegmentEntry growing = segment.entry();
  growing.flags = kSegmentGrowing;
  for (const SegmentEntry* entry :
       {static_cast<const SegmentEntry*>(nullptr), static_cast<const SegmentEntry*>(&growing)}) {
    const auto read = readSegmentIndex(segment.path(), entry);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->blocks.size(), kBlocks - 1);
    EXPECT_TRUE(read->lastEntryLeftOut);
    EXPECT_EQ(read->rebuiltBlocks, 0u);
  }
}

TEST(IndexRebuild, FindsThePortAndTheLinkTypeWithoutAHeader) {
  const FinishedSegment segment;
  Bytes index = segment.file(".idx");
  std::fill(index.begin(), index.begin() + kIndexHeaderBytes, 0);
  segment.write(".idx", index);
  const auto read = readSegmentIndex(segment.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->port, 2u);
  EXPECT_EQ(read->header.linkTypeWord, kLinkTypeEthernet);
  EXPECT_EQ(read->header.snaplen, kMaxCapturedLength);
  EXPECT_EQ(read->blocks, segment.blocks());

  Bytes data = segment.file(".pcap");
  data[0] ^= 1;
  segment.write(".pcap", data);
  EXPECT_EQ(readSegmentIndex(segment.path()).error().code, Code::kStoreCorrupt);
  EXPECT_EQ(readSegmentIndex(segment.path(), &segment.entry())->blocks, segment.blocks());
}

TEST(IndexRebuild, DoesNotGuessAtAnotherVersion) {
  const FinishedSegment segment;
  Bytes index = segment.file(".idx");
  index[8] = 2;
  storeLe64(&index[56], xxh3({index.data(), 56}));
  segment.write(".idx", index);
  EXPECT_EQ(readSegmentIndex(segment.path(), &segment.entry()).error().code, Code::kStoreCorrupt);
}

TEST(IndexRebuild, EndsWithAnIndexOfTheWholeSegmentWhateverIsDamaged) {
  auto random = seededRandom();
  const FinishedSegment segment;
  for (int round = 0; round < 100; round++) {
    for (const char* ending : kSegmentEndings) {
      Bytes bytes = segment.file(ending);
      const uint64_t damages = randomBelow(random, 4);
      for (uint64_t i = 0; i < damages; i++) {
        const size_t at = randomBelow(random, bytes.size());
        const size_t length = std::min<size_t>(1 + randomBelow(random, 90), bytes.size() - at);
        for (size_t j = at; j < at + length; j++) bytes[j] = static_cast<uint8_t>(random());
      }
      segment.write(ending, bytes);
    }
    const auto read = readSegmentIndex(segment.path(), &segment.entry());
    ASSERT_TRUE(read) << read.error().message;
    uint64_t end = kPcapFileHeaderBytes;
    for (const BlockEntry& block : read->blocks) {
      ASSERT_EQ(block.offset, end);
      end = block.end();
    }
    ASSERT_EQ(end, segment.entry().bytes);
    // What is written of it can be read without a repair.
    segment.write(".idx", serialiseIndex(*read));
    const auto again = readSegmentIndex(segment.path(), &segment.entry());
    ASSERT_TRUE(again);
    ASSERT_EQ(again->blocks, read->blocks);
    ASSERT_EQ(again->rebuiltBlocks, 0u);
    ASSERT_EQ(again->damagedBlocks, read->damagedBlocks);
  }
}

}  // namespace
}  // namespace capfleet::test
