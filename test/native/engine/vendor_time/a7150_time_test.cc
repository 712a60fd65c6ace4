#include "vendor_time/a7150_time.h"

#include "support/seed.h"
#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

using Mode = A7150Clock::Mode;
constexpr int64_t kMillisecondNs = 1'000'000;

HeldPacket stamped(Mode mode, uint32_t word, int64_t nicNs, bool hasFcs = true) {
  FrameBytes frame = FrameBytes::plain();
  frame.put(word, 4);
  if (mode == Mode::kInsert && hasFcs) frame.fcs();
  return {.bytes = frame.bytes(), .nicNs = nicNs};
}

std::optional<int64_t> feed(A7150Clock& clock, const HeldPacket& packet,
                            Mode mode = Mode::kOverwrite) {
  return clock.timeOf(packet.view(), mode);
}

/// Time of a packet `distanceNs` after a key frame whose counter is at `keyTick`.
std::optional<int64_t> timeAfter(uint64_t keyTick, uint64_t tick, int64_t distanceNs) {
  A7150Clock clock;
  feed(clock, keyFrame({.tick = keyTick}));
  return feed(clock, stamped(Mode::kOverwrite, wordOf(tick), kNowNs + distanceNs));
}

TEST(A7150Time, AgreesWithThePublishedExample) {
  A7150Clock clock;
  feed(clock, keyFrame({.tick = 2136278506, .utcNs = 1387240828522243471, .isV2 = false}));
  const auto packet = stamped(Mode::kOverwrite, 0xFF10AB76, kNowNs + 9'700'000);
  EXPECT_EQ(feed(clock, packet), 1387240828531851551);
}

TEST(A7150Time, IsReadBehindEveryKindOfKeyFrame) {
  for (const bool isV2 : {false, true}) {
    for (const std::vector<uint16_t>& vlans : {std::vector<uint16_t>{}, {9}, {9, 10}}) {
      A7150Clock clock;
      feed(clock, keyFrame({.tick = 700, .isV2 = isV2, .vlans = vlans}));
      EXPECT_EQ(feed(clock, stamped(Mode::kOverwrite, wordOf(1400), kNowNs)), kNowNs + 2000);
    }
  }
}

TEST(A7150Time, StandsInFrontOfTheFcsOrAtTheEndWhenInserted) {
  for (const bool hasFcs : {false, true}) {
    A7150Clock clock;
    feed(clock, keyFrame({.tick = 700}), Mode::kInsert);
    const auto packet = stamped(Mode::kInsert, wordOf(1400), kNowNs, hasFcs);
    EXPECT_EQ(feed(clock, packet, Mode::kInsert), kNowNs + 2000) << hasFcs;
  }
}

TEST(A7150Time, StandsWhereTheFileHeaderSays) {
  A7150Clock clock;
  feed(clock, keyFrame({.tick = 700}));
  HeldPacket inserted = stamped(Mode::kInsert, wordOf(1400), kNowNs, false);
  inserted.bytes.insert(inserted.bytes.end(), {1, 2, 3, 4});  // a wrong FCS
  EXPECT_NE(feed(clock, inserted, Mode::kInsert), kNowNs + 2000);
  inserted.linkTypeWord = 0x24000001;
  EXPECT_EQ(feed(clock, inserted, Mode::kInsert), kNowNs + 2000);
  HeldPacket overwritten = stamped(Mode::kOverwrite, wordOf(1400), kNowNs);
  overwritten.linkTypeWord = 0x24000001;
  EXPECT_EQ(feed(clock, overwritten), kNowNs + 2000);
  overwritten.linkTypeWord = 0x04000001;  // no FCS was captured, so there is no tick in its place
  EXPECT_FALSE(feed(clock, overwritten));
}

TEST(A7150Time, RoundsTicksDownToNanoseconds) {
  EXPECT_EQ(timeAfter(1000, 1001, 0), kNowNs + 2);
  EXPECT_EQ(timeAfter(1000, 1006, 0), kNowNs + 17);
  EXPECT_EQ(timeAfter(1000, 1007, 0), kNowNs + 20);
  EXPECT_EQ(timeAfter(1000, 1000 + 349'999'999, kSecondNs), kNowNs + 999'999'997);
}

TEST(A7150Time, MayBeBeforeTheKeyFrame) {
  EXPECT_EQ(timeAfter(1000, 993, 0), kNowNs - 20);
  EXPECT_EQ(timeAfter(1000, 999, 0), kNowNs - 3);
  EXPECT_EQ(timeAfter(0, 0x7FFFFFFF, 0), kNowNs - 3);
}

TEST(A7150Time, FollowsTheCounterOverItsWraps) {
  constexpr uint64_t kStart = 0x7FFFFF00;
  for (const int64_t seconds : {0, 1, 3, 6, 7, 12, 13, 29}) {
    const uint64_t tick = kStart + static_cast<uint64_t>(seconds) * 350'000'000 + 350;
    EXPECT_EQ(timeAfter(kStart, tick, seconds * kSecondNs + 90 * kMillisecondNs),
              kNowNs + seconds * kSecondNs + 1000)
        << seconds;
  }
}

TEST(A7150Time, UsesTheLow31BitsOfTheKeyFramesCounter) {
  EXPECT_EQ(timeAfter((uint64_t{1} << 40) + 700, 1400, 0), kNowNs + 2000);
  EXPECT_EQ(timeAfter((uint64_t{3} << 31) + 0x7FFFFFF9, 7, 0), kNowNs + 40);
}

TEST(A7150Time, IsInTheSwitchsTimeHoweverFarThatIsFromTheNics) {
  for (const int64_t offsetNs : {558'600 * kMillisecondNs, -86'400 * kSecondNs}) {
    A7150Clock clock;
    feed(clock, keyFrame({.tick = 700, .utcNs = kNowNs + offsetNs}));
    EXPECT_EQ(feed(clock, stamped(Mode::kOverwrite, wordOf(1400), kNowNs)),
              kNowNs + offsetNs + 2000);
  }
}

TEST(A7150Time, IsAbsentWithoutATick) {
  A7150Clock clock;
  EXPECT_FALSE(feed(clock, stamped(Mode::kOverwrite, wordOf(1400), kNowNs)));  // no key frame yet
  EXPECT_FALSE(feed(clock, keyFrame({.tick = 700})));
  EXPECT_TRUE(feed(clock, stamped(Mode::kOverwrite, wordOf(1400), kNowNs)));
  EXPECT_FALSE(feed(clock, stamped(Mode::kOverwrite, 0, kNowNs)));
  EXPECT_FALSE(feed(clock, stamped(Mode::kOverwrite, wordOf(1400) | 0x80, kNowNs)));
}

TEST(A7150Time, IsAbsentWhereTheFcsIsStillInPlace) {
  // The FCS of this frame looks like a tick that fits exactly.
  for (uint64_t number = 0;; number++) {
    FrameBytes frame = FrameBytes::plain();
    frame.put(number, 8);
    const Bytes sent = FrameBytes(frame).fcs().bytes();
    const uint32_t word = loadBe32(&sent[sent.size() - 4]);
    if ((word & 0x80) != 0) continue;
    const uint64_t tick = ((word & 0xFFFFFF00) >> 1) | (word & 0x7F);
    A7150Clock clock;
    feed(clock, keyFrame({.tick = tick - 700}));
    EXPECT_FALSE(feed(clock, HeldPacket{.bytes = sent}));
    EXPECT_TRUE(feed(clock, HeldPacket{.bytes = FrameBytes::plain(40).put(word, 4).bytes()}));
    return;
  }
}

TEST(A7150Time, MustBeWithin100MillisecondsOfTheNicsDistance) {
  for (const int64_t sign : {-1, 1}) {
    EXPECT_TRUE(timeAfter(0, 350'000'000, kSecondNs + sign * 100 * kMillisecondNs));
    EXPECT_FALSE(timeAfter(0, 350'000'000, kSecondNs + sign * (100 * kMillisecondNs + 1)));
  }
}

TEST(A7150Time, NeedsAKeyFrameOfTheLast30Seconds) {
  constexpr uint64_t kTick30 = 30ULL * 350'000'000;
  EXPECT_EQ(timeAfter(0, kTick30, 30 * kSecondNs), kNowNs + 30 * kSecondNs);
  EXPECT_FALSE(timeAfter(0, kTick30, 30 * kSecondNs + 1));
}

TEST(A7150Time, TakesTheNewestKeyFrame) {
  A7150Clock clock;
  for (int64_t second = 0; second < 200; second++) {
    const int64_t nicNs = kNowNs + second * kSecondNs;
    // The actual frequency differs a little, and so does the UTC of each key frame.
    feed(clock, keyFrame({.tick = static_cast<uint64_t>(second) * 350'001'000,
                          .utcNs = nicNs + second,
                          .nicNs = nicNs}));
    const auto tick = static_cast<uint64_t>(second) * 350'001'000 + 7;
    ASSERT_EQ(feed(clock, stamped(Mode::kOverwrite, wordOf(tick), nicNs)), nicNs + second + 20);
  }
}

TEST(A7150Time, LeavesOutKeyFramesLaterThanThePacket) {
  // So that the packet's time is the same if they are outside the range.
  A7150Clock clock;
  feed(clock, keyFrame({.tick = 700, .utcNs = kNowNs}));
  for (int64_t i = 1; i <= 63; i++) {
    feed(clock, keyFrame({.tick = 700, .utcNs = kNowNs + 9, .nicNs = kNowNs + i * kMillisecondNs}));
  }
  EXPECT_EQ(feed(clock, stamped(Mode::kOverwrite, wordOf(1400), kNowNs)), kNowNs + 2000);
}

TEST(A7150Time, TakesOnlyKeyFramesThatAreWhole) {
  const std::vector<HeldPacket> others = {
      keyFrame({.tick = 700, .protocol = 17}),
      keyFrame({.tick = 700, .utcNs = 0}),
      keyFrame({.tick = 700, .utcNs = -1}),
  };
  std::vector<HeldPacket> all = others;
  for (const size_t offset : {size_t{12}, size_t{14}, size_t{17}}) {  // EtherType, version, length
    all.push_back(keyFrame({.tick = 700}));
    all.back().bytes[offset] ^= 1;
  }
  all.push_back(keyFrame({.tick = 700}));
  all.back().bytes.resize(14 + 81);
  all.push_back(keyFrame({.tick = 700, .isV2 = false}));
  all.back().bytes.resize(14 + 65);
  all.push_back(keyFrame({.tick = 700}));
  all.back().linkTypeWord = 113;
  all.push_back({});
  for (const HeldPacket& packet : all) {
    A7150Clock clock;
    feed(clock, packet);
    EXPECT_FALSE(feed(clock, stamped(Mode::kOverwrite, wordOf(1400), kNowNs)));
  }
}

TEST(A7150Time, NeedsAWholeFrameWithRoomForTheTick) {
  A7150Clock clock;
  feed(clock, keyFrame({.tick = 700}));
  HeldPacket packet = stamped(Mode::kOverwrite, wordOf(1400), kNowNs);
  packet.cutBytes = 1;
  EXPECT_FALSE(feed(clock, packet));
  packet.cutBytes = 0;
  packet.linkTypeWord = 113;
  EXPECT_FALSE(feed(clock, packet));
  for (const Mode mode : {Mode::kOverwrite, Mode::kInsert}) {
    for (size_t size = 0; size < 18; size++) {
      EXPECT_FALSE(feed(clock, HeldPacket{.bytes = Bytes(size, 0x01)}, mode));
    }
  }
}

TEST(A7150Time, IsTheSameFromAnyBeginThatLooksBack30Seconds) {
  auto random = seededRandom();
  std::vector<HeldPacket> packets;
  int64_t nicNs = kNowNs;
  for (int i = 0; i < 3000; i++) {
    // Now and then a long gap, or a small step back of the NIC's clock.
    nicNs += static_cast<int64_t>(randomBelow(random, 100)) * kMillisecondNs;
    if (randomBelow(random, 100) == 0) nicNs += 20 * kSecondNs;
    if (randomBelow(random, 50) == 0) nicNs -= 2 * kMillisecondNs;
    const auto tick = static_cast<uint64_t>((nicNs - kNowNs) / 20 * 7);
    if (randomBelow(random, 10) == 0) {
      packets.push_back(keyFrame({.tick = tick, .utcNs = nicNs + i, .nicNs = nicNs}));
    } else {
      packets.push_back(stamped(Mode::kOverwrite, wordOf(tick), nicNs));
    }
  }
  std::vector<std::optional<int64_t>> times;
  A7150Clock whole;
  for (const HeldPacket& packet : packets) times.push_back(feed(whole, packet));
  for (int round = 0; round < 50; round++) {
    const size_t chosen = randomBelow(random, packets.size());
    const int64_t beginNs = packets[chosen].nicNs;
    const int64_t endNs = beginNs + 10 * kSecondNs;
    A7150Clock clock;
    for (size_t i = 0; i < packets.size(); i++) {
      const int64_t atNs = packets[i].nicNs;
      if (atNs < beginNs - A7150Clock::kMaxKeyFrameAgeNs || atNs >= endNs) continue;
      const auto timeNs = feed(clock, packets[i]);
      if (atNs >= beginNs) {
        ASSERT_EQ(timeNs, times[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace capfleet::test
