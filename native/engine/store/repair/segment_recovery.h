// Repairs the segments of a capture port whose writer was interrupted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/segment_files.h"

namespace capfleet {

struct RecoveryOptions {
  std::string captureFolder;
  uint32_t port = 0;
  /// The machine has been running since the writer ended: what was passed to the kernel is
  /// complete. After a power failure only synced data is, and that is what the index describes.
  bool isSameBoot = false;
  /// The last segment of the port that is known to be finished; 0 = none. It and earlier ones are
  /// not modified.
  uint32_t afterNumber = 0;
};

struct RecoveredSegments {
  PcapFileHeader header;  ///< of the newest segment
  /// The segments after `afterNumber` as they are now; none = no packets are stored after it.
  std::vector<SegmentSummary> segments;
  uint64_t cutBytes = 0;          ///< of .pcap files
  uint64_t recoveredPackets = 0;  ///< that had no index entry, after the last one
  uint64_t rebuiltBlocks = 0;     ///< whose index entry was damaged and has been rebuilt
  uint64_t damagedBlocks = 0;     ///< about which only the place is known
  /// Names the first ten segments with rebuilt or damaged blocks; empty if there are none.
  std::string message;
};

/// Makes every segment after `afterNumber` whole: its index describes all of it. Damaged entries
/// are made again as rebuildIndex() does; no packet before a whole entry is lost. Only the newest
/// segment can be cut, and only after its last whole entry: the records there get entries (same
/// boot) or are cut (power loss). Reads the indexes, and of packets only those without an entry.
/// May be interrupted, and run again. The writer must have ended. Fails with kStoreCorrupt when
/// nothing tells the link type of a segment, with kStoreFull or kStoreUnavailable.
Result<RecoveredSegments> recoverSegments(const RecoveryOptions& options);

}  // namespace capfleet
