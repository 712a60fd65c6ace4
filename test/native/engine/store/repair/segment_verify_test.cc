#include "store/repair/segment_verify.h"

#include <gtest/gtest.h>

#include "store/address_table.h"
#include "store/segment_path.h"
#include "store/segment_writer.h"
#include "support/made_blocks.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

constexpr size_t kPackets = 60;
using Kinds = std::vector<SegmentFindingKind>;

class SegmentVerify : public testing::Test {
 protected:
  SegmentVerify() {
    SegmentWriterOptions options{folder_, 2, {kLinkTypeEthernet, kMaxCapturedLength}};
    options.durable = false;
    auto writer = SegmentWriter::open(options);
    for (size_t i = 0; i < kPackets; i++) {
      const StoredPacket& packet = packets_[i];
      EXPECT_TRUE(writer->append(packet.timestampNs, packet.originalLength, packet.captured));
      if (i % 10 == 9) {
        EXPECT_TRUE(writer->flush());
      }
    }
    const SegmentSummary summary = writer->close()->at(0);
    path_ = groupedSegmentPath(folder_, 1);
    entry_.port = 2;
    entry_.number = 1;
    entry_.minNs = summary.minNs;
    entry_.maxNs = summary.maxNs;
    entry_.packets = summary.packets;
    entry_.bytes = summary.bytes;
    entry_.checksum = summary.checksum;
    entry_.linkTypeWord = kLinkTypeEthernet;
    entry_.snaplen = kMaxCapturedLength;
    for (const char* ending : kSegmentEndings) files_[ending] = readFile(path_ + ending);
  }

  void flip(const std::string& ending, size_t at, size_t count = 1) {
    Bytes bytes = files_[ending];
    for (size_t i = at; i < at + count; i++) bytes[i] ^= 0x5A;
    std::ofstream out(path_ + ending, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }

  VerifiedSegment verified(bool repairs) {
    SegmentVerifyOptions options;
    options.repairs = repairs;
    auto result = verifySegment(path_, entry_, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? std::move(*result) : VerifiedSegment{};
  }
  static Kinds kindsOf(const VerifiedSegment& verified) {
    Kinds kinds;
    for (const SegmentFinding& finding : verified.findings) kinds.push_back(finding.kind);
    return kinds;
  }
  /// A check finds this and writes nothing; a repair restores the files exactly.
  void expectRepaired(const Kinds& kinds) {
    std::map<std::string, Bytes> before;
    for (const char* ending : kSegmentEndings) before[ending] = readFile(path_ + ending);
    EXPECT_EQ(kindsOf(verified(false)), kinds);
    for (const char* ending : kSegmentEndings) EXPECT_EQ(readFile(path_ + ending), before[ending]);
    const VerifiedSegment repaired = verified(true);
    EXPECT_EQ(kindsOf(repaired), kinds);
    EXPECT_TRUE(repaired.isRepaired);
    for (const char* ending : kSegmentEndings) {
      EXPECT_EQ(readFile(path_ + ending), files_[ending]) << ending;
    }
    EXPECT_EQ(kindsOf(verified(false)), Kinds{});
  }

  TempDirectory directory_;
  std::string folder_ = directory_.folder("cap2");
  std::vector<StoredPacket> packets_ = numberedPackets(kPackets);
  std::string path_;
  SegmentEntry entry_;
  std::map<std::string, Bytes> files_;
};

TEST_F(SegmentVerify, FindsNothingInAWholeSegment) {
  const VerifiedSegment whole = verified(true);
  EXPECT_EQ(kindsOf(whole), Kinds{});
  EXPECT_FALSE(whole.isRepaired);
}

TEST_F(SegmentVerify, MakesIndexTalliesAndSievesAgain) {
  flip(".idx", kIndexHeaderBytes + 64, 64);
  expectRepaired({SegmentFindingKind::kIndexRebuilt});
  flip(".tally", 12);
  expectRepaired({SegmentFindingKind::kTallyDamaged});
  flip(".sieve", 20);
  expectRepaired({SegmentFindingKind::kSievesMissing});
  std::filesystem::remove(path_ + ".idx");
  EXPECT_EQ(verified(true).entry.packets, kPackets);
  EXPECT_EQ(storedPackets(folder_), packets_);
}

TEST_F(SegmentVerify, CorrectsATableOfAddressesOfOtherPackets) {
  const std::string path = addressTablePath(folder_, 1);
  // The same size, packets and times as the segment: readers cannot tell.
  SegmentContent content = AddressTable::open(folder_, 1).contentOf(1).value();
  ASSERT_TRUE(content.matches(entry_));
  content.checksum ^= 1;
  ASSERT_TRUE(addAddresses(folder_, {content, {}}));
  expectRepaired({SegmentFindingKind::kAddressesWrong});
  content.checksum ^= 1;
  EXPECT_EQ(AddressTable::open(folder_, 1).contentOf(1), content);
  // A missing one is no damage.
  std::filesystem::remove(path);
  EXPECT_EQ(kindsOf(verified(false)), Kinds{});
}

TEST_F(SegmentVerify, MarksADamagedBlockAndKeepsItsBytes) {
  const BlockEntry block = readSegmentIndex(path_)->blocks[2];
  flip(".pcap", block.offset + 30);
  const Bytes data = readFile(path_ + ".pcap");
  const VerifiedSegment found = verified(false);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].kind, SegmentFindingKind::kBlockDamaged);
  EXPECT_EQ(found.findings[0].file, path_ + ".pcap");
  EXPECT_EQ(found.findings[0].offset, block.offset);
  EXPECT_EQ(found.findings[0].packets, 10u);
  EXPECT_EQ(found.findings[0].bytes, block.bytes);
  EXPECT_FALSE(readSegmentIndex(path_)->blocks[2].isDamaged());

  const VerifiedSegment repaired = verified(true);
  EXPECT_TRUE(repaired.isRepaired);
  EXPECT_EQ(repaired.entry.packets, kPackets - 10);
  EXPECT_NE(repaired.entry.flags & kSegmentDamaged, 0);
  EXPECT_EQ(readFile(path_ + ".pcap"), data);
  const auto index = readSegmentIndex(path_);
  ASSERT_EQ(index->blocks.size(), 6u);
  EXPECT_TRUE(index->blocks[2].isDamaged());
  // Once marked it is still found, and there is nothing more to repair.
  entry_ = repaired.entry;
  const VerifiedSegment again = verified(true);
  EXPECT_EQ(kindsOf(again), Kinds{SegmentFindingKind::kBlockDamaged});
  EXPECT_FALSE(again.isRepaired);
}

// The wrong bytes may have come from a cable, a controller or memory, not from the disk.
TEST_F(SegmentVerify, TakesTheMarkAwayWhenTheBytesAreRightAgain) {
  const SegmentEntry before = entry_;
  const BlockEntry block = readSegmentIndex(path_)->blocks[2];
  flip(".pcap", block.offset + 30);
  entry_ = verified(true).entry;
  const BlockEntry marked = readSegmentIndex(path_)->blocks[2];
  EXPECT_TRUE(marked.isDamaged());
  EXPECT_EQ(marked.packets, 0u);
  EXPECT_EQ(marked.lostPackets, 10u);
  EXPECT_EQ(marked.asWritten()->checksum, block.checksum);
  flip(".pcap", 0, 0);
  const VerifiedSegment found = verified(false);
  const Kinds kinds{SegmentFindingKind::kBlockReadable, SegmentFindingKind::kTallyDamaged,
                    SegmentFindingKind::kLogDiffers};
  EXPECT_EQ(kindsOf(found), kinds);
  EXPECT_EQ(found.findings[0].packets, 10u);
  EXPECT_TRUE(readSegmentIndex(path_)->blocks[2].isDamaged()) << "a check writes nothing";
  const VerifiedSegment repaired = verified(true);
  EXPECT_EQ(kindsOf(repaired), kinds);
  EXPECT_TRUE(repaired.isRepaired);
  for (const char* ending : kSegmentEndings) {
    EXPECT_EQ(readFile(path_ + ending), files_[ending]) << ending;
  }
  EXPECT_EQ(storedPackets(folder_), packets_);
  entry_ = repaired.entry;
  EXPECT_EQ(entry_.packets, before.packets);
  EXPECT_EQ(entry_.flags, before.flags);
  EXPECT_EQ(kindsOf(verified(false)), Kinds{});
}

// A range that begins in a lost block must find its segment, and report what is missing.
TEST_F(SegmentVerify, KeepsTheTimesOfLostBlocksAtItsEnds) {
  const auto index = readSegmentIndex(path_);
  for (const size_t lost : {size_t{0}, index->blocks.size() - 1}) {
    flip(".pcap", index->blocks[lost].offset + 30);
    const SegmentEntry before = entry_;
    entry_ = verified(true).entry;
    EXPECT_NE(entry_.flags & kSegmentDamaged, 0);
    EXPECT_EQ(entry_.minNs, before.minNs);
    EXPECT_EQ(entry_.maxNs, before.maxNs);
  }
}

TEST_F(SegmentVerify, MarksABlockOfWhichEntryAndBytesAreDamaged) {
  const BlockEntry block = readSegmentIndex(path_)->blocks[2];
  flip(".idx", kIndexHeaderBytes + 2 * kIndexEntryBytes, kIndexEntryBytes);
  flip(".pcap", block.offset, 16);
  const VerifiedSegment found = verified(false);
  ASSERT_EQ(kindsOf(found), Kinds{SegmentFindingKind::kBlockDamaged});
  EXPECT_FALSE(found.findings[0].isMarked);
  const VerifiedSegment repaired = verified(true);
  EXPECT_TRUE(repaired.isRepaired);
  EXPECT_EQ(repaired.entry.packets, kPackets - 10);
  EXPECT_NE(repaired.entry.flags & kSegmentDamaged, 0);
  entry_ = repaired.entry;
  const VerifiedSegment again = verified(true);
  ASSERT_EQ(kindsOf(again), Kinds{SegmentFindingKind::kBlockDamaged});
  EXPECT_TRUE(again.findings[0].isMarked);
  EXPECT_FALSE(again.isRepaired);

  // Its sieve still identifies the bytes, in case they are right again.
  flip(".pcap", 0, 0);
  const Kinds kinds{SegmentFindingKind::kBlockReadable, SegmentFindingKind::kLogDiffers};
  EXPECT_EQ(kindsOf(verified(false)), kinds);
  const VerifiedSegment back = verified(true);
  EXPECT_EQ(kindsOf(back), kinds);
  EXPECT_EQ(back.findings[0].packets, 10u);
  EXPECT_EQ(back.entry.flags & kSegmentDamaged, 0);
  EXPECT_EQ(storedPackets(folder_), packets_);
  for (const char* ending : kSegmentEndings) EXPECT_EQ(readFile(path_ + ending), files_[ending]);
  entry_ = back.entry;
  EXPECT_EQ(kindsOf(verified(false)), Kinds{});
}

TEST_F(SegmentVerify, BringsBackAllBlocksWhoseEntriesWereLostWithAWrongByteAmongThem) {
  const auto index = readSegmentIndex(path_);
  for (size_t wrong = 1; wrong < 5; wrong++) {
    flip(".idx", kIndexHeaderBytes + kIndexEntryBytes, 4 * kIndexEntryBytes);
    flip(".pcap", index->blocks[wrong].offset + 30);
    const SegmentEntry before = entry_;
    entry_ = verified(true).entry;
    EXPECT_LE(entry_.packets, kPackets - 10);
    EXPECT_GE(entry_.packets, kPackets - 10 * (5 - wrong));
    flip(".pcap", 0, 0);
    entry_ = verified(true).entry;
    EXPECT_EQ(storedPackets(folder_), packets_) << "block " << wrong;
    EXPECT_EQ(entry_.packets, before.packets);
    EXPECT_EQ(entry_.flags, before.flags);
    EXPECT_EQ(kindsOf(verified(false)), Kinds{});
  }
}

TEST_F(SegmentVerify, TakesBackAMarkWithoutALoss) {
  entry_.flags |= kSegmentDamaged;
  EXPECT_EQ(kindsOf(verified(false)), Kinds{SegmentFindingKind::kLogDiffers});
  const VerifiedSegment repaired = verified(true);
  EXPECT_TRUE(repaired.isRepaired);
  EXPECT_EQ(repaired.entry.flags & kSegmentDamaged, 0);
  EXPECT_EQ(repaired.entry.packets, kPackets);
}

TEST_F(SegmentVerify, ComparesTheSegmentWithTheLog) {
  entry_.packets += 1;
  const VerifiedSegment found = verified(false);
  EXPECT_EQ(kindsOf(found), Kinds{SegmentFindingKind::kLogDiffers});
  EXPECT_EQ(found.entry.packets, kPackets);
}

TEST_F(SegmentVerify, TouchesNothingWhereAnotherSegmentOrLogWasPut) {
  const SegmentEntry right = entry_;
  entry_.minNs += 1'000'000'000'000;
  entry_.maxNs += 1'000'000'000'000;
  const VerifiedSegment misplaced = verified(true);
  ASSERT_EQ(kindsOf(misplaced), Kinds{SegmentFindingKind::kBlockDamaged});
  EXPECT_EQ(misplaced.findings[0].packets, kPackets);
  EXPECT_FALSE(misplaced.isRepaired);
  EXPECT_EQ(misplaced.entry.minNs, entry_.minNs);
  EXPECT_EQ(misplaced.entry.flags, entry_.flags);
  for (const char* ending : kSegmentEndings) EXPECT_EQ(readFile(path_ + ending), files_[ending]);
  entry_ = right;
  EXPECT_TRUE(verified(true).findings.empty());
}

TEST_F(SegmentVerify, EndsWhenItIsCancelledOrTheSegmentIsGone) {
  SegmentVerifyOptions options;
  uint64_t last = 0;
  options.goesOn = [&](uint64_t bytes) {
    last = bytes;
    return bytes < entry_.bytes / 2;
  };
  EXPECT_EQ(verifySegment(path_, entry_, options).error().code, Code::kCancelled);
  EXPECT_GE(last, entry_.bytes / 2);
  for (const char* ending : kSegmentEndings) std::filesystem::remove(path_ + ending);
  EXPECT_EQ(verifySegment(path_, entry_, {}).error().code, Code::kAgedOut);
}

}  // namespace
}  // namespace capfleet::test
