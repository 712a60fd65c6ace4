// Leaves copies of packets out of a download: Dedup.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "download/packet_batch.h"
#include "merge/duplicate_window.h"
#include "packet/output_record.h"

namespace capfleet {

/// Processes all batches of a download in order. Not thread-safe.
class DuplicateStage {
 public:
  /// Packets arrive with nanoseconds, and leave in `form`. `linkTypeWords` are those of the
  /// interfaces, by their numbers; a PCAP has one.
  DuplicateStage(const DuplicateOptions& options, std::vector<uint32_t> linkTypeWords,
                 OutputForm form)
      : window_(options), linkTypeWords_(std::move(linkTypeWords)), form_(form) {}

  /// Removes the copies from the batch, which may be empty then.
  void drop(PacketBatch& batch);
  /// How many copies of the last batch came before its packet number `packets`, counted from 0
  /// without copies; if there is no such packet, all of them.
  uint64_t droppedBefore(uint64_t packets) const;

 private:
  uint32_t linkTypeWordOf(const uint8_t* record) const;
  void toMicroseconds(uint8_t* record, int64_t timestampNs) const;

  DuplicateWindow window_;
  const std::vector<uint32_t> linkTypeWords_;
  const OutputForm form_;
  int64_t latestNs_ = 0;
  /// For each copy in the last batch: how many packets before it were kept.
  std::vector<uint64_t> keptBefore_;
};

}  // namespace capfleet
