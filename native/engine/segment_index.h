// The side index of a segment: <number>.idx beside <number>.pcap. See FORMAT.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pcap_format.h"
#include "result.h"

namespace capfleet {

/// A block closes when its next packet would take it past this size; a packet is never split.
inline constexpr uint32_t kBlockTargetBytes = 256 * 1024;
/// The largest block: one block of target size less one byte cannot grow, but a single packet may
/// exceed the target.
inline constexpr uint32_t kMaxBlockBytes = kRecordHeaderBytes + kMaxCapturedLength;
static_assert(kMaxBlockBytes >= kBlockTargetBytes);

inline constexpr uint32_t kIndexHeaderBytes = 64;
inline constexpr uint32_t kIndexEntryBytes = 64;

enum BlockFlags : uint32_t {
  kBlockUnordered = 1,  ///< timestamps inside the block go back at least once
};

/// One block: a run of whole records in the segment file.
struct BlockEntry {
  uint64_t offset;    ///< of the first record in the segment file
  int64_t minNs;      ///< smallest timestamp
  int64_t maxNs;      ///< largest timestamp (inclusive)
  uint32_t bytes;     ///< record headers and captured bytes; at most kMaxBlockBytes
  uint32_t packets;   ///< at least 1
  uint64_t checksum;  ///< XXH3-64 of the block's bytes
  uint32_t flags;     ///< BlockFlags
};

/// Everything an .idx file says.
struct SegmentIndex {
  uint32_t port = 0;  ///< capture port, 0 to 255
  PcapFileHeader header;
  std::vector<BlockEntry> blocks;
};

/// Serialises the fixed-size parts; the checksum of each part is included.
void storeIndexHeader(uint8_t (&out)[kIndexHeaderBytes], uint32_t port, const PcapFileHeader& header);
void storeIndexEntry(uint8_t (&out)[kIndexEntryBytes], const BlockEntry& entry);

/// Reads <segment>.idx. `segment` is the path without its ending. A torn last entry (crash while
/// appending) is left out; a damaged entry in the middle fails with kStoreCorrupt.
Result<SegmentIndex> readSegmentIndex(const std::string& segment);

}  // namespace capfleet
