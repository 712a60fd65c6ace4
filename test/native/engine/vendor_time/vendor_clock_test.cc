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

using Packets = std::vector<HeldPacket>;

/// The packets of a test: generated here, and those of a third-party capture if it exists.
std::vector<Packets> withCapture(Packets made, const std::string& name) {
  std::vector<Packets> all = {std::move(made)};
  const std::string path = CAPFLEET_REPOSITORY "/../shared/captures/" + name;
  if (std::filesystem::exists(path)) all.push_back(packetsOfPcap(path));
  return all;
}

/// 12 s of a switch: a key frame each second, followed by three packets. The NIC is 10 ms late.
Packets ticked(TimeSource source) {
  constexpr int64_t kLateNs = 10'000'000;
  constexpr uint64_t kFirstTick = (uint64_t{1} << 40) - 5;
  const auto tickAt = [](int64_t ns) {
    return kFirstTick + static_cast<uint64_t>(ns - kNowNs) * 7 / 20;
  };
  Packets packets;
  for (int64_t ns = kNowNs; ns < kNowNs + 12 * kSecondNs; ns += 250'000'001) {
    if (packets.size() % 4 == 0) {
      packets.push_back(keyFrame({.tick = tickAt(ns), .utcNs = ns, .nicNs = ns + kLateNs}));
      continue;
    }
    FrameBytes frame = FrameBytes::plain(40 + packets.size());
    frame.put(wordOf(tickAt(ns)), 4);
    if (source == TimeSource::kA7150Insert) frame.fcs();
    packets.push_back({.bytes = frame.bytes(), .nicNs = ns + kLateNs});
  }
  return packets;
}

/// Times in a 7150-compatible capture with key frames of version 2, calculated without the engine:
/// the key frame of each packet is the previous one, and no packet is a wrap away.
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

TEST(VendorClock, Reads7150Ticks) {
  struct Case {
    const char* file;
    TimeSource source;
    size_t tickFromEnd;
  };
  const Case cases[] = {{"n3550_exa.mode.append-compat.pcap", TimeSource::kA7150Insert, 8},
                        {"n3550_exa.mode.fcs-compat.pcap", TimeSource::kA7150Overwrite, 4}};
  for (const Case& item : cases) {
    for (const Packets& packets : withCapture(ticked(item.source), item.file)) {
      const auto times = timesOf(packets, item.source);
      EXPECT_EQ(times, expected7150(packets, item.tickFromEnd)) << item.file;
      int stamped = 0;
      for (size_t i = 0; i < times.size(); i++) {
        if (!times[i]) continue;
        stamped++;
        // The NIC is some 10 ms later than the switch.
        EXPECT_NEAR(static_cast<double>(packets[i].nicNs - *times[i]), 10e6, 1e6) << item.file;
      }
      EXPECT_GE(stamped, 3) << item.file;
    }
  }
}

/// Key frames with a counter of the same frequency, but another width, and packets with its low 32
/// bits in place of the FCS.
Packets counted32() {
  Packets packets;
  for (int64_t ns = kNowNs; ns < kNowNs + 8 * kSecondNs; ns += 500'000'000) {
    const uint64_t counter = 0x65'471E'CF14 + static_cast<uint64_t>(ns - kNowNs) * 7 / 20;
    FrameBytes frame = FrameBytes::plain();
    if (packets.size() % 2 == 0) {
      frame = {};
      frame.ethernet(0x0800).put(0x4500, 2).put(60, 2).put(0, 4).put(0x40FD, 2).put(0, 6);
      frame.put(0xFFFFFFFF, 4).put(1, 1).put(0, 7).put(static_cast<uint64_t>(ns), 8);
      frame.put(counter, 8).put(350'000'000, 4).put(counter, 8);
    }
    frame.put(counter, 4);
    packets.push_back({.bytes = frame.bytes(), .nicNs = ns});
  }
  return packets;
}

TEST(VendorClock, TakesA32BitCounterOfAnotherDeviceForNo7150) {
  for (const Packets& packets : withCapture(counted32(), "n3550_exnic-fcsu.pcap")) {
    const std::vector<std::optional<int64_t>> none(packets.size());
    EXPECT_EQ(timesOf(packets, TimeSource::kA7150Overwrite), none);
    EXPECT_EQ(timesOf(packets, TimeSource::kA7150Insert), none);
  }
}

/// One session, whose counter of 2.4 ns wraps before the packet with index 4.
Packets mirrored() {
  Packets packets;
  for (int64_t i = 0; i < 9; i++) {
    const int64_t sinceNs = i * 1'024'000'001;
    FrameBytes frame;
    frame.ethernet(0x0800).put(0x4500, 2).put(82, 2).put(0, 4).put(0x402F, 2).put(0, 2);
    frame.put(0x0A000001, 4).put(0x0A000002, 4).put(0x000022EB, 4).put(0x20640014, 4);
    frame.put(0xA359'5BFF + static_cast<uint64_t>(sinceNs) * 5 / 12, 4).put(6, 4);
    frame.add(FrameBytes::plain(32).bytes());
    packets.push_back({.bytes = frame.bytes(), .nicNs = kNowNs + sinceNs});
  }
  return packets;
}

TEST(VendorClock, ReadsErspanTicksOf2400Picoseconds) {
  for (const Packets& packets : withCapture(mirrored(), "tcpdump_erspan-type-iii-ft-0.pcap")) {
    const auto times = timesOf(packets, TimeSource::kErspan3);
    EXPECT_FALSE(times[0]);
    for (size_t i = 1; i < packets.size(); i++) {
      // The counter is at 14 + 20 + 4 + 4. It wraps once, before the packet with index 4.
      const uint64_t first = loadBe32(&packets[0].bytes[42]);
      const uint64_t ticks =
          loadBe32(&packets[i].bytes[42]) + (i >= 4 ? uint64_t{1} << 32 : 0) - first;
      ASSERT_TRUE(times[i]) << i;
      EXPECT_NEAR(static_cast<double>(*times[i] - packets[i].nicNs), 0, 1e6) << i;
      EXPECT_EQ(*times[i] - packets[0].nicNs, static_cast<int64_t>(ticks * 12 / 5)) << i;
    }
  }
}

/// Headers of every version, with seconds of 32 or 16 bits, and packets without one. The NIC is 147
/// ms late.
Packets withHeaders() {
  Packets packets;
  for (const uint64_t version : {0x10, 0x11, 0x110, 0x111, 0x20, 0x21, 0x120, 0x121}) {
    for (int i = 0; i < 3; i++) {
      const int64_t nicNs = kNowNs + static_cast<int64_t>(packets.size()) * 700'000'000;
      const int64_t timeNs = nicNs - 147'000'000 - i * 10'000;
      FrameBytes frame = FrameBytes::plain();
      if (i < 2) {
        frame = {};
        frame.ethernet(0xD28B).put(1, 2).put(version, 2);
        frame.put(static_cast<uint64_t>(timeNs / kSecondNs), (version & 0x10) != 0 ? 4 : 2);
        frame.put(static_cast<uint64_t>(timeNs % kSecondNs), 4).put(0x1234, 2).put(7, 50);
      }
      packets.push_back({.bytes = frame.bytes(), .nicNs = nicNs});
    }
  }
  return packets;
}

TEST(VendorClock, Reads7280Headers) {
  for (const Packets& packets : withCapture(withHeaders(), "tcpdump_arista_ether.pcap")) {
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
}

}  // namespace
}  // namespace capfleet::test
