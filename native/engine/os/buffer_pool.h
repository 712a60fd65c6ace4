// Slabs: the 1 MiB buffers in which packets travel from the scan to the consumer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace capfleet {

/// A slab with this many bytes of packets is full.
inline constexpr size_t kSlabBytes = size_t{1} << 20;
/// Room behind them, for a compressor whose output is a little larger than its input.
inline constexpr size_t kSlabHeadroomBytes = size_t{4} << 10;

/// A buffer of kSlabBytes + kSlabHeadroomBytes. It never moves, so a view of it can be kept.
struct Slab {
  std::unique_ptr<uint8_t[]> bytes;
  size_t size = 0;  ///< bytes in use, from the start
};

/// Whoever holds this owns the slab's content. Giving it to BufferPool::give() ends that.
using SlabPtr = std::shared_ptr<Slab>;

/// Keeps released slabs for the next download, so that its size is that of the busiest moment.
/// Thread-safe.
class BufferPool {
 public:
  BufferPool() = default;
  /// Gives the memory of the free slabs back to the system at once. Whoever refers to such a slab
  /// still finds zeros in it.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// An empty slab; its bytes are whatever the last owner left.
  SlabPtr take();
  void give(SlabPtr slab);
  /// A slab that was taken and will never be given back.
  void abandon(SlabPtr slab);
  /// Slabs taken and not given back.
  size_t outstanding() const;

 private:
  mutable std::mutex mutex_;
  std::vector<SlabPtr> free_;
  size_t outstanding_ = 0;
};

}  // namespace capfleet
