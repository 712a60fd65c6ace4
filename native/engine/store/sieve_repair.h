// Gives the blocks of a stored segment the sieves that they lack.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "os/result.h"

namespace capfleet {

/// Appends the sieves that blocks of a finished segment lack; blocks that are damaged get none.
/// `segment` is the path without its ending. It may be interrupted at any time and done again, but
/// not twice at once; downloads may read the segment meanwhile. Returns how many sieves it made.
/// `goesOn` is asked before each block that is read; false ends with kCancelled. Fails with
/// kAgedOut when the segment was removed, with kStoreFull, kStoreUnavailable and kStoreCorrupt.
Result<uint64_t> addSieves(const std::string& segment, const std::function<bool()>& goesOn);

}  // namespace capfleet
