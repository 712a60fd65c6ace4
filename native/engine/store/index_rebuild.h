// Rebuilds the damaged parts of a segment's index from its packets, tallies and sieves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "os/result.h"
#include "store/segment_index.h"

namespace capfleet {

/// What follows the last whole entry of a segment whose writer ended without finishing it.
struct UnindexedTail {
  uint64_t end = 0;      ///< bytes of the .pcap file
  bool isWhole = false;  ///< everything that the writer passed to the kernel is there
};

/// Facts about the segment that are known in addition to its files.
struct IndexRebuildOptions {
  /// Used if the index header is damaged; otherwise the .pcap header and the folder's name are
  /// used.
  std::optional<PcapFileHeader> header;
  std::optional<uint32_t> port;
  /// Bytes of the .pcap file that must have entries. Nothing: the last whole entry is the last.
  std::optional<uint64_t> endOffset;
  /// Used without `endOffset`: blocks after the last whole entry are made, as far as anything
  /// besides their packets was written.
  std::optional<UnindexedTail> tail;
  /// All packets are between these (inclusive).
  std::optional<int64_t> minNs;
  std::optional<int64_t> maxNs;
  /// The log says that packets are lost: a block without proof may be one of those that were
  /// marked.
  bool isMarked = false;
  /// Damaged entries without any information about their block are rebuilt too, if there is proof
  /// by now.
  bool triesDamaged = false;
};

/// The index of a segment (`segment` is the path without its ending) whose whole .idx file is
/// `bytes`. Whole entries are kept unchanged, and one damaged byte in an entry is corrected. Any
/// other entry is rebuilt if the records between its neighbours can be parsed exactly, and nothing
/// shows that their bytes have changed: the rest of the entry, the block's tally or sieve, the
/// times of its neighbours. Otherwise an entry marked as damaged represents the block, so that the
/// blocks after it keep their numbers. Reads only packets without an entry, and writes nothing.
/// Fails like readSegmentIndex(). Thread-safe.
Result<SegmentIndex> rebuildIndex(const std::string& segment, std::span<const uint8_t> bytes,
                                  const IndexRebuildOptions& options);

/// Marks blocks that extend beyond the end of the .pcap file as damaged. Entries are only written
/// once their data is safe, so such blocks were lost by the medium, and readers must count them.
void markLostBlocks(SegmentIndex& index, uint64_t dataBytes);

}  // namespace capfleet
