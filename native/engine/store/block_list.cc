#include "store/block_list.h"

#include <algorithm>
#include <iterator>

namespace capfleet {

Result<std::vector<BlockEntry>> listBlocks(const std::vector<StreamSegments>& streams) {
  std::vector<BlockEntry> blocks;
  for (const StreamSegments& stream : streams) {
    for (const SegmentEntry& segment : stream.segments) {
      const auto found = readIndexOf(stream, segment);
      if (!found) return found.error();
      if (!*found) continue;
      const std::vector<BlockEntry>& held = (*found)->blocks;
      std::copy_if(held.begin(), held.end(), std::back_inserter(blocks),
                   [](const BlockEntry& block) { return !block.isDamaged(); });
    }
  }
  const auto isEarlier = [](const BlockEntry& a, const BlockEntry& b) { return a.minNs < b.minNs; };
  if (!std::is_sorted(blocks.begin(), blocks.end(), isEarlier)) {
    std::stable_sort(blocks.begin(), blocks.end(), isEarlier);
  }
  return blocks;
}

}  // namespace capfleet
