// The side index of a segment: <number>.idx beside <number>.pcap. See FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/result.h"
#include "packet/pcap_format.h"
#include "store/segment_entry.h"

namespace capfleet {

/// A block ends when its next packet would exceed this size; a packet is never split.
inline constexpr uint32_t kBlockTargetBytes = 256 * 1024;
/// The largest block: a single packet may exceed the target.
inline constexpr uint32_t kMaxBlockBytes = kRecordHeaderBytes + kMaxCapturedLength;
static_assert(kMaxBlockBytes >= kBlockTargetBytes);

inline constexpr uint32_t kIndexHeaderBytes = 64;
inline constexpr uint32_t kIndexEntryBytes = 64;

enum BlockFlags : uint32_t {
  kBlockUnordered = 1,  ///< a timestamp inside the block is smaller than the previous one
  /// The block cannot be delivered. Either its bytes were found to be wrong: then the entry still
  /// says what was written. Or its entry was lost too: then it has no checksum, and its times are
  /// those that its neighbours leave.
  kBlockDamaged = 2,
};

/// One block: a run of whole records in the segment file.
struct BlockEntry {
  uint64_t offset = 0;    ///< of the first record in the segment file
  int64_t minNs = 0;      ///< smallest timestamp
  int64_t maxNs = 0;      ///< largest timestamp (inclusive)
  uint32_t bytes = 0;     ///< record headers and captured bytes; at most kMaxBlockBytes
  uint32_t packets = 0;   ///< at least 1; 0 if damaged
  uint64_t checksum = 0;  ///< XXH3-64 of the block's bytes; 0 if damaged
  uint32_t flags = 0;     ///< BlockFlags
  /// Bytes of the block's tally in the .tally file; 0 = it has none.
  uint32_t tallyBytes = 0;
  uint64_t tallyOffset = 0;
  /// For a damaged block: what its entry said before it was marked; 0 if that is unknown. A
  /// separate member, so that a reader of blocks cannot mistake a damaged one for another.
  uint32_t lostPackets = 0;
  uint64_t lostChecksum = 0;

  bool isDamaged() const { return (flags & kBlockDamaged) != 0; }
  /// False if it may have any time: damaged, in a segment about which nothing else is known.
  bool hasTimes() const { return !isDamaged() || minNs > 0 || maxNs < kTimestampEndNs - 1; }
  uint64_t end() const { return offset + bytes; }
  /// The same block, marked as having wrong bytes. It keeps the facts that identify its bytes.
  BlockEntry asDamaged() const;
  /// The block as it was before it was marked. Nothing if that is unknown.
  std::optional<BlockEntry> asWritten() const;
  bool operator==(const BlockEntry&) const = default;
};

/// Continues the checksum of a segment's blocks by the next block; it begins with 0.
uint32_t addToChecksum(uint32_t checksum, const BlockEntry& block);

/// The contents of an .idx file.
struct SegmentIndex {
  uint32_t port = 0;  ///< capture port, 0 to 255
  PcapFileHeader header;
  std::vector<BlockEntry> blocks;  ///< in file order, without gaps
  /// Where the block after the last one begins in the segment.
  uint64_t endOffset = kPcapFileHeaderBytes;
  /// A torn or damaged last entry was left out: normal for a segment that is being written, a loss
  /// of one block for a finished one.
  bool lastEntryLeftOut = false;
  /// Entries that were damaged or missing in the file, and were rebuilt when it was read.
  uint32_t rebuiltBlocks = 0;
  /// Packets of blocks whose writer was interrupted before it wrote their entries.
  uint64_t unindexedPackets = 0;
  /// The damaged ones among `blocks`. Readers leave them out, and count them as corrupt.
  uint32_t damagedBlocks = 0;
  /// The packets that are there are not those that the log describes. All blocks are damaged, in
  /// memory only: the right files, or the right log, may be put back.
  bool isMisplaced = false;
};

/// Serialises the fixed-size parts; the checksum of each part is included.
void storeIndexHeader(uint8_t (&out)[kIndexHeaderBytes], uint32_t port,
                      const PcapFileHeader& header);
void storeIndexEntry(uint8_t (&out)[kIndexEntryBytes], const BlockEntry& entry);

/// Reads <segment>.idx; `segment` is the path without its ending. Damaged parts are rebuilt from
/// the packets, in memory: nothing is written. With the log's `entry` of a finished segment, all of
/// its blocks are found. Without one, or with that of a growing segment, the blocks before the last
/// whole entry in the file are found, and a torn last entry (an append, or a crash while appending)
/// is left out. Fails with kAgedOut if the segment was removed, with kStoreUnavailable if it cannot
/// be read, and with kStoreCorrupt if its link type cannot be determined, or the index has an
/// unknown version. Thread-safe.
Result<SegmentIndex> readSegmentIndex(const std::string& segment,
                                      const SegmentEntry* entry = nullptr);

/// The same for a finished segment; also rebuilds damaged entries without any information about
/// their block, if something proves by now that its bytes are right.
Result<SegmentIndex> retrySegmentIndex(const std::string& segment, const SegmentEntry& entry);

/// The index of a segment that a job reads, with the facts of its log entry for a finished one.
/// Nothing if its .pcap file is missing and the entry says that packets are lost; otherwise a
/// missing file means removal, and the call fails with kAgedOut. Thread-safe.
Result<std::optional<SegmentIndex>> readIndexOf(const StreamSegments& stream,
                                                const SegmentEntry& segment);

/// Parses the bytes of an undamaged .idx file, without a torn last entry. Fails with kStoreCorrupt
/// if anything else is damaged; `path` is named in messages.
Result<SegmentIndex> parseSegmentIndex(std::span<const uint8_t> bytes, const std::string& path);

/// The port and the PCAP header in an index header. Fails with kStoreCorrupt.
Result<SegmentIndex> parseIndexHeader(std::span<const uint8_t> bytes, const std::string& path);

/// The entry, if its checksum matches and its values are possible. The blocks around it are not
/// considered. REQUIRES: kIndexEntryBytes bytes.
std::optional<BlockEntry> parseIndexEntry(const uint8_t* bytes);

/// Whether this is the header of an index with a version that this program does not know.
bool isUnknownIndexVersion(std::span<const uint8_t> bytes);

/// Corrects one damaged byte in a header or an entry by its checksum, which is practically never
/// wrong: one of some 14,000 changes would have to match 64 bits by chance. False if there is more
/// damage. Takes about 0.2 ms.
bool correctIndexPart(uint8_t (&part)[kIndexEntryBytes]);

/// The bytes of an .idx file.
std::vector<uint8_t> serialiseIndex(const SegmentIndex& index);

/// Appends the entries in `bytes`, which follow those that the index holds, to its blocks.
Status appendIndexEntries(std::span<const uint8_t> bytes, const std::string& path,
                          SegmentIndex& index);

}  // namespace capfleet
