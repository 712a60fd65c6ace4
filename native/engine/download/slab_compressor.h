// Compresses groups of slabs, each into one independent gzip member or zstd frame, so that groups
// can be compressed concurrently and the results concatenated.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "download/compression.h"
#include "os/buffer_pool.h"
#include "os/result.h"

namespace capfleet {

/// Not thread-safe: one thread at a time. Reuse it for the next group, because its tables are
/// large.
class SlabCompressor {
 public:
  virtual ~SlabCompressor() = default;

  /// Compresses the bytes of `raw` into `out`, filling slab after slab; unused slabs keep size 0.
  /// REQUIRES: out.size() == compressedSlabs(...) for these bytes, all empty. Fails with
  /// kStoreUnavailable if memory is short, with kCancelled once `isCancelled`.
  virtual Status compress(std::span<const SlabPtr> raw, std::span<const SlabPtr> out,
                          const std::atomic<bool>& isCancelled) = 0;
};

/// REQUIRES: the codec is not kNone.
std::unique_ptr<SlabCompressor> makeCompressor(Compression compression);

/// Whether a group may take some tenths of a second, not milliseconds.
bool isSlow(const Compression& compression);

/// How many slabs make one group.
uint32_t slabsPerGroup(const Compression& compression);

/// How many groups of one stream are compressed concurrently by this many threads.
uint32_t groupsAtOnce(const Compression& compression, unsigned threads);

/// How a stream is divided into groups.
struct GroupLimits {
  uint32_t slabs;   ///< maximum slabs in a group
  uint32_t atOnce;  ///< number of groups compressed concurrently
};

/// The limits with which one stream is compressed as small and fast as possible.
GroupLimits usualGroups(const Compression& compression, unsigned threads);
/// These limits use as little memory as possible: for many concurrent streams.
inline constexpr GroupLimits kSmallGroups = {.slabs = 1, .atOnce = 1};

/// Number of slabs that the compressed form of a group of `rawSlabs` slabs may need.
uint32_t compressedSlabs(Codec codec, size_t rawSlabs);

}  // namespace capfleet
