#include "store/segment_index.h"

#include <gtest/gtest.h>

#include "os/byte_order.h"
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

TEST(SegmentIndex, ThatIsMissingWasRemoved) {
  const TempDirectory directory;
  const auto index = readSegmentIndex(directory.path() + "/none");
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().code, Code::kAgedOut);
  EXPECT_NE(index.error().message.find("none.idx"), std::string::npos);
}

}  // namespace
}  // namespace capfleet::test
