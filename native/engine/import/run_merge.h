// Merges sorted runs into one sorted stream of segments.
#pragma once

#include <functional>
#include <vector>

#include "import/run_reader.h"
#include "os/result.h"
#include "store/segment_writer.h"

namespace capfleet {

/// Writes the packets of all runs in the order of their timestamps; of equal ones, those of the
/// earlier run in the list come first. Memory and open files grow with the number of runs: callers
/// keep it small. `goesOn` is asked every few thousand packets; false ends with kCancelled.
/// Fails as SegmentWriter and RunReader do.
Result<std::vector<SegmentSummary>> mergeRuns(const std::vector<SortedRun>& runs,
                                              SegmentWriterOptions output,
                                              const std::function<bool()>& goesOn);

}  // namespace capfleet
