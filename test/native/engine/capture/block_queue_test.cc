#include "capture/block_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/made_blocks.h"

namespace capfleet::test {
namespace {

TEST(BlockQueue, GivesNoMoreBlocksThanItsBudgetHolds) {
  BlockQueue queue(3 * uint64_t{kMaxBlockBytes} + 1);
  std::vector<std::unique_ptr<CaptureBlock>> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(queue.takeBlock());
    ASSERT_TRUE(blocks.back());
  }
  EXPECT_FALSE(queue.takeBlock());
  blocks[1]->add(5, 16);
  queue.giveBack(std::move(blocks[1]));
  const auto again = queue.takeBlock();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->isEmpty()) << "a block that was used before comes empty";
  EXPECT_FALSE(queue.takeBlock());
}

TEST(BlockQueue, KeepsTheOrderOfEachOfManyThreads) {
  constexpr uint32_t kThreads = 4, kItems = 5000;
  BlockQueue queue(8 * uint64_t{kMaxBlockBytes});
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&queue, thread] {
      for (uint32_t i = 1; i <= kItems; ++i) {
        auto block = queue.takeBlock();
        if (block) block->add(i, 16);
        queue.push({thread, i, std::move(block), std::nullopt});
      }
    });
  }
  std::vector<uint32_t> last(kThreads, 0);
  for (uint64_t seen = 0; seen < uint64_t{kThreads} * kItems;) {
    queue.wait(1000);
    for (QueueItem& item : queue.popAll()) {
      ASSERT_EQ(item.recording, ++last[item.thread]);
      if (item.block) {
        EXPECT_EQ(item.block->entry().minNs, item.recording);
        queue.giveBack(std::move(item.block));
      }
      seen += 1;
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace capfleet::test
