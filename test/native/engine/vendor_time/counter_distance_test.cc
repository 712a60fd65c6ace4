#include "vendor_time/counter_distance.h"

#include <gtest/gtest.h>

#include "support/seed.h"

namespace capfleet::test {
namespace {

constexpr TickLength k350MHz{20, 7};
constexpr uint32_t kWrap31 = uint32_t{1} << 31;

TEST(CounterDistance, IsTheTicksWhenTheCounterHasNotWrapped) {
  EXPECT_EQ(counterDistanceNs(0, 31, k350MHz, 0), 0);
  EXPECT_EQ(counterDistanceNs(350'000'000, 31, k350MHz, 1'000'000'000), 1'000'000'000);
  EXPECT_EQ(counterDistanceNs(1, 31, k350MHz, 0), 2);  // 2.857, rounded down
}

TEST(CounterDistance, GoesBackWhenThatIsNearer) {
  // One tick before: -2.857, rounded down.
  EXPECT_EQ(counterDistanceNs(kWrap31 - 1, 31, k350MHz, 0), -3);
  EXPECT_EQ(counterDistanceNs(kWrap31 - 7, 31, k350MHz, 1'000'000), -20);
}

TEST(CounterDistance, CountsTheWrapsInBetween) {
  // 2^31 * 20 / 7 = 6135667565.7 ns
  EXPECT_EQ(counterDistanceNs(0, 31, k350MHz, 6'000'000'000), 6'135'667'565);
  EXPECT_EQ(counterDistanceNs(0, 31, k350MHz, 3'067'833'782), 0);
  EXPECT_EQ(counterDistanceNs(0, 31, k350MHz, 3'067'833'783), 6'135'667'565);
  EXPECT_EQ(counterDistanceNs(7, 31, k350MHz, 30'678'337'848), 30'678'337'828 + 20);
}

TEST(CounterDistance, IsExactOverYears) {
  constexpr int64_t kYearsNs = 4'000'000'000'000'000'000;
  // 2.4 ns per tick: a wrap takes 10.3 s.
  __extension__ typedef unsigned __int128 Wide;
  const Wide ticks = Wide{kYearsNs} * 5 / 12;
  EXPECT_EQ(counterDistanceNs(static_cast<uint32_t>(ticks), 32, {12, 5}, kYearsNs + 5'000'000'000),
            static_cast<int64_t>(ticks * 12 / 5));
}

TEST(CounterDistance, FindsAnyDistanceAgainWhenTheExpectationIsHalfAWrapOff) {
  auto random = seededRandom();
  for (int i = 0; i < 20'000; i++) {
    // In sevenths of 20 ns, so that nothing is rounded.
    const int64_t sevens = static_cast<int64_t>(randomBelow(random, 2'000'000'000)) - 1'000'000'000;
    const auto ticks = static_cast<uint32_t>(sevens * 7) & (kWrap31 - 1);
    const int64_t offNs = static_cast<int64_t>(randomBelow(random, 6'000'000'000)) - 3'000'000'000;
    ASSERT_EQ(counterDistanceNs(ticks, 31, k350MHz, sevens * 20 + offNs), sevens * 20);
  }
}

}  // namespace
}  // namespace capfleet::test
