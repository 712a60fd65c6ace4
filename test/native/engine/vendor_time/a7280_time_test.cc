#include "vendor_time/a7280_time.h"

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

Bytes eth64(int version, uint64_t seconds, uint64_t nanoseconds, uint32_t typeAndSubtype) {
  FrameBytes frame = FrameBytes().put(0x02AABBCCDDEE, 6).put(0x00F211223344, 6);
  frame.put(typeAndSubtype, 4).put(static_cast<uint64_t>(version), 2);
  const bool isShort = (version & 0xF0) == 0x20;
  frame.put(seconds, isShort ? 2 : 4).put(nanoseconds, 4);
  return frame.put(0x0800, 2).put(0x45, 1).bytes();
}

std::optional<int64_t> headerTime(int version, uint64_t seconds, uint64_t nanoseconds,
                                  uint32_t typeAndSubtype = 0xD28B0001) {
  const HeldPacket packet{.bytes = eth64(version, seconds, nanoseconds, typeAndSubtype)};
  return readA7280HeaderTime(packet.view());
}

TEST(A7280HeaderTime, IsReadFromEveryKnownVersionAndEmittedAsItIs) {
  for (const int version : {0x0010, 0x0110, 0x0011, 0x0111}) {
    EXPECT_EQ(headerTime(version, kNowSeconds - 100'000, 999'999'999),
              kNowNs - 100'000 * kSecondNs + 999'999'999);
  }
}

TEST(A7280HeaderTime, OfTheShortFormIsTheNearestToTheNicTime) {
  for (const int version : {0x0020, 0x0120, 0x0021, 0x0121}) {
    for (const int64_t distance : {-32768, -30000, -1, 0, 1, 32767}) {
      const int64_t seconds = kNowSeconds + distance;
      EXPECT_EQ(headerTime(version, static_cast<uint16_t>(seconds), 77), seconds * kSecondNs + 77)
          << distance;
    }
  }
}

TEST(A7280HeaderTime, IsAbsentInOtherHeadersAndImpossibleTimes) {
  EXPECT_FALSE(headerTime(0x0010, 0, 5));
  EXPECT_FALSE(headerTime(0x0010, kNowSeconds, 1'000'000'000));
  EXPECT_FALSE(headerTime(0x0020, 5, 1'000'000'000));
  EXPECT_TRUE(headerTime(0x0020, 0, 5));
  for (const int version : {0x0000, 0x0012, 0x0210, 0x0030, 0x0001, 0x1010}) {
    EXPECT_FALSE(headerTime(version, kNowSeconds, 5)) << version;
  }
  EXPECT_FALSE(headerTime(0x0010, kNowSeconds, 5, 0xD28B0003));
  EXPECT_FALSE(headerTime(0x0010, kNowSeconds, 5, 0x08000001));
}

TEST(A7280HeaderTime, NeedsOnlyItsOwnBytes) {
  for (const int version : {0x0010, 0x0020}) {
    HeldPacket packet{.bytes = eth64(version, kNowSeconds & 0xFFFF, 5, 0xD28B0001)};
    const size_t needed = version == 0x0010 ? 26 : 24;
    packet.bytes.resize(needed);
    packet.cutBytes = 100;
    EXPECT_TRUE(readA7280HeaderTime(packet.view()));
    packet.bytes.resize(needed - 1);
    EXPECT_FALSE(readA7280HeaderTime(packet.view()));
  }
  HeldPacket other{.bytes = eth64(0x0010, kNowSeconds, 5, 0xD28B0001), .linkTypeWord = 113};
  EXPECT_FALSE(readA7280HeaderTime(other.view()));
}

constexpr int64_t kMinuteNs = 60 * kSecondNs;

HeldPacket macPacket(int64_t timeNs, int64_t nicNs, uint16_t etherType = 0x0800) {
  FrameBytes frame;
  frame.put(0x02AABBCCDDEE, 6).put(static_cast<uint16_t>(timeNs / kSecondNs), 2);
  frame.put(static_cast<uint64_t>(timeNs % kSecondNs), 4).put(etherType, 2);
  return {.bytes = frame.bytes(), .nicNs = nicNs};
}

TEST(A7280MacTime, IsTheNearestToTheNicTime) {
  // The low 16 bits of the seconds wrap at 25940 * 65536, between the two clocks.
  constexpr int64_t kWrapNs = int64_t{25940} * 65536 * kSecondNs;
  for (const int64_t timeNs :
       {kWrapNs - kSecondNs, kWrapNs - 1, kWrapNs, kWrapNs + 5 * kSecondNs}) {
    for (const int64_t nicNs :
         {kWrapNs - 2 * kSecondNs, kWrapNs - 1, kWrapNs, kWrapNs + kSecondNs}) {
      EXPECT_EQ(readA7280MacTime(macPacket(timeNs, nicNs).view(), kMinuteNs), timeNs);
    }
  }
}

TEST(A7280MacTime, MustBeWithinTheLimitOfTheNicTime) {
  for (const int64_t limitNs : {kSecondNs, kMinuteNs, 3600 * kSecondNs}) {
    for (const int64_t sign : {-1, 1}) {
      EXPECT_TRUE(readA7280MacTime(macPacket(kNowNs + sign * limitNs, kNowNs).view(), limitNs));
      EXPECT_FALSE(
          readA7280MacTime(macPacket(kNowNs + sign * (limitNs + 1), kNowNs).view(), limitNs));
    }
  }
}

TEST(A7280MacTime, IsAbsentInRealAddressesAndLldp) {
  EXPECT_FALSE(readA7280MacTime(macPacket(kNowNs, kNowNs, 0x88CC).view(), kMinuteNs));
  HeldPacket packet = macPacket(kNowNs, kNowNs);
  storeLe32(&packet.bytes[8], __builtin_bswap32(999'999'999));
  EXPECT_EQ(readA7280MacTime(packet.view(), kMinuteNs), kNowNs + 999'999'999);
  storeLe32(&packet.bytes[8], __builtin_bswap32(1'000'000'000));
  EXPECT_FALSE(readA7280MacTime(packet.view(), kMinuteNs));
}

TEST(A7280MacTime, NeedsOnlyTheAddresses) {
  HeldPacket packet = macPacket(kNowNs, kNowNs);
  packet.bytes.resize(12);
  packet.cutBytes = 48;
  EXPECT_EQ(readA7280MacTime(packet.view(), kMinuteNs), kNowNs);
  packet.linkTypeWord = 9;
  EXPECT_FALSE(readA7280MacTime(packet.view(), kMinuteNs));
  packet.linkTypeWord = 1;
  packet.bytes.resize(11);
  EXPECT_FALSE(readA7280MacTime(packet.view(), kMinuteNs));
}

}  // namespace
}  // namespace capfleet::test
