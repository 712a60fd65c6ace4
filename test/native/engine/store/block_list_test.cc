#include "store/block_list.h"

#include <gtest/gtest.h>

#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

TEST(BlockList, HoldsTheBlocksOfAllStreamsByTime) {
  StoredStreams store;
  store.packetsPerBlock = 2;
  store.segmentBytes = 300;
  store.addStream(
      {numberedPacket(10, 0, 20), numberedPacket(19, 1, 20), numberedPacket(30, 2, 20)});
  store.addStream(
      {numberedPacket(15, 3, 40), numberedPacket(12, 4, 40), numberedPacket(50, 5, 40)});
  const auto blocks = listBlocks(store.streams());
  ASSERT_TRUE(blocks);
  ASSERT_EQ(blocks->size(), 4u);
  const std::vector<std::pair<int64_t, int64_t>> times{{10, 19}, {12, 15}, {30, 30}, {50, 50}};
  for (size_t i = 0; i < times.size(); i++) {
    EXPECT_EQ((*blocks)[i].minNs, times[i].first);
    EXPECT_EQ((*blocks)[i].maxNs, times[i].second);
  }
  EXPECT_EQ((*blocks)[1].packets, 2u);
  EXPECT_EQ((*blocks)[1].bytes, 2u * (16 + 40));
}

TEST(BlockList, FailsWhenAnIndexIsGone) {
  const auto blocks = listBlocks({{"/nonexistent", {entryOf({1, 0, 9, 1, 100})}}});
  ASSERT_FALSE(blocks);
  EXPECT_EQ(blocks.error().code, Code::kAgedOut);
}

}  // namespace
}  // namespace capfleet::test
