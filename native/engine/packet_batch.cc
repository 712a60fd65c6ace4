#include "packet_batch.h"

#include <algorithm>

namespace capfleet {
namespace {

bool passes(const LoadedBlock& block, uint32_t record, const BpfEvaluator* filter) {
  if (filter == nullptr) return true;
  const uint8_t* header = block.bytes.data() + block.offsets[record];
  return filter->accepts(header + kRecordHeaderBytes, loadLe32(header + 8), loadLe32(header + 12));
}

/// Copies neighbouring records at once, as many as fit. Returns the first that did not.
uint32_t appendRun(const LoadedBlock& block, uint32_t first, uint32_t last, PacketBatch& batch) {
  const auto begin = block.offsets.begin();
  const uint64_t limit = block.offsets[first] + uint64_t{batch.room()};
  uint32_t end = last;
  if (block.offsets[last] > limit) {
    end = static_cast<uint32_t>(std::upper_bound(begin + first, begin + last, limit) - begin) - 1;
  }
  if (end == first) return first;
  const size_t bytes = block.offsets[end] - block.offsets[first];
  Slab& slab = *batch.slab;
  std::memcpy(slab.bytes.get() + slab.size, block.bytes.data() + block.offsets[first], bytes);
  slab.size += bytes;
  batch.count(end - first, block.timestampsNs[first], block.timestampsNs[end - 1]);
  return end;
}

/// Writes one changed record. False when it does not fit.
bool appendChanged(const LoadedBlock& block, uint32_t record, const PacketTransform& transform,
                   PacketBatch& batch) {
  const uint8_t* from = block.bytes.data() + block.offsets[record];
  const uint32_t captured = std::min(loadLe32(from + 8), transform.sliceBytes);
  const size_t bytes = size_t{kRecordHeaderBytes} + captured;
  if (bytes > batch.room()) return false;
  Slab& slab = *batch.slab;
  uint8_t* to = slab.bytes.get() + slab.size;
  std::memcpy(to, from, bytes);
  if (transform.toMicroseconds) storeLe32(to + 4, loadLe32(from + 4) / 1000);
  storeLe32(to + 8, captured);
  slab.size += bytes;
  batch.count(1, block.timestampsNs[record], block.timestampsNs[record]);
  return true;
}

}  // namespace

void PacketBatch::count(uint64_t newPackets, int64_t newFirstNs, int64_t newLastNs) {
  if (packets == 0) firstNs = newFirstNs;
  packets += newPackets;
  lastNs = newLastNs;
}

uint32_t appendPackets(const LoadedBlock& block, uint32_t first, uint32_t last,
                       const PacketTransform& transform, PacketBatch& batch) {
  const BpfEvaluator* filter = transform.filter.get();
  if (filter == nullptr && !transform.changesRecords()) {
    return appendRun(block, first, last, batch);
  }
  uint32_t record = first;
  while (record < last) {
    if (!passes(block, record, filter)) {
      record++;
      continue;
    }
    if (transform.changesRecords()) {
      if (!appendChanged(block, record, transform, batch)) return record;
      record++;
      continue;
    }
    uint32_t end = record + 1;
    while (end < last && passes(block, end, filter)) end++;
    const uint32_t appended = appendRun(block, record, end, batch);
    if (appended < end) return appended;
    record = end + (end < last ? 1 : 0);  // the one at `end` did not pass
  }
  return last;
}

}  // namespace capfleet
