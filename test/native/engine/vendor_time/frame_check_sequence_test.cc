#include "vendor_time/frame_check_sequence.h"

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

TEST(FrameCheckSequence, IsCorrectAsSentAndWrongAfterAnyChange) {
  const Bytes sent = FrameBytes::plain().fcs().bytes();
  EXPECT_TRUE(endsInCorrectFcs(sent));
  for (size_t i = 0; i < sent.size(); i++) {
    Bytes changed = sent;
    changed[i] ^= 0x10;
    EXPECT_FALSE(endsInCorrectFcs(changed)) << i;
  }
}

TEST(FrameCheckSequence, OfAFrameThatIsTooShortIsNotCorrect) {
  EXPECT_FALSE(endsInCorrectFcs({}));
  EXPECT_FALSE(endsInCorrectFcs(Bytes{0, 0, 0, 0}));
}

TEST(FrameCheckSequence, IsDeclaredByTheBitsAboveTheLinkType) {
  EXPECT_EQ(declaredFcsBytes(1), std::nullopt);
  EXPECT_EQ(declaredFcsBytes(0x24000001), 4U);
  EXPECT_EQ(declaredFcsBytes(0x04000001), 0U);
  EXPECT_EQ(declaredFcsBytes(0xF4000001), 30U);
  EXPECT_EQ(declaredFcsBytes(0x20000001), std::nullopt);
}

TEST(FrameCheckSequence, CanOnlyEndAWholeEthernetFrame) {
  HeldPacket packet{.bytes = FrameBytes::plain().bytes()};
  EXPECT_TRUE(isWholeEthernetFrame(packet.view()));
  packet.linkTypeWord = 0x24000001;
  EXPECT_TRUE(isWholeEthernetFrame(packet.view()));
  packet.cutBytes = 1;
  EXPECT_FALSE(isWholeEthernetFrame(packet.view()));
  packet.cutBytes = 0;
  packet.linkTypeWord = 113;
  EXPECT_FALSE(isWholeEthernetFrame(packet.view()));
}

}  // namespace
}  // namespace capfleet::test
