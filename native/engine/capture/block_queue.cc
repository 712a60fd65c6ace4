#include "capture/block_queue.h"

#include <cassert>
#include <utility>

namespace capfleet {

BlockQueue::BlockQueue(uint64_t budgetBytes) : maxBlocks_(budgetBytes / kMaxBlockBytes) {
  assert(maxBlocks_ > 0);
  // A thread that holds the mutex need not wait for an allocation.
  free_.reserve(maxBlocks_);
  items_.reserve(maxBlocks_);
}

std::unique_ptr<CaptureBlock> BlockQueue::takeBlock() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto block = std::move(free_.back());
      free_.pop_back();
      return block;
    }
    if (madeBlocks_ == maxBlocks_) return nullptr;
    madeBlocks_ += 1;
  }
  return std::make_unique<CaptureBlock>();
}

void BlockQueue::giveBack(std::unique_ptr<CaptureBlock> block) {
  block->clear();
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

void BlockQueue::push(QueueItem item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  wakeup_.signal();
}

std::vector<QueueItem> BlockQueue::popAll() {
  std::vector<QueueItem> popped;
  popped.reserve(maxBlocks_);
  const std::lock_guard lock(mutex_);
  std::swap(popped, items_);
  return popped;
}

}  // namespace capfleet
