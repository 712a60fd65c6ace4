// Ends a download although more packets would follow: MaxBytes and MaxPackets.
#pragma once

#include <cstdint>
#include <optional>

#include "download/packet_batch.h"
#include "packet/output_record.h"

namespace capfleet {

/// Processes all batches of a download in order. Not thread-safe.
class OutputLimit {
 public:
  struct Limits {
    std::optional<uint64_t> bytes;  ///< of the file, before compression
    std::optional<uint64_t> packets;
  };

  /// `otherBytes`: at most as many bytes of the file are not packets.
  OutputLimit(Limits limits, OutputForm form, uint64_t otherBytes = kPcapFileHeaderBytes)
      : limits_(limits), form_(form), bytes_(otherBytes) {}

  /// Removes the records of the batch that exceed a limit. True if there were any: nothing may
  /// follow then. At the limit itself it is still open whether the download is complete.
  bool cut(PacketBatch& batch);
  /// Counts packets that were skipped. REQUIRES: they exceed no limit, no batch was processed.
  void skip(uint64_t packets, uint64_t bytes);
  /// Timestamp of the first record that was removed; only after cut() has returned true.
  std::optional<int64_t> nextNs() const { return nextNs_; }

 private:
  bool fits(uint64_t packets, uint64_t bytes) const;

  const Limits limits_;
  const OutputForm form_;
  uint64_t packets_ = 0;
  uint64_t bytes_;
  std::optional<int64_t> nextNs_;
};

}  // namespace capfleet
