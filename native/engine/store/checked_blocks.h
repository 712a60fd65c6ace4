// What reading has shown of stored blocks: whether their bytes match their checksums. With this a
// block can be passed over, and is still left out or counted as if it had been read again. And
// which segments should be checked because of it.
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
  kUnread,  ///< nobody has read it, or it was forgotten
  kIntact,
  kDamaged,
};

/// Segments in which reading met damage that neither their index nor the log of their capture
/// tells of: the store's writer should check them. Thread-safe.
class SuspectSegments {
 public:
  /// More than these at once are forgotten: they are met again when they are read again.
  static constexpr size_t kMost = 1'000;

  /// `segment` is the path without its ending.
  void note(const std::string& segment);
  /// Those noted since the last call, each once.
  std::vector<std::string> take();

 private:
  std::mutex mutex_;
  std::set<std::string> noted_;
};

/// What is known of the blocks of one segment, by their numbers in its index. Thread-safe.
class SegmentChecks {
 public:
  SegmentChecks() = default;
  SegmentChecks(std::string segment, std::shared_ptr<SuspectSegments> suspects)
      : segment_(std::move(segment)), suspects_(std::move(suspects)) {}

  void note(uint32_t block, bool isIntact);
  BlockCheck of(uint32_t block) const;
  /// Something of the segment is damaged, and nothing that is stored says so.
  void suspect() const;

 private:
  const std::string segment_;
  const std::shared_ptr<SuspectSegments> suspects_;  ///< null: they are not asked for
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
  /// ending. Only blocks may have been added to its index since: when a block was marked, made
  /// again or removed, or another segment has taken the path, nothing is known any more.
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
