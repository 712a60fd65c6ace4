// Makes the damaged parts of a segment's index again from its packets, tallies and sieves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "os/result.h"
#include "store/segment_index.h"

namespace capfleet {

/// What follows the last whole entry of a segment whose writer has ended without finishing it.
struct UnindexedTail {
  uint64_t end = 0;      ///< bytes of the .pcap file
  bool isWhole = false;  ///< all that the writer handed to the kernel is there
};

/// What is known of the segment beside its files.
struct IndexRebuildOptions {
  /// Used when the index header is damaged; else the .pcap header and the folder's name tell.
  std::optional<PcapFileHeader> header;
  std::optional<uint32_t> port;
  /// Bytes of the .pcap file that must have entries. Nothing: the last whole entry is the last.
  std::optional<uint64_t> endOffset;
  /// Used without `endOffset`: blocks behind the last whole entry are made, as far as anything was
  /// written of them beside their packets.
  std::optional<UnindexedTail> tail;
  /// All packets lie between these (inclusive).
  std::optional<int64_t> minNs;
  std::optional<int64_t> maxNs;
  /// The log says that packets are lost: a block without proof may be of those that were marked.
  bool isMarked = false;
  /// Damaged entries that say nothing of their block are made again too, if there is proof by now.
  bool triesDamaged = false;
};

/// The index of a segment (`segment` is the path without ending), of whose .idx file `bytes` is all
/// that there is. Whole entries are kept as they are, and one damaged byte in an entry is
/// corrected. Any other entry is made again when the records between its neighbours can be walked
/// exactly, and nothing shows that their bytes have changed: the rest of the entry, the block's
/// tally or sieve, the times of its neighbours. Where that fails, an entry marked as damaged stands
/// for the block, so that the blocks after it keep their numbers. Reads only packets without an
/// entry, and writes nothing. Fails as readSegmentIndex(). Thread-safe.
Result<SegmentIndex> rebuildIndex(const std::string& segment, std::span<const uint8_t> bytes,
                                  const IndexRebuildOptions& options);

/// Marks blocks that reach over the end of the .pcap file as damaged. Entries are only written when
/// their data is safe: such blocks were lost by the medium, and readers are to count them.
void markLostBlocks(SegmentIndex& index, uint64_t dataBytes);

}  // namespace capfleet
