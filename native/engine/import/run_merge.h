// Merges sorted runs into one sorted stream of segments.
#pragma once

#include <functional>
#include <vector>

#include "import/run_reader.h"
#include "os/result.h"
#include "store/segment_writer.h"

namespace capfleet {

/// Writes the packets of all runs in timestamp order; for equal timestamps, those of the earlier
/// run in the list come first. Memory and open files grow with the number of runs, so callers must
/// keep it small. `goesOn` is called every few thousand packets; returning false ends with
/// kCancelled. Fails like SegmentWriter and RunReader.
Result<std::vector<SegmentSummary>> mergeRuns(const std::vector<SortedRun>& runs,
                                              SegmentWriterOptions output,
                                              const std::function<bool()>& goesOn);

}  // namespace capfleet
