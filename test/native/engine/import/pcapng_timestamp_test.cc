#include "import/pcapng_timestamp.h"

#include <gtest/gtest.h>

#include "packet/pcap_format.h"

namespace capfleet::test {
namespace {

constexpr uint64_t kSecond = 1'700'000'000;
constexpr auto kSecondNs = static_cast<int64_t>(kSecond) * kNanosPerSecond;

TEST(PcapngTimestamp, IsMicrosecondsByDefault) {
  EXPECT_EQ(PcapngTimestamp().toNanos(kSecond * 1'000'000 + 7), kSecondNs + 7000);
}

TEST(PcapngTimestamp, UnderstandsPowersOfTen) {
  EXPECT_EQ(PcapngTimestamp(0).toNanos(kSecond), kSecondNs);
  EXPECT_EQ(PcapngTimestamp(3).toNanos(kSecond * 1000 + 5), kSecondNs + 5'000'000);
  EXPECT_EQ(PcapngTimestamp(9).toNanos(kSecond * 1'000'000'000 + 123456789), kSecondNs + 123456789);
  EXPECT_EQ(PcapngTimestamp(10).toNanos(kSecond * 10'000'000'000 + 19), kSecondNs + 1);
  EXPECT_EQ(PcapngTimestamp(12).toNanos(12'345'678'999'999), 12'345'678'999);
  EXPECT_EQ(PcapngTimestamp(28).toNanos(UINT64_MAX), 1);
  EXPECT_EQ(PcapngTimestamp(29).toNanos(UINT64_MAX), 0);
  EXPECT_EQ(PcapngTimestamp(127).toNanos(UINT64_MAX), 0);
}

TEST(PcapngTimestamp, UnderstandsPowersOfTwo) {
  EXPECT_EQ(PcapngTimestamp(0x80).toNanos(kSecond), kSecondNs);
  EXPECT_EQ(PcapngTimestamp(0x81).toNanos(3), 1'500'000'000);
  EXPECT_EQ(PcapngTimestamp(0x80 | 20).toNanos((kSecond << 20) + (1 << 19)),
            kSecondNs + 500'000'000);
  EXPECT_EQ(PcapngTimestamp(0x80 | 32).toNanos((kSecond << 32) + 0xFFFFFFFF),
            kSecondNs + 999'999'999);
  EXPECT_EQ(PcapngTimestamp(0xFF).toNanos(UINT64_MAX), 0);
}

TEST(PcapngTimestamp, AddsTheOffset) {
  EXPECT_EQ(PcapngTimestamp(9, static_cast<int64_t>(kSecond)).toNanos(42), kSecondNs + 42);
  EXPECT_EQ(PcapngTimestamp(0, -10).toNanos(12), 2 * kNanosPerSecond);
}

TEST(PcapngTimestamp, IsRefusedWhenPcapCannotCarryIt) {
  EXPECT_EQ(PcapngTimestamp(9).toNanos(uint64_t{kTimestampEndNs} - 1), kTimestampEndNs - 1);
  EXPECT_EQ(PcapngTimestamp(9).toNanos(uint64_t{kTimestampEndNs}), std::nullopt);
  EXPECT_EQ(PcapngTimestamp(0).toNanos(UINT64_MAX), std::nullopt);
  EXPECT_EQ(PcapngTimestamp(0, -1).toNanos(0), std::nullopt);
  EXPECT_EQ(PcapngTimestamp(0, 0).toNanos(0), 0);
  EXPECT_EQ(PcapngTimestamp(0, INT64_MIN).toNanos(UINT64_MAX), std::nullopt);
  EXPECT_EQ(PcapngTimestamp(0, INT64_MIN).toNanos(uint64_t{1} << 63), 0);
  EXPECT_EQ(PcapngTimestamp(0, INT64_MAX).toNanos(0), std::nullopt);
}

}  // namespace
}  // namespace capfleet::test
