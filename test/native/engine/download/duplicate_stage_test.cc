#include "download/duplicate_stage.h"

#include <gtest/gtest.h>

#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

struct Made {
  int64_t ns;
  uint8_t payload;
};

/// Packets whose payload after the Ethernet header is one byte.
PacketBatch batchOf(BufferPool& pool, const std::vector<Made>& packets) {
  PacketBatch batch;
  batch.slab = pool.take();
  batch.slab->size = 0;
  for (const auto& [ns, payload] : packets) {
    uint8_t* const to = batch.slab->bytes.get() + batch.slab->size;
    storeRecordHeader(to, {ns, 15, 15});
    std::fill_n(to + kRecordHeaderBytes, 14, uint8_t{0});
    to[kRecordHeaderBytes + 14] = payload;
    batch.slab->size += kRecordHeaderBytes + 15;
    batch.count(1, ns, ns);
  }
  batch.excluded = 7;
  return batch;
}

std::vector<std::pair<int64_t, int>> contentOf(const PacketBatch& batch, int64_t unitNs) {
  std::vector<std::pair<int64_t, int>> content;
  for (size_t at = 0; at < batch.slab->size;) {
    const uint8_t* const record = batch.slab->bytes.get() + at;
    content.emplace_back(loadLe32(record) * kNanosPerSecond + loadLe32(record + 4) * unitNs,
                         record[kRecordHeaderBytes + 14]);
    at += kRecordHeaderBytes + loadLe32(record + 8);
  }
  return content;
}

TEST(DuplicateStage, drops_copies_within_and_across_batches) {
  BufferPool pool;
  DuplicateStage stage({5}, {1}, OutputForm{});
  PacketBatch first = batchOf(pool, {{100, 1}, {101, 2}, {103, 1}, {104, 3}});
  stage.drop(first);
  EXPECT_EQ(contentOf(first, 1),
            (std::vector<std::pair<int64_t, int>>{{100, 1}, {101, 2}, {104, 3}}));
  EXPECT_EQ(first.packets, 3U);
  EXPECT_EQ(first.firstNs, 100);
  EXPECT_EQ(first.lastNs, 104);
  EXPECT_EQ(first.excluded, 7U);
  PacketBatch second = batchOf(pool, {{105, 1}, {106, 1}, {106, 2}, {106, 3}});
  stage.drop(second);
  EXPECT_EQ(contentOf(second, 1), (std::vector<std::pair<int64_t, int>>{{106, 1}}))
      << "copies of 100 and 101 end with 105 and 106";
  EXPECT_EQ(second.firstNs, 106);
  for (PacketBatch* batch : {&first, &second}) pool.give(std::move(batch->slab));
}

TEST(DuplicateStage, says_how_many_were_dropped_before_a_packet) {
  BufferPool pool;
  DuplicateStage stage({100}, {1}, OutputForm{});
  PacketBatch batch = batchOf(pool, {{0, 1}, {1, 1}, {2, 2}, {3, 1}, {4, 2}, {5, 3}});
  stage.drop(batch);
  EXPECT_EQ(batch.packets, 3U);
  EXPECT_EQ(stage.droppedBefore(0), 0U);
  EXPECT_EQ(stage.droppedBefore(1), 1U);
  EXPECT_EQ(stage.droppedBefore(2), 3U);
  EXPECT_EQ(stage.droppedBefore(3), 3U);
  pool.give(std::move(batch.slab));
}

TEST(DuplicateStage, leaves_nothing_of_a_batch_of_copies) {
  BufferPool pool;
  DuplicateStage stage({100}, {1}, OutputForm{});
  PacketBatch first = batchOf(pool, {{0, 1}});
  stage.drop(first);
  PacketBatch copies = batchOf(pool, {{1, 1}, {2, 1}});
  stage.drop(copies);
  EXPECT_EQ(copies.packets, 0U);
  EXPECT_EQ(copies.slab->size, 0U);
  EXPECT_EQ(stage.droppedBefore(0), 2U);
  for (PacketBatch* batch : {&first, &copies}) pool.give(std::move(batch->slab));
}

TEST(DuplicateStage, compares_nanoseconds_and_writes_microseconds) {
  BufferPool pool;
  DuplicateStage stage({500}, {1}, OutputForm{false, true});
  PacketBatch batch = batchOf(pool, {{1'000, 1}, {1'400, 1}, {1'600, 1}});
  stage.drop(batch);
  EXPECT_EQ(contentOf(batch, 1000), (std::vector<std::pair<int64_t, int>>{{1'000, 1}, {1'000, 1}}));
  EXPECT_EQ(batch.lastNs, 1'600);
  pool.give(std::move(batch.slab));
}

// A packet that comes late is compared by the latest time so far.
TEST(DuplicateStage, measures_by_the_latest_time_so_far) {
  BufferPool pool;
  DuplicateStage stage({5}, {1}, OutputForm{});
  PacketBatch batch = batchOf(pool, {{10, 1}, {20, 2}, {11, 1}});
  stage.drop(batch);
  EXPECT_EQ(batch.packets, 3U);
  pool.give(std::move(batch.slab));
}

}  // namespace
}  // namespace capfleet::test
