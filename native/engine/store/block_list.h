// The blocks of some streams as their indexes describe them.
#pragma once

#include <string>
#include <vector>

#include "store/segment_index.h"

namespace capfleet {

/// All blocks that are not damaged, by smallest timestamp; of equal ones in the order of the
/// streams, then of the recording. `streams` are the paths of segments without ending. Fails with
/// kStoreUnavailable and kStoreCorrupt. Thread-safe.
Result<std::vector<BlockEntry>> listBlocks(const std::vector<std::vector<std::string>>& streams);

}  // namespace capfleet
