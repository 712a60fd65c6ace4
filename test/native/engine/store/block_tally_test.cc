#include "store/block_tally.h"

#include <gtest/gtest.h>

#include "os/byte_order.h"
#include "store/xxh3.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

/// An entry that the rows add up to.
BlockEntry entryOf(const std::vector<TallyRow>& rows, uint64_t checksum) {
  BlockEntry entry{.checksum = checksum};
  entry.minNs = rows.front().millisecond * kNanosPerMillisecond + 123;
  entry.maxNs = rows.back().millisecond * kNanosPerMillisecond + 456;
  for (const TallyRow& row : rows) {
    entry.packets += row.packets;
    entry.bytes += row.bytes;
  }
  return entry;
}

Bytes tallyOf(const std::vector<TallyRow>& rows, const BlockEntry& entry) {
  Bytes bytes;
  appendTally(bytes, rows, entry);
  return bytes;
}

const std::vector<TallyRow> kRows = {
    {1'700'000'000'123, 1, 30}, {1'700'000'001'000, 300, 200'000}, {1'700'000'001'001, 2, 32}};
const BlockEntry kEntry = entryOf(kRows, 0x0123456789ABCDEF);

/// A tally with these numbers whose checksum is right.
Bytes forgedTally(const Bytes& numbers) {
  Bytes bytes(8);
  append(bytes, numbers);
  storeLe64(bytes.data(), xxh3(numbers, kEntry.checksum));
  return bytes;
}

TEST(BlockTally, IsReadBackAsItWasWritten) {
  auto random = seededRandom();
  for (int round = 0; round < 500; round++) {
    std::vector<TallyRow> rows;
    auto millisecond = static_cast<int64_t>(randomBelow(random, 4'000'000'000'000));
    for (size_t i = 2 + randomBelow(random, 60); i > 0; i--) {
      const auto packets = static_cast<uint32_t>(1 + randomBelow(random, 200));
      rows.push_back(
          {millisecond, packets, packets * 16 + static_cast<uint32_t>(randomBelow(random, 1000))});
      millisecond += 1 + static_cast<int64_t>(random() % (uint64_t{1} << randomBelow(random, 33)));
    }
    const BlockEntry entry = entryOf(rows, random());
    const Bytes bytes = tallyOf(rows, entry);
    ASSERT_LE(bytes.size(), maxTallyBytes(entry));
    const auto read = parseTally(bytes, entry);
    ASSERT_TRUE(read);
    ASSERT_EQ(*read, rows);
  }
}

TEST(BlockTally, HasRoomForTheWholeTimeOfPcap) {
  const std::vector<TallyRow> rows = {{0, 1, 16}, {kTimestampEndNs / 1'000'000 - 1, 1, 262'160}};
  const BlockEntry entry = entryOf(rows, 1);
  EXPECT_EQ(parseTally(tallyOf(rows, entry), entry), rows);
}

TEST(BlockTally, ShowsEveryFlippedBitAndEveryCut) {
  Bytes bytes = tallyOf(kRows, kEntry);
  for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(parseTally(bytes, kEntry)) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
  for (size_t size = 0; size < bytes.size(); size++) {
    EXPECT_FALSE(parseTally(std::span(bytes).first(size), kEntry)) << size << " bytes";
  }
  ASSERT_TRUE(parseTally(bytes, kEntry));
}

TEST(BlockTally, OfAnotherBlockIsRefusedThoughItsSumsFit) {
  BlockEntry other = kEntry;
  other.checksum++;
  EXPECT_FALSE(parseTally(tallyOf(kRows, kEntry), other));
}

TEST(BlockTally, ThatBreaksARuleIsRefusedThoughItsChecksumFits) {
  const BlockEntry& good = kEntry;
  const Bytes row1 = {0, 1, 30}, row2 = {0xED, 6, 0xAC, 2, 0xC0, 0x9A, 0x0C}, row3 = {1, 2, 32};
  const auto joined = [](std::initializer_list<Bytes> parts) {
    Bytes bytes;
    for (const Bytes& part : parts) append(bytes, part);
    return bytes;
  };
  ASSERT_EQ(forgedTally(joined({row1, row2, row3})), tallyOf(kRows, good));
  const std::pair<const char*, Bytes> cases[] = {
      {"no rows", {}},
      {"a row is missing at the end", joined({row1, row2})},
      {"a row is missing at the front", joined({{0xED, 6, 0xAD, 2, 0xDE, 0x9A, 0x0C}, row3})},
      {"the first row is late", joined({{1, 1, 30}, {0xEC, 6, 0xAC, 2, 0xC0, 0x9A, 0x0C}, row3})},
      {"a millisecond comes twice", joined({row1, row2, {0, 1, 16}, {1, 1, 16}})},
      {"a row without packets",
       joined({row1, {5, 0, 0}, {0xE8, 6, 0xAC, 2, 0xC0, 0x9A, 12}, row3})},
      {"fewer bytes than record headers", joined({row1, row2, {1, 2, 31}})},
      {"a packet too many", joined({row1, {0xED, 6, 0xAD, 2, 0xC0, 0x9A, 0x0C}, row3})},
      {"a packet too few", joined({row1, {0xED, 6, 0xAB, 2, 0xC0, 0x9A, 0x0C}, row3})},
      {"a byte too many", joined({row1, row2, {1, 2, 33}})},
      {"a byte too few", joined({{0, 1, 29}, row2, row3})},
      {"the last row is late", joined({row1, row2, {2, 2, 32}})},
      {"the last row is early", joined({row1, {0xEC, 6, 0xAC, 2, 0xC0, 0x9A, 0x0C}, row3})},
      {"a varint that is longer than need be", joined({{0x80, 0, 1, 30}, row2, row3})},
      {"a varint of more than 6 bytes",
       joined({{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 1, 30}, row2, row3})},
      {"a varint without an end", joined({row1, row2, {1, 2, 0xA0}})},
      {"a row that ends early", joined({row1, row2, {1, 2}})},
      {"a byte behind the last row", joined({row1, row2, row3, {0}})},
  };
  for (const auto& [what, numbers] : cases) {
    EXPECT_FALSE(parseTally(forgedTally(numbers), good)) << what;
  }
}

}  // namespace
}  // namespace capfleet::test
