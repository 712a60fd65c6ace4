#include "store/checked_blocks.h"

#include <algorithm>

namespace capfleet {

void SegmentChecks::note(uint32_t block, bool isIntact) {
  const std::lock_guard lock(mutex_);
  if (checks_.size() <= block) checks_.resize(size_t{block} + 1, BlockCheck::kUnread);
  checks_[block] = isIntact ? BlockCheck::kIntact : BlockCheck::kDamaged;
}

BlockCheck SegmentChecks::of(uint32_t block) const {
  const std::lock_guard lock(mutex_);
  return block < checks_.size() ? checks_[block] : BlockCheck::kUnread;
}

std::shared_ptr<SegmentChecks> CheckedBlocks::of(const std::string& segment,
                                                 const SegmentIndex& index) {
  // Nothing can be known of a segment without a block, and nothing tells it from another.
  if (index.blocks.empty()) return std::make_shared<SegmentChecks>();
  const uint64_t firstChecksum = index.blocks.front().checksum;
  const std::lock_guard lock(mutex_);
  Known& known = known_[segment];
  if (!known.checks || known.firstChecksum != firstChecksum) {
    known.checks = std::make_shared<SegmentChecks>();
    known.firstChecksum = firstChecksum;
  }
  known.lastUse = ++uses_;
  std::shared_ptr<SegmentChecks> checks = known.checks;
  if (known_.size() > mostSegments_) forgetOldest();
  return checks;
}

/// Called with the lock.
void CheckedBlocks::forgetOldest() {
  known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.second.lastUse < b.second.lastUse;
  }));
}

}  // namespace capfleet
