#include "filter/packet_filter.h"

#include <gtest/gtest.h>

#include "support/bpf_helper.h"
#include "support/layered_packet.h"
#include "support/regex_helper.h"
#include "support/stored_streams.h"
#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

PacketTransform transformOf(const std::string& expression, bool seesInnermost = false) {
  PacketTransform transform;
  transform.bpf = std::make_shared<BpfFilter>(parsed(compiled(expression)));
  transform.bpfSeesInnermost = seesInnermost;
  return transform;
}

bool accepts(const PacketTransform& transform, const Bytes& frame, uint32_t port = 0) {
  PacketFilter filter(transform);
  EXPECT_TRUE(filter.prepare());
  return filter.accepts({frame, static_cast<uint32_t>(frame.size()), kNowNs, 1, 0, port});
}

Bytes taggedUdp(uint32_t destination) {
  LayeredPacket packet;
  packet.ethernet(1, 0x8100).vlan(5, 0x0800).ipv4(1, 17).udp(1, destination);
  const std::span<const uint8_t> bytes = packet.view().captured;
  return Bytes(bytes.begin(), bytes.end());
}

TEST(PacketFilter, BpfSeesTheStoredPacketOrTheInnermostOne) {
  const Bytes packet = taggedUdp(53);
  EXPECT_FALSE(accepts(transformOf("udp port 53"), packet)) << "the tag stands before IP";
  EXPECT_TRUE(accepts(transformOf("vlan and udp port 53"), packet));
  EXPECT_TRUE(accepts(transformOf("udp port 53", true), packet));
  EXPECT_FALSE(accepts(transformOf("vlan", true), packet));
}

TEST(PacketFilter, FrameFilterAndBpfMustBothPass) {
  PacketTransform transform = transformOf("udp port 53", true);
  transform.frameFilter = FrameFilter({{FrameField::kCapturePort, false, {2}}});
  EXPECT_TRUE(accepts(transform, taggedUdp(53), 2));
  EXPECT_FALSE(accepts(transform, taggedUdp(53), 1));
  EXPECT_FALSE(accepts(transform, taggedUdp(54), 2));
}

TEST(PacketFilter, DownloadsDeliverTheStoredPacketOfTheStreamsPort) {
  StoredStreams store;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 40; i++) {
    const Bytes frame = taggedUdp(50 + i % 5);
    packets.push_back({kNowNs + i, static_cast<uint32_t>(frame.size()), frame});
  }
  store.addStream(packets, 1, 4);
  store.addStream(packets, 1, 6);
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.filter = parsed(compiled("udp port 53"));
  options.filterDecap = true;
  options.frameFilter = {{FrameField::kCapturePort, true, {4}}};
  std::erase_if(packets,
                [](const StoredPacket& packet) { return packet.captured != taggedUdp(53); });
  ASSERT_EQ(packets.size(), 8u);
  EXPECT_EQ(packetsOf(readBody(*bench.open(options))), packets);
}

/// Packets with few different bytes, among them zeros as in the headers of records.
std::vector<StoredPacket> wordyPackets(std::mt19937_64& random, size_t count, size_t rareEvery) {
  std::vector<StoredPacket> packets;
  for (size_t i = 0; i < count; i++) {
    const char* const bytes = random() % rareEvery == 0 ? "abc\0 \n1" : "zyx\0 \n1";
    Bytes captured(randomBelow(random, 30));
    for (uint8_t& byte : captured) byte = static_cast<uint8_t>(bytes[randomBelow(random, 7)]);
    packets.push_back({kNowNs + static_cast<int64_t>(i), 1500, captured});
  }
  return packets;
}

TEST(PacketFilter, DownloadsDeliverWhatTheRegularExpressionFindsInEachPacketByItself) {
  auto random = seededRandom();
  for (int i = 0; i < 20; i++) {
    const std::string pattern = randomPattern(random);
    const Bytes compiledBytes = tryCompiledPattern(pattern);
    if (compiledBytes.empty()) continue;
    const auto matcher = RegexMatcher::load(compiledBytes);
    ASSERT_TRUE(matcher);
    StoredStreams store;
    store.packetsPerBlock = 1 + randomBelow(random, 300);
    const size_t rareEvery = 1 + randomBelow(random, 50);
    store.addStream(wordyPackets(random, 1000, rareEvery));
    if (random() % 2 == 0) store.addStream(wordyPackets(random, 300, rareEvery));
    auto scratch = (*matcher)->makeScratch();
    auto expected = store.inRange(0, INT64_MAX);
    const size_t all = expected.size();
    std::erase_if(expected, [&](const StoredPacket& packet) {
      return !(*matcher)->matches(packet.captured, *scratch);
    });
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.regex = *matcher;
    options.scanBytes = 1 + randomBelow(random, 40000);
    const auto download = bench.open(options);
    ASSERT_EQ(packetsOf(readBody(*download)), expected) << pattern;
    EXPECT_EQ(download->totals().readPackets, all);
    EXPECT_LE(download->totals().excludedPackets, all - expected.size());
  }
}

}  // namespace
}  // namespace capfleet::test
