#include "store/checked_blocks.h"

#include <gtest/gtest.h>

#include <functional>

namespace capfleet::test {
namespace {

SegmentIndex indexOf(uint64_t firstChecksum) {
  SegmentIndex index;
  index.blocks.resize(3);
  index.blocks[0].checksum = firstChecksum;
  return index;
}

TEST(CheckedBlocks, KnowsOfABlockWhatWasSeenLast) {
  CheckedBlocks blocks;
  const auto checks = blocks.of("a/00000001", indexOf(7));
  EXPECT_EQ(checks->of(2), BlockCheck::kUnread);
  checks->note(2, true);
  checks->note(0, true);
  checks->note(0, false);
  const auto again = blocks.of("a/00000001", indexOf(7));
  EXPECT_EQ(again->of(0), BlockCheck::kDamaged);
  EXPECT_EQ(again->of(1), BlockCheck::kUnread);
  EXPECT_EQ(again->of(2), BlockCheck::kIntact);
  EXPECT_EQ(blocks.of("b/00000001", indexOf(7))->of(2), BlockCheck::kUnread);
}

TEST(CheckedBlocks, NamesEachSuspectOnce) {
  CheckedBlocks blocks;
  blocks.of("a/00000001", indexOf(7))->suspect();
  blocks.of("a/00000001", indexOf(7))->suspect();
  blocks.of("a/00000002", {})->suspect();
  SegmentChecks().suspect();
  const std::vector<std::string> both{"a/00000001", "a/00000002"};
  EXPECT_EQ(blocks.suspects().take(), both);
  EXPECT_TRUE(blocks.suspects().take().empty());
  for (size_t i = 0; i < 2 * SuspectSegments::kMost; i++) blocks.suspects().note(std::to_string(i));
  EXPECT_EQ(blocks.suspects().take().size(), SuspectSegments::kMost);
}

TEST(CheckedBlocks, DoesNotTakeASegmentForARemovedOneOfItsPath) {
  CheckedBlocks blocks;
  blocks.of("a", indexOf(7))->note(1, true);
  EXPECT_EQ(blocks.of("a", indexOf(8))->of(1), BlockCheck::kUnread);
}

TEST(CheckedBlocks, KnowsNothingOfASegmentWhoseBlocksWereMarkedOrMadeAgain) {
  const auto isKnownAfter = [](const std::function<void(SegmentIndex&)>& change) {
    CheckedBlocks blocks;
    SegmentIndex index = indexOf(7);
    blocks.of("a", index)->note(0, true);
    change(index);
    return blocks.of("a", index)->of(0) == BlockCheck::kIntact;
  };
  EXPECT_TRUE(isKnownAfter([](SegmentIndex&) {}));
  EXPECT_TRUE(isKnownAfter([](SegmentIndex& index) { index.blocks.emplace_back(); }));
  EXPECT_FALSE(isKnownAfter([](SegmentIndex& index) { index.blocks.pop_back(); }));
  EXPECT_FALSE(isKnownAfter([](SegmentIndex& index) {
    index.blocks[2].checksum = 5;
    index.blocks[2] = index.blocks[2].asDamaged();
  }));
  EXPECT_FALSE(isKnownAfter([](SegmentIndex& index) { index.blocks[1].packets++; }));
  EXPECT_FALSE(isKnownAfter([](SegmentIndex& index) { index.blocks[1].maxNs++; }));
}

TEST(CheckedBlocks, RemembersNothingOfASegmentWithoutBlocks) {
  CheckedBlocks blocks;
  blocks.of("a", {})->note(1, true);
  EXPECT_EQ(blocks.of("a", {})->of(1), BlockCheck::kUnread);
}

TEST(CheckedBlocks, ForgetsTheSegmentThatWasNotUsedForLongest) {
  CheckedBlocks blocks(2);
  const auto kept = blocks.of("a", indexOf(1));
  kept->note(0, true);
  blocks.of("b", indexOf(2))->note(0, true);
  blocks.of("a", indexOf(1));
  blocks.of("c", indexOf(3))->note(0, true);
  EXPECT_EQ(blocks.of("a", indexOf(1))->of(0), BlockCheck::kIntact);
  EXPECT_EQ(blocks.of("c", indexOf(3))->of(0), BlockCheck::kIntact);
  EXPECT_EQ(blocks.of("b", indexOf(2))->of(0), BlockCheck::kUnread);
  kept->note(1, true);  // those that still hold it may continue
}

}  // namespace
}  // namespace capfleet::test
