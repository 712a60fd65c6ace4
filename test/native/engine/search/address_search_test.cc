#include "search/address_search.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/addressed_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

AddressNeeds questionOf(uint32_t first, uint32_t last) {
  const AddressRange<uint32_t> range{first, last};
  return AddressNeeds(std::span(&range, 1), {});
}

/// 300 segments with a packet each second, of which every hundredth is from 10.0.0.1.
class Searches : public ::testing::Test {
 protected:
  void make(uint32_t linkTypeWord = 1) {
    streams_.packetsPerBlock = 5;
    streams_.segmentBytes = 24 + 10 * 80;
    std::vector<StoredPacket> packets;
    for (int64_t i = 0; i < 3000; i++) {
      const uint32_t source = i % 100 == 50 ? 0x0a000001 : 0xC0A80000 + static_cast<uint32_t>(i);
      packets.push_back({i * kSecond, 64, ipv4Frame(source, 0xC0000201)});
    }
    streams_.addStream(packets, linkTypeWord);
    ASSERT_GT(streams_.paths()[0].size(), 200u);
  }

  AddressSearch search(std::vector<AddressNeeds> questions, int64_t beginNs = 0,
                       int64_t endNs = 1'000'000 * kSecond) const {
    AddressSearch search(streams_.streams(), beginNs, endNs, std::move(questions));
    while (true) {
      const auto isDone = search.step();
      EXPECT_TRUE(isDone) << isDone.error().message;
      if (!isDone || *isDone) return search;
    }
  }

  StoredStreams streams_;
};

bool holds(const std::vector<SeenSpan>& spans, int64_t ns) {
  return std::any_of(spans.begin(), spans.end(),
                     [&](const SeenSpan& span) { return span.firstNs <= ns && ns <= span.lastNs; });
}

TEST_F(Searches, FindEveryPacketAndLittleElse) {
  make();
  const auto found =
      search({questionOf(0x0a000001, 0x0a000001), questionOf(0x0b000000, 0x0b000000)});
  const auto& spans = found.spans()[0];
  int64_t length = 0;
  for (const SeenSpan& span : spans) length += span.lastNs - span.firstNs;
  for (int64_t i = 50; i < 3000; i += 100) EXPECT_TRUE(holds(spans, i * kSecond)) << i;
  // A block has five packets.
  EXPECT_LE(length, 60 * 5 * kSecond);
  EXPECT_LE(found.spans()[1].size(), 10u);
  EXPECT_GT(found.ruledOutSegments(), found.segments() / 2);
  EXPECT_EQ(found.wholeSegments(), 0u);
  for (size_t i = 1; i < spans.size(); i++) {
    EXPECT_GE(spans[i].firstNs - spans[i - 1].lastNs, AddressSearch::kJoinedNs);
  }
}

TEST_F(Searches, GiveTheSameWithoutTables) {
  make();
  const auto with = search({questionOf(0x0a000001, 0x0a000001)});
  removeAddresses(streams_);
  const auto without = search({questionOf(0x0a000001, 0x0a000001)});
  EXPECT_EQ(without.ruledOutSegments(), 0u);
  for (int64_t i = 50; i < 3000; i += 100) {
    EXPECT_TRUE(holds(with.spans()[0], i * kSecond));
    EXPECT_TRUE(holds(without.spans()[0], i * kSecond));
  }
}

TEST_F(Searches, LookIntoTheNewestWithinABudget) {
  make();
  removeAddresses(streams_);
  std::vector<StreamSegments> streams = streams_.streams();
  for (SegmentEntry& entry : streams[0].segments) entry.sideBytes = 40 << 20;
  AddressSearch search(streams, 0, INT64_MAX, {questionOf(0x0a000001, 0x0a000001)});
  while (!*search.step()) {
  }
  EXPECT_EQ(search.wholeSegments(), search.segments() - 1);
  EXPECT_TRUE(holds(search.spans()[0], 50 * kSecond));
  EXPECT_FALSE(holds(search.spans()[0], 2999 * kSecond)) << "the newest was looked into";
}

TEST_F(Searches, StayWithinTheRange) {
  make();
  const auto found = search({questionOf(0xC0000201, 0xC0000201)}, 100 * kSecond, 200 * kSecond);
  EXPECT_EQ(found.spans()[0].front().firstNs, 100 * kSecond);
  EXPECT_EQ(found.spans()[0].back().lastNs, 199 * kSecond);
}

TEST_F(Searches, FindNetworks) {
  make();
  const auto found =
      search({questionOf(0x0a000000, 0x0affffff), questionOf(0xC0A80000, 0xC0A80fff)});
  for (int64_t i = 0; i < 3000; i++) {
    EXPECT_TRUE(holds(found.spans()[i % 100 == 50 ? 0 : 1], i * kSecond)) << i;
  }
}

TEST_F(Searches, HaveFewSpansThatHoldAll) {
  streams_.packetsPerBlock = 1;
  std::vector<StoredPacket> packets;
  for (int64_t i = 0; i < 3000; i++) {
    packets.push_back({i * i * kSecond, 64, ipv4Frame(0x0a000001, 0xC0000201)});
  }
  streams_.addStream(packets);
  const auto found = search({questionOf(0x0a000001, 0x0a000001)}, 0, INT64_MAX);
  EXPECT_EQ(found.spans()[0].size(), AddressSearch::kMostSpans);
  for (int64_t i = 0; i < 3000; i++) EXPECT_TRUE(holds(found.spans()[0], i * i * kSecond)) << i;
}

TEST_F(Searches, ShareTheSpansOfManyQuestions) {
  streams_.packetsPerBlock = 1;
  std::vector<StoredPacket> packets;
  for (int64_t i = 0; i < 300; i++) {
    packets.push_back({i * i * kSecond, 64, ipv4Frame(0x0a000001, 0xC0000201)});
  }
  streams_.addStream(packets);
  const std::vector<AddressNeeds> questions(3000, questionOf(0x0a000001, 0x0a000001));
  const auto found = search(questions, 0, INT64_MAX);
  size_t total = 0;
  for (const auto& spans : found.spans()) {
    total += spans.size();
    for (int64_t i = 0; i < 300; i++) ASSERT_TRUE(holds(spans, i * i * kSecond)) << i;
  }
  EXPECT_LE(total, AddressSearch::kMostSpansOfAll);
  EXPECT_GT(total, AddressSearch::kMostSpansOfAll / 4);
}

TEST_F(Searches, RuleOutNothingInOtherLinkTypes) {
  make(113);
  const auto found = search({questionOf(0x0b000000, 0x0b000000)});
  EXPECT_EQ(found.ruledOutSegments(), 0u);
  EXPECT_EQ(found.spans()[0].size(), 1u);
}

TEST_F(Searches, FailWhenASegmentIsGone) {
  make();
  std::filesystem::remove(streams_.paths()[0][5] + ".pcap");
  std::filesystem::remove(streams_.paths()[0][5] + ".idx");
  AddressSearch search(streams_.streams(), 0, INT64_MAX, {questionOf(0, 0xffffffff)});
  auto isDone = search.step();
  while (isDone && !*isDone) isDone = search.step();
  ASSERT_FALSE(isDone);
  EXPECT_EQ(isDone.error().code, Code::kAgedOut);
}

}  // namespace
}  // namespace capfleet::test
