#include "store/segment_index.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "capture/stream_writer.h"
#include "os/byte_order.h"
#include "store/segment_entry.h"
#include "store/segment_folder.h"
#include "store/segment_path.h"
#include "support/file_faults.h"
#include "support/made_blocks.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

Bytes headerBytes(uint32_t port, const PcapFileHeader& header) {
  uint8_t out[kIndexHeaderBytes];
  storeIndexHeader(out, port, header);
  return Bytes(out, out + sizeof out);
}

Bytes entryBytes(const BlockEntry& entry) {
  uint8_t out[kIndexEntryBytes];
  storeIndexEntry(out, entry);
  return Bytes(out, out + sizeof out);
}

const PcapFileHeader kHeader{.linkTypeWord = 0x24000001, .snaplen = 262144};
const BlockEntry kFirst{.offset = 24,
                        .minNs = 5,
                        .maxNs = 9,
                        .bytes = 200,
                        .packets = 3,
                        .checksum = 0x1122334455667788,
                        .flags = kBlockUnordered};
const BlockEntry kSecond{.offset = 224,
                         .minNs = 1,
                         .maxNs = kTimestampEndNs - 1,
                         .bytes = 16,
                         .packets = 1,
                         .checksum = 7,
                         .flags = 0,
                         .tallyBytes = 0xFEDCBA98,
                         .tallyOffset = 0xFEDCBA9876543210};
const BlockEntry kThird{.offset = 240,
                        .minNs = 2,
                        .maxNs = 2,
                        .bytes = kMaxBlockBytes,
                        .packets = 1,
                        .checksum = 8,
                        .flags = 0};

class SegmentIndexFile : public testing::Test {
 protected:
  SegmentIndexFile() {
    bytes_ = headerBytes(7, kHeader);
    for (const BlockEntry& entry : {kFirst, kSecond, kThird}) append(bytes_, entryBytes(entry));
  }
  Result<SegmentIndex> read() {
    directory_.file("s.idx", bytes_);
    return readSegmentIndex(directory_.path() + "/s");
  }
  Code errorCode() const {
    const auto index = parseSegmentIndex(bytes_, "s.idx");
    if (!index) return index.error().code;
    ADD_FAILURE() << "the index was read";
    return Code::kCancelled;
  }

  TempDirectory directory_;
  Bytes bytes_;
};

TEST_F(SegmentIndexFile, IsReadBackAsWritten) {
  const auto index = read();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->port, 7u);
  EXPECT_EQ(index->header.linkTypeWord, kHeader.linkTypeWord);
  EXPECT_EQ(index->header.snaplen, kHeader.snaplen);
  EXPECT_FALSE(index->lastEntryLeftOut);
  ASSERT_EQ(index->blocks.size(), 3u);
  EXPECT_EQ(index->blocks[0].checksum, kFirst.checksum);
  EXPECT_EQ(index->blocks[0].flags, kFirst.flags);
  EXPECT_EQ(index->blocks[0].tallyBytes, 0u);
  EXPECT_EQ(index->blocks[1].maxNs, kSecond.maxNs);
  EXPECT_EQ(index->blocks[1].tallyBytes, kSecond.tallyBytes);
  EXPECT_EQ(index->blocks[1].tallyOffset, kSecond.tallyOffset);
  EXPECT_EQ(index->blocks[2].bytes, kThird.bytes);
}

TEST_F(SegmentIndexFile, LosesOnlyATornLastEntry) {
  for (size_t torn = 1; torn < kIndexEntryBytes; ++torn) {
    bytes_.pop_back();
    const auto index = read();
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(index->blocks.size(), 2u);
    EXPECT_TRUE(index->lastEntryLeftOut);
  }
  bytes_.pop_back();
  const auto index = read();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->blocks.size(), 2u);
  EXPECT_FALSE(index->lastEntryLeftOut);
}

TEST_F(SegmentIndexFile, ShowsEveryFlippedBit) {
  const size_t lastEntry = bytes_.size() - kIndexEntryBytes;
  for (size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    bytes_[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    const auto index = parseSegmentIndex(bytes_, "s.idx");
    if (bit / 8 < lastEntry) {
      ASSERT_FALSE(index) << "bit " << bit;
      EXPECT_EQ(index.error().code, Code::kStoreCorrupt);
    } else {
      ASSERT_TRUE(index) << "bit " << bit;
      EXPECT_TRUE(index->lastEntryLeftOut);
      EXPECT_EQ(index->blocks.size(), 2u);
    }
    bytes_[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
}

TEST_F(SegmentIndexFile, IsWrittenAsItWasRead) {
  const auto index = read();
  ASSERT_TRUE(index);
  EXPECT_EQ(serialiseIndex(*index), bytes_);
}

TEST_F(SegmentIndexFile, HasDamagedBlocks) {
  BlockEntry damaged = kSecond;
  damaged.packets = 0;
  damaged.checksum = 0;
  damaged.flags = kBlockDamaged;
  damaged.tallyBytes = 0;
  damaged.tallyOffset = 0;
  bytes_ = headerBytes(7, kHeader);
  for (const BlockEntry& entry : {kFirst, damaged, kThird}) append(bytes_, entryBytes(entry));
  const auto index = read();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->damagedBlocks, 1u);
  EXPECT_EQ(index->blocks[1], damaged);
  EXPECT_FALSE(damaged.asWritten());
  damaged.tallyBytes = 8;
  bytes_ = headerBytes(7, kHeader);
  append(bytes_, entryBytes(kFirst));
  append(bytes_, entryBytes(damaged));
  EXPECT_EQ(errorCode(), Code::kStoreCorrupt);
}

TEST_F(SegmentIndexFile, KeepsWhatABlockWasBeforeItWasMarked) {
  const BlockEntry marked = kSecond.asDamaged();
  EXPECT_EQ(marked.packets, 0u);
  EXPECT_EQ(marked.lostPackets, kSecond.packets);
  EXPECT_EQ(marked.asDamaged(), marked);
  bytes_ = headerBytes(7, kHeader);
  for (const BlockEntry& entry : {kFirst, marked, kThird}) append(bytes_, entryBytes(entry));
  const auto index = read();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->blocks[1], marked);
  BlockEntry written = kSecond;
  written.tallyBytes = 0;
  written.tallyOffset = 0;
  EXPECT_EQ(index->blocks[1].asWritten(), written);
}

TEST_F(SegmentIndexFile, IsCorruptWhenItEndsInsideTheHeader) {
  bytes_.resize(kIndexHeaderBytes - 1);
  EXPECT_EQ(errorCode(), Code::kStoreCorrupt);
  bytes_.clear();
  EXPECT_EQ(errorCode(), Code::kStoreCorrupt);
}

TEST_F(SegmentIndexFile, IsCorruptWhenABlockIsMissingBetweenOthers) {
  bytes_.erase(bytes_.begin() + 128, bytes_.begin() + 192);
  EXPECT_EQ(errorCode(), Code::kStoreCorrupt);
}

TEST_F(SegmentIndexFile, IsCorruptWhenAnEntryIsImpossibleThoughItsChecksumFits) {
  BlockEntry impossible = kThird;
  impossible.minNs = impossible.maxNs + 1;
  bytes_.resize(bytes_.size() - kIndexEntryBytes);
  append(bytes_, entryBytes(impossible));
  EXPECT_EQ(errorCode(), Code::kStoreCorrupt);
}

/// Segments of 30 packets in three blocks, all of the same size, with their log entries.
class SegmentsOfOneSize : public testing::Test {
 protected:
  struct Logged {
    std::string segment;
    SegmentEntry entry;
  };
  /// The lengths of numberedPackets() repeat after 30.
  Logged make(const std::string& name, size_t firstPacket) const {
    const std::string folder = directory_.path() + "/" + name;
    std::filesystem::create_directory(folder);
    const auto packets = numberedPackets(30, firstPacket);
    StreamWriter writer({folder, 0, {1, kMaxCapturedLength}, 1 << 30});
    for (size_t i = 0; i < packets.size(); i += 10) {
      writer.add(makeBlock(std::span(packets).subspan(i, 10)));
    }
    EXPECT_TRUE(writer.commit());
    const std::string segment = groupedSegmentPath(portFolder(folder, 0), 1);
    const auto bytes = std::filesystem::file_size(segment + ".pcap");
    return {segment,
            {.number = 1,
             .minNs = packets.front().timestampNs,
             .maxNs = packets.back().timestampNs,
             .packets = 30,
             .bytes = bytes,
             .linkTypeWord = 1,
             .snaplen = kMaxCapturedLength}};
  }
  static void copy(const Logged& from, const Logged& to, const std::string& ending) {
    std::filesystem::copy_file(from.segment + ending, to.segment + ending,
                               std::filesystem::copy_options::overwrite_existing);
  }
  TempDirectory directory_;
};

TEST_F(SegmentsOfOneSize, AreNotReadByTheIndexOfAnother) {
  const Logged first = make("first", 30), second = make("second", 300);
  const auto right = readSegmentIndex(first.segment, &first.entry);
  ASSERT_TRUE(right);
  copy(second, first, ".idx");
  const auto index = readSegmentIndex(first.segment, &first.entry);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->rebuiltBlocks, index->blocks.size());
  EXPECT_EQ(index->damagedBlocks, 0u);
  uint64_t packets = 0;
  for (const BlockEntry& block : index->blocks) packets += block.packets;
  EXPECT_EQ(packets, 30u);
  EXPECT_EQ(index->blocks.front().minNs, first.entry.minNs);
  EXPECT_EQ(index->blocks.back().maxNs, first.entry.maxNs);
}

TEST_F(SegmentsOfOneSize, AreDamagedWhenAllTheirFilesAreThoseOfAnother) {
  const Logged first = make("first", 30), second = make("second", 300);
  for (const char* ending : kSegmentEndings) copy(second, first, ending);
  const auto index = readSegmentIndex(first.segment, &first.entry);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_GT(index->damagedBlocks, 0u);
  EXPECT_EQ(index->endOffset, first.entry.bytes);
  for (const BlockEntry& block : index->blocks) {
    EXPECT_TRUE(block.isDamaged());
    EXPECT_EQ(block.minNs, first.entry.minNs);
    EXPECT_EQ(block.maxNs, first.entry.maxNs);
  }
}

TEST_F(SegmentsOfOneSize, AreReadByTheirPacketsWhileTheDiskCannotReadTheirIndex) {
  const Logged first = make("first", 30);
  const auto right = readSegmentIndex(first.segment, &first.entry);
  ASSERT_TRUE(right);
  const BadSector sector(first.segment + ".idx", 0, 1);
  const auto index = readSegmentIndex(first.segment, &first.entry);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->endOffset, first.entry.bytes);
  uint64_t packets = 0;
  for (const BlockEntry& block : index->blocks) packets += block.packets;
  EXPECT_EQ(packets, 30u);
  EXPECT_EQ(index->damagedBlocks, 0u);
}

TEST(SegmentIndex, ThatIsMissingWasRemoved) {
  const TempDirectory directory;
  const auto index = readSegmentIndex(directory.path() + "/none");
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().code, Code::kAgedOut);
  EXPECT_NE(index.error().message.find("none.idx"), std::string::npos);
}

}  // namespace
}  // namespace capfleet::test
