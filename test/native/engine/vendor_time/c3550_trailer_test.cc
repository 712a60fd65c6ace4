#include "vendor_time/c3550_trailer.h"

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

FrameBytes stamped(int64_t seconds, uint64_t fraction, uint8_t port = 3) {
  FrameBytes frame = FrameBytes::plain();
  frame.put(0x12345678, 4).put(9, 1).put(port, 1);
  frame.put(static_cast<uint64_t>(seconds), 4).put(fraction, 5).put(0, 1);
  return frame;
}

std::optional<C3550Trailer> read(const FrameBytes& frame, int64_t nicNs = kNowNs) {
  return readC3550Trailer(HeldPacket{.bytes = frame.bytes(), .nicNs = nicNs}.view());
}

TEST(C3550Trailer, IsReadWithAndWithoutCapturedFcs) {
  for (const bool hasFcs : {false, true}) {
    FrameBytes frame = stamped(kNowSeconds, 0x8000000000);
    if (hasFcs) frame.fcs();
    const auto trailer = read(frame);
    ASSERT_TRUE(trailer) << hasFcs;
    EXPECT_EQ(trailer->timeNs, kNowNs + 500'000'000);
    EXPECT_EQ(trailer->device, 9);
    EXPECT_EQ(trailer->port, 3);
  }
}

TEST(C3550Trailer, RoundsTheFractionDownToNanoseconds) {
  const std::vector<std::pair<uint64_t, int64_t>> cases = {
      {0, 0},
      {1, 0},
      {1099, 0},
      {1100, 1},  // 1100 * 10^9 / 2^40 = 1.0004
      {2199, 1},
      {2200, 2},
      {0xFFFFFFFFFF, 999'999'999},
      {0xFFFFFFFB4F, 999'999'998},
      // The upper 32 bits alone would give 1 ns less.
      {5498, 5},
      {135742175034, 123'456'789},
      {135742175033, 123'456'788},
  };
  for (const auto& [fraction, nanoseconds] : cases) {
    __extension__ typedef unsigned __int128 Wide;
    const auto exact = static_cast<int64_t>(Wide{fraction} * 1'000'000'000 >> 40);
    EXPECT_EQ(exact, nanoseconds) << fraction;
    const auto trailer = read(stamped(kNowSeconds, fraction));
    ASSERT_TRUE(trailer) << fraction;
    EXPECT_EQ(trailer->timeNs, kNowNs + exact) << fraction;
  }
}

TEST(C3550Trailer, MustBeWithin7DaysOfTheNicTime) {
  constexpr int64_t kLimitNs = int64_t{7} * 86400 * kSecondNs;
  for (const int64_t sign : {-1, 1}) {
    EXPECT_TRUE(read(stamped(kNowSeconds, 0), kNowNs + sign * kLimitNs));
    EXPECT_FALSE(read(stamped(kNowSeconds, 0), kNowNs + sign * (kLimitNs + 1)));
  }
}

/// A frame in which both layouts yield a valid time.
FrameBytes ambiguous() {
  FrameBytes frame = FrameBytes::plain();
  // Ends in: original FCS, device, port, seconds, fraction; the other layout has its seconds 4
  // bytes later.
  frame.put(0x12345678, 4).put(1, 1).put(2, 1);
  return frame.put(kNowSeconds, 4).put(kNowSeconds, 4).put(0x1234, 2);
}

TEST(C3550Trailer, IsToldFromAnAccidentByTheFcs) {
  const auto withFcs = read(ambiguous().fcs());
  ASSERT_TRUE(withFcs);
  EXPECT_EQ(withFcs->port, 2);
  FrameBytes frame = ambiguous();
  const auto withoutFcs = read(frame.put(0x00, 4));
  ASSERT_TRUE(withoutFcs);
  EXPECT_NE(withoutFcs->port, 2);
}

TEST(C3550Trailer, StandsWhereTheFileHeaderSays) {
  HeldPacket packet{.bytes = ambiguous().fcs().bytes(), .linkTypeWord = 0x24000001};
  EXPECT_EQ(readC3550Trailer(packet.view())->port, 2);
  packet.linkTypeWord = 0x04000001;
  EXPECT_NE(readC3550Trailer(packet.view())->port, 2);
  packet.linkTypeWord = 0xF4000001;
  EXPECT_FALSE(readC3550Trailer(packet.view()));
}

TEST(C3550Trailer, NeedsAWholeEthernetFrameWithRoomForIt) {
  HeldPacket packet{.bytes = stamped(kNowSeconds, 0).bytes()};
  EXPECT_TRUE(readC3550Trailer(packet.view()));
  packet.cutBytes = 1;
  EXPECT_FALSE(readC3550Trailer(packet.view()));
  packet.cutBytes = 0;
  packet.linkTypeWord = 0;
  EXPECT_FALSE(readC3550Trailer(packet.view()));
  packet.linkTypeWord = 0xF4000001;
  packet.bytes.resize(20);
  EXPECT_FALSE(readC3550Trailer(packet.view()));
  EXPECT_FALSE(readC3550Trailer(HeldPacket{}.view()));
}

}  // namespace
}  // namespace capfleet::test
