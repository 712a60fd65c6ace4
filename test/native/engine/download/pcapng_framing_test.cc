#include "download/pcapng_framing.h"

#include <gtest/gtest.h>

#include "support/bpf_helper.h"
#include "support/decompressed_bytes.h"
#include "support/pcapng_bytes.h"
#include "support/random_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

/// A stream for each of the ports, of which the last two have another link type.
void addPorts(StoredStreams& store, std::mt19937_64& random, uint32_t ports, size_t packets) {
  for (uint32_t port = 0; port < ports; port++) {
    const Clock clock = kClocks[randomBelow(random, std::size(kClocks))];
    const uint32_t linkType = port < ports - 2 ? 1 : 101;
    store.addStream(randomPackets(random, clock, randomBelow(random, packets), 200), linkType,
                    port);
  }
}

PcapngOptions pcapngOf(const DownloadOptions& options) {
  PcapngOptions pcapng;
  pcapng.head = sectionHeader();
  for (const StreamSegments& stream : options.streams) {
    if (stream.segments.empty()) continue;
    const SegmentEntry& entry = stream.segments.front();
    pcapng.interfaces.push_back(interfaceOf(entry.port, entry.linkTypeWord));
  }
  return pcapng;
}

TEST(PcapngFraming, HasThePacketsOfThePcapWhateverIsDoneToThem) {
  auto random = seededRandom();
  for (int i = 0; i < turns(120); i++) {
    StoredStreams store;
    store.packetsPerBlock = 1 + randomBelow(random, 60);
    for (uint32_t port = 0; port < 3; port++) {
      store.addStream(randomPackets(random, Clock::kSteady, randomBelow(random, 1500), 200), 1,
                      port);
    }
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.scanBytes = 1 + randomBelow(random, 40000);
    if (random() % 2 == 0) options.filter = parsed(compiled("ether[0] & 1 = 1"));
    if (random() % 2 == 0) options.sliceBytes = 1 + static_cast<uint32_t>(randomBelow(random, 150));
    if (random() % 2 == 0) options.dedup = DuplicateOptions{1000};
    if (random() % 2 == 0) options.stripped = 1;
    if (random() % 3 == 0) options.limits.packets = 1 + randomBelow(random, 2000);
    if (random() % 3 == 0) options.clock.source = TimeSource::kA7130;
    const auto pcap = bench.open(options);
    const auto expected = packetsOf(readBody(*pcap));
    options.pcapng = pcapngOf(options);
    const auto download = bench.open(options);
    const PcapngContent got = contentOf(readBody(*download, randomBelow(random, 4)));
    ASSERT_EQ(got.stored(), expected);
    const DownloadTotals totals = download->totals();
    EXPECT_EQ(totals.packets, expected.size());
    EXPECT_EQ(totals.duplicates, pcap->totals().duplicates);
    EXPECT_EQ(totals.nextNs, pcap->totals().nextNs);
    EXPECT_EQ(totals.bytes + options.pcapng->head.size(), totals.outputBytes);
    EXPECT_EQ(totals.describedInterfaces, got.interfaces.size());
    for (uint32_t number = 0; number < totals.interfacePackets.size(); number++) {
      const auto ofIt = std::count_if(got.packets.begin(), got.packets.end(), [&](const auto& one) {
        return one.interfaceNumber == number;
      });
      EXPECT_EQ(totals.interfacePackets[number], static_cast<uint64_t>(ofIt));
    }
  }
}

TEST(PcapngFraming, GivesEachPacketTheInterfaceOfItsPortAndLinkType) {
  auto random = seededRandom();
  StoredStreams store;
  std::map<Bytes, uint32_t> ports;
  for (uint32_t port = 0; port < 4; port++) {
    const auto packets = randomPackets(random, Clock::kSteady, 500, 200);
    for (const StoredPacket& packet : packets) ports[packet.captured] = port;
    store.addStream(packets, port < 2 ? 1 : 101, port);
  }
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.pcapng = pcapngOf(options);
  const PcapngContent got = contentOf(readBody(*bench.open(options)));
  ASSERT_EQ(got.stored(), store.inRange(0, INT64_MAX));
  for (const PcapngPacket& packet : got.packets) {
    const uint32_t port = ports.at(packet.packet.captured);
    EXPECT_EQ(got.interfaces[packet.interfaceNumber],
              interfaceOf(port, port < 2 ? 1 : 101).description);
  }
}

TEST(PcapngFraming, CutsTimesToMicroseconds) {
  StoredStreams store;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 300; i++) packets.push_back(numberedPacket(kStartNs + i * 777, i, 60));
  store.addStream(packets);
  for (const bool drops : {false, true}) {
    DownloadBench bench;
    DownloadOptions options = store.options();
    options.toMicroseconds = true;
    if (drops) options.dedup = DuplicateOptions{1};
    options.pcapng = pcapngOf(options);
    auto expected = store.inRange(0, INT64_MAX);
    for (StoredPacket& packet : expected) packet.timestampNs -= packet.timestampNs % 1000;
    EXPECT_EQ(contentOf(readBody(*bench.open(options))).stored(), expected);
  }
}

/// With remarks at random times.
DownloadOptions remarkedOptions(const StoredStreams& store, std::mt19937_64& random) {
  DownloadOptions options = store.options();
  options.pcapng = pcapngOf(options);
  const auto all = store.inRange(0, INT64_MAX);
  std::set<int64_t> times;
  for (int i = 0; i < 10; i++) {
    times.insert(all[randomBelow(random, all.size())].timestampNs +
                 static_cast<int64_t>(random() % 3) - 1);
  }
  for (const int64_t atNs : times) {
    options.pcapng->remarks.push_back({atNs, commentOption("since " + std::to_string(atNs))});
  }
  return options;
}

TEST(PcapngFraming, DescribesAndRemarksAtTheSameBytesHoweverItIsRead) {
  auto random = seededRandom();
  for (int i = 0; i < turns(40); i++) {
    StoredStreams store;
    store.packetsPerBlock = 1 + randomBelow(random, 60);
    addPorts(store, random, 5, 1500);
    store.addStream({numberedPacket(kStartNs, 1, 40)}, 1, 9);
    DownloadOptions options = remarkedOptions(store, random);
    Bytes first;
    for (int j = 0; j < 3; j++) {
      DownloadBench bench;
      options.scanBytes = 1 + randomBelow(random, 40000);
      const auto download = bench.open(options);
      const Bytes body = readBody(*download, randomBelow(random, 4));
      if (j == 0) first = body;
      ASSERT_EQ(body, first);
      EXPECT_LE(download->totals().remarkedPackets, options.pcapng->remarks.size());
    }
    const PcapngContent got = contentOf(first);
    ASSERT_EQ(got.stored(), store.inRange(0, INT64_MAX));
    // Each remark is on the first packet at or after its time.
    std::map<size_t, Bytes> remarkOf;
    for (const PcapngRemark& remark : options.pcapng->remarks) {
      const auto at = std::find_if(got.packets.begin(), got.packets.end(), [&](const auto& one) {
        return one.packet.timestampNs >= remark.atNs;
      });
      if (at == got.packets.end()) continue;
      append(remarkOf[static_cast<size_t>(at - got.packets.begin())], remark.options);
    }
    for (size_t j = 0; j < got.packets.size(); j++) {
      Bytes expected = remarkOf[j];
      if (!expected.empty()) put32(expected, 0);
      ASSERT_EQ(got.packets[j].options, expected) << "packet " << j;
    }
  }
}

/// How many packet blocks end within the first `bytes` bytes.
uint64_t packetsWithin(const Bytes& file, size_t bytes) {
  uint64_t packets = 0;
  for (size_t at = 0; at < file.size();) {
    const bool isPacket = loadLe32(&file[at]) == 6;
    at += loadLe32(&file[at + 4]);
    if (isPacket && at <= bytes) packets++;
  }
  return packets;
}

TEST(PcapngFraming, ContinuesAtAnyByte) {
  auto random = seededRandom();
  StoredStreams store;
  store.packetsPerBlock = 30;
  addPorts(store, random, 5, 400);
  store.addStream({numberedPacket(kStartNs, 1, 40)}, 1, 9);
  DownloadOptions options = remarkedOptions(store, random);
  Bytes body;
  DownloadTotals whole;
  {
    DownloadBench bench;
    const auto download = bench.open(options);
    body = readBody(*download);
    whole = download->totals();
  }
  for (int i = 0; i < turns(150); i++) {
    DownloadBench bench;
    const size_t after = randomBelow(random, body.size() + 100);
    options.afterBytes = after;
    const auto download = bench.open(options);
    const Bytes rest = readBody(*download, randomBelow(random, 3));
    const size_t skipped = std::min(after, body.size());
    ASSERT_EQ(rest, Bytes(body.begin() + static_cast<ptrdiff_t>(skipped), body.end()));
    const DownloadTotals totals = download->totals();
    EXPECT_EQ(totals.leftToSkip, after - skipped);
    EXPECT_EQ(totals.packets, whole.packets);
    EXPECT_EQ(totals.interfacePackets, whole.interfacePackets);
    EXPECT_EQ(totals.skippedPackets, packetsWithin(body, skipped));
  }
}

TEST(PcapngFraming, StaysWithinMaxBytesWithWhatFollows) {
  auto random = seededRandom();
  StoredStreams store;
  addPorts(store, random, 4, 800);
  store.addStream({numberedPacket(kStartNs, 1, 40)}, 1, 9);
  DownloadOptions options = remarkedOptions(store, random);
  PcapngOptions& pcapng = *options.pcapng;
  pcapng.otherBytes = pcapng.head.size() + pcapng.insertedBytes() + 500;
  for (int i = 0; i < turns(30); i++) {
    DownloadBench bench;
    options.limits.bytes = 3000 + randomBelow(random, 60000);
    const auto download = bench.open(options);
    const Bytes body = readBody(*download);
    EXPECT_LE(body.size() + 500, *options.limits.bytes);
    contentOf(body);
  }
}

TEST(PcapngFraming, KeepsRoomForWhatItInserts) {
  auto random = seededRandom();
  StoredStreams store;
  for (uint32_t port = 0; port < 2; port++) {
    std::vector<StoredPacket> packets;
    for (uint32_t i = 0; i < 60; i++) {
      packets.push_back(
          numberedPacket(kStartNs + i, port * 100 + i, 200'000 - randomBelow(random, 99)));
    }
    store.addStream(packets, 1, port);
  }
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.pcapng = pcapngOf(options);
  for (int64_t i = 0; i < 8; i++) {
    options.pcapng->remarks.push_back({kStartNs + i * 5, commentOption(std::string(60'000, 'x'))});
  }
  const PcapngContent got = contentOf(readBody(*bench.open(options)));
  EXPECT_EQ(got.stored(), store.inRange(0, INT64_MAX));
  options.pcapng->remarks.push_back({kStartNs, commentOption(std::string(60'000, 'x'))});
  const auto refused = bench.tryOpen(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBadParameter);
}

TEST(PcapngFraming, RefusesSegmentsWithoutAnInterface) {
  auto random = seededRandom();
  StoredStreams store;
  store.addStream(randomPackets(random, Clock::kSteady, 10, 100), 1, 3);
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.pcapng.emplace();
  options.pcapng->head = sectionHeader();
  options.pcapng->interfaces.push_back(interfaceOf(2, 1));
  const auto refused = bench.tryOpen(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a segment of port 3 has no interface in the file");
}

TEST(PcapngFraming, CompressesToTheSameBytes) {
  auto random = seededRandom();
  StoredStreams store;
  addPorts(store, random, 4, 3000);
  store.addStream({numberedPacket(kStartNs, 1, 40)}, 1, 9);
  DownloadOptions options = remarkedOptions(store, random);
  DownloadBench bench;
  const Bytes plain = readBody(*bench.open(options));
  options.compression = {Codec::kGzip, 1};
  EXPECT_EQ(decompressed(Codec::kGzip, readBody(*bench.open(options))), plain);
}

}  // namespace
}  // namespace capfleet::test
