// Where a download that goes on inside its body begins to scan: the slices that lie wholly before
// the position are passed over, and what they hold is known without reading them.
#pragma once

#include <cstdint>
#include <optional>

#include "download/slice_scan.h"

namespace capfleet {

/// The first slices of a plan, and what the scan of them would have delivered.
struct SkippedSlices {
  size_t slices = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< as PCAP records
  uint64_t corruptBlocks = 0;
  std::optional<int64_t> firstNs;
  std::optional<int64_t> lastNs;
};

/// What may be passed over at most.
struct SkipLimits {
  uint64_t packets;
  uint64_t bytes;  ///< as PCAP records
};

/// Passes over as many slices as are known to stay within the limits, and to hold only blocks that
/// have been read before: of others nobody knows whether they are damaged, and so left out. Reads
/// only blocks that begin before the range or end behind the last slice: two of each run at most,
/// however many bytes lie before them. Looks at every index entry.
/// Fails as BlockReader does.
/// REQUIRES: the scan delivers every packet, of the size and in the order in which it is stored
/// (PacketTransform::keepsSizes()), and ends by no time of its own.
Result<SkippedSlices> skipSlices(ScanContext& context, SkipLimits most);

}  // namespace capfleet
