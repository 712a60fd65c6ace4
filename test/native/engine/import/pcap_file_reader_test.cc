#include <gtest/gtest.h>

#include "packet/pcap_format.h"
#include "support/capture_bytes.h"
#include "support/places.h"
#include "support/read_steps.h"

namespace capfleet::test {
namespace {

constexpr uint32_t kMicros = 0xA1B2C3D4;
constexpr uint32_t kNanos = 0xA1B23C4D;
constexpr uint32_t kModified = 0xA1B2CD34;

TEST(PcapFileReader, ReadsBothByteOrdersAndAllResolutions) {
  for (const bool isBigEndian : {false, true}) {
    for (const uint32_t magic : {kMicros, kNanos, kModified}) {
      PcapBytes file({.isBigEndian = isBigEndian, .magic = magic, .linkTypeWord = 0x24000071});
      file.packet(1'700'000'000, 999'999, {1, 2, 3}, 60).packet(4'000'000'000, 5, {}, 0);
      const auto steps = readSteps(file.bytes());
      ASSERT_EQ(steps.openError, "");
      ASSERT_FALSE(steps.damage) << steps.damage->message;
      const int64_t nanosPerUnit = magic == kNanos ? 1 : 1000;
      const std::vector<ReadPacket> expected = {
          {0, 1'700'000'000 * kNanosPerSecond + 999'999 * nanosPerUnit, 60, {1, 2, 3}},
          {0, 4'000'000'000 * kNanosPerSecond + 5 * nanosPerUnit, 0, {}}};
      EXPECT_EQ(steps.packets, expected);
      EXPECT_EQ(steps.interfaces, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0x24000071}}));
    }
  }
}

TEST(PcapFileReader, CarriesFractionsOfMoreThanASecond) {
  PcapBytes nanos({.magic = kNanos});
  nanos.packet(10, UINT32_MAX, {}, 0);
  EXPECT_EQ(readSteps(nanos.bytes()).packets.at(0).timestampNs, 10'000'000'000 + 4'294'967'295);
  PcapBytes micros({.magic = kMicros});
  micros.packet(10, UINT32_MAX, {}, 0);
  EXPECT_EQ(readSteps(micros.bytes()).packets.at(0).timestampNs,
            10'000'000'000 + 4'294'967'295'000);
}

TEST(PcapFileReader, CountsPacketsBeyondTheEndOfTime) {
  PcapBytes file({.magic = kNanos});
  file.packet(UINT32_MAX, 1'000'000'000, {9}, 1).packet(UINT32_MAX, 999'999'999, {8}, 1);
  const auto steps = readSteps(file.bytes());
  EXPECT_EQ(steps.outOfTimeRange, 1u);
  ASSERT_EQ(steps.packets.size(), 1u);
  EXPECT_EQ(steps.packets[0].timestampNs, kTimestampEndNs - 1);
}

TEST(PcapFileReader, KeepsAnOriginalLengthBelowTheCapturedLength) {
  PcapBytes file;
  file.packet(1, 1, Bytes(100, 7), 20);
  const auto steps = readSteps(file.bytes());
  EXPECT_EQ(steps.packets.at(0).originalLength, 20u);
  EXPECT_EQ(steps.packets.at(0).captured.size(), 100u);
}

TEST(PcapFileReader, TakesTheLargestPacketAndCallsALargerOneDamage) {
  PcapBytes file;
  file.packet(1, 1, Bytes(kMaxCapturedLength, 7), kMaxCapturedLength);
  const size_t end = file.bytes().size();
  file.packet(2, 2, Bytes(kMaxCapturedLength + 1, 7), kMaxCapturedLength + 1);
  const auto steps = readSteps(file.bytes());
  EXPECT_EQ(steps.packets.size(), 1u);
  ASSERT_TRUE(steps.damage);
  EXPECT_EQ(steps.damage->offset, end);
  EXPECT_NE(steps.damage->message.find("262145"), std::string::npos);
}

TEST(PcapFileReader, KeepsAllWholePacketsWhereverTheFileIsCut) {
  PcapBytes file({.isBigEndian = true, .magic = kMicros});
  for (uint32_t i = 0; i < 40; ++i) file.packet(i, i, Bytes(i * 3, 1), i * 3);
  const Bytes whole = file.bytes();
  for (const size_t cut : somePlaces(0, whole.size())) {
    const auto steps = readSteps(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut)));
    if (cut < kPcapFileHeaderBytes) {
      EXPECT_NE(steps.openError, "") << cut;
      continue;
    }
    size_t packets = 0;
    size_t end = kPcapFileHeaderBytes;
    for (const size_t candidate : file.ends()) {
      if (candidate <= cut) ++packets, end = candidate;
    }
    ASSERT_EQ(steps.packets.size(), packets) << cut;
    ASSERT_EQ(steps.damage.has_value(), cut != end) << cut;
    if (steps.damage) {
      EXPECT_EQ(steps.damage->offset, end) << cut;
    }
  }
}

TEST(PcapFileReader, ReadsTheSameFromPiecesOfAnySize) {
  PcapBytes file;
  for (uint32_t i = 0; i < 200; ++i) file.packet(i, i, Bytes(i, 1), i);
  const auto expected = readSteps(file.bytes()).packets;
  for (const size_t pieceBytes : {1, 2, 3, 15, 16, 17, 100, 4096}) {
    EXPECT_EQ(readSteps(file.bytes(), pieceBytes).packets, expected) << pieceBytes;
  }
}

TEST(PcapFileReader, ReadsTheLargestPacketsThroughTheSmallestBuffer) {
  PcapBytes file;
  for (uint32_t i = 0; i < 9; ++i) file.packet(i, i, Bytes(kMaxCapturedLength - i, 1), 1);
  const auto steps =
      readSteps(std::make_unique<MemorySource>(file.bytes()), CaptureFileReader::kMinBufferBytes);
  EXPECT_EQ(steps.packets.size(), 9u);
  EXPECT_FALSE(steps.damage);
}

TEST(PcapFileReader, RefusesOtherVersionsWithTheWayOut) {
  PcapBytes file;
  Bytes bytes = file.bytes();
  bytes[6] = 5;
  const auto steps = readSteps(bytes);
  EXPECT_NE(steps.openError.find("version 2.5"), std::string::npos);
  EXPECT_NE(steps.openError.find("editcap"), std::string::npos);
}

// A record's captured length is at byte 32 of a file, its original length at byte 36.
TEST(PcapFileReader, ReadsOldVersionsWhoseLengthsStandInTheOtherOrder) {
  PcapBytes file;
  file.packet(1, 2, Bytes(60, 7), 1500);
  const Bytes usual = file.bytes();
  Bytes swapped = usual;
  std::swap_ranges(swapped.begin() + 32, swapped.begin() + 36, swapped.begin() + 36);
  struct Case {
    uint8_t minor;
    const Bytes& bytes;
  };
  for (const auto& [minor, bytes] :
       {Case{0, swapped}, Case{2, swapped}, Case{3, swapped}, Case{3, usual}, Case{4, usual}}) {
    Bytes old = bytes;
    old[6] = minor;
    const auto steps = readSteps(old);
    ASSERT_EQ(steps.packets.size(), 1u) << "2." << int{minor} << " " << steps.openError;
    EXPECT_EQ(steps.packets[0].captured.size(), 60u);
    EXPECT_EQ(steps.packets[0].originalLength, 1500u);
  }
}

TEST(CaptureFileReader, NamesWhatIsNoCaptureFile) {
  EXPECT_EQ(readSteps(Bytes{}).openError, "is empty");
  const auto html = readSteps(Bytes{'<', 'h', 't', 'm', 'l', '>'}).openError;
  EXPECT_NE(html.find("3c 68 74 6d"), std::string::npos) << html;
}

}  // namespace
}  // namespace capfleet::test
