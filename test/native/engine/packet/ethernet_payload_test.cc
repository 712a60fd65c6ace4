#include "packet/ethernet_payload.h"

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

TEST(EthernetPayload, BeginsBehindTheVlanTags) {
  const std::vector<std::vector<uint16_t>> cases = {{}, {7}, {7, 8}, {1, 2, 3, 4, 5}};
  for (const auto& vlans : cases) {
    const Bytes frame = FrameBytes().ethernet(0x0800, vlans).put(0x45, 1).bytes();
    const auto payload = ethernetPayload(frame);
    ASSERT_TRUE(payload) << vlans.size();
    EXPECT_EQ(payload->etherType, 0x0800);
    EXPECT_EQ(Bytes(payload->bytes.begin(), payload->bytes.end()), Bytes{0x45});
  }
}

TEST(EthernetPayload, IsAbsentInAFrameThatEndsBeforeItOrHasTagsWithoutEnd) {
  const Bytes whole = FrameBytes().ethernet(0x0800, {7, 8}).bytes();
  for (size_t size = 0; size < whole.size(); size++) {
    EXPECT_FALSE(ethernetPayload(std::span(whole).first(size))) << size;
  }
  EXPECT_TRUE(ethernetPayload(whole));
  std::vector<uint16_t> vlans(16, 5);
  EXPECT_TRUE(ethernetPayload(FrameBytes().ethernet(0x0800, vlans).bytes()));
  vlans.push_back(5);
  EXPECT_FALSE(ethernetPayload(FrameBytes().ethernet(0x0800, vlans).put(0, 8).bytes()));
}

}  // namespace
}  // namespace capfleet::test
