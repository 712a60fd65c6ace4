#include "merge/merge_tree.h"

#include <gtest/gtest.h>

#include "support/seed.h"

namespace capfleet::test {
namespace {

constexpr int64_t kEnded = MergeTree::kEnded;

/// Sorted keys for each input; small ranges, so that many are equal.
std::vector<std::vector<int64_t>> sortedLists(std::mt19937_64& random, size_t inputs,
                                              int64_t first) {
  std::vector<std::vector<int64_t>> lists(inputs);
  for (auto& list : lists) {
    for (size_t i = randomBelow(random, 20); i > 0; i--) {
      list.push_back(first + static_cast<int64_t>(randomBelow(random, 15)));
    }
    std::sort(list.begin(), list.end());
  }
  return lists;
}

/// The next item according to a scan of all inputs.
uint32_t firstOf(const std::vector<int64_t>& keys) {
  return static_cast<uint32_t>(std::min_element(keys.begin(), keys.end()) - keys.begin());
}

void expectBoundIsExact(const MergeTree& tree, std::vector<int64_t> keys) {
  const uint32_t winner = tree.winner();
  const int64_t bound = tree.winnerStaysBelow();
  ASSERT_GE(bound, keys[winner]);
  if (bound > keys[winner]) {
    keys[winner] = bound - 1;
    EXPECT_EQ(firstOf(keys), winner) << "below the bound it stays";
  }
  if (bound == kEnded) return;
  keys[winner] = bound;
  EXPECT_NE(firstOf(keys), winner) << "from the bound on it does not";
}

void expectMerged(const std::vector<std::vector<int64_t>>& lists) {
  std::vector<std::pair<int64_t, uint32_t>> expected;
  std::vector<int64_t> keys;
  for (const auto& list : lists) {
    for (const int64_t key : list) expected.emplace_back(key, keys.size());
    keys.push_back(list.empty() ? kEnded : list.front());
  }
  std::sort(expected.begin(), expected.end());
  MergeTree tree(keys);
  std::vector<std::pair<int64_t, uint32_t>> merged;
  std::vector<size_t> positions(lists.size());
  while (!tree.hasEnded()) {
    const uint32_t input = tree.winner();
    ASSERT_EQ(input, firstOf(keys));
    ASSERT_EQ(tree.winnerKey(), keys[input]);
    expectBoundIsExact(tree, keys);
    merged.emplace_back(tree.winnerKey(), input);
    const size_t next = ++positions[input];
    keys[input] = next < lists[input].size() ? lists[input][next] : kEnded;
    tree.replaceWinner(keys[input]);
  }
  EXPECT_EQ(tree.winnerStaysBelow(), kEnded);
  EXPECT_EQ(merged, expected);
}

TEST(MergeTree, MergesSortedListsLikeAStableSort) {
  auto random = seededRandom();
  for (size_t inputs = 1; inputs <= 20; inputs++) {
    for (int i = 0; i < 50; i++) expectMerged(sortedLists(random, inputs, 0));
  }
  expectMerged(sortedLists(random, 256, 0));
}

TEST(MergeTree, HoldsTheSmallestAndTheLargestKeys) {
  auto random = seededRandom();
  for (size_t inputs = 1; inputs <= 20; inputs++) {
    expectMerged(sortedLists(random, inputs, kEnded - 15));
    expectMerged(sortedLists(random, inputs, std::numeric_limits<int64_t>::min()));
  }
}

TEST(MergeTree, LetsAnInputAloneGoOnToTheEnd) {
  MergeTree tree({7});
  EXPECT_EQ(tree.winner(), 0u);
  EXPECT_EQ(tree.winnerStaysBelow(), kEnded);
  tree.replaceWinner(kEnded - 1);
  EXPECT_FALSE(tree.hasEnded());
  tree.replaceWinner(kEnded);
  EXPECT_TRUE(tree.hasEnded());
}

TEST(MergeTree, IsAtTheEndWhenNoInputHasAKey) {
  EXPECT_TRUE(MergeTree({kEnded}).hasEnded());
  EXPECT_TRUE(MergeTree({kEnded, kEnded, kEnded}).hasEnded());
  EXPECT_FALSE(MergeTree({kEnded, kEnded, kEnded - 1}).hasEnded());
}

}  // namespace
}  // namespace capfleet::test
