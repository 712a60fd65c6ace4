#include "store/block_list.h"

#include <algorithm>

namespace capfleet {

Result<std::vector<BlockEntry>> listBlocks(const std::vector<StreamSegments>& streams) {
  std::vector<BlockEntry> blocks;
  for (const StreamSegments& stream : streams) {
    for (const SegmentEntry& segment : stream.segments) {
      Result<SegmentIndex> index = readSegmentIndex(stream.pathOf(segment));
      if (!index) return index.error();
      blocks.insert(blocks.end(), index->blocks.begin(), index->blocks.end());
    }
  }
  const auto isEarlier = [](const BlockEntry& a, const BlockEntry& b) { return a.minNs < b.minNs; };
  if (!std::is_sorted(blocks.begin(), blocks.end(), isEarlier)) {
    std::stable_sort(blocks.begin(), blocks.end(), isEarlier);
  }
  return blocks;
}

}  // namespace capfleet
