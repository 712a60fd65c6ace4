// The results of reading stored blocks: whether their bytes match their checksums. With these a
// block can be skipped and still be left out, or counted, as if it had been read again. Also the
// segments that should be checked because of them.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/segment_index.h"

namespace capfleet {

enum class BlockCheck : uint8_t {
  kUnread,  ///< it was never read, or the result was dropped
  kIntact,
  kDamaged,
};

/// Segments in which a reader met damage that neither their index nor their capture's log mentions:
/// the store's writer should check them. Thread-safe.
class SuspectSegments {
 public:
  /// Beyond this number, segments are dropped: they are noted again when they are read again.
  static constexpr size_t kMost = 1'000;

  /// `segment` is the path without its ending.
  void note(const std::string& segment);
  /// The segments noted since the last call, each once.
  std::vector<std::string> take();

 private:
  std::mutex mutex_;
  std::set<std::string> noted_;
};

/// The known results for the blocks of one segment, by their numbers in its index. Thread-safe.
class SegmentChecks {
 public:
  SegmentChecks() = default;
  SegmentChecks(std::string segment, std::shared_ptr<SuspectSegments> suspects)
      : segment_(std::move(segment)), suspects_(std::move(suspects)) {}

  void note(uint32_t block, bool isIntact);
  BlockCheck of(uint32_t block) const;
  /// Something in the segment is damaged, and nothing in the store says so.
  void suspect() const;

 private:
  const std::string segment_;
  const std::shared_ptr<SuspectSegments> suspects_;  ///< null: such segments are not noted
  mutable std::mutex mutex_;
  std::vector<BlockCheck> checks_;
};

/// The results for the segments that were read last, one byte per block. They are lost with the
/// process, so users of this class must be able to read the blocks. Thread-safe.
class CheckedBlocks {
 public:
  /// Enough for 16 TiB in segments of the usual size; some 64 MiB of memory if all were read.
  static constexpr size_t kMostSegments = 16'384;

  explicit CheckedBlocks(size_t mostSegments = kMostSegments) : mostSegments_(mostSegments) {}

  /// The results for the segment, to be queried and extended. `segment` is the path without its
  /// ending. Results are valid only if blocks were merely appended to its index since: if a block
  /// was marked, rebuilt or removed, or another segment has taken the path, all results are
  /// dropped.
  std::shared_ptr<SegmentChecks> of(const std::string& segment, const SegmentIndex& index);

  SuspectSegments& suspects() { return *suspects_; }

 private:
  struct Known {
    const std::string segment;
    size_t blocks;    ///< of the index that was seen last
    uint64_t digest;  ///< of their entries
    std::shared_ptr<SegmentChecks> checks;
  };
  using Uses = std::list<Known>;
  void forget(Uses::iterator known);

  const size_t mostSegments_;
  const std::shared_ptr<SuspectSegments> suspects_ = std::make_shared<SuspectSegments>();
  std::mutex mutex_;
  Uses uses_;  ///< the segment used last comes first
  std::unordered_map<std::string_view, Uses::iterator> known_;  ///< by path
};

}  // namespace capfleet
