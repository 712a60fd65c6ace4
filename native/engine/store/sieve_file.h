// Reads the sieves of one segment.
#pragma once

#include <functional>
#include <string>

#include "store/block_sieve.h"

namespace capfleet {

/// Whether segments with this header have sieves: only of Ethernet is known where addresses are.
bool hasSieves(const PcapFileHeader& header);

/// Bytes of the segment's sieves; 0 when it has none. `segment` is the path without its ending,
/// here and below.
uint64_t sieveFileBytes(const std::string& segment);

/// Calls `visit` for each sieve of the segment that is whole, in file order. A file that is
/// missing, cannot be read or is damaged has fewer sieves or none: then only the packets themselves
/// tell. Thread-safe.
void readSieves(const std::string& segment, std::span<const BlockEntry> blocks,
                const std::function<void(const StoredSieve&)>& visit);

}  // namespace capfleet
