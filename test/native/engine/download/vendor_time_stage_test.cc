// Whole downloads with vendor times, compared with a slow reading of the same store.
#include "download/vendor_time_stage.h"

#include <gtest/gtest.h>

#include <deque>

#include "support/bpf_helper.h"
#include "support/seed.h"
#include "support/stored_streams.h"
#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;

/// The capture of one switch port: packets 3 ms apart on average, for two minutes.
class SwitchPort {
 public:
  SwitchPort(std::mt19937_64& random, TimeSource source) : random_(random), source_(source) {}

  std::vector<StoredPacket> packets(size_t count) {
    std::vector<StoredPacket> all;
    int64_t nicNs = kNowNs + static_cast<int64_t>(randomBelow(random_, 1000));
    for (size_t i = 0; i < count; i++) {
      nicNs += static_cast<int64_t>(randomBelow(random_, 6 * kMillisecondNs));
      if (random_() % 200 == 0) nicNs -= 2 * kMillisecondNs;
      if (i % 300 == 100) nicNs += 2 * kSecondNs;
      const Bytes bytes = isStamped() ? stampedFrame(i, nicNs) : plainFrame(i).bytes();
      all.push_back({nicNs, static_cast<uint32_t>(bytes.size()), bytes});
    }
    return all;
  }

 private:
  bool isStamped() { return random_() % 8 != 0; }

  FrameBytes plainFrame(uint64_t number) {
    FrameBytes frame = FrameBytes::plain(40 + randomBelow(random_, 60));
    frame.put(number, 4);
    return frame;
  }

  /// The switch's clock is 200 ms ahead, and its packets reach the NIC up to 15 ms late.
  Bytes stampedFrame(uint64_t number, int64_t nicNs) {
    const int64_t timeNs = nicNs + 200 * kMillisecondNs -
                           static_cast<int64_t>(randomBelow(random_, 15 * kMillisecondNs));
    switch (source_) {
      case TimeSource::kA7150Insert:
        return random_() % 50 == 0 ? keyFrame(timeNs)
                                   : plainFrame(number).put(word(timeNs), 4).bytes();
      case TimeSource::kErspan3:
        return erspanFrame(number, timeNs);
      default:
        return plainFrame(number)
            .fcs()
            .put(static_cast<uint64_t>(timeNs / kSecondNs), 4)
            .put(static_cast<uint64_t>(timeNs % kSecondNs), 4)
            .put(1, 1)
            .put(7, 2)
            .put(3, 1)
            .bytes();
    }
  }

  static uint64_t tick(int64_t timeNs) { return static_cast<uint64_t>(timeNs / 20 * 7); }
  static uint64_t word(int64_t timeNs) {
    const uint64_t low = tick(timeNs) & 0x7FFFFFFF;
    return ((low << 1) & 0xFFFFFF00) | (low & 0x7F);
  }
  static Bytes keyFrame(int64_t timeNs) {
    FrameBytes frame;
    frame.ethernet(0x0800).put(0x4500, 2).put(66, 2).put(0, 4).put(0x40FD, 2).put(0, 2);
    frame.put(0, 4).put(0xFFFFFFFF, 4).put(tick(timeNs), 8).put(static_cast<uint64_t>(timeNs), 8);
    return frame.put(0, 8).put(0, 8).put(0, 8).put(0, 4).put(0x0100, 2).put(0, 4).bytes();
  }
  /// Granularity 0: a free-running counter of 100 us.
  static Bytes erspanFrame(uint64_t number, int64_t timeNs) {
    FrameBytes frame;
    frame.ethernet(0x0800)
        .put(0x4500, 2)
        .put(20 + 4 + 12 + 30, 2)
        .put(0, 4)
        .put(0x402F, 2)
        .put(0, 2);
    frame.put(0x0A000001, 4).put(0x0A000002, 4).put(0, 2).put(0x22EB, 2);
    frame.put(0x20000000 + 5, 4).put(static_cast<uint64_t>(timeNs / 100'000), 4).put(0, 4);
    return frame.add(FrameBytes::plain(12).bytes()).put(number, 4).bytes();
  }

  std::mt19937_64& random_;
  const TimeSource source_;
};

/// A packet with the time with which it must be delivered.
struct TimedPacket {
  StoredPacket stored;
  int64_t timeNs;
};

/// Every packet of the stores' streams in order of NIC time, with its time according to the whole
/// capture.
std::vector<TimedPacket> timedPackets(const std::vector<std::vector<StoredPacket>>& streams,
                                      TimeSource source) {
  VendorClock clock({source});
  std::vector<std::pair<StoredPacket, uint32_t>> all;
  for (uint32_t i = 0; i < streams.size(); i++) {
    for (const StoredPacket& packet : streams[i]) all.emplace_back(packet, i);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.first.timestampNs < b.first.timestampNs;
  });
  std::vector<TimedPacket> timed;
  for (const auto& [packet, stream] : all) {
    const auto timeNs = clock.timeOf(
        {packet.captured, packet.originalLength, packet.timestampNs, 1, stream, stream});
    timed.push_back({packet, timeNs.value_or(packet.timestampNs)});
  }
  return timed;
}

/// Sorted within 10 ms of NIC time, and the number of late packets.
std::pair<std::vector<StoredPacket>, uint64_t> sortedInWindow(
    const std::vector<TimedPacket>& from) {
  std::vector<TimedPacket> held;
  std::vector<StoredPacket> out;
  uint64_t late = 0;
  int64_t latestNs = 0;
  const auto release = [&] {
    const auto first = std::min_element(
        held.begin(), held.end(),
        [](const TimedPacket& a, const TimedPacket& b) { return a.timeNs < b.timeNs; });
    if (first->timeNs < latestNs) late++;
    latestNs = std::max(latestNs, first->timeNs);
    out.push_back({first->timeNs, first->stored.originalLength, first->stored.captured});
    held.erase(first);
  };
  for (const TimedPacket& packet : from) {
    while (!held.empty() &&
           packet.stored.timestampNs - held.front().stored.timestampNs > 10 * kMillisecondNs) {
      release();
    }
    held.push_back(packet);
  }
  while (!held.empty()) release();
  return {out, late};
}

struct VendorStore {
  StoredStreams streams;
  std::vector<TimedPacket> packets;
};

std::unique_ptr<VendorStore> vendorStore(std::mt19937_64& random, TimeSource source) {
  auto store = std::make_unique<VendorStore>();
  store->streams.packetsPerBlock = 20;
  store->streams.segmentBytes = 30'000;
  std::vector<std::vector<StoredPacket>> streams;
  for (uint32_t port = 0; port < 3; port++) {
    streams.push_back(SwitchPort(random, source).packets(2000));
    store->streams.addStream(streams.back(), 1, port);
  }
  store->packets = timedPackets(streams, source);
  return store;
}

DownloadOptions optionsOf(const VendorStore& store, TimeSource source) {
  DownloadOptions options = store.streams.options();
  options.clock.source = source;
  return options;
}

constexpr TimeSource kSources[] = {TimeSource::kA7130, TimeSource::kA7150Insert,
                                   TimeSource::kErspan3};

TEST(VendorTimeStage, GivesEachPacketTheSameTimeInAnyRangeAndBehindAnyFilter) {
  auto random = seededRandom();
  const BothPrograms programs = compiled("ether[len - 5] & 3 = 1");
  uint64_t allLate = 0;
  for (const TimeSource source : kSources) {
    const auto store = vendorStore(random, source);
    const int64_t lastNs = store->packets.back().stored.timestampNs;
    for (int i = 0; i < turns(12, 4); i++) {
      DownloadOptions options = optionsOf(*store, source);
      if (i > 0) {
        options.beginNs = kNowNs + static_cast<int64_t>(random() % uint64_t(lastNs - kNowNs));
        options.endNs = options.beginNs + static_cast<int64_t>(random() % (60 * kSecondNs));
      }
      const bool isFiltered = i % 2 == 1;
      if (isFiltered) options.filter = parsed(programs);
      std::vector<TimedPacket> chosen;
      for (const TimedPacket& packet : store->packets) {
        const auto& [timestampNs, originalLength, captured] = packet.stored;
        if (timestampNs < options.beginNs || timestampNs >= options.endNs) continue;
        if (isFiltered && !libpcapAccepts(programs, captured, originalLength)) continue;
        chosen.push_back(packet);
      }
      const auto [expected, late] = sortedInWindow(chosen);
      DownloadBench bench;
      const auto download = bench.open(options);
      ASSERT_EQ(packetsOf(readBody(*download)), expected) << "source " << static_cast<int>(source);
      EXPECT_EQ(download->totals().latePackets, late);
      allLate += late;
      EXPECT_EQ(download->totals().packets, expected.size());
    }
  }
  EXPECT_GT(allLate, 0u) << "the clocks differ by more than the window";
}

TEST(VendorTimeStage, MostPacketsGetAVendorTimeAndTheRestIsCounted) {
  auto random = seededRandom();
  for (const TimeSource source : kSources) {
    const auto store = vendorStore(random, source);
    uint64_t fallbacks = 0;
    for (const TimedPacket& packet : store->packets) {
      if (packet.timeNs == packet.stored.timestampNs) fallbacks++;
    }
    EXPECT_LT(fallbacks, store->packets.size() / 3);
    DownloadBench bench;
    const auto download = bench.open(optionsOf(*store, source));
    readBody(*download);
    // An ERSPAN anchor has the NIC's time as its own.
    EXPECT_LE(download->totals().vendorTimeFallbacks, fallbacks);
    EXPECT_GE(download->totals().vendorTimeFallbacks + 3, fallbacks);
    EXPECT_EQ(download->totals().readPackets, store->packets.size());
  }
}

TEST(VendorTimeStage, EndsAtTheSpanInTheTimesThatItDelivers) {
  auto random = seededRandom();
  const auto store = vendorStore(random, TimeSource::kA7130);
  const auto all = sortedInWindow(store->packets).first;
  for (int i = 0; i < 10; i++) {
    DownloadOptions options = optionsOf(*store, TimeSource::kA7130);
    options.tsMaxNs = 1 + static_cast<int64_t>(random() % (20 * kSecondNs));
    const auto end = std::find_if(all.begin(), all.end(), [&](const StoredPacket& packet) {
      return packet.timestampNs - all.front().timestampNs >= *options.tsMaxNs;
    });
    DownloadBench bench;
    EXPECT_EQ(packetsOf(readBody(*bench.open(options))), std::vector(all.begin(), end));
  }
}

TEST(VendorTimeStage, TimesAreReadBeforePacketsAreCut) {
  auto random = seededRandom();
  const auto store = vendorStore(random, TimeSource::kA7130);
  auto expected = sortedInWindow(store->packets).first;
  for (StoredPacket& packet : expected) {
    packet.captured.resize(std::min<size_t>(packet.captured.size(), 30));
  }
  DownloadBench bench;
  DownloadOptions options = optionsOf(*store, TimeSource::kA7130);
  options.sliceBytes = 30;
  EXPECT_EQ(packetsOf(readBody(*bench.open(options))), expected);
}

TEST(VendorTimeStage, StaysWithinItsSlabsWithASlowConsumer) {
  // All packets have one NIC timestamp: the window fills up by bytes.
  StoredStreams store;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 300; i++) packets.push_back(numberedPacket(kNowNs, i, 60'000));
  store.addStream(packets);
  DownloadBench bench;
  DownloadOptions options = store.options();
  options.clock.source = TimeSource::kA7130;
  const auto download = bench.open(options);
  Bytes body;
  for (;;) {
    const Download::Answer answer = nextPart(*download);
    ASSERT_TRUE(answer);
    if (*answer == nullptr) break;
    EXPECT_LE(bench.slabsInUse(), 9u);
    append(body, {(*answer)->bytes.get(), (*answer)->size});
    download->release(answer->get());
  }
  EXPECT_EQ(packetsOf(body), packets);
  EXPECT_EQ(download->totals().vendorTimeFallbacks, packets.size());
}

TEST(VendorTimeStage, StopsAtAnyMomentAndLosesNoSlab) {
  auto random = seededRandom();
  const auto store = vendorStore(random, TimeSource::kA7150Insert);
  for (int i = 0; i < 20; i++) {
    DownloadBench bench;
    const auto download = bench.open(optionsOf(*store, TimeSource::kA7150Insert));
    for (size_t parts = randomBelow(random, 4); parts > 0; parts--) {
      const Download::Answer answer = nextPart(*download);
      ASSERT_TRUE(answer);
      if (*answer != nullptr) download->release(answer->get());
    }
    download->close();
    EXPECT_FALSE(nextPart(*download));
  }
}

}  // namespace
}  // namespace capfleet::test
