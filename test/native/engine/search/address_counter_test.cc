#include "search/address_counter.h"

#include <gtest/gtest.h>

#include "support/addressed_packets.h"

namespace capfleet::test {
namespace {

PacketView viewOf(const Bytes& frame, int64_t ns) { return {frame, 1500, ns, 1, 0, 0}; }

TEST(AddressCounters, CountEachPacketOncePerQuestion) {
  const std::vector<AddressRange<uint32_t>> networks{{0x0a000001, 0x0a000001},
                                                     {0x0a000000, 0x0a0000ff},
                                                     {0, 0xffffffff},
                                                     {0x0a000002, 0x0a000002}};
  AddressCounter counter(networks, {});
  counter.add(viewOf(ipv4Frame(0x0a000001, 0x0a0000fe), 50));
  counter.add(viewOf(ipv4Frame(0xC0A80001, 0x0a000001), 20));
  counter.add(viewOf(ipv4Frame(0xC0A80001, 0xC0A80002), 90));
  const auto& counts = counter.counts();
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts[0].packets, 2u);
  EXPECT_EQ(counts[0].bytes, 3000u);
  EXPECT_EQ(counts[0].firstNs, 20);
  EXPECT_EQ(counts[0].lastNs, 50);
  EXPECT_EQ(counts[1].packets, 2u);
  EXPECT_EQ(counts[2].packets, 3u);
  EXPECT_EQ(counts[2].lastNs, 90);
  EXPECT_EQ(counts[3].packets, 0u);
}

TEST(AddressCounters, KnowAddressesAndNetworksOfIpv6) {
  const std::vector<AddressRange<Ipv6Address>> networks{
      {{0x20010db800000000, 1}, {0x20010db800000000, 1}},
      {{0x20010db800000000, 0}, {0x20010db8ffffffff, ~uint64_t{0}}}};
  AddressCounter counter({}, networks);
  Bytes frame(80);
  frame[12] = 0x86;
  frame[13] = 0xDD;
  for (const size_t at : {size_t{22}, size_t{38}}) {
    frame[at] = 0x20;
    frame[at + 1] = 1;
    frame[at + 2] = 0x0d;
    frame[at + 3] = 0xb8;
  }
  frame[37] = 1;
  counter.add(viewOf(frame, 7));
  EXPECT_EQ(counter.counts()[0].packets, 1u);
  EXPECT_EQ(counter.counts()[1].packets, 1u);
}

TEST(AddressCounters, FindNothingInOtherLinkTypes) {
  const std::vector<AddressRange<uint32_t>> networks{{0, 0xffffffff}};
  AddressCounter counter(networks, {});
  const Bytes frame = ipv4Frame(1, 2);
  counter.add({frame, 64, 1, 105, 0, 0});
  EXPECT_EQ(counter.counts()[0].packets, 0u);
}

}  // namespace
}  // namespace capfleet::test
