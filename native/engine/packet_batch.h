// Packets on their way out: selected, cut and rewritten from blocks into a slab of whole PCAP
// records.
#pragma once

#include <cstdint>
#include <memory>

#include "block_reader.h"
#include "bpf_evaluator.h"
#include "buffer_pool.h"

namespace capfleet {

/// Whole records in a slab, in timestamp order.
struct PacketBatch {
  SlabPtr slab;
  uint64_t packets = 0;
  int64_t firstNs = 0;  ///< timestamps of the first and last packet, when there are any
  int64_t lastNs = 0;

  size_t room() const { return kSlabBytes - slab->size; }
  /// Counts packets whose bytes are in the slab now. They follow those counted before.
  void count(uint64_t newPackets, int64_t newFirstNs, int64_t newLastNs);
};

/// What happens to each packet between store and output.
struct PacketTransform {
  std::shared_ptr<const BpfEvaluator> filter;  ///< null: every packet passes
  uint32_t sliceBytes = kMaxCapturedLength;    ///< captured bytes kept of each packet
  bool toMicroseconds = false;

  bool changesRecords() const { return sliceBytes < kMaxCapturedLength || toMicroseconds; }
  bool keepsEverything() const { return filter == nullptr && !changesRecords(); }
};

/// Puts the records [first, last) of a block through the transform and appends what passes to the
/// batch. Returns the first record that found no room, or `last`.
uint32_t appendPackets(const LoadedBlock& block, uint32_t first, uint32_t last,
                       const PacketTransform& transform, PacketBatch& batch);

}  // namespace capfleet
