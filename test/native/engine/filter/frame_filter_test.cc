#include "filter/frame_filter.h"

#include <gtest/gtest.h>

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

HeldPacket plainPacket() { return {FrameBytes::plain().bytes()}; }

void addA7130Trailer(FrameBytes& frame, uint16_t device, uint8_t port) {
  frame.fcs().put(kNowSeconds, 4).put(5, 4).put(1, 1).put(device, 2).put(port, 1);
}

HeldPacket a7130Packet(uint16_t device, uint8_t port) {
  FrameBytes frame = FrameBytes::plain();
  addA7130Trailer(frame, device, port);
  return {frame.bytes()};
}

HeldPacket c3550Packet(uint8_t port) {
  FrameBytes frame = FrameBytes::plain();
  frame.fcs().put(7, 1).put(port, 1).put(kNowSeconds, 4).put(1000, 5).put(0, 1);
  return {frame.bytes()};
}

bool accepts(const HeldPacket& packet, std::vector<FrameCondition> conditions) {
  return FrameFilter(std::move(conditions)).accepts(packet.view());
}

constexpr bool kIs = false;
constexpr bool kIsNot = true;

TEST(FrameFilter, WithoutConditionsAcceptsEverything) {
  EXPECT_TRUE(FrameFilter().isEmpty());
  EXPECT_TRUE(FrameFilter().accepts(plainPacket().view()));
}

TEST(FrameFilter, SelectsByCapturePort) {
  const HeldPacket packet = plainPacket();
  PacketView view = packet.view();
  view.port = 3;
  const auto of = [&](bool excludes, std::vector<uint32_t> values) {
    return FrameFilter({{FrameField::kCapturePort, excludes, std::move(values)}}).accepts(view);
  };
  EXPECT_TRUE(of(kIs, {3}));
  EXPECT_TRUE(of(kIs, {1, 2, 3}));
  EXPECT_FALSE(of(kIs, {1, 2}));
  EXPECT_FALSE(of(kIsNot, {3, 4}));
  EXPECT_TRUE(of(kIsNot, {4}));
}

TEST(FrameFilter, SelectsByTheFieldsOfTheA7130Trailer) {
  const HeldPacket packet = a7130Packet(54931, 10);
  for (const FrameField field : {FrameField::kA7130Device, FrameField::kA7130SourceDevice}) {
    EXPECT_TRUE(accepts(packet, {{field, kIs, {54932, 54931}}}));
    EXPECT_FALSE(accepts(packet, {{field, kIs, {54932}}}));
    EXPECT_TRUE(accepts(packet, {{field, kIsNot, {0}}}));
  }
  EXPECT_TRUE(accepts(packet, {{FrameField::kA7130SourcePort, kIs, {10}}}));
  EXPECT_FALSE(accepts(packet, {{FrameField::kA7130SourcePort, kIsNot, {10}}}));
}

TEST(FrameFilter, TakesDeviceFromTheLastHopAndSourceFromTheFirst) {
  FrameBytes frame = FrameBytes::plain();
  addA7130Trailer(frame, 100, 1);
  addA7130Trailer(frame, 200, 2);
  const HeldPacket packet{frame.bytes()};
  EXPECT_TRUE(accepts(packet, {{FrameField::kA7130Device, kIs, {200}},
                               {FrameField::kA7130SourceDevice, kIs, {100}},
                               {FrameField::kA7130SourcePort, kIs, {1}}}));
}

TEST(FrameFilter, PacketsWithoutA7130TrailerHaveDeviceZero) {
  const HeldPacket packet = plainPacket();
  EXPECT_TRUE(accepts(packet, {{FrameField::kA7130SourceDevice, kIs, {0}}}));
  EXPECT_FALSE(accepts(packet, {{FrameField::kA7130SourceDevice, kIsNot, {0}}}));
  EXPECT_TRUE(accepts(packet, {{FrameField::kA7130SourcePort, kIs, {0}}}));
}

TEST(FrameFilter, PacketsWithoutC3550TrailerHaveNoPort) {
  const FrameCondition isZero{FrameField::kC3550SourcePort, kIs, {0}};
  const FrameCondition isNotZero{FrameField::kC3550SourcePort, kIsNot, {0}};
  EXPECT_FALSE(accepts(plainPacket(), {isZero}));
  EXPECT_TRUE(accepts(plainPacket(), {isNotZero}));
  EXPECT_TRUE(accepts(c3550Packet(0), {isZero})) << "0 is a port";
  EXPECT_FALSE(accepts(c3550Packet(0), {isNotZero}));
  EXPECT_TRUE(accepts(c3550Packet(48), {{FrameField::kC3550SourcePort, kIs, {48}}}));
}

TEST(FrameFilter, AllConditionsMustHold) {
  const FrameCondition oneOrTwo{FrameField::kA7130SourcePort, kIs, {1, 2}};
  const FrameCondition notTwo{FrameField::kA7130SourcePort, kIsNot, {2}};
  EXPECT_TRUE(accepts(a7130Packet(9, 1), {oneOrTwo, notTwo}));
  EXPECT_FALSE(accepts(a7130Packet(9, 2), {oneOrTwo, notTwo}));
  EXPECT_FALSE(accepts(a7130Packet(9, 3), {oneOrTwo, notTwo}));
}

TEST(FrameFilter, FindsNoTrailerInACutPacket) {
  HeldPacket packet = a7130Packet(54931, 10);
  packet.cutBytes = 1;
  EXPECT_TRUE(accepts(packet, {{FrameField::kA7130SourceDevice, kIs, {0}}}));
}

}  // namespace
}  // namespace capfleet::test
