// Removes a segment from the store, in coordination with its readers.
#pragma once

#include <string>

#include "os/result.h"

namespace capfleet {

/// Removes the files of a segment (`segment` is the path without ending) and frees their space,
/// also where somebody still has them open: such a reader fails with kAgedOut. False, and nothing
/// has been done, when the segment is being read and not `evenIfRead`. A segment that is gone is
/// removed. Fails with kStoreUnavailable. Thread-safe.
///
/// A file with a second name, such as a hard link of a backup, keeps its bytes under that name.
/// The folder of its group goes with its last segment, and an address table with the last one whose
/// addresses it may have.
Result<bool> removeSegment(const std::string& segment, bool evenIfRead);

/// Removes the folder that holds the files of this segment if it is a group's and empty.
void removeEmptyGroup(const std::string& segment);

}  // namespace capfleet
