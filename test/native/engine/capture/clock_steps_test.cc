// A capture clock that steps: packets are stored as they arrive, and every range query finds
// exactly those whose time is in the range. CAPFLEET_TURNS=5000 runs fifty times as many schedules.
#include <gtest/gtest.h>

#include "store/packet_count.h"
#include "support/seed.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kHourNs = 3600 * kSecondNs;
constexpr int64_t kStartNs = 1'700'000'000'123'456'789;

int64_t randomSpan(std::mt19937_64& random, int64_t endNs) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(endNs));
}

/// The clock after one step.
int64_t stepped(std::mt19937_64& random, int64_t nowNs) {
  switch (randomBelow(random, 8)) {
    case 0:
      return nowNs + kHourNs;
    case 1:
      return std::max<int64_t>(0, nowNs - kHourNs);
    case 2:
      return randomSpan(random, kSecondNs);  // 1970: a device without a battery
    case 3:
      return kStartNs + randomSpan(random, kHourNs);  // corrected
    case 4:
      return nowNs + randomSpan(random, kSecondNs);
    case 5:
      return std::max<int64_t>(0, nowNs - randomSpan(random, kSecondNs));
    default:  // within what a slewed clock corrects
      return std::max<int64_t>(0, nowNs + randomSpan(random, 2000) - 1000);
  }
}

/// Packets in the order of their arrival, with a clock that steps up to 20 times.
std::vector<StoredPacket> scheduleOf(std::mt19937_64& random, uint32_t& number) {
  const size_t count = randomBelow(random, 160);
  const size_t steps = randomBelow(random, 21);
  std::vector<StoredPacket> packets;
  int64_t nowNs = kStartNs + randomSpan(random, kSecondNs);
  for (size_t i = 0; i < count; i++) {
    if (randomBelow(random, count) < steps) nowNs = stepped(random, nowNs);
    nowNs += randomSpan(random, random() % 4 == 0 ? kSecondNs : 5);
    packets.push_back(numberedPacket(nowNs, number++, randomBelow(random, 90)));
  }
  return packets;
}

/// An instant at which a mistake would show: at a packet or beside one, or anywhere.
int64_t interestingNs(std::mt19937_64& random, const std::vector<StoredPacket>& all) {
  if (all.empty() || random() % 8 == 0) return randomSpan(random, 2 * kStartNs);
  const int64_t atNs = all[randomBelow(random, all.size())].timestampNs;
  return std::max<int64_t>(0, atNs + randomSpan(random, 3) - 1);
}

IntervalCount countOf(const StoredStreams& store, int64_t beginNs, int64_t endNs) {
  PacketCount count(store.streams(), {beginNs, endNs});
  for (;;) {
    const Result<bool> isCounted = count.step();
    if (!isCounted) ADD_FAILURE() << isCounted.error().message;
    if (!isCounted || *isCounted) return count.counts().front();
  }
}

void expectRange(const StoredStreams& store, int64_t beginNs, int64_t endNs, uint64_t scanBytes) {
  const std::vector<StoredPacket> expected = store.inRange(beginNs, endNs);
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.beginNs = beginNs;
  options.endNs = endNs;
  options.scanBytes = scanBytes;
  const auto download = bench.open(options);
  // By time, then stream, then arrival: nothing lost, nothing twice, nothing out of order.
  ASSERT_EQ(packetsOf(readBody(*download)), expected) << beginNs << " to " << endNs;
  EXPECT_EQ(download->totals().latePackets, 0u);
  EXPECT_EQ(countOf(store, beginNs, endNs).packets, expected.size());
}

TEST(ClockSteps, EveryRangeHoldsExactlyThePacketsOfItsTime) {
  auto random = seededRandom();
  uint32_t number = 0;
  for (int i = 0; i < turns(200); i++) {
    StoredStreams store;
    store.packetsPerBlock = 1 + randomBelow(random, 40);
    store.segmentBytes = 500 + randomBelow(random, 12'000);
    const size_t streams = 1 + randomBelow(random, 3);
    for (size_t port = 0; port < streams; port++) {
      store.addStream(scheduleOf(random, number), 1, static_cast<uint32_t>(port));
    }
    const std::vector<StoredPacket> all = store.inRange(0, INT64_MAX);
    const uint64_t scanBytes = 1 + randomBelow(random, 8000);
    expectRange(store, 0, INT64_MAX, scanBytes);
    for (int query = 0; query < 3; query++) {
      const int64_t a = interestingNs(random, all);
      const int64_t b = interestingNs(random, all);
      expectRange(store, std::min(a, b), std::max(a, b), scanBytes);
    }
    if (HasFatalFailure()) FAIL() << "schedule " << i;
  }
}

/// The oracle checks the order of equal times too: two exchanged packets are a difference.
TEST(ClockSteps, TheOracleSeesTwoPacketsExchanged) {
  StoredStreams store;
  store.addStream({numberedPacket(kStartNs, 1, 20), numberedPacket(kStartNs, 2, 20)});
  StoredStreams exchanged;
  exchanged.addStream({numberedPacket(kStartNs, 2, 20), numberedPacket(kStartNs, 1, 20)});
  EXPECT_NE(store.inRange(0, INT64_MAX), exchanged.inRange(0, INT64_MAX));
}

}  // namespace
}  // namespace capfleet::test
