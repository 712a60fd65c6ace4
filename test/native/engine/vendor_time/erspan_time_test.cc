#include "vendor_time/erspan_time.h"

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;

struct Mirrored {
  uint32_t timestamp = 0;
  int64_t nicNs = kNowNs;
  uint8_t granularity = 0;
  int platform = -1;  ///< -1: no sub-header
  uint32_t upper = 0;
  uint16_t session = 5;
  uint32_t source = 0x0A000001;
  uint16_t greFlags = 0x1000;
  std::vector<uint16_t> vlans = {};
  bool isIpv6 = false;
  Bytes extension = {};  ///< an IPv6 extension header; its first byte must be 47
  uint8_t extensionType = 0;
};

void addErspan(FrameBytes& frame, const Mirrored& fields) {
  frame.put(fields.greFlags, 2).put(0x22EB, 2);
  for (const int flag : {0x8000, 0x2000, 0x1000}) {
    if ((fields.greFlags & flag) != 0) frame.put(0x22EB22EB, 4);
  }
  frame.put(0x2064, 2).put(0xFC00U | fields.session, 2).put(fields.timestamp, 4).put(0xFFFF, 2);
  const bool hasSubheader = fields.platform >= 0;
  frame.put(static_cast<uint64_t>(0x0100 | fields.granularity << 1 | hasSubheader), 2);
  if (hasSubheader) {
    frame.put(static_cast<uint64_t>(fields.platform) << 26 | 0x3ABCDE, 4).put(fields.upper, 4);
  }
  frame.put(0x1111, 14).put(0x2222, 20);
}

HeldPacket mirrored(const Mirrored& fields) {
  FrameBytes frame;
  frame.ethernet(fields.isIpv6 ? 0x86DD : 0x0800, fields.vlans);
  if (fields.isIpv6) {
    frame.put(0x60000000, 4)
        .put(80, 2)
        .put(fields.extension.empty() ? 47 : fields.extensionType, 1);
    frame.put(64, 1).put(fields.source, 16).put(2, 16).add(fields.extension);
  } else {
    frame.put(0x4600, 2).put(100, 2).put(0, 4).put(64, 1).put(47, 1).put(0, 2);
    frame.put(fields.source, 4).put(2, 4).put(0x01010101, 4);  // with options
  }
  addErspan(frame, fields);
  return {.bytes = frame.bytes(), .nicNs = fields.nicNs};
}

std::optional<int64_t> feed(ErspanClock& clock, const Mirrored& fields) {
  return clock.timeOf(mirrored(fields).view());
}

std::optional<int64_t> alone(const Mirrored& fields) {
  ErspanClock clock;
  return feed(clock, fields);
}

TEST(ErspanTime, IsTheWholeTimeOfPlatforms3And7And0) {
  constexpr int64_t kTimeNs = kNowNs + 14'500'000;
  for (const int platform : {3, 7, 0}) {
    EXPECT_EQ(alone({.timestamp = static_cast<uint32_t>(kTimeNs),
                     .granularity = 3,
                     .platform = platform,
                     .upper = static_cast<uint32_t>(kTimeNs >> 32)}),
              kTimeNs);
  }
}

TEST(ErspanTime, IsSecondsAndNanosecondsOfPlatforms5And6) {
  for (const int platform : {5, 6}) {
    const auto seconds = static_cast<uint32_t>(kNowSeconds - 1000);
    EXPECT_EQ(
        alone({.timestamp = 999'999'999, .granularity = 2, .platform = platform, .upper = seconds}),
        (kNowSeconds - 1000) * kSecondNs + 999'999'999);
    EXPECT_FALSE(alone(
        {.timestamp = 1'000'000'000, .granularity = 2, .platform = platform, .upper = seconds}));
  }
}

TEST(ErspanTime, WithoutSecondsIsTheNearestToTheNicTime) {
  for (const int platform : {-1, 3, 1}) {
    for (const int64_t nicOffNs : {0, 499, 501, 999}) {
      for (const int64_t distanceNs : {-499, -1, 0, 1, 499}) {
        const int64_t nicNs = kNowNs + nicOffNs * kMillisecondNs;
        const int64_t timeNs = nicNs + distanceNs * kMillisecondNs;
        EXPECT_EQ(alone({.timestamp = static_cast<uint32_t>(timeNs % kSecondNs),
                         .nicNs = nicNs,
                         .granularity = 2,
                         .platform = platform}),
                  timeNs);
      }
    }
  }
  EXPECT_FALSE(alone({.timestamp = 1'000'000'000, .granularity = 2}));
}

TEST(ErspanTime, InFullMustBeWithin7DaysOfTheNicTime) {
  constexpr int64_t kLimitNs = int64_t{7} * 86400 * kSecondNs;
  for (const int64_t sign : {-1, 1}) {
    for (const int64_t beyondNs : {0, 1}) {
      const int64_t timeNs = kNowNs + sign * (kLimitNs + beyondNs);
      const Mirrored whole{.timestamp = static_cast<uint32_t>(timeNs),
                           .granularity = 3,
                           .platform = 3,
                           .upper = static_cast<uint32_t>(timeNs >> 32)};
      EXPECT_EQ(alone(whole).has_value(), beyondNs == 0);
      const Mirrored split{.timestamp = static_cast<uint32_t>(timeNs % kSecondNs),
                           .granularity = 2,
                           .platform = 5,
                           .upper = static_cast<uint32_t>(timeNs / kSecondNs)};
      EXPECT_EQ(alone(split).has_value(), beyondNs == 0);
    }
  }
  EXPECT_FALSE(alone({.timestamp = 5, .granularity = 3, .platform = 3, .upper = 0xFFFFFFFF}));
}

TEST(ErspanTime, OfAFreeRunningCounterIsAnchoredAtTheSessionsFirstPacket) {
  const std::vector<std::pair<uint8_t, int64_t>> units = {{0, 100'000}, {1, 100}};
  for (const auto& [granularity, unitNs] : units) {
    ErspanClock clock;
    constexpr uint32_t kStart = 0xFFFFFFF0;  // it wraps soon
    EXPECT_EQ(feed(clock, {.timestamp = kStart, .granularity = granularity}), kNowNs);
    for (const int64_t ticks : {0, 15, 16, 1000, 400'000, 39'000'000}) {
      const int64_t distanceNs = ticks * unitNs;
      EXPECT_EQ(feed(clock, {.timestamp = kStart + static_cast<uint32_t>(ticks),
                             .nicNs = kNowNs + distanceNs + 900 * kMillisecondNs,
                             .granularity = granularity}),
                kNowNs + distanceNs);
    }
  }
}

TEST(ErspanTime, OfAFreeRunningCounterCountsItsWraps) {
  ErspanClock clock;
  feed(clock, {.timestamp = 100, .granularity = 1});
  constexpr int64_t kWrapNs = (int64_t{1} << 32) * 100;
  for (const int64_t wraps : {1, 2, 1000, 100'000}) {
    const int64_t timeNs = kNowNs + wraps * kWrapNs + 500;
    EXPECT_EQ(feed(clock, {.timestamp = 105, .nicNs = timeNs + 7, .granularity = 1}), timeNs);
  }
}

TEST(ErspanTime, FindsOutWhetherAVendorsTickIs1NanosecondOrMore) {
  for (const double unitNs : {1.0, 2.4}) {
    ErspanClock clock;
    const auto at = [&](int64_t distanceNs) {
      return feed(clock, {.timestamp = 7 + static_cast<uint32_t>(static_cast<uint64_t>(
                                               static_cast<double>(distanceNs) / unitNs)),
                          .nicNs = kNowNs + distanceNs + 30'000,
                          .granularity = 3});
    };
    // Too early to detect the unit: NIC time.
    EXPECT_FALSE(at(0));
    EXPECT_FALSE(at(900'000));
    for (const int64_t distanceNs : {1'200'000, 2'400'000, 1'200'000'000}) {
      EXPECT_EQ(at(distanceNs), kNowNs + 30'000 + distanceNs) << unitNs;
    }
    for (const int64_t minutes : {1, 60, 600}) {
      EXPECT_EQ(at(minutes * 60 * kSecondNs), kNowNs + 30'000 + minutes * 60 * kSecondNs);
    }
  }
}

TEST(ErspanTime, OfAFreeRunningCounterMustBeWithinASecondOfTheNicTime) {
  for (const int64_t sign : {-1, 1}) {
    for (const int64_t beyondNs : {0, 1}) {
      ErspanClock clock;
      feed(clock, {.timestamp = 0, .granularity = 1});
      const int64_t nicNs = kNowNs + 10 * kSecondNs + sign * (kSecondNs + beyondNs);
      EXPECT_EQ(feed(clock, {.timestamp = 100'000'000, .nicNs = nicNs, .granularity = 1}),
                beyondNs == 0 ? std::optional(kNowNs + 10 * kSecondNs) : std::nullopt);
    }
  }
}

TEST(ErspanTime, KeepsSessionsApart) {
  const std::vector<Mirrored> sessions = {
      {.timestamp = 1000, .granularity = 1},
      {.timestamp = 2000, .granularity = 1, .session = 6},
      {.timestamp = 3000, .granularity = 1, .source = 0x0A000002},
      {.timestamp = 4000, .granularity = 0},
      {.timestamp = 5000, .granularity = 1, .isIpv6 = true},
  };
  ErspanClock clock;
  for (const Mirrored& first : sessions) EXPECT_EQ(feed(clock, first), kNowNs);
  for (Mirrored later : sessions) {
    later.timestamp += 10;
    EXPECT_EQ(feed(clock, later), kNowNs + (later.granularity == 0 ? 1'000'000 : 1000));
  }
}

TEST(ErspanTime, IsFoundBehindTagsOptionsAndExtensionHeaders) {
  const Mirrored plain{.timestamp = 77, .granularity = 2};
  std::vector<Mirrored> cases(9, plain);
  cases[0].vlans = {5};
  cases[1].vlans = {5, 6};
  cases[2].greFlags = 0x0000;
  cases[3].greFlags = 0xB000;
  cases[4].greFlags = 0x2000;
  cases[5].isIpv6 = true;
  const std::vector<std::pair<uint8_t, Bytes>> extensions = {
      {60, {47, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {51, {47, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {44, {47, 9, 0, 1, 0, 0, 0, 0}}};  // the first fragment
  for (size_t i = 0; i < extensions.size(); i++) {
    cases[6 + i].isIpv6 = true;
    cases[6 + i].extensionType = extensions[i].first;
    cases[6 + i].extension = extensions[i].second;
  }
  for (size_t i = 0; i < cases.size(); i++) {
    EXPECT_EQ(alone(cases[i]), kNowNs + 77) << i;
    // One byte less than the header needs.
    HeldPacket cut = mirrored(cases[i]);
    cut.bytes.resize(cut.bytes.size() - 34);
    EXPECT_TRUE(ErspanClock().timeOf(cut.view())) << i;
    cut.bytes.pop_back();
    EXPECT_FALSE(ErspanClock().timeOf(cut.view())) << i;
  }
}

TEST(ErspanTime, IsAbsentInOtherPackets) {
  const Mirrored fields{.timestamp = 77, .granularity = 2};
  EXPECT_FALSE(alone({.timestamp = 77, .granularity = 2, .greFlags = 0x4000}));  // routing
  EXPECT_FALSE(alone({.timestamp = 77, .granularity = 2, .greFlags = 0x1001}));  // version 1
  EXPECT_FALSE(alone({.timestamp = 77,
                      .granularity = 2,
                      .isIpv6 = true,
                      .extension = {47, 0, 0, 8, 0, 0, 0, 0},
                      .extensionType = 44}));
  EXPECT_FALSE(alone({.timestamp = 77,
                      .granularity = 2,
                      .isIpv6 = true,
                      .extension = {47, 0, 0, 0, 0, 0, 0, 0},
                      .extensionType = 50}));
  // An extension header that ends beyond the packet.
  EXPECT_FALSE(alone({.timestamp = 77,
                      .granularity = 2,
                      .isIpv6 = true,
                      .extension = {47, 7, 0, 0, 0, 0, 0, 0},
                      .extensionType = 60}));
  constexpr size_t kIp = 14;
  constexpr size_t kGre = kIp + 24;
  constexpr size_t kErspan = kGre + 8;
  const std::vector<std::pair<size_t, uint8_t>> changes = {
      {12, 0x09},        // EtherType
      {kIp, 0x56},       // IP version
      {kIp, 0x44},       // IP header length
      {kIp, 0x4F},       //
      {kIp + 7, 0x01},   // fragment offset
      {kIp + 9, 17},     // protocol
      {kGre + 2, 0x88},  // GRE protocol
      {kErspan, 0x10},   // ERSPAN version
  };
  for (const auto& [offset, value] : changes) {
    HeldPacket packet = mirrored(fields);
    EXPECT_TRUE(ErspanClock().timeOf(packet.view()));
    packet.bytes[offset] = value;
    if (offset == kIp && value == 0x4F) {
      packet.bytes.resize(kIp + 59);
      packet.bytes.shrink_to_fit();  // so that the sanitizer detects reads beyond it
    }
    EXPECT_FALSE(ErspanClock().timeOf(packet.view())) << offset;
  }
  HeldPacket packet = mirrored(fields);
  packet.linkTypeWord = 113;
  EXPECT_FALSE(ErspanClock().timeOf(packet.view()));
  EXPECT_FALSE(ErspanClock().timeOf(HeldPacket{}.view()));
}

TEST(ErspanTime, NeedsItsSubheaderWhenThereIsOne) {
  HeldPacket packet = mirrored({.timestamp = 77, .granularity = 2, .platform = 3});
  packet.bytes.resize(packet.bytes.size() - 34);
  EXPECT_TRUE(ErspanClock().timeOf(packet.view()));
  packet.bytes.pop_back();
  EXPECT_FALSE(ErspanClock().timeOf(packet.view()));
}

TEST(ErspanTime, StopsToRememberSessionsSomeday) {
  ErspanClock clock;
  for (uint32_t source = 0; source < 65'536; source++) {
    ASSERT_TRUE(feed(clock, {.timestamp = 1, .granularity = 1, .source = source}));
  }
  EXPECT_FALSE(feed(clock, {.timestamp = 1, .granularity = 1, .source = 65'536}));
  EXPECT_EQ(feed(clock, {.timestamp = 2, .granularity = 1, .source = 65'535}), kNowNs + 100);
}

}  // namespace
}  // namespace capfleet::test
