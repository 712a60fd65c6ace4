#include "vendor_time/vendor_clock.h"

#include <filesystem>

#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

constexpr TimeSource kAllSources[] = {
    TimeSource::kNic,         TimeSource::kA7130,      TimeSource::kA7150Overwrite,
    TimeSource::kA7150Insert, TimeSource::kA7280Eth64, TimeSource::kA7280Mac48,
    TimeSource::kErspan3,     TimeSource::kC3550,
};

std::vector<std::optional<int64_t>> timesOf(const std::vector<HeldPacket>& packets,
                                            TimeSource source) {
  VendorClock clock({.source = source});
  std::vector<std::optional<int64_t>> times;
  for (const HeldPacket& packet : packets) times.push_back(clock.timeOf(packet.view()));
  return times;
}

/// A plain packet with one vendor's stamp in each place at once.
HeldPacket packetFor(TimeSource source, int64_t timeNs, int64_t nicNs) {
  const auto seconds = static_cast<uint64_t>(timeNs / kSecondNs);
  const auto nanoseconds = static_cast<uint64_t>(timeNs % kSecondNs);
  FrameBytes frame;
  if (source == TimeSource::kA7280Eth64) {
    frame.put(1, 12).put(0xD28B00010010, 6).put(seconds, 4).put(nanoseconds, 4).put(0x0800, 2);
  } else if (source == TimeSource::kA7280Mac48) {
    frame.put(1, 6).put(seconds & 0xFFFF, 2).put(nanoseconds, 4).put(0x0800, 2);
  } else if (source == TimeSource::kA7130) {
    frame = FrameBytes::plain();
    frame.put(0, 4).put(seconds, 4).put(nanoseconds, 4).put(1, 1).put(7, 2).put(3, 1);
  } else if (source == TimeSource::kC3550) {
    frame = FrameBytes::plain();
    frame.put(0, 4).put(7, 1).put(3, 1).put(seconds, 4).put(0, 6);
  }
  return {.bytes = frame.bytes(), .nicNs = nicNs};
}

TEST(VendorClock, ReadsTheFormatOfItsSourceOnly) {
  const int64_t timeNs = kNowNs + 3 * kSecondNs;
  for (const TimeSource stamped :
       {TimeSource::kA7130, TimeSource::kC3550, TimeSource::kA7280Eth64, TimeSource::kA7280Mac48}) {
    for (const TimeSource source : kAllSources) {
      VendorClock clock({.source = source});
      const auto read = clock.timeOf(packetFor(stamped, timeNs, kNowNs).view());
      EXPECT_EQ(read, source == stamped ? std::optional(timeNs) : std::nullopt)
          << static_cast<int>(stamped) << " " << static_cast<int>(source);
    }
  }
}

TEST(VendorClock, PassesTheLimitForSourceAddressesOn) {
  const auto packet = packetFor(TimeSource::kA7280Mac48, kNowNs + 100 * kSecondNs, kNowNs);
  VendorClock strict({.source = TimeSource::kA7280Mac48});
  EXPECT_FALSE(strict.timeOf(packet.view()));
  VendorClock wide({.source = TimeSource::kA7280Mac48, .mac48LimitNs = 100 * kSecondNs});
  EXPECT_TRUE(wide.timeOf(packet.view()));
}

TEST(VendorClock, GivesNoTimeThatPcapCannotCarry) {
  VendorClock clock({.source = TimeSource::kA7280Mac48});
  HeldPacket early = packetFor(TimeSource::kA7280Mac48, 0, 5 * kSecondNs);
  EXPECT_EQ(clock.timeOf(early.view()), 0);
  early = packetFor(TimeSource::kA7280Mac48, 65'535 * kSecondNs, 5 * kSecondNs);  // -1 s
  EXPECT_FALSE(clock.timeOf(early.view()));
  const int64_t lastNs = kTimestampEndNs - kSecondNs;
  EXPECT_EQ(clock.timeOf(packetFor(TimeSource::kA7280Mac48, lastNs, lastNs).view()), lastNs);
  EXPECT_FALSE(clock.timeOf(packetFor(TimeSource::kA7280Mac48, 0, lastNs).view()));
}

TEST(VendorClock, LooksBackWhereItHasState) {
  for (const TimeSource source : kAllSources) {
    const bool is7150 = source == TimeSource::kA7150Overwrite || source == TimeSource::kA7150Insert;
    const int64_t expected = is7150                           ? 30 * kSecondNs
                             : source == TimeSource::kErspan3 ? VendorClock::kWholeCapture
                                                              : 0;
    EXPECT_EQ(VendorClock::lookBackNs(source), expected);
  }
}

/// A real capture; empty, with the test skipped, where they are absent.
std::vector<HeldPacket> realPackets(const std::string& name) {
  const std::string path = CAPFLEET_REPOSITORY "/../shared/captures/" + name;
  if (!std::filesystem::exists(path)) return {};
  return packetsOfPcap(path);
}

constexpr char kAbsent[] = "../shared/captures is not there";

/// Times in a 7150-compatible capture with key frames of version 2, calculated without the engine:
/// the key frame of each packet is the one before it, and no packet is a wrap away.
std::vector<std::optional<int64_t>> expected7150(const std::vector<HeldPacket>& packets,
                                                 size_t tickFromEnd) {
  std::vector<std::optional<int64_t>> times;
  uint64_t keyTick = 0;
  uint64_t keyUtcNs = 0;
  for (const HeldPacket& packet : packets) {
    const uint8_t* frame = packet.bytes.data();
    if (loadBe16(frame + 12) == 0x0800 && frame[23] == 253) {
      keyTick = loadBe64(frame + 34);
      keyUtcNs = loadBe64(frame + 42);
      times.push_back(std::nullopt);
      continue;
    }
    const uint32_t word = loadBe32(frame + packet.bytes.size() - tickFromEnd);
    const uint64_t tick = uint64_t{word >> 8} * 128 + word % 128;
    const uint64_t ticks =
        (tick + (uint64_t{1} << 31) - keyTick % (uint64_t{1} << 31)) % (uint64_t{1} << 31);
    times.push_back(static_cast<int64_t>(keyUtcNs + ticks * 20 / 7));
  }
  return times;
}

TEST(VendorClock, ReadsReal7150CompatibleTicks) {
  struct Case {
    const char* file;
    TimeSource source;
    size_t tickFromEnd;
  };
  const Case cases[] = {{"n3550_exa.mode.append-compat.pcap", TimeSource::kA7150Insert, 8},
                        {"n3550_exa.mode.fcs-compat.pcap", TimeSource::kA7150Overwrite, 4}};
  for (const Case& item : cases) {
    const auto packets = realPackets(item.file);
    if (packets.empty()) GTEST_SKIP() << kAbsent;
    const auto times = timesOf(packets, item.source);
    EXPECT_EQ(times, expected7150(packets, item.tickFromEnd)) << item.file;
    int stamped = 0;
    for (size_t i = 0; i < times.size(); i++) {
      if (!times[i]) continue;
      stamped++;
      // The NIC is some 10 ms behind the switch.
      EXPECT_NEAR(static_cast<double>(packets[i].nicNs - *times[i]), 10e6, 1e6) << item.file;
    }
    EXPECT_GE(stamped, 3) << item.file;
  }
}

TEST(VendorClock, TakesA32BitCounterOfAnotherDeviceForNo7150) {
  const auto packets = realPackets("n3550_exnic-fcsu.pcap");
  if (packets.empty()) GTEST_SKIP() << kAbsent;
  const std::vector<std::optional<int64_t>> none(packets.size());
  EXPECT_EQ(timesOf(packets, TimeSource::kA7150Overwrite), none);
  EXPECT_EQ(timesOf(packets, TimeSource::kA7150Insert), none);
}

TEST(VendorClock, ReadsRealErspanTicksOf2400Picoseconds) {
  const auto packets = realPackets("tcpdump_erspan-type-iii-ft-0.pcap");
  if (packets.empty()) GTEST_SKIP() << kAbsent;
  const auto times = timesOf(packets, TimeSource::kErspan3);
  EXPECT_FALSE(times[0]);
  for (size_t i = 1; i < packets.size(); i++) {
    // The counter stands at 14 + 20 + 4 + 4. It wraps once, before the packet with index 4.
    const uint64_t first = loadBe32(&packets[0].bytes[42]);
    const uint64_t ticks =
        loadBe32(&packets[i].bytes[42]) + (i >= 4 ? uint64_t{1} << 32 : 0) - first;
    ASSERT_TRUE(times[i]) << i;
    EXPECT_NEAR(static_cast<double>(*times[i] - packets[i].nicNs), 0, 1e6) << i;
    EXPECT_EQ(*times[i] - packets[0].nicNs, static_cast<int64_t>(ticks * 12 / 5)) << i;
  }
}

TEST(VendorClock, ReadsReal7280Headers) {
  const auto packets = realPackets("tcpdump_arista_ether.pcap");
  if (packets.empty()) GTEST_SKIP() << kAbsent;
  const auto times = timesOf(packets, TimeSource::kA7280Eth64);
  size_t stamped = 0;
  for (size_t i = 0; i < packets.size(); i++) {
    const uint8_t* frame = packets[i].bytes.data();
    if (loadBe16(frame + 12) != 0xD28B || loadBe16(frame + 14) != 1) {
      EXPECT_FALSE(times[i]) << i;
      continue;
    }
    ASSERT_TRUE(times[i]) << i;
    EXPECT_NEAR(static_cast<double>(*times[i] - packets[i].nicNs), -147.05e6, 0.3e6) << i;
    stamped++;
  }
  EXPECT_GT(stamped, 8U);
}

}  // namespace
}  // namespace capfleet::test
