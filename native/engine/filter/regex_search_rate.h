// How fast a compiled regular expression searches at worst.
#pragma once

#include <hs/hs.h>

#include <string>

namespace capfleet {

/// Bytes searched per second of processor time, in packets of 1400 bytes, over the slowest of
/// several texts: one byte repeated, random bytes, a protocol's text, the pattern's own characters
/// shuffled, the pattern itself. Each text is tried a few times and its best time counts, so that
/// other programs on the machine hardly change the result. 0 when there is no memory for it.
double worstSearchRate(const hs_database_t* database, const std::string& pattern);

}  // namespace capfleet
