// The worst-case search rate of a compiled regular expression.
#pragma once

#include <hs/hs.h>

#include <string>

namespace capfleet {

/// Bytes searched per second of CPU time, in packets of 1400 bytes, for the slowest of several
/// texts: one byte repeated, random bytes, a protocol's text, the pattern's own characters
/// shuffled, the pattern itself. Each text is tried a few times and its best time counts, so that
/// other programs on the machine hardly affect the result. 0 if there is no memory for it.
double worstSearchRate(const hs_database_t* database, const std::string& pattern);

}  // namespace capfleet
