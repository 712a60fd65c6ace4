#include "store/checked_blocks.h"

#include <iterator>
#include <span>

#include "store/block_checksum.h"

namespace capfleet {
namespace {

/// A digest of everything that determines what a reader delivers of the first `count` blocks.
uint64_t digestOf(const SegmentIndex& index, size_t count) {
  std::vector<uint64_t> words;
  words.reserve(6 * count);
  for (size_t i = 0; i < count; i++) {
    const BlockEntry& entry = index.blocks[i];
    const uint64_t sizes = uint64_t{entry.bytes} << 32 | entry.packets;
    words.insert(words.end(), {entry.offset, sizes, static_cast<uint64_t>(entry.minNs),
                               static_cast<uint64_t>(entry.maxNs), entry.checksum, entry.flags});
  }
  const auto bytes = std::as_bytes(std::span(words));
  return blockChecksum({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

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
  // Nothing can be known about a segment without blocks, and nothing distinguishes it from another.
  if (index.blocks.empty()) return std::make_shared<SegmentChecks>(segment, suspects_);
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(segment);
  if (found != known_.end()) {
    Known& known = *found->second;
    if (known.blocks <= index.blocks.size() && known.digest == digestOf(index, known.blocks)) {
      if (known.blocks < index.blocks.size()) {
        known.blocks = index.blocks.size();
        known.digest = digestOf(index, known.blocks);
      }
      uses_.splice(uses_.begin(), uses_, found->second);
      return known.checks;
    }
    forget(found->second);
  }
  uses_.push_front({segment, index.blocks.size(), digestOf(index, index.blocks.size()),
                    std::make_shared<SegmentChecks>(segment, suspects_)});
  known_.emplace(uses_.front().segment, uses_.begin());
  std::shared_ptr<SegmentChecks> checks = uses_.front().checks;
  if (uses_.size() > mostSegments_) forget(std::prev(uses_.end()));
  return checks;
}

/// Called with the lock held.
void CheckedBlocks::forget(Uses::iterator known) {
  known_.erase(known->segment);
  uses_.erase(known);
}

}  // namespace capfleet
