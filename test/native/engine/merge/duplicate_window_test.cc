#include "merge/duplicate_window.h"

#include <gtest/gtest.h>

#include "os/byte_order.h"
#include "support/layered_packet.h"

namespace capfleet::test {
namespace {

constexpr int kTcp = 6;

void putBe16(uint8_t* to, size_t value) {
  to[0] = static_cast<uint8_t>(value >> 8);
  to[1] = static_cast<uint8_t>(value);
}

bool isCopy(const Bytes& first, const Bytes& second, DuplicateKey key, uint32_t linkType = 1) {
  DuplicateWindow window({10, key});
  EXPECT_EQ(window.originalOf({first, linkType, 0}), 0);
  window.add({first, linkType, 0});
  return window.originalOf({second, linkType, 10}) != 0;
}

/// As it arrives at a network behind routers: other addresses of Ethernet, TTL and checksum.
Bytes routed(Bytes frame) {
  for (size_t at = 0; at < 12; at++) frame[at] ^= 0x55;
  if (frame[12] == 0x08) {
    frame[14 + 8] -= 3;
    frame[14 + 10] ^= 0x12;
    frame[14 + 11] ^= 0x34;
  } else {
    frame[14 + 7] -= 3;
  }
  return frame;
}

Bytes ipv4Frame() { return LayeredPacket().ethernet(1, 0x0800).ipv4(1, kTcp).tcp(1, 2).captured(); }
Bytes ipv6Frame() { return LayeredPacket().ethernet(1, 0x86dd).ipv6(1, kTcp).tcp(1, 2).captured(); }

TEST(DuplicateWindow, FindsRoutedPacketsByIp) {
  for (const Bytes& frame : {ipv4Frame(), ipv6Frame()}) {
    EXPECT_TRUE(isCopy(frame, routed(frame), DuplicateKey::kIp));
    EXPECT_FALSE(isCopy(frame, routed(frame), DuplicateKey::kPayload));
    EXPECT_TRUE(isCopy(frame, frame, DuplicateKey::kPayload));
  }
}

TEST(DuplicateWindow, ComparesEveryOtherByteOfAnIpPacket) {
  for (const Bytes& frame : {ipv4Frame(), ipv6Frame()}) {
    const bool isIpv4 = frame[12] == 0x08;
    for (size_t at = 14; at < frame.size(); at++) {
      Bytes other = frame;
      other[at] ^= 0x40;
      const size_t inPacket = at - 14;
      const bool isIgnored =
          isIpv4 ? inPacket == 8 || inPacket == 10 || inPacket == 11 : inPacket == 7;
      // Without its version it is no IP packet any more, and with a total length it is shorter.
      EXPECT_EQ(isCopy(frame, other, DuplicateKey::kIp), isIgnored) << at;
      EXPECT_FALSE(isCopy(frame, other, DuplicateKey::kPayload)) << at;
    }
  }
}

TEST(DuplicateWindow, LooksPastTagsLabelsAndLinkTypesForIp) {
  const Bytes plain = ipv4Frame();
  const Bytes tagged = LayeredPacket()
                           .ethernet(3, 0x8100)
                           .vlan(7, 0x8847)
                           .mpls(9, true)
                           .ipv4(1, kTcp)
                           .tcp(1, 2)
                           .captured();
  EXPECT_TRUE(isCopy(plain, tagged, DuplicateKey::kIp));
  EXPECT_FALSE(isCopy(plain, tagged, DuplicateKey::kPayload)) << "labels are not part of Ethernet";
  const Bytes vlan =
      LayeredPacket().ethernet(3, 0x8100).vlan(7, 0x0800).ipv4(1, kTcp).tcp(1, 2).captured();
  EXPECT_TRUE(isCopy(plain, vlan, DuplicateKey::kPayload));

  const Bytes packet(plain.begin() + 14, plain.end());
  Bytes sent(16), received(16, 1);
  for (Bytes* cooked : {&sent, &received}) {
    putBe16(&(*cooked)[14], 0x0800);
    append(*cooked, packet);
  }
  for (const DuplicateKey key : {DuplicateKey::kIp, DuplicateKey::kPayload}) {
    EXPECT_TRUE(isCopy(sent, received, key, 113));
    EXPECT_FALSE(isCopy(sent, received, key, 105)) << "compared completely";
    EXPECT_TRUE(isCopy(packet, packet, key, 101));
  }
}

TEST(DuplicateWindow, FindsCopiesOfAnotherLinkType) {
  const Bytes frame = ipv4Frame();
  const Bytes packet(frame.begin() + 14, frame.end());
  for (const DuplicateKey key : {DuplicateKey::kIp, DuplicateKey::kPayload}) {
    DuplicateWindow window({10, key});
    EXPECT_EQ(window.originalOf({frame, 1, 0}), 0);
    window.add({frame, 1, 0});
    EXPECT_EQ(window.originalOf({packet, 101, 0}), 1);
    EXPECT_EQ(window.originalOf({packet, 1, 0}), 0);
  }
}

TEST(DuplicateWindow, IgnoresPaddingAfterAnIpPacket) {
  Bytes frame = ipv4Frame();
  putBe16(&frame[16], frame.size() - 14);
  Bytes padded = frame;
  padded.resize(frame.size() + 6);
  EXPECT_TRUE(isCopy(frame, padded, DuplicateKey::kIp));
  EXPECT_FALSE(isCopy(frame, padded, DuplicateKey::kPayload));
  Bytes longer = padded;
  putBe16(&longer[16], longer.size() - 14);
  EXPECT_FALSE(isCopy(frame, longer, DuplicateKey::kIp));
}

TEST(DuplicateWindow, ComparesOtherPacketsByTheirPayload) {
  const Bytes arp = LayeredPacket().ethernet(1, 0x0806).zeros(28).captured();
  Bytes fromElsewhere = arp;
  fromElsewhere[5] = 9;
  EXPECT_TRUE(isCopy(arp, fromElsewhere, DuplicateKey::kIp));
  fromElsewhere.back() = 1;
  EXPECT_FALSE(isCopy(arp, fromElsewhere, DuplicateKey::kIp));
  // Cut inside the IP header, and shorter than an Ethernet header.
  for (const size_t bytes : {20U, 14U, 13U, 1U, 0U}) {
    const Bytes cut = [&] {
      Bytes frame = ipv4Frame();
      frame.resize(bytes);
      return frame;
    }();
    EXPECT_TRUE(isCopy(cut, cut, DuplicateKey::kIp)) << bytes;
  }
}

TEST(DuplicateWindow, RemembersOnlyWhatWasKept) {
  DuplicateWindow window({10, DuplicateKey::kPayload});
  const Bytes record = ipv4Frame();
  EXPECT_EQ(window.originalOf({record, 1, 0}), 0);
  window.add({record, 1, 0});
  EXPECT_EQ(window.originalOf({record, 1, 6}), 1);
  EXPECT_EQ(window.originalOf({record, 1, 10}), 1);
  EXPECT_EQ(window.originalOf({record, 1, 11}), 0) << "6 and 10 were not kept";
}

}  // namespace
}  // namespace capfleet::test
