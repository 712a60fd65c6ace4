#include "store/sieve_file.h"

#include <gtest/gtest.h>

#include "support/addressed_packets.h"

namespace capfleet::test {
namespace {

TEST(SieveFile, IsReadUpToTheFirstSieveThatIsDamaged) {
  auto random = seededRandom();
  const TempDirectory directory;
  std::vector<BlockEntry> entries(400);
  std::vector<size_t> begins;
  Bytes file;
  for (uint32_t number = 0; number < entries.size(); number++) {
    Bytes block;
    for (size_t i = randomBelow(random, 800); i > 0; i--) {
      appendRecord(block, ipv4Frame(static_cast<uint32_t>(random()), number));
    }
    entries[number].checksum = random() | 1;
    begins.push_back(file.size());
    appendSieve(file, number, block, entries[number]);
  }
  const auto count = [&](const Bytes& bytes) {
    directory.file("00000001.sieve", bytes);
    uint32_t next = 0;
    readSieves(directory.path() + "/00000001", entries,
               [&](const StoredSieve& stored) { EXPECT_EQ(stored.number, next++); });
    return next;
  };
  EXPECT_EQ(count(file), entries.size());
  for (int i = 0; i < 20; i++) {
    const auto cut = randomBelow(random, file.size());
    const auto whole = static_cast<uint32_t>(std::upper_bound(begins.begin(), begins.end(), cut) -
                                             begins.begin() - 1);
    EXPECT_EQ(count(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(cut))), whole);
    Bytes damaged = file;
    damaged[cut] ^= 1;
    EXPECT_EQ(count(damaged), whole);
  }
  EXPECT_EQ(sieveFileBytes(directory.path() + "/00000001"), file.size());
  EXPECT_EQ(sieveFileBytes(directory.path() + "/00000002"), 0u);
}

}  // namespace
}  // namespace capfleet::test
