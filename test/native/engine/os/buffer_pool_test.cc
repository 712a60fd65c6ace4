#include "os/buffer_pool.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace capfleet::test
