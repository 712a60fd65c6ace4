#include "download/packet_batch.h"

#include <algorithm>

namespace capfleet {
namespace {

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
bool appendChanged(const PacketView& packet, const PacketTransform& transform, PacketBatch& batch) {
  const size_t captured = std::min<size_t>(packet.captured.size(), transform.sliceBytes);
  if (kRecordHeaderBytes + captured > batch.room()) return false;
  Slab& slab = *batch.slab;
  slab.size += storeRecord(slab.bytes.get() + slab.size, packet, packet.nicNs, transform);
  batch.count(1, packet.nicNs, packet.nicNs);
  return true;
}

}  // namespace

void PacketBatch::count(uint64_t newPackets, int64_t newFirstNs, int64_t newLastNs) {
  if (packets == 0) firstNs = newFirstNs;
  packets += newPackets;
  lastNs = newLastNs;
}

size_t storeRecord(uint8_t* to, const PacketView& packet, int64_t timestampNs,
                   const PacketTransform& transform) {
  const uint32_t captured =
      std::min(static_cast<uint32_t>(packet.captured.size()), transform.sliceBytes);
  storeRecordHeader(to, {timestampNs, captured, packet.originalLength});
  if (transform.toMicroseconds) storeLe32(to + 4, loadLe32(to + 4) / 1000);
  std::memcpy(to + kRecordHeaderBytes, packet.captured.data(), captured);
  return size_t{kRecordHeaderBytes} + captured;
}

uint32_t appendPackets(const LoadedBlock& block, uint32_t first, uint32_t last,
                       const PacketTransform& transform, PacketFilter& filter, PacketBatch& batch) {
  const bool filters = transform.filters();
  if (!filters && !transform.changesRecords()) return appendRun(block, first, last, batch);
  uint32_t record = first;
  while (record < last) {
    if (filters && !filter.accepts(block.packet(record))) {
      batch.excluded++;
      record++;
      continue;
    }
    if (transform.changesRecords()) {
      if (!appendChanged(block.packet(record), transform, batch)) return record;
      record++;
      continue;
    }
    uint32_t end = record + 1;
    while (end < last && filter.accepts(block.packet(end))) end++;
    const uint32_t appended = appendRun(block, record, end, batch);
    if (appended < end) return appended;
    record = end;
    if (end == last) break;
    batch.excluded++;  // the one at `end` did not pass
    record++;
  }
  return last;
}

}  // namespace capfleet
