// A segment as its capture's log describes it (segments.log in FORMAT.md): enough to select and
// plan without opening any of its files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace capfleet {

inline constexpr uint32_t kLogHeaderBytes = 64;
inline constexpr uint32_t kLogEntryBytes = 64;

enum SegmentFlags : uint16_t {
  kSegmentFlat = 1,     ///< its files are directly in the port's folder, not in a group's subfolder
  kSegmentDamaged = 2,  ///< some of its packets are known to be lost
  kSegmentGrowing = 4,  ///< it is being written; never on disk, only in calls of the engine
};

struct SegmentEntry {
  uint32_t number = 0;
  uint32_t port = 0;
  uint16_t flags = 0;  ///< SegmentFlags
  int64_t minNs = 0;   ///< smallest timestamp
  int64_t maxNs = 0;   ///< largest timestamp (inclusive)
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< of the .pcap file
  uint32_t linkTypeWord = 0;
  uint32_t snaplen = 0;
  uint32_t sideBytes = 0;  ///< of index, tallies and sieves together
  uint32_t checksum = 0;   ///< of its blocks, by addToChecksum(); 0 = unknown

  bool isGrowing() const { return (flags & kSegmentGrowing) != 0; }
};

/// The segments of one capture port that a job reads, in recording order.
struct StreamSegments {
  std::string folder;  ///< of the port, e.g. .../<capture>/cap0
  std::vector<SegmentEntry> segments;

  /// The path of one of them without its ending.
  std::string pathOf(const SegmentEntry& segment) const;
};

/// Reads entries in the form of segments.log, kLogEntryBytes each. Their checksums are not
/// verified: the reader of the log has done so.
std::vector<SegmentEntry> parseSegmentEntries(std::span<const uint8_t> bytes);

/// Writes the checksum of each entry in `bytes`, the first of which will be at `fileOffset` of the
/// log. A checksum covers the place too, so that an entry is valid only where it was written.
void sealLogEntries(std::span<uint8_t> bytes, uint64_t fileOffset);

/// Whether the entry (kLogEntryBytes) at this offset of the log is undamaged.
bool isValidLogEntry(const uint8_t* entry, uint64_t fileOffset);

}  // namespace capfleet
