#include "os/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>

namespace capfleet::test {
namespace {

TEST(BufferPool, GivesReleasedSlabsOutAgain) {
  BufferPool pool;
  SlabPtr slab = pool.take();
  const Slab* first = slab.get();
  slab->size = 100;
  EXPECT_EQ(pool.outstanding(), 1u);
  pool.give(std::move(slab));
  EXPECT_EQ(pool.outstanding(), 0u);
  const SlabPtr again = pool.take();
  EXPECT_EQ(again.get(), first);
  EXPECT_EQ(again->size, 0u);
  EXPECT_NE(pool.take().get(), first);
}

TEST(BufferPool, NeverRefillsAnAbandonedSlab) {
  BufferPool pool;
  const SlabPtr slab = pool.take();
  pool.abandon(slab);
  EXPECT_EQ(pool.outstanding(), 0u);
  EXPECT_NE(pool.take().get(), slab.get());
  EXPECT_EQ(slab.use_count(), 1);
}

TEST(BufferPool, GivesTheMemoryOfFreeSlabsBackWhenItEnds) {
  SlabPtr free;
  SlabPtr abandoned;
  {
    BufferPool pool;
    free = pool.take();
    abandoned = pool.take();
    for (const SlabPtr& slab : {free, abandoned}) std::memset(slab->bytes.get(), 'x', kSlabBytes);
    pool.give(free);
    pool.abandon(abandoned);
  }
  EXPECT_EQ(free->bytes[kSlabBytes / 2], 0);
  EXPECT_EQ(abandoned->bytes[kSlabBytes / 2], 'x');
}

}  // namespace
}  // namespace capfleet::test
