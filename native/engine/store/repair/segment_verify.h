// Checks a finished segment completely, and repairs what can be repaired.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "os/result.h"
#include "store/segment_entry.h"

namespace capfleet {

enum class SegmentFindingKind : uint8_t {
  kIndexRebuilt,    ///< entries are damaged or missing, and can be rebuilt
  kBlockDamaged,    ///< the bytes of a block are not those that were written: its packets are lost
  kBlockReadable,   ///< a block that is marked as damaged can be read again: its packets come back
  kTallyDamaged,    ///< the tally of a block is missing or wrong: counts read the block instead
  kSievesMissing,   ///< sieves are missing or wrong: filters for addresses read the blocks
  kAddressesWrong,  ///< the table of addresses is of other packets: filters may miss some
  kLogDiffers,      ///< the log's entry for the segment differs from its index
};

/// The name of a kind in answers, such as "index-rebuilt".
const char* nameOf(SegmentFindingKind kind);

struct SegmentFinding {
  SegmentFindingKind kind;
  std::string file;       ///< the path of the damaged file
  uint64_t offset = 0;    ///< of the damage in `file`, or of the block in the .pcap file
  uint64_t packets = 0;   ///< that downloads leave out because of it, as far as known
  uint64_t bytes = 0;     ///< of the blocks concerned
  std::string message;    ///< what is wrong, and what a repair does
  bool isMarked = false;  ///< index and log already report the loss
};

struct SegmentVerifyOptions {
  bool repairs = false;
  /// Called before each block with the bytes that were checked so far; false ends the work.
  std::function<bool(uint64_t checkedBytes)> goesOn;
};

struct VerifiedSegment {
  std::vector<SegmentFinding> findings;
  bool isRepaired = false;  ///< files were written, or the log should be changed to `entry`
  SegmentEntry entry;       ///< what the segment holds now, for the log
};

/// Checks each block, tally and sieve of a finished segment, and that its log entry matches.
/// `segment` is the path without its ending. With `repairs`, the index is replaced (damaged blocks
/// get marked entries, so that downloads need not read them), and tallies and unusable sieves are
/// rebuilt. The .pcap file is never written: no packet is removed. May be interrupted and repeated,
/// but not run twice at once for a segment. Downloads may read the segment meanwhile: one that has
/// read the old index finds the old tallies' places in the new file invalid, and then reads the
/// blocks. Fails with kCancelled, with kAgedOut if the segment was removed, with kStoreFull,
/// kStoreUnavailable, and kStoreCorrupt like readSegmentIndex(). Thread-safe.
Result<VerifiedSegment> verifySegment(const std::string& segment, const SegmentEntry& entry,
                                      const SegmentVerifyOptions& options);

}  // namespace capfleet
