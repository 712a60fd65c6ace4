// Adds the addresses of a segment to the tables where they are missing: after a crash, an upgrade
// or damage.
#pragma once

#include <functional>
#include <string>

#include "os/result.h"

namespace capfleet {

/// Reads the finished segment (`segment` is the path without its ending) and adds its addresses to
/// its port's table, unless they are there. False if there was nothing to do, or if nothing can be
/// said about the segment: it has damaged blocks, or another link type than Ethernet. Stops with
/// kCancelled when `goesOn` returns false. Fails with kAgedOut if the segment no longer exists,
/// with kStoreFull, kStoreUnavailable and kStoreCorrupt.
Result<bool> repairAddresses(const std::string& segment, const std::function<bool()>& goesOn);

}  // namespace capfleet
