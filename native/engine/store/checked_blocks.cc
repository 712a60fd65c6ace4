#include "store/checked_blocks.h"

#include <iterator>

namespace capfleet {

void SuspectSegments::note(const std::string& segment) {
  const std::lock_guard lock(mutex_);
  if (noted_.size() < kMost) noted_.insert(segment);
}

std::vector<std::string> SuspectSegments::take() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> taken(noted_.begin(), noted_.end());
  noted_.clear();
  return taken;
}

void SegmentChecks::note(uint32_t block, bool isIntact) {
  const std::lock_guard lock(mutex_);
  if (checks_.size() <= block) checks_.resize(size_t{block} + 1, BlockCheck::kUnread);
  checks_[block] = isIntact ? BlockCheck::kIntact : BlockCheck::kDamaged;
}

BlockCheck SegmentChecks::of(uint32_t block) const {
  const std::lock_guard lock(mutex_);
  return block < checks_.size() ? checks_[block] : BlockCheck::kUnread;
}

void SegmentChecks::suspect() const {
  if (suspects_) suspects_->note(segment_);
}

std::shared_ptr<SegmentChecks> CheckedBlocks::of(const std::string& segment,
                                                 const SegmentIndex& index) {
  // Nothing can be known of a segment without a block, and nothing tells it from another.
  if (index.blocks.empty()) return std::make_shared<SegmentChecks>(segment, suspects_);
  const uint64_t firstChecksum = index.blocks.front().checksum;
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(segment);
  if (found != known_.end() && found->second->firstChecksum == firstChecksum) {
    uses_.splice(uses_.begin(), uses_, found->second);
    return found->second->checks;
  }
  if (found != known_.end()) forget(found->second);
  uses_.push_front({segment, firstChecksum, std::make_shared<SegmentChecks>(segment, suspects_)});
  known_.emplace(uses_.front().segment, uses_.begin());
  std::shared_ptr<SegmentChecks> checks = uses_.front().checks;
  if (uses_.size() > mostSegments_) forget(std::prev(uses_.end()));
  return checks;
}

/// Called with the lock.
void CheckedBlocks::forget(Uses::iterator known) {
  known_.erase(known->segment);
  uses_.erase(known);
}

}  // namespace capfleet
