// Reads a stream's segments back without the engine's readers, and checks them against the format.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "os/byte_order.h"
#include "store/segment_index.h"
#include "store/segment_path.h"
#include "store/xxh3.h"
#include "support/temp_directory.h"

namespace capfleet::test {

struct StoredPacket {
  int64_t timestampNs;
  uint32_t originalLength;
  Bytes captured;
  bool operator==(const StoredPacket&) const = default;
};

/// The records of one block, whose entry must describe them exactly.
inline void readBlock(const Bytes& data, const BlockEntry& block, std::vector<StoredPacket>& out) {
  ASSERT_LE(block.offset + block.bytes, data.size());
  EXPECT_LE(block.bytes, kMaxBlockBytes);
  EXPECT_TRUE(block.bytes <= kBlockTargetBytes || block.packets == 1);
  EXPECT_EQ(block.checksum, xxh3({data.data() + block.offset, block.bytes}));
  int64_t minNs = INT64_MAX, maxNs = INT64_MIN, lastNs = INT64_MIN;
  bool isUnordered = false;
  uint32_t packets = 0;
  size_t at = block.offset;
  while (at < block.offset + block.bytes) {
    const int64_t timestampNs =
        int64_t{loadLe32(&data[at])} * 1'000'000'000 + loadLe32(&data[at + 4]);
    const uint32_t capturedLength = loadLe32(&data[at + 8]);
    const auto begin = data.begin() + static_cast<ptrdiff_t>(at + 16);
    ASSERT_LE(at + 16 + capturedLength, block.offset + block.bytes);
    EXPECT_LT(loadLe32(&data[at + 4]), 1'000'000'000u);
    out.push_back({timestampNs, loadLe32(&data[at + 12]), Bytes(begin, begin + capturedLength)});
    isUnordered = isUnordered || timestampNs < lastNs;
    lastNs = timestampNs;
    minNs = std::min(minNs, timestampNs);
    maxNs = std::max(maxNs, timestampNs);
    ++packets;
    at += 16 + capturedLength;
  }
  EXPECT_EQ(block.minNs, minNs);
  EXPECT_EQ(block.maxNs, maxNs);
  EXPECT_EQ(block.packets, packets);
  EXPECT_EQ((block.flags & kBlockUnordered) != 0, isUnordered);
}

/// Packets and bytes in each millisecond of packets.
using MillisecondCounts = std::map<int64_t, std::pair<uint64_t, uint64_t>>;

inline MillisecondCounts countMilliseconds(std::span<const StoredPacket> packets) {
  MillisecondCounts counts;
  for (const StoredPacket& packet : packets) {
    auto& [count, bytes] = counts[packet.timestampNs / 1'000'000];
    count += 1;
    bytes += 16 + packet.captured.size();
  }
  return counts;
}

/// The rows of a tally, without checking its checksum.
inline MillisecondCounts readTally(std::span<const uint8_t> tally, int64_t millisecond) {
  size_t at = 8;
  const auto number = [&] {
    uint64_t value = 0;
    int bits = 0;
    while (tally[at] >= 0x80) {
      value += uint64_t{tally[at++] & 0x7Fu} << bits;
      bits += 7;
    }
    return value + (uint64_t{tally[at++]} << bits);
  };
  MillisecondCounts counts;
  while (at < tally.size()) {
    millisecond += static_cast<int64_t>(number());
    const uint64_t packets = number();
    counts[millisecond] = {packets, number()};
  }
  return counts;
}

/// `end` is where the previous tally ends. The tally must count the block's packets exactly.
inline void checkTally(const Bytes& tallies, const BlockEntry& block,
                       std::span<const StoredPacket> packets, uint64_t& end) {
  const MillisecondCounts expected = countMilliseconds(packets);
  if (expected.size() == 1) {
    EXPECT_EQ(block.tallyBytes, 0u);
    EXPECT_EQ(block.tallyOffset, 0u);
    return;
  }
  EXPECT_EQ(block.tallyOffset, end);
  ASSERT_LT(8u, block.tallyBytes);
  end += block.tallyBytes;
  ASSERT_LE(end, tallies.size());
  const std::span tally(tallies.data() + block.tallyOffset, block.tallyBytes);
  EXPECT_EQ(loadLe64(tally.data()),
            XXH3_64bits_withSeed(tally.data() + 8, tally.size() - 8, block.checksum));
  EXPECT_EQ(readTally(tally, block.minNs / 1'000'000), expected);
}

/// All packets of the segments in a port's folder, in stored order.
inline std::vector<StoredPacket> storedPackets(const std::string& directory) {
  std::vector<StoredPacket> packets;
  for (uint32_t number = 1;; ++number) {
    std::string segment = groupedSegmentPath(directory, number);
    if (!std::filesystem::exists(segment + ".pcap")) segment = segmentPath(directory, number);
    if (!std::filesystem::exists(segment + ".pcap")) break;
    const Bytes data = readFile(segment + ".pcap");
    const auto index = readSegmentIndex(segment);
    if (!index) {
      ADD_FAILURE() << index.error().message;
      break;
    }
    EXPECT_EQ(loadLe32(data.data()), 0xA1B23C4D);
    EXPECT_EQ(loadLe32(&data[20]), index->header.linkTypeWord);
    const Bytes tallies = readFile(segment + ".tally");
    uint64_t end = kPcapFileHeaderBytes, talliesEnd = 0;
    for (const BlockEntry& block : index->blocks) {
      EXPECT_EQ(block.offset, end);
      const size_t before = packets.size();
      readBlock(data, block, packets);
      checkTally(tallies, block, std::span(packets).subspan(before), talliesEnd);
      end = block.offset + block.bytes;
    }
    EXPECT_EQ(end, data.size()) << "the index must cover the segment";
    EXPECT_EQ(talliesEnd, tallies.size()) << "the index must cover the tallies";
  }
  return packets;
}

}  // namespace capfleet::test
