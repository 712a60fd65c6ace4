#include "capture/packet_intake.h"

#include <gtest/gtest.h>

#include <numeric>

#include "packet/pcap_format.h"
#include "support/made_blocks.h"

namespace capfleet::test {
namespace {

Bytes countingBytes(size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

RingPacket packetOf(const Bytes& bytes) {
  RingPacket packet;
  packet.bytes = bytes.data();
  packet.capturedLength = packet.originalLength = static_cast<uint32_t>(bytes.size());
  packet.timestampNs = 1'700'000'000'123'456'789;
  return packet;
}

/// The records of a block.
std::vector<StoredPacket> recordsOf(const CaptureBlock& block) {
  std::vector<StoredPacket> records;
  const auto bytes = block.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const RecordHeader header = loadRecordHeader(bytes.data() + at);
    const uint8_t* captured = bytes.data() + at + kRecordHeaderBytes;
    records.push_back({header.timestampNs, header.originalLength,
                       Bytes(captured, captured + header.capturedLength)});
    at += kRecordHeaderBytes + header.capturedLength;
  }
  return records;
}

BpfEvaluator filterOf(std::vector<BpfInstruction> instructions) {
  Bytes bytes;
  for (const auto& [code, jumpTrue, jumpFalse, k] : instructions) {
    append(bytes, Bytes{static_cast<uint8_t>(code), static_cast<uint8_t>(code >> 8), jumpTrue,
                        jumpFalse, static_cast<uint8_t>(k), static_cast<uint8_t>(k >> 8),
                        static_cast<uint8_t>(k >> 16), static_cast<uint8_t>(k >> 24)});
  }
  return BpfEvaluator(*BpfProgram::parse(bytes));
}

/// Accepts packets with this EtherType.
BpfEvaluator etherTypeFilter(uint32_t type) {
  return filterOf({{0x28, 0, 0, 12}, {0x15, 0, 1, type}, {0x06, 0, 0, 1}, {0x06, 0, 0, 0}});
}

TEST(PacketIntake, PutsTheVlanTagBackWhereItWas) {
  PacketIntake intake(kMaxCapturedLength, std::nullopt);
  CaptureBlock block;
  const Bytes bytes = countingBytes(60);
  RingPacket packet = packetOf(bytes);
  packet.hasVlanTag = true;
  packet.vlanProtocol = 0x88A8;
  packet.vlanTag = 0x6123;
  ASSERT_TRUE(intake.take(packet, block));
  Bytes expected(bytes.begin(), bytes.begin() + 12);
  append(expected, Bytes{0x88, 0xA8, 0x61, 0x23});
  append(expected, std::span(bytes).subspan(12));
  EXPECT_EQ(recordsOf(block), (std::vector<StoredPacket>{{packet.timestampNs, 64, expected}}));
}

TEST(PacketIntake, KeepsSnaplenBytesOfWhatWasOnTheWire) {
  for (const bool isTagged : {false, true}) {
    for (const uint32_t snaplen : {1u, 11u, 12u, 14u, 17u, 40u, 63u, 64u, 65u}) {
      PacketIntake whole(kMaxCapturedLength, std::nullopt);
      PacketIntake cut(snaplen, std::nullopt);
      CaptureBlock wholeBlock, cutBlock;
      const Bytes bytes = countingBytes(60);
      RingPacket packet = packetOf(bytes);
      packet.originalLength = 1500;
      packet.hasVlanTag = isTagged;
      packet.vlanProtocol = 0x8100;
      ASSERT_TRUE(whole.take(packet, wholeBlock));
      ASSERT_TRUE(cut.take(packet, cutBlock));
      StoredPacket expected = recordsOf(wholeBlock).at(0);
      expected.captured.resize(std::min<size_t>(snaplen, expected.captured.size()));
      EXPECT_EQ(recordsOf(cutBlock), std::vector<StoredPacket>{expected}) << snaplen;
      EXPECT_EQ(cut.counts().originalBytes, isTagged ? 1504u : 1500u);
    }
  }
}

TEST(PacketIntake, FiltersWholePacketsWithTheirTagsAndCountsWhatItLeavesOut) {
  PacketIntake intake(14, etherTypeFilter(0x8100));
  CaptureBlock block;
  Bytes bytes = countingBytes(60);
  RingPacket packet = packetOf(bytes);
  ASSERT_TRUE(intake.take(packet, block));
  EXPECT_TRUE(block.isEmpty());
  packet.hasVlanTag = true;
  packet.vlanProtocol = 0x8100;
  ASSERT_TRUE(intake.take(packet, block));
  EXPECT_EQ(block.entry().packets, 1u);
  EXPECT_EQ(intake.counts().packets, 2u);
  EXPECT_EQ(intake.counts().filteredPackets, 1u);
  EXPECT_EQ(intake.counts().recordBytes, kRecordHeaderBytes + 14u);
}

TEST(PacketIntake, CountsSizesOnTheWireWithTheirCheckSequence) {
  // Length reported by the kernel -> class; the FCS adds four bytes.
  const std::vector<std::pair<uint32_t, size_t>> cases = {
      {0, 0},    {59, 0},   {60, 1},   {61, 2},    {123, 2},   {124, 3},   {251, 3},
      {252, 4},  {508, 5},  {1019, 5}, {1020, 6},  {1514, 6},  {1515, 7},  {2043, 7},
      {2044, 8}, {4092, 9}, {8187, 9}, {8188, 10}, {9212, 10}, {9213, 11}, {65535, 11}};
  for (const auto& [length, sizeClass] : cases) {
    PacketIntake intake(64, std::nullopt);
    CaptureBlock block;
    const Bytes bytes(64);
    RingPacket packet = packetOf(bytes);
    packet.capturedLength = std::min<uint32_t>(64, length);
    packet.originalLength = length;
    ASSERT_TRUE(intake.take(packet, block));
    std::array<uint64_t, kSizeClasses> expected{};
    expected[sizeClass] = 1;
    EXPECT_EQ(intake.counts().sizes, expected) << length;
  }
}

TEST(PacketIntake, LeavesAPacketForTheNextBlockWhenThisOneIsFull) {
  PacketIntake intake(kMaxCapturedLength, std::nullopt);
  CaptureBlock block;
  const Bytes bytes(1500 - kRecordHeaderBytes, 7);
  const RingPacket packet = packetOf(bytes);
  uint32_t taken = 0;
  while (intake.take(packet, block)) taken += 1;
  EXPECT_EQ(taken, kBlockTargetBytes / 1500);
  EXPECT_EQ(intake.counts().packets, taken);
  EXPECT_EQ(block.entry().bytes, taken * 1500);
  CaptureBlock next;
  const Bytes largest(kMaxCapturedLength, 1);
  EXPECT_FALSE(intake.take(packetOf(largest), block));
  EXPECT_TRUE(intake.take(packetOf(largest), next));
  EXPECT_EQ(next.entry().bytes, kMaxBlockBytes);
}

}  // namespace
}  // namespace capfleet::test
