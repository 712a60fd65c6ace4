#include "store/repair/sieve_repair.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/segment_removal.h"
#include "support/addressed_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

bool always() { return true; }

class SieveRepair : public ::testing::Test {
 protected:
  /// A segment of 20 blocks, and the sieves that its writer made.
  void make(uint32_t linkTypeWord = 1) {
    streams_.packetsPerBlock = 10;
    std::vector<StoredPacket> packets;
    for (uint32_t i = 0; i < 200; i++) packets.push_back({1000 - i % 7, 64, ipv4Frame(i, i)});
    streams_.addStream(packets, linkTypeWord);
    segment_ = streams_.paths()[0][0];
    written_ = readFile(segment_ + ".sieve");
  }

  void rewrite(const Bytes& bytes) {
    std::ofstream out(segment_ + ".sieve", std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }

  uint64_t added() {
    const auto result = addSieves(segment_, always);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? *result : 0;
  }

  StoredStreams streams_;
  std::string segment_;
  Bytes written_;
};

TEST_F(SieveRepair, MakesTheSievesThatTheWriterWouldHaveMade) {
  make();
  EXPECT_EQ(added(), 0u);
  std::filesystem::remove(segment_ + ".sieve");
  EXPECT_EQ(added(), 20u);
  EXPECT_EQ(readFile(segment_ + ".sieve"), written_);
  EXPECT_EQ(added(), 0u);
}

TEST_F(SieveRepair, MakesAgainWhatIsDamagedOrMissing) {
  make();
  const Bytes cut(written_.begin(), written_.begin() + static_cast<ptrdiff_t>(written_.size() / 2));
  rewrite(cut);
  EXPECT_GT(added(), 0u);
  EXPECT_EQ(readFile(segment_ + ".sieve"), written_);
  Bytes damaged = written_;
  damaged[damaged.size() / 2] ^= 1;
  rewrite(damaged);
  EXPECT_GT(added(), 0u);
  EXPECT_EQ(readFile(segment_ + ".sieve"), written_);
}

TEST_F(SieveRepair, LeavesOutDamagedBlocks) {
  make();
  const auto index = readSegmentIndex(segment_);
  ASSERT_TRUE(index);
  damage(segment_, index->blocks[4]);
  std::filesystem::remove(segment_ + ".sieve");
  EXPECT_EQ(added(), 19u);
  EXPECT_EQ(added(), 0u);
}

TEST_F(SieveRepair, CountsWhatItMakesHoweverManyBlocksAreDamaged) {
  make();
  const auto index = readSegmentIndex(segment_);
  ASSERT_TRUE(index);
  damage(segment_, index->blocks[4]);
  damage(segment_, index->blocks[5]);
  size_t last = 0;
  for (size_t at = 0; at < written_.size(); at += 16 + loadLe32(&written_[at + 12])) last = at;
  rewrite({written_.begin(), written_.begin() + static_cast<ptrdiff_t>(last)});
  EXPECT_EQ(added(), 1u);
  EXPECT_EQ(readFile(segment_ + ".sieve"), written_);
}

TEST_F(SieveRepair, ReadsOnlyBlocksWithoutSieve) {
  make();
  const auto index = readSegmentIndex(segment_);
  ASSERT_TRUE(index);
  damage(segment_, index->blocks[0]);
  const size_t first = 16 + loadLe32(&written_[12]);
  rewrite({written_.begin() + static_cast<ptrdiff_t>(first), written_.end()});
  int asked = 0;
  const auto result = addSieves(segment_, [&] { return ++asked > 0; });
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 0u);
  EXPECT_EQ(asked, 1);
}

TEST_F(SieveRepair, TakesSievesThatAreThereTwice) {
  make();
  Bytes twice = written_;
  twice.insert(twice.end(), written_.begin(), written_.end());
  rewrite(twice);
  EXPECT_EQ(added(), 0u);
  EXPECT_EQ(readFile(segment_ + ".sieve"), twice);
}

TEST_F(SieveRepair, KeepsWhatThereIsWhenItIsCancelled) {
  make();
  const Bytes cut(written_.begin(), written_.begin() + static_cast<ptrdiff_t>(written_.size() / 2));
  rewrite(cut);
  int asked = 0;
  const auto result = addSieves(segment_, [&] { return ++asked < 5; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kCancelled);
  EXPECT_EQ(readFile(segment_ + ".sieve"), cut);
}

TEST_F(SieveRepair, OfASegmentThatIsRemovedMeanwhileLeavesNothing) {
  make();
  std::filesystem::remove(segment_ + ".sieve");
  int asked = 0;
  const auto result = addSieves(segment_, [&] {
    if (++asked == 20) {
      EXPECT_TRUE(removeSegment(segment_, true));
    }
    return true;
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kAgedOut);
  EXPECT_FALSE(std::filesystem::exists(segment_ + ".sieve"));
}

TEST_F(SieveRepair, HasNothingToDoForOtherLinkTypes) {
  make(113);
  EXPECT_EQ(added(), 0u);
  EXPECT_EQ(readFile(segment_ + ".sieve"), Bytes());
}

}  // namespace
}  // namespace capfleet::test
