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
  /// The machine has run on since the writer ended: what it handed to the kernel is whole. After a
  /// power loss only what was synced is, and that is what the index describes.
  bool isSameBoot = false;
};

struct RecoveredSegments {
  PcapFileHeader header;
  std::vector<SegmentSummary> segments;  ///< as they are now; none = the port has no packets
  uint64_t cutBytes = 0;                 ///< of .pcap files
  uint64_t recoveredPackets = 0;         ///< that had no index entry before
};

/// Makes every segment whole: its index describes all of it. Of the newest segment, the records
/// behind the last entry get entries (same boot) or are cut (power loss). Reads the indexes, and of
/// packets only those without an entry. May be interrupted itself, and run again. The writer must
/// have ended. Fails with kStoreCorrupt when an older segment's index is damaged (it was whole
/// once, so that the medium has failed), with kStoreFull or kStoreUnavailable.
Result<RecoveredSegments> recoverSegments(const RecoveryOptions& options);

}  // namespace capfleet
