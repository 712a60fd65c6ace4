#include "filter/capwap.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

Bytes packetOf(Bytes start, size_t length = 100) {
  start.resize(length);
  return start;
}

/// An IEEE 802.11 frame with these two bytes of frame control.
Bytes frameOf(int first, int second) {
  return packetOf({static_cast<uint8_t>(first), static_cast<uint8_t>(second)});
}

std::string describe(const std::optional<CapwapFrame>& frame) {
  if (!frame) return "none";
  return (frame->isWlan ? "wlan at " : "ethernet at ") + std::to_string(frame->offset);
}

TEST(Capwap, finds_the_frame_behind_the_header) {
  struct Row {
    Bytes header;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {{0, 2 << 3, 2, 0}, "ethernet at 8"},
      {{0, 2 << 3, 0, 0}, "ethernet at 8"},  // the binding is about native frames only
      {{0, 2 << 3, 3, 0}, "wlan at 8"},
      {{0, 4 << 3 | 7, 0xc3, 0}, "wlan at 16"},    // radio 31
      {{0, 31 << 3, 2, 0x77}, "ethernet at 124"},  // every flag but fragment and keep-alive
      {{0, 2 << 3, 2, 0x80, 1, 2, 0, 7}, "ethernet at 8"},  // reserved bits beside the offset
      {{0, 2 << 3, 2, 0xc0, 1, 2, 0, 0}, "ethernet at 8"},  // first and last fragment
      {{0, 2 << 3, 2, 0x40, 1, 2, 0, 8}, "ethernet at 8"},  // an offset, but no fragment
      {{0, 2 << 3, 2, 0x80, 1, 2, 0, 8}, "none"},
      {{0, 2 << 3, 2, 0xc0, 1, 2, 0x80, 0}, "none"},
      {{0, 2 << 3, 2, 0x08}, "none"},  // keep-alive
      {{1, 0, 0, 0}, "none"},          // DTLS
      {{2, 2 << 3, 2, 0}, "none"},     // unknown type
      {{0x10, 2 << 3, 2, 0}, "none"},  // version 1
      {{0, 1 << 3, 2, 0}, "none"},     // shorter than its fixed part
      {{0, 7, 2, 0}, "none"},
      {{0, 2 << 3, 1, 0}, "none"},  // native frames of bindings 0, 2, 3, 17
      {{0, 2 << 3, 2 << 1 | 1, 0}, "none"},
      {{0, 2 << 3, 3 << 1 | 1, 0}, "none"},
      {{0, 2 << 3, 17 << 1 | 1, 0}, "none"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(describe(findCapwapFrame(packetOf(row.header))), row.expected) << &row - rows.data();
  }
}

TEST(Capwap, needs_the_whole_fixed_header) {
  for (size_t length = 0; length < 8; length++) {
    EXPECT_FALSE(findCapwapFrame(packetOf({0, 2 << 3, 2, 0}, length))) << length;
  }
  EXPECT_TRUE(findCapwapFrame(packetOf({0, 2 << 3, 2, 0}, 8)));
}

/// As in the standard, written independently: 0 for frames that are not followed by readable data.
size_t expectedHeaderBytes(int kind, int flags) {
  const int version = kind % 4, type = kind / 4 % 4, subtype = kind / 16, direction = flags % 4;
  const bool isNull = subtype / 4 % 2 == 1, isQos = subtype >= 8;
  const bool isEncrypted = flags / 64 % 2 == 1, hasControl = isQos && flags >= 128;
  if (version != 0 || type != 2 || direction == 0 || isNull || isEncrypted) return 0;
  return size_t{24} + (direction == 3 ? 6 : 0) + (isQos ? 2 : 0) + (hasControl ? 4 : 0);
}

TEST(Capwap, knows_every_frame_control_in_both_orders) {
  int standard = 0, swapped = 0;
  for (int first = 0; first < 256; first++) {
    for (int second = 0; second < 256; second++) {
      const size_t inOrder = expectedHeaderBytes(first, second);
      const size_t notInOrder = expectedHeaderBytes(second, first);
      ASSERT_TRUE(inOrder == 0 || notInOrder == 0) << "two meanings";
      EXPECT_EQ(wlanHeaderBytes(frameOf(first, second)).value_or(0), inOrder + notInOrder)
          << first << " " << second;
      if (inOrder != 0) standard++;
      if (notInOrder != 0) swapped++;
    }
  }
  // Eight subtypes carry data; three directions; five more flags.
  EXPECT_EQ(standard, 8 * 3 * 32);
  EXPECT_EQ(swapped, standard);
}

TEST(Capwap, needs_frame_control_only) {
  EXPECT_FALSE(wlanHeaderBytes({}));
  EXPECT_FALSE(wlanHeaderBytes(packetOf({0x08}, 1)));
  EXPECT_EQ(wlanHeaderBytes(packetOf({0x08, 0x01}, 2)), 24U);
}

}  // namespace
}  // namespace capfleet::test
