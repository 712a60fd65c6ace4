// Contents of segments as JavaScript objects.
#pragma once

#include <napi.h>

#include <vector>

#include "store/segment_files.h"

namespace capfleet::binding {

/// {number, minNs, maxNs, packets, bytes, sideBytes, checksum, isFlat}
Napi::Object toSegment(Napi::Env env, const SegmentSummary& segment);

/// {port, linkType, snaplen, segments}
Napi::Object toStream(Napi::Env env, uint32_t port, const PcapFileHeader& header,
                      const std::vector<SegmentSummary>& segments);

}  // namespace capfleet::binding
