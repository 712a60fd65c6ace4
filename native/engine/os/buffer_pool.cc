#include "os/buffer_pool.h"

#include <cassert>

namespace capfleet {

SlabPtr BufferPool::take() {
  {
    const std::lock_guard lock(mutex_);
    outstanding_++;
    if (!free_.empty()) {
      SlabPtr slab = std::move(free_.back());
      free_.pop_back();
      slab->size = 0;
      return slab;
    }
  }
  auto slab = std::make_shared<Slab>();
  // Not zeroed: the kernel's zero pages are touched once, when the slab is first filled.
  slab->bytes = std::make_unique_for_overwrite<uint8_t[]>(kSlabBytes + kSlabHeadroomBytes);
  return slab;
}

void BufferPool::give(SlabPtr slab) {
  const std::lock_guard lock(mutex_);
  assert(outstanding_ > 0);
  outstanding_--;
  free_.push_back(std::move(slab));
}

void BufferPool::abandon(SlabPtr slab) {
  const std::lock_guard lock(mutex_);
  assert(outstanding_ > 0);
  outstanding_--;
  slab.reset();
}

size_t BufferPool::outstanding() const {
  const std::lock_guard lock(mutex_);
  return outstanding_;
}

}  // namespace capfleet
