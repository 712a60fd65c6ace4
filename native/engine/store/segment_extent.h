// What a segment holds so far, for those who watch it grow: read from the end of its index alone.
#pragma once

#include <cstdint>
#include <string>

#include "os/result.h"
#include "packet/pcap_format.h"

namespace capfleet {

struct SegmentExtent {
  uint64_t indexBytes = 0;  ///< read of the index, in whole entries; 0 = not even its header
  uint32_t port = 0;
  PcapFileHeader header;
  int64_t minNs = INT64_MAX;
  int64_t maxNs = INT64_MIN;
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< of the segment file that the index describes
  uint64_t damagedBlocks = 0;
};

/// Brings the extent of a segment (`segment` is the path without ending) up to date: reads what its
/// index has more than `known`. An index that has become shorter is read again from its beginning.
/// A torn last entry, and a header that is not whole yet, are normal. Damaged entries are made
/// again as readSegmentIndex() does, and it fails as that does. Thread-safe.
Result<SegmentExtent> measureSegment(const std::string& segment, const SegmentExtent& known);

/// The extent of a segment that its writer has ended, where nothing but its files is left: all of
/// the .pcap file has an entry, is made one again as rebuildIndex() does, or counts as damaged.
/// Fails as that does, with kAgedOut when there is no .pcap file. Thread-safe.
Result<SegmentExtent> measureFinishedSegment(const std::string& segment);

}  // namespace capfleet
