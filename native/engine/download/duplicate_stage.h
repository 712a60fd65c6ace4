// Leaves copies of packets out of a download: Dedup.
#pragma once

#include <cstdint>
#include <vector>

#include "download/packet_batch.h"
#include "merge/duplicate_window.h"

namespace capfleet {

/// Processes all batches of a download in order. Not thread-safe.
class DuplicateStage {
 public:
  /// Records arrive in nanoseconds; `toMicroseconds`: they leave in microseconds.
  DuplicateStage(const DuplicateOptions& options, uint32_t linkTypeWord, bool toMicroseconds)
      : window_(options, linkTypeWord), toMicroseconds_(toMicroseconds) {}

  /// Removes the copies from the batch, which may be empty then.
  void drop(PacketBatch& batch);
  /// How many copies of the last batch came before its packet number `packets`, counted from 0
  /// without copies; if there is no such packet, all of them.
  uint64_t droppedBefore(uint64_t packets) const;

 private:
  DuplicateWindow window_;
  const bool toMicroseconds_;
  int64_t latestNs_ = 0;
  /// For each copy in the last batch: how many packets before it were kept.
  std::vector<uint64_t> keptBefore_;
};

}  // namespace capfleet
