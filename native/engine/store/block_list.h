// The blocks of some streams as their indexes describe them.
#pragma once

#include <vector>

#include "store/segment_entry.h"
#include "store/segment_index.h"

namespace capfleet {

/// All blocks that are not damaged, by smallest timestamp; for equal ones in the order of the
/// streams, then of the recording. Fails with kStoreUnavailable and kStoreCorrupt. Thread-safe.
Result<std::vector<BlockEntry>> listBlocks(const std::vector<StreamSegments>& streams);

}  // namespace capfleet
