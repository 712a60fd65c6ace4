// Reads the sieves of one segment.
#pragma once

#include <functional>
#include <string>

#include "store/block_sieve.h"

namespace capfleet {

/// Whether segments with this header have sieves: only in Ethernet the positions of addresses are
/// known.
bool hasSieves(const PcapFileHeader& header);

/// Bytes of the segment's sieves; 0 if it has none. `segment` is the path without its ending, here
/// and below.
uint64_t sieveFileBytes(const std::string& segment);

/// Calls `visit` for each undamaged sieve of the segment, in file order. If the file is missing,
/// unreadable or damaged, fewer sieves or none are visited: then the packets themselves must be
/// read. Thread-safe.
void readSieves(const std::string& segment, std::span<const BlockEntry> blocks,
                const std::function<void(const StoredSieve&)>& visit);

}  // namespace capfleet
