// What a growing segment holds so far, for observers: read only from the end of its index.
#pragma once

#include <cstdint>
#include <string>

#include "os/result.h"
#include "packet/pcap_format.h"

namespace capfleet {

struct SegmentExtent {
  uint64_t indexBytes = 0;  ///< read from the index, in whole entries; 0 = not even its header
  uint32_t port = 0;
  PcapFileHeader header;
  int64_t minNs = INT64_MAX;
  int64_t maxNs = INT64_MIN;
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< of the segment file that the index describes
  uint64_t damagedBlocks = 0;
  uint32_t checksum = 0;  ///< of its blocks, by addToChecksum()
};

/// Brings the extent of a segment (`segment` is the path without its ending) up to date by reading
/// what its index has in addition to `known`. An index that has become shorter is read again from
/// its beginning. An incomplete last entry or header is normal. Damaged entries are rebuilt as in
/// readSegmentIndex(), and it fails like that. Thread-safe.
Result<SegmentExtent> measureSegment(const std::string& segment, const SegmentExtent& known);

/// The extent of a finished segment of which only the files are left. Every part of the .pcap file
/// has an entry, gets one as in rebuildIndex(), or counts as damaged. Fails like that, and with
/// kAgedOut if there is no .pcap file. Thread-safe.
Result<SegmentExtent> measureFinishedSegment(const std::string& segment);

}  // namespace capfleet
