// Leaves copies of packets out of a download: Dedup.
#pragma once

#include <cstdint>
#include <vector>

#include "download/packet_batch.h"
#include "merge/duplicate_window.h"
#include "packet/output_record.h"

namespace capfleet {

/// Processes all batches of a download in order. Not thread-safe.
class DuplicateStage {
 public:
  /// Packets arrive with nanoseconds, and leave in `form`.
  DuplicateStage(const DuplicateOptions& options, uint32_t linkTypeWord, OutputForm form)
      : window_(options, linkTypeWord), form_(form) {}

  /// Removes the copies from the batch, which may be empty then.
  void drop(PacketBatch& batch);
  /// How many copies of the last batch came before its packet number `packets`, counted from 0
  /// without copies; if there is no such packet, all of them.
  uint64_t droppedBefore(uint64_t packets) const;

 private:
  void toMicroseconds(uint8_t* record, int64_t timestampNs) const;

  DuplicateWindow window_;
  const OutputForm form_;
  int64_t latestNs_ = 0;
  /// For each copy in the last batch: how many packets before it were kept.
  std::vector<uint64_t> keptBefore_;
};

}  // namespace capfleet
