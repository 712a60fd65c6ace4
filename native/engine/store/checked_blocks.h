// What reading has shown of stored blocks: whether their bytes match their checksums. With this a
// block can be passed over, and is still left out or counted as if it had been read again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/segment_index.h"

namespace capfleet {

enum class BlockCheck : uint8_t {
  kUnread,  ///< nobody has read it, or it was forgotten
  kIntact,
  kDamaged,
};

/// What is known of the blocks of one segment, by their numbers in its index. Thread-safe.
class SegmentChecks {
 public:
  void note(uint32_t block, bool isIntact);
  BlockCheck of(uint32_t block) const;

 private:
  mutable std::mutex mutex_;
  std::vector<BlockCheck> checks_;
};

/// What is known of the segments that were read last, a byte for each block. It is lost with the
/// process, so whoever relies on it must be able to read the blocks. Thread-safe.
class CheckedBlocks {
 public:
  /// Enough for 16 TiB in segments of the usual size; some 64 MiB of memory when all were read.
  static constexpr size_t kMostSegments = 16'384;

  explicit CheckedBlocks(size_t mostSegments = kMostSegments) : mostSegments_(mostSegments) {}

  /// What is known of the segment, to be asked and added to. `segment` is the path without its
  /// ending. A segment that took the path of a removed one has another first block.
  std::shared_ptr<SegmentChecks> of(const std::string& segment, const SegmentIndex& index);

 private:
  struct Known {
    const std::string segment;
    uint64_t firstChecksum;
    std::shared_ptr<SegmentChecks> checks;
  };
  using Uses = std::list<Known>;
  void forget(Uses::iterator known);

  const size_t mostSegments_;
  std::mutex mutex_;
  Uses uses_;  ///< the segment used last comes first
  std::unordered_map<std::string_view, Uses::iterator> known_;  ///< by path
};

}  // namespace capfleet
