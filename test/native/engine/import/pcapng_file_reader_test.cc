#include <gtest/gtest.h>

#include "packet/pcap_format.h"
#include "support/capture_bytes.h"
#include "support/read_steps.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

using Interfaces = std::vector<std::pair<uint32_t, uint32_t>>;

constexpr uint16_t kTsResol = 9;
constexpr uint16_t kTsOffset = 14;
constexpr uint32_t kNameResolution = 4;

/// Every kind of block, in two sections of different byte order.
PcapngBytes richFile(bool firstIsBigEndian) {
  PcapngBytes file;
  file.section(firstIsBigEndian);
  file.interface(1);
  file.interface(113, {{2, {'e', 't', 'h', '1', '0'}}, {kTsResol, {9}}});
  file.enhancedPacket(0, 1'000'001, {1, 2, 3}, 60);
  file.block(kNameResolution, Bytes(8, 1));
  file.enhancedPacket(1, 2'000'000'002, {4}, 4);
  file.obsoletePacket(1, 2'000'000'003, {5, 6, 7, 8}, 4);
  file.simplePacket({9, 9}, 2);
  file.section(!firstIsBigEndian);
  file.interface(1, {{kTsResol, {3}}, {kTsOffset, {}}});
  return file;
}

TEST(PcapngFileReader, ReadsEveryKindOfPacketBlockInBothByteOrders) {
  for (const bool isBigEndian : {false, true}) {
    PcapngBytes file;
    file.section(isBigEndian).interface(1).interface(113, {{kTsResol, {9}}});
    file.enhancedPacket(0, 1'000'001, {1, 2, 3}, 60);
    file.block(kNameResolution, Bytes(8, 1));
    file.enhancedPacket(1, 0x1'0000'0002, {4}, 4);
    file.obsoletePacket(1, 2'000'000'003, {5, 6, 7, 8}, 4);
    file.simplePacket({9, 9}, 2);
    const auto steps = readSteps(file.bytes());
    ASSERT_EQ(steps.openError, "");
    ASSERT_FALSE(steps.damage) << steps.damage->message;
    EXPECT_EQ(steps.interfaces, (Interfaces{{0, 1}, {1, 113}}));
    const std::vector<ReadPacket> expected = {{0, 1'000'001'000, 60, {1, 2, 3}},
                                              {1, 0x1'0000'0002, 4, {4}},
                                              {1, 2'000'000'003, 4, {5, 6, 7, 8}},
                                              {0, 0, 2, {9, 9}}};
    EXPECT_EQ(steps.packets, expected);
  }
}

TEST(PcapngFileReader, StartsAnewWithEachSection) {
  PcapngBytes file;
  file.section(false).interface(1).interface(1, {{kTsResol, {9}}});
  file.enhancedPacket(1, 5, {1}, 1);
  file.section(true).interface(101, {{kTsResol, {0}}});
  file.enhancedPacket(0, 7, {2}, 1);
  const auto steps = readSteps(file.bytes());
  EXPECT_EQ(steps.interfaces, (Interfaces{{0, 1}, {1, 1}, {0, 101}}));
  EXPECT_EQ(steps.packets, (std::vector<ReadPacket>{{1, 5, 1, {1}}, {0, 7'000'000'000, 1, {2}}}));

  file.enhancedPacket(1, 7, {3}, 1);
  const auto damaged = readSteps(file.bytes());
  EXPECT_EQ(damaged.packets.size(), 2u);
  ASSERT_TRUE(damaged.damage) << "interface 1 belongs to the section before";
}

TEST(PcapngFileReader, AppliesResolutionAndOffsetOfEachInterface) {
  PcapngBytes file;
  file.section(true);
  file.interface(1, {{kTsResol, {0x80 | 10}}, {kTsOffset, file.option64(1000)}});
  file.enhancedPacket(0, 1536, {}, 0);
  EXPECT_EQ(readSteps(file.bytes()).packets.at(0).timestampNs, 1'001'500'000'000);
}

TEST(PcapngFileReader, CutsSimplePacketsAtTheSnaplen) {
  PcapngBytes file;
  file.section(false).interface(1, {}, 6).simplePacket({1, 2, 3, 4, 5, 6}, 1500);
  const auto steps = readSteps(file.bytes());
  EXPECT_EQ(steps.packets, (std::vector<ReadPacket>{{0, 0, 1500, {1, 2, 3, 4, 5, 6}}}));
}

TEST(PcapngFileReader, CountsPacketsThatPcapCannotDate) {
  PcapngBytes file;
  file.section(false).interface(1, {{kTsResol, {0}}});
  file.enhancedPacket(0, uint64_t{1} << 32, {1}, 1).enhancedPacket(0, 1, {2}, 1);
  const auto steps = readSteps(file.bytes());
  EXPECT_EQ(steps.outOfTimeRange, 1u);
  EXPECT_EQ(steps.packets.size(), 1u);
}

TEST(PcapngFileReader, SkipsUnknownBlocksLongerThanItsBuffer) {
  PcapngBytes file;
  file.section(true).interface(1).block(0xBAD, Bytes(3 << 20, 5)).enhancedPacket(0, 1, {2}, 1);
  const auto steps = readSteps(file.bytes());
  EXPECT_FALSE(steps.damage);
  EXPECT_EQ(steps.packets.size(), 1u);
}

TEST(PcapngFileReader, TakesTheLargestPacket) {
  PcapngBytes file;
  file.section(true).interface(1);
  file.enhancedPacket(0, 1, Bytes(kMaxCapturedLength, 3), 1);
  EXPECT_EQ(readSteps(file.bytes()).packets.at(0).captured.size(), kMaxCapturedLength);
  file.enhancedPacket(0, 1, Bytes(kMaxCapturedLength + 1, 3), 1);
  EXPECT_TRUE(readSteps(file.bytes()).damage);
}

TEST(PcapngFileReader, KeepsAllWholePacketsWhereverTheFileIsCut) {
  for (const bool isBigEndian : {false, true}) {
    const PcapngBytes file = richFile(isBigEndian);
    const Bytes& whole = file.bytes();
    for (size_t cut = 0; cut < whole.size(); ++cut) {
      const auto steps =
          readSteps(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut)));
      const auto packets = std::count_if(file.ends().begin(), file.ends().end(),
                                         [cut](size_t end) { return end <= cut; });
      ASSERT_EQ(steps.packets.size(), static_cast<size_t>(packets)) << cut;
      if (steps.damage) {
        EXPECT_LE(steps.damage->offset, cut);
        if (packets > 0) {
          EXPECT_GE(steps.damage->offset, file.ends()[static_cast<size_t>(packets - 1)]) << cut;
        }
      }
    }
  }
}

TEST(PcapngFileReader, ReportsDamagedBlocksWithTheirOffset) {
  PcapngBytes file;
  file.section(false).interface(1).enhancedPacket(0, 1, {1}, 1);
  const size_t good = file.bytes().size();
  const auto damageAfter = [&](const Bytes& more) {
    Bytes bytes = file.bytes();
    append(bytes, more);
    const auto steps = readSteps(bytes);
    EXPECT_EQ(steps.packets.size(), 1u);
    EXPECT_TRUE(steps.damage);
    if (!steps.damage) return std::string();
    EXPECT_EQ(steps.damage->offset, good);
    return steps.damage->message;
  };
  EXPECT_NE(damageAfter({6, 0, 0, 0, 33, 0, 0, 0, 0, 0, 0, 0}).find("33"), std::string::npos);
  EXPECT_NE(damageAfter({6, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0}).find("length of 8"),
            std::string::npos);
  EXPECT_NE(damageAfter({6, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0}).find("too short"),
            std::string::npos);
  EXPECT_NE(damageAfter({9, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0}).find("differ"), std::string::npos);
  EXPECT_NE(damageAfter({6, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0}).find("more than any"),
            std::string::npos);
  EXPECT_NE(damageAfter({9, 0, 0, 0, 0xFC, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}).find("ends inside"),
            std::string::npos);
}

TEST(PcapngFileReader, RefusesMoreInterfacesThanASectionMayDescribe) {
  PcapngBytes file;
  file.section(false);
  for (int i = 0; i < 65'536; ++i) file.interface(1);
  EXPECT_EQ(readSteps(file.bytes()).interfaces.size(), 65'536u);
  EXPECT_FALSE(readSteps(file.bytes()).damage);
  file.interface(1);
  EXPECT_TRUE(readSteps(file.bytes()).damage);
}

TEST(PcapngFileReader, RefusesAFileWhoseFirstBlockIsBroken) {
  PcapngBytes file;
  file.section(false);
  Bytes bytes = file.bytes();
  bytes[8] ^= 1;
  EXPECT_NE(readSteps(bytes).openError.find("byte order"), std::string::npos);
  bytes[8] ^= 1;
  bytes[12] = 9;
  EXPECT_NE(readSteps(bytes).openError.find("version 9"), std::string::npos);
}

TEST(CaptureFileReader, SurvivesFlippedBits) {
  auto random = seededRandom();
  PcapBytes pcap;
  for (uint32_t i = 0; i < 10; ++i) pcap.packet(i, i, Bytes(i * 5, 1), i * 5);
  for (const Bytes& whole : {pcap.bytes(), richFile(false).bytes(), richFile(true).bytes()}) {
    for (int round = 0; round < turns(5'000, 400); ++round) {
      Bytes bytes = whole;
      for (size_t flips = 1 + randomBelow(random, 3); flips > 0; --flips) {
        bytes[randomBelow(random, bytes.size())] ^=
            static_cast<uint8_t>(1u << randomBelow(random, 8));
      }
      const auto steps =
          readSteps(std::make_unique<MemorySource>(bytes), CaptureFileReader::kMinBufferBytes);
      for (const ReadPacket& packet : steps.packets) {
        ASSERT_LE(packet.captured.size(), bytes.size());
        ASSERT_TRUE(packet.timestampNs >= 0 && packet.timestampNs < kTimestampEndNs);
        ASSERT_LT(packet.interfaceIndex, CaptureFileReader::kMaxInterfaces);
      }
    }
  }
}

}  // namespace
}  // namespace capfleet::test
