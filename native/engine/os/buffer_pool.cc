#include "os/buffer_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>

namespace capfleet {
namespace {

/// Applies to the whole pages in it.
void giveMemoryBack(const Slab& slab) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(slab.bytes.get());
  const uintptr_t from = (begin + page - 1) / page * page;
  const uintptr_t to = (begin + kSlabBytes + kSlabHeadroomBytes) / page * page;
  // Only advice: whether it is followed only affects the memory in use.
  madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace

BufferPool::~BufferPool() {
  // The allocator would keep most of it for reuse.
  for (const SlabPtr& slab : free_) giveMemoryBack(*slab);
}

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
