// The tally of a block: how many packets it has in each millisecond, so that they can be counted
// without being read. Tallies are stored one after another in <number>.tally. See FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/segment_index.h"

namespace capfleet {

inline constexpr int64_t kNanosPerMillisecond = 1'000'000;

/// One millisecond of a block, as in its tally.
struct TallyRow {
  int64_t millisecond = 0;  ///< since 1970
  uint32_t packets = 0;     ///< at least 1
  uint32_t bytes = 0;       ///< record headers and captured bytes
  bool operator==(const TallyRow&) const = default;
};

/// Appends the tally of a block to `out`. REQUIRES: the rows ascend and add up to the entry, whose
/// checksum is that of the block.
void appendTally(std::vector<uint8_t>& out, std::span<const TallyRow> rows,
                 const BlockEntry& entry);

/// The maximum size of a tally of this block.
uint64_t maxTallyBytes(const BlockEntry& entry);

/// The rows of a tally, ascending. Nothing if the bytes are damaged, or are the tally of another
/// block.
std::optional<std::vector<TallyRow>> parseTally(std::span<const uint8_t> bytes,
                                                const BlockEntry& entry);

}  // namespace capfleet
