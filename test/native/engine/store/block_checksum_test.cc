#include "store/block_checksum.h"

#include <gtest/gtest.h>

#include "store/xxh3.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

TEST(BlockChecksum, IsTheChecksumThatTheWriterStores) {
  auto random = seededRandom();
  for (int i = 0; i < 300; i++) {
    Bytes bytes(randomBelow(random, i % 10 == 0 ? 300000 : 2000));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    EXPECT_EQ(blockChecksum(bytes), xxh3(bytes)) << bytes.size() << " bytes";
    const uint64_t seed = random();
    EXPECT_EQ(blockChecksum(bytes, seed), xxh3(bytes, seed)) << bytes.size() << " bytes";
  }
}

}  // namespace
}  // namespace capfleet::test
