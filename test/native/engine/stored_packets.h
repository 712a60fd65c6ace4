// Reads a stream's segments back without the engine's readers, and checks them against the format.
#pragma once

#include <filesystem>
#include <vector>

#include "byte_order.h"
#include "segment_index.h"
#include "temp_directory.h"
#include "xxh3.h"

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

/// All packets of the segments in `directory`, in stored order.
inline std::vector<StoredPacket> storedPackets(const std::string& directory) {
  std::vector<StoredPacket> packets;
  for (uint32_t number = 1;; ++number) {
    char name[16];
    std::snprintf(name, sizeof name, "/%08u", number);
    const std::string segment = directory + name;
    if (!std::filesystem::exists(segment + ".pcap")) break;
    const Bytes data = readFile(segment + ".pcap");
    const auto index = readSegmentIndex(segment);
    if (!index) {
      ADD_FAILURE() << index.error().message;
      break;
    }
    EXPECT_EQ(loadLe32(data.data()), 0xA1B23C4D);
    EXPECT_EQ(loadLe32(&data[20]), index->header.linkTypeWord);
    uint64_t end = kPcapFileHeaderBytes;
    for (const BlockEntry& block : index->blocks) {
      EXPECT_EQ(block.offset, end);
      readBlock(data, block, packets);
      end = block.offset + block.bytes;
    }
    EXPECT_EQ(end, data.size()) << "the index must cover the segment";
  }
  return packets;
}

}  // namespace capfleet::test
