#include "download/ruled_out_segments.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/address_set_helper.h"
#include "support/addressed_packets.h"
#include "support/bpf_helper.h"
#include "support/random_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

struct Answer {
  Bytes body;
  DownloadTotals totals;
};

Answer answerOf(DownloadBench& bench, const DownloadOptions& options) {
  const auto download = bench.open(options);
  Answer answer;
  answer.body = readBody(*download);
  answer.totals = download->totals();
  return answer;
}

/// 200 segments, of which only some have the addresses 10.0.0.1 and 2001:db8::1.
class ManySegments {
 public:
  explicit ManySegments(uint32_t linkTypeWord = 1) {
    streams.segmentBytes = 2000;
    for (uint32_t port = 0; port < 2; port++) {
      std::vector<StoredPacket> packets;
      for (uint32_t i = 0; i < 5000; i++) {
        Bytes frame = ipv4Frame(i % 1500 == 700 ? 0x0a000001 : 0xC0A80000 + i / 10, 0xC0000201);
        if (i == 4000) {
          frame = Bytes(80);
          frame[12] = 0x86;
          frame[13] = 0xDD;
          putBytes(frame, 22, {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
        }
        packets.push_back({kStartNs + i, static_cast<uint32_t>(frame.size()), frame});
      }
      streams.addStream(packets, linkTypeWord, port);
    }
  }

  DownloadOptions query(const std::string& expression) const {
    DownloadOptions options = streams.options();
    options.filter = parsed(compiled(expression));
    return options;
  }

  /// Removes all files of the segments that the query does not need, so that opening any fails.
  void removeFilesWithout(const std::set<uint32_t>& kept) const {
    for (const StreamSegments& stream : streams.streams()) {
      for (const SegmentEntry& entry : stream.segments) {
        if (kept.contains(entry.number)) continue;
        for (const char* ending : kSegmentEndings) {
          std::filesystem::remove(stream.pathOf(entry) + ending);
        }
      }
    }
  }

  StoredStreams streams;
};

TEST(RuledOutSegments, AreNotOpened) {
  const ManySegments many;
  DownloadBench bench;
  const DownloadOptions options = many.query("host 10.0.0.1");
  const Answer with = answerOf(bench, options);
  const size_t segments = 2 * many.streams.streams()[0].segments.size();
  EXPECT_GT(segments, 300u);
  EXPECT_EQ(with.totals.packets, 6u);
  EXPECT_GE(with.totals.ruledOutSegments, segments - 6 - segments / 50);
  std::set<uint32_t> kept;
  for (const SegmentEntry& entry : many.streams.streams()[0].segments) {
    for (const uint32_t i : {700u, 2200u, 3700u}) {
      if (entry.minNs <= kStartNs + i && entry.maxNs >= kStartNs + i) kept.insert(entry.number);
    }
  }
  // An exact test of the files: whatever is opened without need is missing now.
  many.removeFilesWithout(kept);
  const Answer without = answerOf(bench, options);
  if (with.totals.ruledOutSegments == segments - 2 * kept.size()) {
    EXPECT_EQ(without.totals.corruptBlocks, 0u);
  }
  EXPECT_EQ(with.totals.ruledOutSegments, without.totals.ruledOutSegments);
  EXPECT_EQ(without.body, with.body);
}

TEST(RuledOutSegments, CountAsIfTheyHadBeenRead) {
  const ManySegments many;
  DownloadBench bench;
  std::vector<DownloadOptions> queries;
  for (const char* expression : {"host 10.0.0.1", "src net 10.0.0.0/24", "host 10.9.9.9",
                                 "net 10.0.0.0/16", "host 2001:db8::1", "ip6 net 2001:db8::/32"}) {
    queries.push_back(many.query(expression));
    queries.push_back(many.query(expression));
    queries.back().beginNs = kStartNs + 777;
    queries.back().endNs = kStartNs + 4321;
  }
  MadeSet made;
  made.four.push_back({0x0a000001, 0x0a000001});
  queries.push_back(many.streams.options());
  queries.back().addresses = addressSet(made);
  made.four[0] = {0x0a000000, 0x0affffff};
  queries.push_back(many.streams.options());
  queries.back().addresses = addressSet(made);
  std::vector<Answer> with;
  for (const DownloadOptions& query : queries) with.push_back(answerOf(bench, query));
  removeAddresses(many.streams);
  for (size_t i = 0; i < queries.size(); i++) {
    const Answer without = answerOf(bench, queries[i]);
    EXPECT_EQ(with[i].body, without.body) << i;
    EXPECT_EQ(without.totals.ruledOutSegments, 0u);
    EXPECT_GT(with[i].totals.ruledOutSegments, 100u) << i;
    EXPECT_EQ(with[i].totals.readPackets, without.totals.readPackets) << i;
    EXPECT_EQ(with[i].totals.readBytes, without.totals.readBytes) << i;
    EXPECT_EQ(with[i].totals.excludedPackets, without.totals.excludedPackets) << i;
  }
}

TEST(RuledOutSegments, AreNoneWherePacketsOfAnyAddressMayPass) {
  const ManySegments many;
  DownloadBench bench;
  for (const char* expression : {"", "udp", "not host 10.0.0.1", "host 10.0.0.1 or port 53",
                                 "net 10.0.0.0/8", "host 192.0.2.1"}) {
    EXPECT_EQ(answerOf(bench, many.query(expression)).totals.ruledOutSegments, 0u) << expression;
  }
  DownloadOptions forced = many.query("host 10.0.0.1");
  forced.readsAllBlocks = true;
  EXPECT_EQ(answerOf(bench, forced).totals.ruledOutSegments, 0u);
  DownloadOptions inside = many.query("host 10.0.0.1");
  inside.filterDecap = true;
  EXPECT_EQ(answerOf(bench, inside).totals.ruledOutSegments, 0u);
}

TEST(RuledOutSegments, AreNoneThatGrowOrAreDamagedOrHaveChanged) {
  ManySegments many;
  DownloadBench bench;
  DownloadOptions options = many.query("host 10.9.9.9");
  for (StreamSegments& stream : options.streams) {
    for (SegmentEntry& entry : stream.segments) {
      if (entry.number % 3 == 0) entry.flags |= kSegmentDamaged;
      if (entry.number % 3 == 1) entry.packets++;
      if (entry.number % 3 == 2) entry.bytes++;
    }
    stream.segments.back().flags |= kSegmentGrowing;
  }
  EXPECT_EQ(answerOf(bench, options).totals.ruledOutSegments, 0u);
}

TEST(RuledOutSegments, OfOtherLinkTypesAreNone) {
  const ManySegments many(113);
  DownloadBench bench;
  DownloadOptions options = many.streams.options();
  MadeSet made;
  made.four.push_back({0x0a090909, 0x0a090909});
  options.addresses = addressSet(made);
  EXPECT_EQ(answerOf(bench, options).totals.ruledOutSegments, 0u);
}

/// Whatever a filter accepts must be found, whatever the packets are.
TEST(RuledOutSegments, NeverHoldAPacketThatAFilterAccepts) {
  auto random = seededRandom();
  uint64_t ruledOut = 0, packets = 0;
  for (int round = 0; round < turns(8, 3); round++) {
    StoredStreams streams;
    streams.segmentBytes = 600 + randomBelow(random, 3000);
    std::vector<StoredPacket> stored;
    for (uint32_t i = 0; i < 1500; i++) {
      const Bytes frame = addressedFrame(random);
      stored.push_back({kStartNs + i, static_cast<uint32_t>(frame.size()), frame});
    }
    streams.addStream(stored);
    DownloadBench bench;
    std::vector<DownloadOptions> queries;
    std::vector<Answer> with;
    while (queries.size() < 30) {
      DownloadOptions options = streams.options();
      if (queries.size() % 3 == 0) {
        options.addresses = addressSet(randomSet(random));
      } else {
        const auto programs = tryCompiled(addressFilter(random, 2), true);
        if (!programs) continue;
        options.filter = parsed(*programs);
      }
      with.push_back(answerOf(bench, options));
      queries.push_back(std::move(options));
    }
    removeAddresses(streams);
    for (size_t i = 0; i < queries.size(); i++) {
      const Answer without = answerOf(bench, queries[i]);
      ASSERT_EQ(with[i].body, without.body) << "query " << i;
      EXPECT_EQ(with[i].totals.excludedPackets, without.totals.excludedPackets) << "query " << i;
      ruledOut += with[i].totals.ruledOutSegments;
      packets += without.totals.packets;
    }
  }
  // How many depends on the sizes of segments, which are random.
  EXPECT_GT(ruledOut, 100u);
  EXPECT_GT(packets, 1000u);
}

}  // namespace
}  // namespace capfleet::test
