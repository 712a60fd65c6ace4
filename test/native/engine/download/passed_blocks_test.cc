#include "download/passed_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "support/address_set_helper.h"
#include "support/addressed_packets.h"
#include "support/bpf_helper.h"
#include "support/random_packets.h"
#include "support/regex_helper.h"

namespace capfleet::test {
namespace {

/// A stream whose packets have few addresses, most of them only for a while.
std::vector<StoredPacket> addressedPackets(std::mt19937_64& random, Clock clock, size_t count) {
  std::vector<StoredPacket> packets = randomPackets(random, clock, count, 60);
  uint32_t address = 0;
  for (StoredPacket& packet : packets) {
    if (random() % 40 == 0) address = static_cast<uint32_t>(randomBelow(random, 40));
    Bytes frame = random() % 20 == 0
                      ? addressedFrame(random)
                      : ipv4Frame(0x0a000000 + address / 3 * 256 + address, 0xC0000200 + address);
    packet.captured = frame;
    packet.originalLength = static_cast<uint32_t>(frame.size() + randomBelow(random, 3));
  }
  return packets;
}

/// And tables of addresses.
void removeSieves(const StoredStreams& streams) {
  for (const auto& segments : streams.paths()) {
    for (const std::string& segment : segments) std::filesystem::remove(segment + ".sieve");
  }
  removeAddresses(streams);
}

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

DownloadOptions withFilter(DownloadOptions options, const std::string& expression) {
  options.filter = parsed(compiled(expression));
  return options;
}

/// Patterns that some packets match, compiled once.
const std::vector<std::shared_ptr<const RegexMatcher>>& matchers() {
  static const std::vector made = {matcherOf("\\x0a"), matcherOf("[\\x01-\\x05]\\xc0\\x00"),
                                   matcherOf("^\\x00.*\\x02"), matcherOf("\\x00\\x07$")};
  return made;
}

/// On the capture's port, or on one that no packet of these tests has.
FrameCondition randomFrameCondition(std::mt19937_64& random) {
  static constexpr std::array kFields = {FrameField::kCapturePort, FrameField::kCapturePort,
                                         FrameField::kA7130Device, FrameField::kC3550SourcePort};
  return {kFields[randomBelow(random, kFields.size())],
          random() % 2 == 0,
          {static_cast<uint32_t>(randomBelow(random, 3))}};
}

/// A query as users write them: any filter, range, limit.
DownloadOptions randomQuery(std::mt19937_64& random, const StoredStreams& streams) {
  DownloadOptions options = streams.options();
  if (random() % 2 == 0) options.addresses = addressSet(randomSet(random));
  while (!options.addresses || random() % 2 == 0) {
    const auto programs = tryCompiled(addressFilter(random, 2), true);
    if (!programs) continue;
    options.filter = parsed(*programs);
    break;
  }
  const auto at = [&] { return kStartNs + static_cast<int64_t>(randomBelow(random, 12'000)); };
  if (random() % 2 == 0) options.beginNs = at();
  if (random() % 2 == 0) options.endNs = std::max(options.beginNs, at());
  if (random() % 6 == 0) options.tsMaxNs = 1 + static_cast<int64_t>(randomBelow(random, 4000));
  if (random() % 6 == 0) options.limits.packets = randomBelow(random, 40);
  if (random() % 6 == 0) options.sliceBytes = 1 + static_cast<uint32_t>(randomBelow(random, 60));
  if (random() % 6 == 0) options.afterBytes = randomBelow(random, 4000);
  if (random() % 6 == 0) options.filterDecap = true;
  if (random() % 4 == 0) options.frameFilter = {randomFrameCondition(random)};
  if (random() % 4 == 0) options.regex = matchers()[randomBelow(random, matchers().size())];
  if (random() % 8 == 0) options.clock.source = TimeSource::kA7130;
  options.scanBytes = 1 + randomBelow(random, 20'000);
  return options;
}

TEST(PassedBlocks, NeverChangeABody) {
  auto random = seededRandom();
  uint64_t passed = 0, packets = 0, matched = 0, framed = 0;
  for (int round = 0; round < turns(12, 4); round++) {
    StoredStreams streams;
    streams.packetsPerBlock = 4 + randomBelow(random, 30);
    streams.segmentBytes = 5000 + randomBelow(random, 100'000);
    for (size_t i = 1 + randomBelow(random, 3); i > 0; i--) {
      const auto port = static_cast<uint32_t>(randomBelow(random, 3));
      streams.addStream(addressedPackets(random, kClocks[randomBelow(random, 4)], 1500), 1, port);
    }
    std::vector<DownloadOptions> queries;
    for (int i = 0; i < 25; i++) queries.push_back(randomQuery(random, streams));
    DownloadBench bench;
    std::vector<Answer> with;
    for (const DownloadOptions& query : queries) with.push_back(answerOf(bench, query));
    removeSieves(streams);
    for (size_t i = 0; i < queries.size(); i++) {
      const Answer without = answerOf(bench, queries[i]);
      ASSERT_EQ(with[i].body, without.body) << "query " << i;
      EXPECT_EQ(without.totals.passedBlocks, 0u);
      passed += with[i].totals.passedBlocks;
      packets += without.totals.packets;
      if (queries[i].regex) matched += without.totals.packets;
      if (!queries[i].frameFilter.empty()) framed += without.totals.packets;
      const bool isWhole = !queries[i].tsMaxNs && !queries[i].limits.packets;
      if (!isWhole) continue;
      EXPECT_EQ(with[i].totals.readPackets, without.totals.readPackets) << "query " << i;
      EXPECT_EQ(with[i].totals.readBytes, without.totals.readBytes) << "query " << i;
      EXPECT_EQ(with[i].totals.excludedPackets, without.totals.excludedPackets) << "query " << i;
    }
  }
  EXPECT_GT(passed, 1000u);
  EXPECT_GT(packets, 1000u);
  EXPECT_GT(matched, 0u);
  EXPECT_GT(framed, 0u);
}

/// 100 blocks, of which only the 70th has the address that the filter selects.
class NeedleStream {
 public:
  NeedleStream() {
    streams.packetsPerBlock = 10;
    std::vector<StoredPacket> packets;
    for (uint32_t i = 0; i < 1000; i++) {
      const uint32_t address = i == 705 ? 0x0a000001 : 0xC0A80000 + i;
      packets.push_back({kStartNs + i, 64, ipv4Frame(address, 0xC0000201)});
    }
    streams.addStream(packets);
    segment = streams.paths()[0][0];
  }

  Answer ask(DownloadBench& bench, const std::string& expression = "host 10.0.0.1") const {
    return answerOf(bench, withFilter(streams.options(), expression));
  }

  StoredStreams streams;
  std::string segment;
};

TEST(PassedBlocks, AreAllThatDoNotBearTheAddress) {
  const NeedleStream needle;
  DownloadBench bench;
  const Answer answer = needle.ask(bench);
  EXPECT_EQ(answer.totals.packets, 1u);
  EXPECT_GE(answer.totals.passedBlocks, 95u);
  EXPECT_EQ(answer.totals.readPackets, 1000u);
  EXPECT_EQ(answer.totals.excludedPackets, 999u);
  EXPECT_EQ(needle.ask(bench, "not host 10.0.0.1").totals.passedBlocks, 0u);
  EXPECT_EQ(needle.ask(bench, "").totals.passedBlocks, 0u);
}

TEST(PassedBlocks, AreAllThatBearNoAddressOfASet) {
  const NeedleStream needle;
  DownloadBench bench;
  MadeSet made;
  // A sieve lets up to one address in a hundred pass in vain.
  for (uint32_t i = 0; i < 9; i++) made.four.push_back({0x0b000000 + i, 0x0b000000 + i});
  made.four.push_back({0x0a000001, 0x0a000001});
  DownloadOptions options = needle.streams.options();
  options.addresses = addressSet(made);
  const Answer answer = answerOf(bench, options);
  EXPECT_EQ(answer.totals.packets, 1u);
  EXPECT_GE(answer.totals.passedBlocks, 80u);
  EXPECT_EQ(answer.totals.excludedPackets, 999u);
  EXPECT_EQ(answerOf(bench, withFilter(options, "udp")).totals.packets, 0u);
  options.readsAllBlocks = true;
  EXPECT_EQ(answerOf(bench, options).totals.passedBlocks, 0u);
}

TEST(PassedBlocks, AreReadWhereTheirSieveIsDamagedOrOfAnotherBlock) {
  const NeedleStream needle;
  DownloadBench bench;
  const Bytes sieves = readFile(needle.segment + ".sieve");
  const auto rewrite = [&](const Bytes& bytes) {
    std::ofstream out(needle.segment + ".sieve", std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  };
  Bytes damaged = sieves;
  damaged[0] ^= 1;
  rewrite(damaged);
  EXPECT_EQ(needle.ask(bench).totals.packets, 1u);
  EXPECT_EQ(needle.ask(bench).totals.passedBlocks, 0u);
  // The first sieve says for block 70 what is true of block 0.
  Bytes lying(sieves.begin(), sieves.begin() + 16 + loadLe32(&sieves[12]));
  storeLe32(&lying[8], 70);
  rewrite(lying);
  EXPECT_EQ(needle.ask(bench).totals.packets, 1u);
  EXPECT_EQ(needle.ask(bench).totals.passedBlocks, 0u);
  rewrite({});
  EXPECT_EQ(needle.ask(bench).totals.packets, 1u);
}

TEST(PassedBlocks, CountWhenAllOfTheirSliceIsHandedOut) {
  // More than a download holds in memory, so that it cannot have finished the slice at the
  // beginning.
  constexpr uint32_t kFound = 600;
  constexpr uint32_t kPassed = 1000;
  StoredStreams streams;
  streams.packetsPerBlock = 10;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < kFound + kPassed; i++) {
    Bytes frame = ipv4Frame(i < kFound ? 0x0a000001 : 0xC0A80000 + i, 0xC0000201);
    if (i < kFound) frame.resize(20'000);
    const auto bytes = static_cast<uint32_t>(frame.size());
    packets.push_back({kStartNs + i, bytes, std::move(frame)});
  }
  streams.addStream(packets);
  DownloadBench bench;
  DownloadOptions options = withFilter(streams.options(), "host 10.0.0.1");
  options.scanBytes = UINT32_MAX;
  const auto download = bench.open(options);
  uint64_t atFirst = UINT64_MAX;
  for (;;) {
    const Download::Answer part = nextPart(*download);
    ASSERT_TRUE(part);
    if (*part == nullptr) break;
    const DownloadTotals totals = download->totals();
    if (totals.packets > 0 && atFirst == UINT64_MAX) atFirst = totals.excludedPackets;
    download->release(part->get());
  }
  EXPECT_EQ(atFirst, 0u);
  EXPECT_EQ(download->totals().packets, kFound);
  EXPECT_GE(download->totals().passedBlocks, 95u);
  EXPECT_EQ(download->totals().excludedPackets, kPassed);
}

TEST(PassedBlocks, NeedNotBeWhole) {
  const NeedleStream needle;
  const auto index = readSegmentIndex(needle.segment);
  ASSERT_TRUE(index);
  damage(needle.segment, index->blocks[3]);
  damage(needle.segment, index->blocks[70]);
  DownloadBench bench;
  const Answer answer = needle.ask(bench);
  EXPECT_EQ(answer.totals.packets, 0u);
  EXPECT_EQ(answer.totals.corruptBlocks, 1u) << "the one that was read";
}

TEST(PassedBlocks, AreNotLookedForInOtherLinkTypes) {
  StoredStreams streams;
  streams.packetsPerBlock = 10;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 100; i++) packets.push_back({kStartNs + i, 64, ipv4Frame(i, i)});
  streams.addStream(packets, 113);
  DownloadBench bench;
  const Answer answer = answerOf(bench, withFilter(streams.options(), "host 10.0.0.1"));
  EXPECT_EQ(answer.totals.passedBlocks, 0u);
  EXPECT_EQ(std::filesystem::file_size(streams.paths()[0][0] + ".sieve"), 0u);
}

}  // namespace
}  // namespace capfleet::test
