// Blocks on their way from the capture threads to the writer, within a budget of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "capture/capture_block.h"
#include "capture/capture_clock.h"
#include "os/inheriting_mutex.h"
#include "os/wakeup.h"

namespace capfleet {

/// A message from a capture thread to the writer, in the order of its packets.
struct QueueItem {
  uint32_t thread = 0;
  /// The thread's recording from here; `block` still belongs to the previous one.
  uint32_t recording = 0;
  std::unique_ptr<CaptureBlock> block;  ///< may be null
  /// Every packet of this thread that arrived before this is in blocks up to this one.
  std::optional<Instant> covered;
};

/// Thread-safe. No call waits for anything except another call.
class BlockQueue {
 public:
  /// REQUIRES: budgetBytes >= kMaxBlockBytes.
  explicit BlockQueue(uint64_t budgetBytes);

  /// An empty block, or null while the budget is used up.
  std::unique_ptr<CaptureBlock> takeBlock();
  /// Frees the block's memory.
  void giveBack(std::unique_ptr<CaptureBlock> block);

  void push(QueueItem item);
  /// Everything that was pushed, oldest first. Writer only.
  std::vector<QueueItem> popAll();
  /// Returns when something was pushed, or wake() was called, or after `timeoutMs`. Writer only.
  void wait(int timeoutMs) { wakeup_.wait(timeoutMs); }
  void wake() { wakeup_.signal(); }

 private:
  const uint64_t maxBlocks_;
  InheritingMutex mutex_;
  uint64_t madeBlocks_ = 0;
  std::vector<std::unique_ptr<CaptureBlock>> free_;  ///< the last one is the warmest in the cache
  std::vector<QueueItem> items_;
  Wakeup wakeup_;
};

}  // namespace capfleet
