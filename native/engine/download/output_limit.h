// Where a download ends although more packets would follow: MaxBytes and MaxPackets.
#pragma once

#include <cstdint>
#include <optional>

#include "download/packet_batch.h"

namespace capfleet {

/// Sees all batches of a download in order. Not thread-safe.
class OutputLimit {
 public:
  struct Limits {
    std::optional<uint64_t> bytes;  ///< of the PCAP before compression, its file header included
    std::optional<uint64_t> packets;
  };

  /// `toMicroseconds`: the records' fractions are microseconds.
  OutputLimit(Limits limits, bool toMicroseconds)
      : limits_(limits), toMicroseconds_(toMicroseconds) {}

  /// Takes the records off the batch that pass a limit. True when there were any: then nothing may
  /// follow. At the limit itself it is still open whether the download is whole.
  bool cut(PacketBatch& batch);
  /// Counts packets that were passed over. REQUIRES: they pass no limit, no batch was seen.
  void skip(uint64_t packets, uint64_t bytes);
  /// The timestamp that the first record taken off bears; after cut() has returned true.
  std::optional<int64_t> nextNs() const { return nextNs_; }

 private:
  bool fits(uint64_t packets, uint64_t bytes) const;
  int64_t timestampOf(const uint8_t* record) const;

  const Limits limits_;
  const bool toMicroseconds_;
  uint64_t packets_ = 0;
  uint64_t bytes_ = kPcapFileHeaderBytes;
  std::optional<int64_t> nextNs_;
};

}  // namespace capfleet
