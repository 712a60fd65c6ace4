#include "store/tally_builder.h"

#include <gtest/gtest.h>

#include <map>

#include "support/seed.h"

namespace capfleet::test {
namespace {

std::vector<TallyRow> rowsOf(TallyBuilder& builder) {
  const auto rows = builder.rows();
  return {rows.begin(), rows.end()};
}

TEST(TallyBuilder, CountsEachMillisecondWhateverTheOrder) {
  auto random = seededRandom();
  TallyBuilder builder;
  for (int round = 0; round < 300; round++) {
    std::map<int64_t, TallyRow> expected;
    int64_t nowNs = static_cast<int64_t>(randomBelow(random, uint64_t{kTimestampEndNs} / 2));
    for (size_t i = 1 + randomBelow(random, 200); i > 0; i--) {
      const auto bytes = static_cast<uint32_t>(16 + randomBelow(random, 100));
      builder.add(nowNs, bytes);
      TallyRow& row = expected[nowNs / 1'000'000];
      row = {nowNs / 1'000'000, row.packets + 1, row.bytes + bytes};
      // In order, or back and forth over a few milliseconds.
      nowNs += static_cast<int64_t>(randomBelow(random, 2'000'000));
      if (round % 2 == 1) nowNs = std::max<int64_t>(0, nowNs - 1'000'000);
    }
    std::vector<TallyRow> rows;
    for (const auto& [millisecond, row] : expected) rows.push_back(row);
    ASSERT_EQ(rowsOf(builder), rows);
    builder.reset();
  }
}

TEST(TallyBuilder, BeginsAMillisecondAtItsFirstNanosecond) {
  TallyBuilder builder;
  for (const int64_t timestampNs : {0, 999'999, 1'000'000, 1'999'999, 999'999}) {
    builder.add(timestampNs, 20);
  }
  EXPECT_EQ(rowsOf(builder), (std::vector<TallyRow>{{0, 3, 60}, {1, 2, 40}}));
  builder.reset();
  EXPECT_TRUE(rowsOf(builder).empty());
  builder.add(kTimestampEndNs - 1, 16);
  EXPECT_EQ(rowsOf(builder), (std::vector<TallyRow>{{4'294'967'295'999, 1, 16}}));
}

}  // namespace
}  // namespace capfleet::test
