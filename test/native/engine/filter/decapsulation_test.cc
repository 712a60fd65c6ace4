#include "filter/decapsulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "os/byte_order.h"
#include "support/layered_packet.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

constexpr int kTcp = 6, kUdp = 17, kGre = 47, kIpInIp = 4, kIpv6InIp = 41, kUdpLite = 136;
constexpr uint32_t kCapwapPort = 5247;

/// The innermost frame of every packet below: TCP 1000 -> 80, from addresses with the number 9.
LayeredPacket& innerIpv4(LayeredPacket& packet) { return packet.ipv4(9, kTcp).tcp(1000, 80); }
LayeredPacket& innerIpv6(LayeredPacket& packet) { return packet.ipv6(9, kTcp).tcp(1000, 80); }
LayeredPacket& innerEthernet(LayeredPacket& packet) {
  return innerIpv4(packet.ethernet(9, 0x0800));
}

Bytes frameOf(int addresses, bool isIpv4 = true) {
  LayeredPacket packet;
  packet.ethernet(addresses, isIpv4 ? 0x0800 : 0x86dd);
  return isIpv4 ? innerIpv4(packet).captured() : innerIpv6(packet).captured();
}

struct Case {
  std::string name;
  LayeredPacket packet;
  Bytes innermost;
};

/// The kind of frame that a tunnel delivers: its own Ethernet, or IP after the outermost addresses.
enum class Inner { kEthernet, kIpv4, kIpv6 };

Case tunnel(std::string name, LayeredPacket outer, Inner inner) {
  if (inner == Inner::kEthernet) return {name, innerEthernet(outer), frameOf(9)};
  if (inner == Inner::kIpv4) return {name, innerIpv4(outer), frameOf(1)};
  return {name, innerIpv6(outer), frameOf(1, false)};
}

LayeredPacket ethernet(uint32_t type) { return LayeredPacket().ethernet(1, type); }
LayeredPacket ipv4(int protocol) { return ethernet(0x0800).ipv4(1, protocol); }
LayeredPacket ipv6(int protocol) { return ethernet(0x86dd).ipv6(1, protocol); }
LayeredPacket gre(std::initializer_list<int> header) { return ipv4(kGre).bytes(header); }
LayeredPacket udp(uint32_t port) { return ipv4(kUdp).udp(5000, port); }

void addTags(std::vector<Case>& cases) {
  for (const uint32_t type : {0x8100, 0x88a8, 0x9100, 0x9200, 0x9300}) {
    cases.push_back(tunnel("tag", ethernet(type).vlan(5, 0x0800), Inner::kIpv4));
  }
  cases.push_back(tunnel("three tags",
                         ethernet(0x88a8).vlan(5, 0x8100).vlan(6, 0x8100).vlan(7, 0x86dd),
                         Inner::kIpv6));
  cases.push_back(tunnel("VN-Tag", ethernet(0x8926).zeros(4).be16(0x0800), Inner::kIpv4));
  cases.push_back(
      tunnel("VN-Tag, VLAN", ethernet(0x8926).zeros(4).be16(0x8100).vlan(5, 0x0800), Inner::kIpv4));
  cases.push_back(tunnel("time of 64 bits",
                         ethernet(0xd28b).be16(1).be16(0x10).zeros(8).be16(0x0800), Inner::kIpv4));
  cases.push_back(tunnel("time of 48 bits",
                         ethernet(0xd28b).be16(1).be16(0x21).zeros(6).be16(0x0800), Inner::kIpv4));
  cases.push_back(
      tunnel("security group tag", ethernet(0x8909).bytes({1, 1, 0, 1, 0, 7, 8, 0}), Inner::kIpv4));
  cases.push_back(
      tunnel("SNAP", ethernet(100).bytes({0xaa, 0xaa, 3, 0, 0, 0, 8, 0}), Inner::kIpv4));
  cases.push_back(
      tunnel("PPPoE", ethernet(0x8864).bytes({0x11, 0, 0, 1, 0, 0, 0, 0x21}), Inner::kIpv4));
  cases.push_back(tunnel("PPPoE, short type", ethernet(0x8864).bytes({0x11, 0, 0, 1, 0, 0, 0x57}),
                         Inner::kIpv6));
}

void addMpls(std::vector<Case>& cases) {
  const auto labels = [] { return ethernet(0x8847).mpls(100, false).mpls(200, true); };
  cases.push_back(tunnel("MPLS IPv4", labels(), Inner::kIpv4));
  cases.push_back(tunnel("MPLS IPv6", ethernet(0x8848).mpls(2, true), Inner::kIpv6));
  cases.push_back(tunnel("MPLS with control word", labels().zeros(4), Inner::kEthernet));
  LayeredPacket plain = labels();
  plain.bytes({0x22, 0, 0, 0, 0, 9, 2, 0, 0, 0, 1, 9}).be16(0x0800);
  Bytes expected = frameOf(9);
  expected[0] = 0x22;
  cases.push_back({"MPLS without control word", innerIpv4(plain), expected});
  cases.push_back(tunnel("PPP MPLS",
                         ethernet(0x8864).bytes({0x11, 0, 0, 1, 0, 0, 2, 0x81}).mpls(1, true),
                         Inner::kIpv4));
}

void addIpAndGre(std::vector<Case>& cases) {
  cases.push_back(tunnel("IP in IP", ipv4(kIpInIp), Inner::kIpv4));
  cases.push_back(tunnel("IPv6 in IP", ipv4(kIpv6InIp), Inner::kIpv6));
  cases.push_back(tunnel("IP in IPv6", ipv6(kIpInIp), Inner::kIpv4));
  cases.push_back(tunnel("IPv6 in IPv6", ipv6(kIpv6InIp), Inner::kIpv6));
  LayeredPacket extended = ipv6(0).bytes({43, 0}).zeros(6).bytes({60, 1}).zeros(14);
  extended.bytes({51, 0}).zeros(6).bytes({44, 4}).zeros(22).bytes({kIpInIp, 0, 0, 1}).zeros(4);
  cases.push_back(tunnel("extension headers", extended, Inner::kIpv4));
  cases.push_back(
      tunnel("first fragment", ethernet(0x0800).ipv4(1, kIpInIp, 0x2000), Inner::kIpv4));
  cases.push_back(tunnel("GRE", gre({0, 0, 8, 0}), Inner::kIpv4));
  cases.push_back(
      tunnel("GRE with all fields", gre({0xb0, 0, 0x86, 0xdd}).zeros(12), Inner::kIpv6));
  cases.push_back(tunnel("GRE with key", gre({0x20, 0, 0x65, 0x58}).zeros(4), Inner::kEthernet));
  cases.push_back(
      tunnel("GRE security group tag", gre({0, 0, 0x89, 9, 8, 0, 1, 1, 0, 1, 0, 7}), Inner::kIpv4));
  cases.push_back(tunnel("GRE MPLS", gre({0, 0, 0x88, 0x47}).mpls(3, true), Inner::kIpv4));
  cases.push_back(tunnel("GRE over IPv6", ipv6(kGre).bytes({0, 0, 8, 0}), Inner::kIpv4));
  cases.push_back(tunnel("PPTP", gre({0x30, 0x81, 0x88, 0x0b}).zeros(12).bytes({0xff, 3, 0, 0x21}),
                         Inner::kIpv4));
  cases.push_back(tunnel("ERSPAN I", gre({0, 0, 0x88, 0xbe}), Inner::kEthernet));
  cases.push_back(tunnel("ERSPAN II", gre({0x10, 0, 0x88, 0xbe}).zeros(4).bytes({0x10}).zeros(7),
                         Inner::kEthernet));
  const auto erspan3 = [] { return gre({0x10, 0, 0x22, 0xeb}).zeros(4).bytes({0x20}).zeros(9); };
  cases.push_back(tunnel("ERSPAN III", erspan3().be16(0), Inner::kEthernet));
  cases.push_back(
      tunnel("ERSPAN III with sub-header", erspan3().be16(1).zeros(8), Inner::kEthernet));
  cases.push_back(tunnel("ERSPAN III of IP", erspan3().be16(2 << 10), Inner::kIpv6));
}

void addUdp(std::vector<Case>& cases) {
  for (const uint32_t port : {4789, 8472}) {
    cases.push_back(tunnel("VXLAN", udp(port).bytes({8}).zeros(7), Inner::kEthernet));
  }
  cases.push_back(
      tunnel("VXLAN over IPv6", ipv6(kUdp).udp(1, 4789).bytes({8}).zeros(7), Inner::kEthernet));
  const auto gpe = [](int next) { return udp(4790).bytes({12, 0, 0, next}).zeros(4); };
  cases.push_back(tunnel("VXLAN-GPE IPv4", gpe(1), Inner::kIpv4));
  cases.push_back(tunnel("VXLAN-GPE IPv6", gpe(2), Inner::kIpv6));
  cases.push_back(tunnel("VXLAN-GPE Ethernet", gpe(3), Inner::kEthernet));
  cases.push_back(tunnel("VXLAN-GPE MPLS", gpe(5).mpls(7, true), Inner::kIpv4));
  const auto geneve = [](int words, uint32_t type) {
    return udp(6081).bytes({words, 0}).be16(type).zeros(4 + 4 * static_cast<size_t>(words));
  };
  cases.push_back(tunnel("GENEVE Ethernet", geneve(0, 0x6558), Inner::kEthernet));
  cases.push_back(tunnel("GENEVE IPv4 with options", geneve(3, 0x0800), Inner::kIpv4));
  cases.push_back(tunnel("GENEVE IPv6", geneve(1, 0x86dd), Inner::kIpv6));
  cases.push_back(tunnel("GTP", udp(2152).bytes({0x30, 255}).zeros(6), Inner::kIpv4));
  cases.push_back(tunnel("GTP from its port", ipv4(kUdp).udp(2152, 9).bytes({0x30, 255}).zeros(6),
                         Inner::kIpv6));
  cases.push_back(
      tunnel("GTP with sequence", udp(2152).bytes({0x32, 255}).zeros(10), Inner::kIpv4));
  cases.push_back(tunnel("GTP with extensions",
                         udp(2152)
                             .bytes({0x34, 255})
                             .zeros(9)
                             .bytes({0x85, 1, 0, 0, 0x40})
                             .bytes({2, 0, 0, 0, 0, 0, 0, 0}),
                         Inner::kIpv4));
}

/// A CAPWAP header of 8 bytes, then optional ones; `binding` has the bit for native frames.
LayeredPacket capwap(LayeredPacket outer, int binding, int flags = 0, int words = 2) {
  return outer.bytes({0, words << 3, binding, flags}).zeros(4 * static_cast<size_t>(words) - 4);
}
constexpr int kEthernetPayload = 2, kWlanPayload = 3;

/// An IEEE 802.11 frame from its two bytes of frame control to its LLC header.
LayeredPacket wlan(int first, int second, size_t headerBytes, uint32_t type,
                   LayeredPacket outer = capwap(udp(kCapwapPort), kWlanPayload)) {
  outer.bytes({first, second}).zeros(headerBytes - 2);
  return outer.bytes({0xaa, 0xaa, 3, 0, 0, 0}).be16(type);
}

void addCapwap(std::vector<Case>& cases) {
  const auto ethernetIn = [&cases](const std::string& name, LayeredPacket outer, int flags = 0,
                                   int words = 2) {
    cases.push_back(tunnel(name, capwap(outer, kEthernetPayload, flags, words), Inner::kEthernet));
  };
  ethernetIn("CAPWAP", udp(kCapwapPort));
  ethernetIn("CAPWAP from its port", ipv4(kUdp).udp(kCapwapPort, 9));
  ethernetIn("CAPWAP over IPv6", ipv6(kUdp).udp(1, kCapwapPort));
  ethernetIn("CAPWAP over UDP-Lite", ipv6(kUdpLite).udp(1, kCapwapPort));
  ethernetIn("CAPWAP with optional headers", udp(kCapwapPort), 0x30, 6);
  ethernetIn("CAPWAP with its longest header", udp(kCapwapPort), 0x20, 31);
  ethernetIn("CAPWAP first fragment", udp(kCapwapPort), 0x80);
  const auto wlanIn = [&cases](const std::string& name, int kind, int flags, size_t headerBytes) {
    cases.push_back(tunnel(name, wlan(kind, flags, headerBytes, 0x0800), Inner::kIpv4));
    cases.push_back(
        tunnel(name + " swapped", wlan(flags, kind, headerBytes, 0x86dd), Inner::kIpv6));
  };
  wlanIn("WLAN to the controller", 0x08, 1, 24);
  wlanIn("WLAN from the controller", 0x08, 2, 24);
  wlanIn("WLAN of four addresses", 0x08, 3, 30);
  wlanIn("WLAN QoS", 0x88, 1, 26);
  wlanIn("WLAN QoS with control", 0x88, 0x82, 30);
  wlanIn("WLAN all fields", 0x88, 0x83, 36);
  wlanIn("WLAN first fragment", 0x08, 5, 24);
  cases.push_back(tunnel("WLAN tag", wlan(0x08, 1, 24, 0x8100).vlan(5, 0x0800), Inner::kIpv4));
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  addTags(cases);
  addMpls(cases);
  addIpAndGre(cases);
  addUdp(cases);
  addCapwap(cases);
  return cases;
}

Bytes bytesOf(const FilterView& view) { return {view.captured.begin(), view.captured.end()}; }

TEST(Decapsulation, shows_the_innermost_frame_of_every_kind_of_tunnel) {
  DecapScratch scratch;
  for (const Case& one : allCases()) {
    const FilterView view = decapsulate(one.packet.view(), scratch);
    EXPECT_EQ(bytesOf(view), one.innermost) << one.name;
    EXPECT_EQ(view.originalLength, one.innermost.size()) << one.name;
  }
}

TEST(Decapsulation, shortens_both_lengths_of_a_cut_packet_by_the_same_bytes) {
  DecapScratch scratch;
  for (const Case& one : allCases()) {
    PacketView packet = one.packet.view();
    packet.originalLength += 1000;
    EXPECT_EQ(decapsulate(packet, scratch).originalLength, one.innermost.size() + 1000) << one.name;
    packet.originalLength = 3;
    EXPECT_EQ(decapsulate(packet, scratch).originalLength, 0U) << one.name;
  }
}

// Under ASan, a read beyond the copy, which is exactly as long as the remaining bytes, ends the
// test.
TEST(Decapsulation, reads_nothing_behind_a_packet_that_is_cut_anywhere) {
  DecapScratch scratch;
  for (const Case& one : allCases()) {
    const Bytes& whole = one.packet.captured();
    for (size_t length = 0; length <= whole.size(); length++) {
      const auto cut = std::make_unique<uint8_t[]>(length);
      std::copy_n(whole.begin(), length, cut.get());
      const PacketView packet{{cut.get(), length}, 2000, 0, 1, 0, 0};
      const FilterView view = decapsulate(packet, scratch);
      ASSERT_LE(view.captured.size(), length) << one.name;
      ASSERT_EQ(length - view.captured.size(), 2000 - view.originalLength) << one.name;
      ASSERT_GE(view.captured.size(), std::min<size_t>(length, 14)) << one.name;
      // Whatever was reached, its end is the packet's end.
      const size_t tail = view.captured.size() - std::min<size_t>(view.captured.size(), 14);
      ASSERT_TRUE(std::equal(view.captured.end() - static_cast<ptrdiff_t>(tail),
                             view.captured.end(), cut.get() + (length - tail)))
          << one.name << " cut at " << length;
    }
  }
}

TEST(Decapsulation, peels_tunnels_inside_tunnels) {
  LayeredPacket packet = ethernet(0x8100).vlan(5, 0x0800).ipv4(1, kUdp).udp(1, 4789);
  packet.bytes({8}).zeros(7).ethernet(2, 0x8847).mpls(5, true).ipv4(2, kGre).bytes({0, 0, 8, 0});
  DecapScratch scratch;
  EXPECT_EQ(bytesOf(decapsulate(innerIpv4(packet).view(), scratch)), frameOf(2));
}

TEST(Decapsulation, stops_after_sixteen_headers) {
  LayeredPacket packet;
  packet.ethernet(1, 0x8100);
  for (uint32_t id = 0; id < 40; id++) packet.vlan(id, 0x8100);
  DecapScratch scratch;
  const Bytes view = bytesOf(decapsulate(packet.view(), scratch));
  EXPECT_EQ(view.size(), packet.captured().size() - 16 * 4);
  EXPECT_EQ(loadBe16(view.data() + 14), 16);
}

TEST(Decapsulation, counts_each_header_of_capwap) {
  // After this many tags there is space for type, IP, UDP, CAPWAP, IEEE 802.11, or for one header
  // less.
  for (const int tags : {11, 12}) {
    LayeredPacket outer = ethernet(0x8100);
    for (int i = 1; i < tags; i++) outer.vlan(5, 0x8100);
    outer.vlan(5, 0x0800).ipv4(1, kUdp).udp(1, kCapwapPort);
    LayeredPacket packet = wlan(0x08, 1, 24, 0x0800, capwap(outer, kWlanPayload));
    DecapScratch scratch;
    const Bytes seen = bytesOf(decapsulate(innerIpv4(packet).view(), scratch));
    EXPECT_EQ(seen == frameOf(1), tags == 11);
    EXPECT_EQ(seen[14 + 9], tags == 11 ? kTcp : kUdp);
  }
}

TEST(Decapsulation, shows_what_a_wireless_frame_carries_beside_ip) {
  DecapScratch scratch;
  EXPECT_EQ(bytesOf(decapsulate(wlan(0x08, 1, 24, 0x0806).zeros(28).view(), scratch)),
            ethernet(0x0806).zeros(28).captured());
}

// Real controllers and access points swap the sequence control too: this is number 1891.
TEST(Decapsulation, takes_no_sequence_number_for_that_of_a_fragment) {
  LayeredPacket packet = capwap(udp(kCapwapPort), kWlanPayload).bytes({0x11, 0x08}).zeros(20);
  packet.bytes({0x76, 0x30, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0});
  DecapScratch scratch;
  EXPECT_EQ(bytesOf(decapsulate(innerIpv4(packet).view(), scratch)), frameOf(1));
}

TEST(Decapsulation, keeps_a_frame_that_is_tagged_but_not_ip) {
  LayeredPacket packet = ethernet(0x8100).vlan(5, 0x0806).zeros(28);
  DecapScratch scratch;
  EXPECT_EQ(bytesOf(decapsulate(packet.view(), scratch)), ethernet(0x0806).zeros(28).captured());
}

TEST(Decapsulation, peels_nothing_for_an_inner_header_that_is_too_short_to_be_one) {
  LayeredPacket packet = ipv4(kIpInIp).bytes({0x44}).zeros(39);
  DecapScratch scratch;
  EXPECT_EQ(bytesOf(decapsulate(packet.view(), scratch)), packet.captured());
}

TEST(Decapsulation, keeps_the_bytes_behind_the_inner_packet) {
  LayeredPacket packet = udp(4789).bytes({8}).zeros(7);
  innerEthernet(packet).bytes({1, 2, 3, 4});
  Bytes expected = frameOf(9);
  append(expected, Bytes{1, 2, 3, 4});
  DecapScratch scratch;
  EXPECT_EQ(bytesOf(decapsulate(packet.view(), scratch)), expected);
}

TEST(Decapsulation, hands_out_the_packet_itself_when_there_is_nothing_to_peel) {
  std::vector<LayeredPacket> packets = {
      LayeredPacket().bytes({1, 2, 3}),
      ethernet(0x0806).zeros(28),
      ethernet(40).bytes({0x42, 0x42, 3}).zeros(40),
      ipv4(kTcp).tcp(1, 2),
      ipv6(kUdp).udp(1, 53).zeros(40),
      ethernet(0x0800).ipv4(1, kIpInIp, 1).ipv4(2, kTcp),      // a later fragment
      gre({0x40, 0, 8, 0}).zeros(4).ipv4(2, kTcp),             // source routing
      gre({0, 0, 0x88, 0x0b}).bytes({0, 0x21}).ipv4(2, kTcp),  // PPP without PPTP
      gre({0x10, 0, 0x88, 0xbe}).zeros(4).zeros(80),  // ERSPAN II with an undefined version
      gre({0x10, 0, 0x22, 0xeb}).zeros(4).bytes({0x20}).zeros(9).be16(7 << 10).zeros(80),
      udp(4789).zeros(80),                                            // VXLAN without its flag
      udp(6081).bytes({0x40, 0}).be16(0x6558).zeros(80),              // GENEVE version 1
      udp(2152).bytes({0x32, 1}).zeros(80),                           // a GTP echo request
      udp(2152).bytes({0x34, 255}).zeros(9).bytes({0x85}).zeros(80),  // an extension with length 0
      innerEthernet(udp(5246).bytes({0, 16, 2, 0}).zeros(4)),         // CAPWAP control
      capwap(udp(kCapwapPort), kEthernetPayload, 8).zeros(80),        // a keep-alive
      wlan(0x08, 1, 24, 0x0800, capwap(udp(kCapwapPort), 7)).ipv4(2, kTcp),  // another radio
      wlan(0x08, 0x41, 24, 0x0800).ipv4(2, kTcp),                            // encrypted
      wlan(0x48, 1, 24, 0x0800).ipv4(2, kTcp),                               // without data
      capwap(udp(kCapwapPort), kWlanPayload)
          .bytes({8, 1})
          .zeros(22)
          .bytes({0xaa, 0xaa, 3, 0, 0, 1}),
      // An aggregate of packets: each has an Ethernet header with a length, then LLC.
      innerIpv4(capwap(udp(kCapwapPort), kWlanPayload)
                    .bytes({0x88, 1})
                    .zeros(22)
                    .bytes({0x80, 0})
                    .ethernet(9, 48)
                    .bytes({0xaa, 0xaa, 3, 0, 0, 0, 8, 0})),
      ipv4(kIpInIp).ipv6(1, kTcp),
      ethernet(0x8847).mpls(13, true).bytes({0x10}).zeros(11).be16(0x0800).zeros(60),
      ethernet(0xd28b).be16(9).be16(0x10).zeros(80),
      ethernet(0x8863).bytes({0x11, 9}).zeros(40),
  };
  DecapScratch scratch;
  for (const LayeredPacket& packet : packets) {
    const PacketView view = packet.view();
    const FilterView seen = decapsulate(view, scratch);
    EXPECT_EQ(seen.captured.data(), view.captured.data()) << &packet - packets.data();
    EXPECT_EQ(seen.captured.size(), view.captured.size()) << &packet - packets.data();
    EXPECT_EQ(seen.originalLength, view.originalLength) << &packet - packets.data();
  }
}

TEST(Decapsulation, takes_padding_behind_an_ip_packet_for_no_tunnel) {
  Bytes packet = udp(4789).bytes({8}).zeros(7).zeros(60).captured();
  packet[17] = 28;  // total length: IP and UDP headers only
  const PacketView view{packet, static_cast<uint32_t>(packet.size()), 0, 1, 0, 0};
  DecapScratch scratch;
  EXPECT_EQ(decapsulate(view, scratch).captured.data(), packet.data());
}

/// What precedes the network packet: a header with the type at `typeAt`, or nothing.
struct Header {
  uint32_t linkType;
  size_t bytes;
  size_t typeAt;
};
constexpr Header kCooked{113, 16, 14}, kCooked2{276, 20, 0};

/// The Ethernet frame with this header in place of its own. The other bytes of the header are 7.
Bytes withHeader(const Header& header, const Bytes& frame) {
  Bytes packet(header.bytes, 7);
  std::copy_n(frame.begin() + 12, 2, packet.begin() + static_cast<ptrdiff_t>(header.typeAt));
  packet.insert(packet.end(), frame.begin() + 14, frame.end());
  return packet;
}

Bytes withoutHeader(const Bytes& frame) { return {frame.begin() + 14, frame.end()}; }

PacketView viewOf(const Bytes& packet, uint32_t linkType) {
  return {packet, static_cast<uint32_t>(packet.size()), 0, linkType, 0, 0};
}

TEST(Decapsulation, shows_the_innermost_packet_of_cooked_captures) {
  DecapScratch scratch;
  for (const Header& header : {kCooked, kCooked2}) {
    for (const Case& one : allCases()) {
      const Bytes packet = withHeader(header, one.packet.captured());
      const FilterView view = decapsulate(viewOf(packet, header.linkType), scratch);
      EXPECT_EQ(bytesOf(view), withHeader(header, one.innermost)) << one.name;
      EXPECT_EQ(view.originalLength, view.captured.size()) << one.name;
    }
    const Bytes cut(header.bytes - 1);
    EXPECT_EQ(decapsulate(viewOf(cut, header.linkType), scratch).captured.data(), cut.data());
  }
}

TEST(Decapsulation, shows_the_innermost_packet_of_raw_captures) {
  DecapScratch scratch;
  int shown = 0;
  for (const Case& one : allCases()) {
    const uint16_t outer = loadBe16(&one.packet.captured()[12]);
    if (outer != 0x0800 && outer != 0x86dd) continue;
    const bool isSame = loadBe16(&one.innermost[12]) == outer;
    const Bytes packet = withoutHeader(one.packet.captured());
    const Bytes innermost = withoutHeader(one.innermost);
    for (const uint32_t linkType : {12U, 101U, outer == 0x0800 ? 228U : 229U}) {
      // Packets of 228 and 229 are all of one version.
      const bool isShown = isSame || linkType < 200;
      shown += isShown;
      const FilterView view = decapsulate(viewOf(packet, linkType), scratch);
      EXPECT_EQ(bytesOf(view), isShown ? innermost : packet) << one.name << " " << linkType;
    }
  }
  EXPECT_GT(shown, 80);
}

// A program for raw IP would read its addresses where ARP has others.
TEST(Decapsulation, shows_a_raw_packet_around_what_is_not_ip) {
  const Bytes arp =
      withoutHeader(udp(4789).bytes({8}).zeros(7).ethernet(9, 0x0806).zeros(28).captured());
  DecapScratch scratch;
  EXPECT_EQ(decapsulate(viewOf(arp, 101), scratch).captured.data(), arp.data());
  const Bytes labels = withoutHeader(gre({0, 0, 0x88, 0x47}).mpls(3, true).zeros(40).captured());
  EXPECT_EQ(decapsulate(viewOf(labels, 101), scratch).captured.data(), labels.data());
}

TEST(Decapsulation, leaves_packets_of_other_link_types_alone) {
  LayeredPacket packet = ethernet(0x8100).vlan(5, 0x0800);
  DecapScratch scratch;
  innerIpv4(packet);
  for (const uint32_t linkType : {0U, 9U, 105U, 127U}) {
    EXPECT_EQ(decapsulate(packet.view(linkType), scratch).captured.data(),
              packet.captured().data());
  }
  const uint32_t ethernetWithFcs = 0x24000001;
  EXPECT_EQ(bytesOf(decapsulate(packet.view(ethernetWithFcs), scratch)), frameOf(1));
}

Bytes stripped(const PacketView& packet, HeaderKinds kinds) {
  const StrippedPacket result = withoutHeaders(packet, kinds);
  Bytes bytes(result.size());
  result.store(bytes.data(), bytes.size());
  EXPECT_EQ(result.originalLength - bytes.size(), packet.originalLength - packet.captured.size());
  return bytes;
}

LayeredPacket& innerVxlan(LayeredPacket& packet) {
  packet.ipv4(1, kUdp).udp(5000, 4789).bytes({8}).zeros(7);
  return packet.ethernet(9, 0x8100).vlan(6, 0x8847).mpls(8, true).ipv4(9, kTcp).tcp(1000, 80);
}

TEST(Stripping, removes_the_chosen_kinds_of_headers) {
  LayeredPacket whole = ethernet(0x8100).vlan(5, 0x8847).mpls(7, true);
  LayeredPacket untagged = ethernet(0x8847).mpls(7, true);
  LayeredPacket unlabelled = ethernet(0x8100).vlan(5, 0x0800);
  LayeredPacket plain = ethernet(0x0800);
  for (LayeredPacket* packet : {&whole, &untagged, &unlabelled, &plain}) innerVxlan(*packet);
  LayeredPacket inner;
  inner.ethernet(9, 0x8100).vlan(6, 0x8847).mpls(8, true);
  LayeredPacket innerUntagged;
  innerUntagged.ethernet(9, 0x8847).mpls(8, true);
  LayeredPacket innerUnlabelled;
  innerUnlabelled.ethernet(9, 0x8100).vlan(6, 0x0800);

  const PacketView view = whole.view();
  EXPECT_EQ(stripped(view, 0), whole.captured());
  EXPECT_EQ(stripped(view, kTags), untagged.captured());
  EXPECT_EQ(stripped(view, kLabels), unlabelled.captured());
  EXPECT_EQ(stripped(view, kTags | kLabels), plain.captured());
  EXPECT_EQ(stripped(view, kTunnels), innerIpv4(inner).captured());
  EXPECT_EQ(stripped(view, kTunnels | kTags), innerIpv4(innerUntagged).captured());
  EXPECT_EQ(stripped(view, kTunnels | kLabels), innerIpv4(innerUnlabelled).captured());
  EXPECT_EQ(stripped(view, kTunnels | kLabels | kTags), frameOf(9));
  EXPECT_EQ(stripped(view, kAllHeaders), frameOf(9));
}

TEST(Stripping, removes_all_headers_as_for_filters) {
  for (const Case& one : allCases()) {
    EXPECT_EQ(stripped(one.packet.view(), kAllHeaders), one.innermost) << one.name;
    for (const Header& header : {kCooked, kCooked2}) {
      const Bytes packet = withHeader(header, one.packet.captured());
      EXPECT_EQ(stripped(viewOf(packet, header.linkType), kAllHeaders),
                withHeader(header, one.innermost))
          << one.name;
    }
  }
}

TEST(Stripping, gives_ip_from_a_tunnel_the_header_around_it_without_tags) {
  LayeredPacket packet = ethernet(0x8100).vlan(5, 0x0800).ipv4(1, kGre).bytes({0, 0, 8, 0});
  innerIpv4(packet);
  EXPECT_EQ(stripped(packet.view(), kTunnels), frameOf(1));
  LayeredPacket labelled = ethernet(0x0800).ipv4(1, kGre).bytes({0, 0, 0x88, 0x47}).mpls(3, true);
  LayeredPacket outside = ethernet(0x8847).mpls(3, true);
  innerIpv4(labelled);
  EXPECT_EQ(stripped(labelled.view(), kTunnels), innerIpv4(outside).captured());
  EXPECT_EQ(stripped(labelled.view(), kTunnels | kLabels), frameOf(1));
  EXPECT_EQ(stripped(labelled.view(), kLabels), labelled.captured()) << "inside a tunnel";
}

TEST(Stripping, takes_an_ethernet_frame_out_of_its_labels) {
  LayeredPacket packet = ethernet(0x8847).mpls(3, true).zeros(4);
  LayeredPacket inner = LayeredPacket().ethernet(9, 0x8100).vlan(6, 0x0800);
  packet.ethernet(9, 0x8100).vlan(6, 0x0800);
  innerIpv4(packet);
  EXPECT_EQ(stripped(packet.view(), kLabels), innerIpv4(inner).captured());
  EXPECT_EQ(stripped(packet.view(), kLabels | kTags), frameOf(9));
  for (const int kinds : {int{kTags}, int{kTunnels}, kTags | kTunnels}) {
    EXPECT_EQ(stripped(packet.view(), static_cast<HeaderKinds>(kinds)), packet.captured());
  }
}

TEST(Stripping, keeps_other_headers_in_their_places) {
  const auto addTime = [](LayeredPacket& packet, uint32_t type) -> LayeredPacket& {
    return packet.be16(1).be16(0x10).zeros(8).be16(type);
  };
  LayeredPacket packet = ethernet(0xd28b);
  addTime(packet, 0x8100).vlan(5, 0x0800);
  LayeredPacket expected = ethernet(0xd28b);
  addTime(expected, 0x0800);
  EXPECT_EQ(stripped(innerIpv4(packet).view(), kTags), innerIpv4(expected).captured());

  // What is removed before such a header leaves it, and everything after it, as it is.
  LayeredPacket both = ethernet(0x8100).vlan(5, 0xd28b);
  addTime(both, 0x8100).vlan(6, 0x0800);
  LayeredPacket once = ethernet(0xd28b);
  addTime(once, 0x8100).vlan(6, 0x0800);
  EXPECT_EQ(stripped(innerIpv4(both).view(), kTags), innerIpv4(once).captured());
  EXPECT_EQ(stripped(both.view(), kAllHeaders), frameOf(1));

  LayeredPacket snap = ethernet(100).bytes({0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0}).vlan(5, 0x0800);
  innerIpv4(snap);
  EXPECT_EQ(stripped(snap.view(), kTags), frameOf(1)) << "a length field would be wrong";
  EXPECT_EQ(stripped(snap.view(), kLabels), snap.captured());
}

TEST(Stripping, keeps_the_tags_of_cooked_packets_that_lose_labels) {
  for (const Header& header : {kCooked, kCooked2}) {
    LayeredPacket packet = ethernet(0x8100).vlan(5, 0x8847).mpls(7, true);
    LayeredPacket expected = ethernet(0x8100).vlan(5, 0x0800);
    const Bytes cooked = withHeader(header, innerIpv4(packet).captured());
    EXPECT_EQ(stripped(viewOf(cooked, header.linkType), kLabels),
              withHeader(header, innerIpv4(expected).captured()));
  }
}

TEST(Stripping, stores_as_many_bytes_as_asked_for) {
  LayeredPacket packet = ethernet(0x8100).vlan(5, 0x0800);
  const StrippedPacket result = withoutHeaders(innerIpv4(packet).view(), kTags);
  const Bytes expected = frameOf(1);
  for (size_t bytes = 0; bytes <= result.size(); bytes++) {
    Bytes out(bytes + 1, 0xee);
    result.store(out.data(), bytes);
    EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(bytes),
                           out.begin()));
    EXPECT_EQ(out.back(), 0xee);
  }
}

TEST(Decapsulation, survives_changed_bytes) {
  auto random = seededRandom();
  DecapScratch scratch;
  const std::vector<Case> cases = allCases();
  for (int round = 0; round < 50000; round++) {
    Bytes packet = cases[randomBelow(random, cases.size())].packet.captured();
    for (int i = 0; i < 3; i++) {
      packet[randomBelow(random, packet.size())] = static_cast<uint8_t>(random());
    }
    const PacketView view = viewOf(packet, 1);
    const FilterView seen = decapsulate(view, scratch);
    ASSERT_EQ(seen.captured.size(), seen.originalLength);
    ASSERT_LE(seen.captured.size(), packet.size());
    ASSERT_GE(seen.captured.size(), 14U);
    ASSERT_LE(stripped(view, static_cast<HeaderKinds>(round & 15)).size(), packet.size());
  }
}

}  // namespace
}  // namespace capfleet::test
