// The side index of a segment: <number>.idx beside <number>.pcap. See FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/result.h"
#include "packet/pcap_format.h"

namespace capfleet {

/// A block closes when its next packet would take it past this size; a packet is never split.
inline constexpr uint32_t kBlockTargetBytes = 256 * 1024;
/// The largest block: one packet alone may exceed the target.
inline constexpr uint32_t kMaxBlockBytes = kRecordHeaderBytes + kMaxCapturedLength;
static_assert(kMaxBlockBytes >= kBlockTargetBytes);

inline constexpr uint32_t kIndexHeaderBytes = 64;
inline constexpr uint32_t kIndexEntryBytes = 64;

enum BlockFlags : uint32_t {
  kBlockUnordered = 1,  ///< a timestamp inside the block is smaller than the one before it
};

/// One block: a run of whole records in the segment file.
struct BlockEntry {
  uint64_t offset = 0;    ///< of the first record in the segment file
  int64_t minNs = 0;      ///< smallest timestamp
  int64_t maxNs = 0;      ///< largest timestamp (inclusive)
  uint32_t bytes = 0;     ///< record headers and captured bytes; at most kMaxBlockBytes
  uint32_t packets = 0;   ///< at least 1
  uint64_t checksum = 0;  ///< XXH3-64 of the block's bytes
  uint32_t flags = 0;     ///< BlockFlags
  /// Bytes of the block's tally in the .tally file; 0 = it has none.
  uint32_t tallyBytes = 0;
  uint64_t tallyOffset = 0;
};

/// Everything an .idx file says.
struct SegmentIndex {
  uint32_t port = 0;  ///< capture port, 0 to 255
  PcapFileHeader header;
  std::vector<BlockEntry> blocks;  ///< in file order, without gaps
  /// Where the block behind the last one begins in the segment.
  uint64_t endOffset = kPcapFileHeaderBytes;
  /// A torn or damaged last entry was left out: normal for a segment that is being written,
  /// a loss of one block for a finished one.
  bool lastEntryLeftOut = false;
};

/// Serialises the fixed-size parts; the checksum of each part is included.
void storeIndexHeader(uint8_t (&out)[kIndexHeaderBytes], uint32_t port,
                      const PcapFileHeader& header);
void storeIndexEntry(uint8_t (&out)[kIndexEntryBytes], const BlockEntry& entry);

/// Reads <segment>.idx. `segment` is the path without its ending. A torn last entry (crash while
/// appending) is left out. Fails with kStoreCorrupt when the header, or an entry that is not the
/// last, is damaged; with kAgedOut when there is no such file, with kStoreUnavailable when it
/// cannot be read. Thread-safe.
Result<SegmentIndex> readSegmentIndex(const std::string& segment);

/// Reads the bytes of an .idx file, as readSegmentIndex() does; `path` is named in messages.
Result<SegmentIndex> parseSegmentIndex(std::span<const uint8_t> bytes, const std::string& path);

/// The undamaged beginning of an .idx file: what a writer that was interrupted is known to have
/// finished. Nothing when even the header is not whole.
std::optional<SegmentIndex> parseIndexBeginning(std::span<const uint8_t> bytes);

/// Appends the entries in `bytes`, which follow those that the index holds, to its blocks.
Status appendIndexEntries(std::span<const uint8_t> bytes, const std::string& path,
                          SegmentIndex& index);

}  // namespace capfleet
