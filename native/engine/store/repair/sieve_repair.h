// Adds missing sieves to the blocks of a stored segment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "os/result.h"

namespace capfleet {

/// Appends the sieves that blocks of a finished segment lack; damaged blocks get none. `segment` is
/// the path without its ending. It may be interrupted at any time and repeated, but not run twice
/// at once; downloads may read the segment meanwhile. Returns how many sieves were added. `goesOn`
/// is called before each block that is read; false ends with kCancelled. Fails with kAgedOut if the
/// segment was removed, with kStoreFull, kStoreUnavailable and kStoreCorrupt.
Result<uint64_t> addSieves(const std::string& segment, const std::function<bool()>& goesOn);

}  // namespace capfleet
