#include "vendor_time/a7130_trailer.h"

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

constexpr uint32_t kOriginalFcs = 0xDEADBEEF;

struct Hop {
  int64_t timeNs = kNowNs + 123'456'789;
  uint16_t device = 54931;
  uint8_t port = 10;
  uint8_t flags = 1;
  Bytes extensions = {};
};

/// Appends a trailer after an original FCS, which is already the last 4 bytes of `frame`.
void addBehindFcs(FrameBytes& frame, const Hop& hop) {
  const auto flags = static_cast<uint8_t>(hop.flags | (hop.extensions.empty() ? 0 : 2));
  frame.add(hop.extensions)
      .put(static_cast<uint64_t>(hop.timeNs / kSecondNs), 4)
      .put(static_cast<uint64_t>(hop.timeNs % kSecondNs), 4)
      .put(flags, 1)
      .put(hop.device, 2)
      .put(hop.port, 1);
}

FrameBytes stamped(const Hop& hop, size_t payloadBytes = 50) {
  FrameBytes frame = FrameBytes::plain(payloadBytes);
  frame.put(kOriginalFcs, 4);
  addBehindFcs(frame, hop);
  return frame;
}

HeldPacket packetOf(const FrameBytes& frame) { return {.bytes = frame.bytes()}; }

TEST(A7130Trailer, IsReadWithAndWithoutCapturedFcs) {
  for (const bool hasFcs : {false, true}) {
    FrameBytes frame = stamped({});
    if (hasFcs) frame.fcs();
    const auto trailer = readA7130Trailer(packetOf(frame).view());
    ASSERT_TRUE(trailer) << hasFcs;
    EXPECT_EQ(trailer->timeNs, kNowNs + 123'456'789);
    EXPECT_EQ(trailer->firstHopDevice, 54931);
    EXPECT_EQ(trailer->lastHopDevice, 54931);
    EXPECT_EQ(trailer->firstHopPort, 10);
  }
}

TEST(A7130Trailer, StandsWhereTheFileHeaderSays) {
  HeldPacket packet = packetOf(stamped({}));
  packet.linkTypeWord = 0x24000001;
  EXPECT_FALSE(readA7130Trailer(packet.view()));
  packet.linkTypeWord = 0x04000001;
  EXPECT_TRUE(readA7130Trailer(packet.view()));
  packet.bytes = stamped({}).fcs().bytes();
  EXPECT_FALSE(readA7130Trailer(packet.view()));
  packet.linkTypeWord = 0x24000001;
  EXPECT_TRUE(readA7130Trailer(packet.view()));
}

TEST(A7130Trailer, IsFoundAlthoughTheCapturedFcsIsWrong) {
  EXPECT_TRUE(readA7130Trailer(packetOf(stamped({}).put(0x12345678, 4)).view()));
}

/// Sequence number, sub-nanoseconds and egress sequence number, then a string in the long form.
Bytes severalExtensions() {
  FrameBytes bytes;
  bytes.put(0x12ABCD00 | 0x20 | 3, 4);          // first in the frame, so read last
  bytes.put(0x54455354, 4).put(0x54455354, 4);  // "TESTTEST"
  bytes.put(0x00000000 | (1 << 6) | 0x1F, 4);   // two words before it
  bytes.put(0x11223344, 4).put(0x55667700 | (1 << 6) | 2, 4);
  bytes.put(0x80000000 | 1, 4);
  bytes.put(0x00123400 | 0, 4);
  return bytes.bytes();
}

TEST(A7130Trailer, HasTheSameFieldsBehindExtensions) {
  for (const bool hasFcs : {false, true}) {
    FrameBytes frame = stamped({.extensions = severalExtensions()});
    if (hasFcs) frame.fcs();
    const auto trailer = readA7130Trailer(packetOf(frame).view());
    ASSERT_TRUE(trailer);
    EXPECT_EQ(trailer->timeNs, kNowNs + 123'456'789);
    EXPECT_EQ(trailer->firstHopPort, 10);
  }
}

TEST(A7130Trailer, GivesTheFirstHopsTimeAndPortAndBothDevices) {
  for (const Bytes& extensions : {Bytes{}, severalExtensions()}) {
    for (const bool hasFcs : {false, true}) {
      FrameBytes frame = stamped({.timeNs = kNowNs + 5, .device = 1, .port = 2});
      // Each further device treats the previous FCS as the original one.
      frame.fcs();
      addBehindFcs(frame,
                   {.timeNs = kNowNs + 7000, .device = 3, .port = 4, .extensions = extensions});
      frame.fcs();
      addBehindFcs(frame,
                   {.timeNs = kNowNs + 9000, .device = 5, .port = 6, .extensions = extensions});
      if (hasFcs) frame.fcs();
      const auto trailer = readA7130Trailer(packetOf(frame).view());
      ASSERT_TRUE(trailer);
      EXPECT_EQ(trailer->timeNs, kNowNs + 5);
      EXPECT_EQ(trailer->firstHopDevice, 1);
      EXPECT_EQ(trailer->firstHopPort, 2);
      EXPECT_EQ(trailer->lastHopDevice, 5);
    }
  }
}

TEST(A7130Trailer, IsStillReadWhenItsExtensionsMakeNoSense) {
  // No word is marked as the last one, or the length exceeds the frame.
  for (const uint32_t word : {0x00000001U, 0x0000FFDFU, 0x000000E1U}) {
    FrameBytes extensions;
    for (int i = 0; i < 20; i++) extensions.put(word, 4);
    FrameBytes frame = FrameBytes().ethernet(0x1234);
    addBehindFcs(frame, {.extensions = extensions.bytes()});
    const auto trailer = readA7130Trailer(packetOf(frame).view());
    ASSERT_TRUE(trailer) << word;
    EXPECT_EQ(trailer->firstHopDevice, 54931);
  }
}

TEST(A7130Trailer, MustBeWithin30DaysOfTheNicTime) {
  constexpr int64_t kLimitNs = int64_t{30} * 86400 * kSecondNs;
  HeldPacket packet = packetOf(stamped({.timeNs = kNowNs}));
  for (const int64_t sign : {-1, 1}) {
    packet.nicNs = kNowNs + sign * kLimitNs;
    EXPECT_TRUE(readA7130Trailer(packet.view()));
    packet.nicNs += sign;
    EXPECT_FALSE(readA7130Trailer(packet.view()));
  }
}

TEST(A7130Trailer, MustHaveAPossibleTime) {
  FrameBytes frame = FrameBytes::plain();
  frame.put(kOriginalFcs, 4).put(kNowSeconds, 4).put(999'999'999, 4).put(1, 1).put(1, 2).put(1, 1);
  EXPECT_TRUE(readA7130Trailer(packetOf(frame).view()));
  FrameBytes tooMany = FrameBytes::plain();
  tooMany.put(kOriginalFcs, 4).put(kNowSeconds, 4).put(1'000'000'000, 4).put(1, 1).put(1, 3);
  EXPECT_FALSE(readA7130Trailer(packetOf(tooMany).view()));
  HeldPacket early = packetOf(stamped({.timeNs = 3601 * kSecondNs}));
  early.nicNs = 3601 * kSecondNs;
  EXPECT_TRUE(readA7130Trailer(early.view()));
  early.bytes = stamped({.timeNs = 3600 * kSecondNs}).bytes();
  EXPECT_FALSE(readA7130Trailer(early.view()));
}

TEST(A7130Trailer, CountsWithADegradedTime) {
  EXPECT_TRUE(readA7130Trailer(packetOf(stamped({.flags = 0x11})).view()));
}

TEST(A7130Trailer, NeedsAWholeEthernetFrameWithRoomForIt) {
  HeldPacket packet = packetOf(stamped({}));
  packet.cutBytes = 1;
  EXPECT_FALSE(readA7130Trailer(packet.view()));
  packet.cutBytes = 0;
  packet.linkTypeWord = 101;
  EXPECT_FALSE(readA7130Trailer(packet.view()));
  EXPECT_TRUE(readA7130Trailer(packetOf(stamped({}, 0)).view()));
  FrameBytes overlapping = FrameBytes().put(0, 17);
  addBehindFcs(overlapping, {});
  EXPECT_FALSE(readA7130Trailer(packetOf(overlapping).view()));
  EXPECT_FALSE(readA7130Trailer(packetOf(FrameBytes::plain()).view()));
  EXPECT_FALSE(readA7130Trailer(HeldPacket{}.view()));
}

}  // namespace
}  // namespace capfleet::test
