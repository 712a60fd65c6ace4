#include "merge_heap.h"

#include <gtest/gtest.h>

#include "seed.h"

namespace capfleet::test {
namespace {

TEST(MergeHeap, MergesSortedListsLikeAStableSort) {
  auto random = seededRandom();
  for (int i = 0; i < 500; i++) {
    std::vector<std::vector<int64_t>> lists(1 + randomBelow(random, 9));
    std::vector<std::pair<int64_t, uint32_t>> expected;
    MergeHeap heap;
    for (uint32_t input = 0; input < lists.size(); input++) {
      for (size_t j = randomBelow(random, 20); j > 0; j--) {
        lists[input].push_back(static_cast<int64_t>(randomBelow(random, 15)));
        expected.emplace_back(lists[input].back(), input);
      }
      std::sort(lists[input].begin(), lists[input].end());
      if (!lists[input].empty()) heap.push({lists[input].front(), input});
    }
    std::sort(expected.begin(), expected.end());
    std::vector<std::pair<int64_t, uint32_t>> merged;
    std::vector<size_t> positions(lists.size());
    while (!heap.empty()) {
      const auto [keyNs, input] = heap.top();
      merged.emplace_back(keyNs, input);
      if (++positions[input] < lists[input].size()) {
        heap.replaceTop(lists[input][positions[input]]);
      } else {
        heap.popTop();
      }
    }
    EXPECT_EQ(merged, expected);
  }
}

TEST(MergeHeap, KnowsWhoComesNext) {
  MergeHeap heap;
  heap.push({5, 0});
  heap.push({3, 1});
  EXPECT_EQ(heap.runnerUp().input, 0u);
  heap.push({3, 2});
  heap.push({9, 3});
  EXPECT_EQ(heap.top().input, 1u);
  EXPECT_EQ(heap.runnerUp().input, 2u) << "of equal keys the first input";
  heap.replaceTop(4);
  EXPECT_EQ(heap.top().input, 2u);
  EXPECT_EQ(heap.runnerUp().input, 1u);
}

}  // namespace
}  // namespace capfleet::test
