#include "store/block_list.h"

#include <algorithm>
#include <iterator>

namespace capfleet {

Result<std::vector<BlockEntry>> listBlocks(const std::vector<std::vector<std::string>>& streams) {
  std::vector<BlockEntry> blocks;
  for (const std::vector<std::string>& segments : streams) {
    for (const std::string& segment : segments) {
      Result<SegmentIndex> index = readSegmentIndex(segment);
      if (!index) return index.error();
      std::copy_if(index->blocks.begin(), index->blocks.end(), std::back_inserter(blocks),
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
