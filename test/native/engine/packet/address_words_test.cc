#include "packet/address_words.h"

#include <gtest/gtest.h>

#include "support/layered_packet.h"

namespace capfleet::test {
namespace {

using Words = std::vector<std::pair<AddressPart, uint32_t>>;

Words wordsOf(std::span<const uint8_t> frame) {
  Words words;
  forEachAddressWord(frame, [&](AddressWord word) { words.push_back({word.part, word.value}); });
  return words;
}

const Words kIpv4Words = {{AddressPart::kIpv4, 0x0a000007}, {AddressPart::kIpv4, 0x0a000107}};

TEST(AddressWords, AreThoseOfIpv4BehindUpToTwoTags) {
  EXPECT_EQ(wordsOf(LayeredPacket().ethernet(1, 0x0800).ipv4(7, 6).captured()), kIpv4Words);
  EXPECT_EQ(wordsOf(LayeredPacket().ethernet(1, 0x8100).vlan(5, 0x0800).ipv4(7, 6).captured()),
            kIpv4Words);
  const auto tagged = [](int tags) {
    LayeredPacket packet = LayeredPacket().ethernet(1, 0x88A8);
    for (int i = 1; i < tags; i++) packet.vlan(5, 0x8100);
    return packet.vlan(6, 0x0800).ipv4(7, 6);
  };
  EXPECT_EQ(wordsOf(tagged(2).captured()), kIpv4Words);
  EXPECT_EQ(wordsOf(tagged(3).captured()), Words());
}

TEST(AddressWords, OfIpv6AreFourForEachAddress) {
  const Words expected = {{AddressPart::kIpv6First, 0x20010000}, {AddressPart::kIpv6Second, 0},
                          {AddressPart::kIpv6Third, 0},          {AddressPart::kIpv6Fourth, 9},
                          {AddressPart::kIpv6First, 0x20010000}, {AddressPart::kIpv6Second, 0},
                          {AddressPart::kIpv6Third, 0},          {AddressPart::kIpv6Fourth, 9}};
  EXPECT_EQ(wordsOf(LayeredPacket().ethernet(1, 0x86DD).ipv6(9, 6).captured()), expected);
}

TEST(AddressWords, OfArpAreThoseOfSenderAndTarget) {
  const LayeredPacket arp = LayeredPacket()
                                .ethernet(1, 0x0806)
                                .bytes({0, 1, 8, 0, 6, 4, 0, 1, 1, 2, 3, 4, 5, 6, 10, 0, 0, 7})
                                .bytes({0, 0, 0, 0, 0, 0, 10, 0, 1, 7});
  EXPECT_EQ(wordsOf(arp.captured()), kIpv4Words);
}

TEST(AddressWords, AreOnlyThoseThatWereCapturedWhole) {
  const LayeredPacket packet = LayeredPacket().ethernet(1, 0x0800).ipv4(7, 6);
  for (size_t bytes = 0; bytes <= packet.captured().size(); bytes++) {
    const size_t expected = bytes >= 34 ? 2 : bytes >= 30 ? 1 : 0;
    EXPECT_EQ(wordsOf({packet.captured().data(), bytes}).size(), expected) << bytes;
  }
}

TEST(AddressWords, AreNoneOfOtherProtocols) {
  EXPECT_EQ(wordsOf(LayeredPacket().ethernet(1, 0x8847).mpls(3, true).ipv4(7, 6).captured()),
            Words());
}

}  // namespace
}  // namespace capfleet::test
