// Slabs: the 1 MiB buffers that carry packets from the scan to the consumer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace capfleet {

/// A slab with this many bytes of packets is full.
inline constexpr size_t kSlabBytes = size_t{1} << 20;
/// Room after them, for a compressor whose output is slightly larger than its input.
inline constexpr size_t kSlabHeadroomBytes = size_t{4} << 10;

/// A buffer of kSlabBytes + kSlabHeadroomBytes. It never moves, so views of it stay valid.
struct Slab {
  std::unique_ptr<uint8_t[]> bytes;
  size_t size = 0;  ///< bytes in use, from the start
};

/// The holder owns the slab's content. Passing it to BufferPool::give() ends that.
using SlabPtr = std::shared_ptr<Slab>;

/// Keeps released slabs for the next download, so that its size is that of the busiest moment.
/// Thread-safe.
class BufferPool {
 public:
  BufferPool() = default;
  /// Returns the memory of the free slabs to the system at once. Remaining references to such a
  /// slab still find zeros in it.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// An empty slab; its bytes are undefined.
  SlabPtr take();
  void give(SlabPtr slab);
  /// For a slab that was taken and will never be returned.
  void abandon(SlabPtr slab);
  /// Number of slabs taken and not returned.
  size_t outstanding() const;

 private:
  mutable std::mutex mutex_;
  std::vector<SlabPtr> free_;
  size_t outstanding_ = 0;
};

}  // namespace capfleet
