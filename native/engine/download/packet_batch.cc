#include "download/packet_batch.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace capfleet {
namespace {

/// A regular expression is searched for in neighbouring packets at once, which is much faster if
/// few match. Those that may match are searched a second time, so with many matches, and in short
/// runs, one by one is faster.
constexpr uint32_t kLooksThroughRun = 16;

/// The time of a pcapng block, which counts nanoseconds in any case.
int64_t shownTime(int64_t timestampNs, bool toMicroseconds) {
  return toMicroseconds ? timestampNs - timestampNs % 1000 : timestampNs;
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

/// Copies records one by one, each stripped, sliced and with its fraction converted as the
/// transform specifies, as many as fit. Returns the first that did not.
uint32_t appendStripped(const LoadedBlock& block, uint32_t first, uint32_t last,
                        const PacketTransform& transform, PacketBatch& batch) {
  Slab& slab = *batch.slab;
  uint32_t record = first;
  for (; record < last; record++) {
    const PacketView packet = block.packet(record);
    const OutputPacket output(packet, transform);
    if (output.recordBytes() > batch.roomBeside(transform.reservedBytes())) break;
    output.store(slab.bytes.get() + slab.size, packet.nicNs);
    slab.size += output.recordBytes();
    batch.count(1, packet.nicNs, packet.nicNs);
  }
  return record;
}

/// The same for a transform that strips nothing, which is faster.
uint32_t appendChanged(const LoadedBlock& block, uint32_t first, uint32_t last,
                       const PacketTransform& transform, PacketBatch& batch) {
  Slab& slab = *batch.slab;
  uint8_t* to = slab.bytes.get() + slab.size;
  const uint8_t* const slabEnd = slab.bytes.get() + kSlabBytes;
  uint32_t record = first;
  for (; record < last; record++) {
    const uint8_t* const from = block.bytes.data() + block.offsets[record];
    const uint32_t captured = std::min(loadLe32(from + 8), transform.sliceBytes);
    const size_t bytes = size_t{kRecordHeaderBytes} + captured;
    if (bytes > static_cast<size_t>(slabEnd - to)) break;
    std::memcpy(to, from, bytes);
    storeLe32(to + 8, captured);
    if (transform.toMicroseconds) storeLe32(to + 4, loadLe32(to + 4) / 1000);
    to += bytes;
  }
  if (record == first) return first;
  slab.size = static_cast<size_t>(to - slab.bytes.get());
  batch.count(record - first, block.timestampsNs[first], block.timestampsNs[record - 1]);
  return record;
}

/// The same, as pcapng blocks.
uint32_t appendBlocks(const LoadedBlock& block, uint32_t first, uint32_t last,
                      const PacketTransform& transform, PacketBatch& batch) {
  Slab& slab = *batch.slab;
  uint8_t* to = slab.bytes.get() + slab.size;
  size_t room = batch.roomBeside(transform.reservedBytes());
  const uint32_t interfaceNumber =
      transform.pcapng->numberOf(block.origin.port, block.origin.linkTypeWord);
  uint32_t record = first;
  for (; record < last; record++) {
    const uint8_t* const from = block.bytes.data() + block.offsets[record];
    const uint32_t captured = std::min(loadLe32(from + 8), transform.sliceBytes);
    const size_t bytes = packetBlockBytes(captured);
    if (bytes > room) break;
    const int64_t timestampNs = shownTime(block.timestampsNs[record], transform.toMicroseconds);
    storePacketBlock(to, {interfaceNumber, timestampNs, captured, loadLe32(from + 12)});
    std::memcpy(to + kPacketBlockHeaderBytes, from + kRecordHeaderBytes, captured);
    to += bytes;
    room -= bytes;
  }
  if (record == first) return first;
  slab.size = static_cast<size_t>(to - slab.bytes.get());
  batch.count(record - first, block.timestampsNs[first], block.timestampsNs[record - 1]);
  return record;
}

/// Appends neighbouring records that have matched, as many as fit. Returns the first that did not.
uint32_t appendPassed(const LoadedBlock& block, uint32_t first, uint32_t last,
                      const PacketTransform& transform, PacketBatch& batch) {
  if (transform.stripped != 0) return appendStripped(block, first, last, transform, batch);
  if (transform.pcapng) return appendBlocks(block, first, last, transform, batch);
  if (transform.changesRecords()) return appendChanged(block, first, last, transform, batch);
  return appendRun(block, first, last, batch);
}

/// The first of the records [first, last) that the filter may accept; `last` if it accepts none.
uint32_t firstCandidate(const LoadedBlock& block, uint32_t first, uint32_t last,
                        PacketFilter& filter) {
  const uint32_t beginByte = block.offsets[first];
  const std::optional<size_t> found =
      filter.firstCandidateByte({block.bytes.data() + beginByte, block.offsets[last] - beginByte});
  if (!found) return last;
  const auto begin = block.offsets.begin();
  const auto next = std::upper_bound(begin + first, begin + last, beginByte + *found);
  return static_cast<uint32_t>(next - begin) - 1;
}

}  // namespace

void PacketBatch::count(uint64_t newPackets, int64_t newFirstNs, int64_t newLastNs) {
  if (packets == 0) firstNs = newFirstNs;
  packets += newPackets;
  lastNs = newLastNs;
}

OutputPacket::OutputPacket(const PacketView& packet, const PacketTransform& transform)
    : stripped(withoutHeaders(packet, transform.stripped)),
      capturedLength(
          static_cast<uint32_t>(std::min<size_t>(stripped.size(), transform.sliceBytes))),
      toMicroseconds(transform.toMicroseconds) {
  if (transform.pcapng) {
    interfaceNumber = transform.pcapng->numberOf(packet.port, packet.linkTypeWord);
  }
}

void OutputPacket::store(uint8_t* to, int64_t timestampNs) const {
  if (interfaceNumber) {
    storePacketBlock(to, {*interfaceNumber, shownTime(timestampNs, toMicroseconds), capturedLength,
                          stripped.originalLength});
    stripped.store(to + kPacketBlockHeaderBytes, capturedLength);
    return;
  }
  storeRecordHeader(to, {timestampNs, capturedLength, stripped.originalLength});
  if (toMicroseconds) storeLe32(to + 4, loadLe32(to + 4) / 1000);
  stripped.store(to + kRecordHeaderBytes, capturedLength);
}

uint32_t appendPackets(const LoadedBlock& block, uint32_t first, uint32_t last,
                       const PacketTransform& transform, PacketFilter& filter, PacketBatch& batch) {
  if (!transform.filters()) return appendPassed(block, first, last, transform, batch);
  const bool isLong = last - first > kLooksThroughRun;
  uint32_t looks = isLong && filter.looksThroughRecords() ? kLooksThroughRun : 0;
  uint32_t record = first;
  while (record < last) {
    if (looks > 0) {
      looks--;
      const uint32_t candidate = firstCandidate(block, record, last, filter);
      batch.excluded += candidate - record;
      record = candidate;
      if (record == last) break;
    }
    if (!filter.accepts(block.packet(record))) {
      batch.excluded++;
      record++;
      continue;
    }
    uint32_t end = record + 1;
    while (end < last && filter.accepts(block.packet(end))) end++;
    const uint32_t appended = appendPassed(block, record, end, transform, batch);
    if (appended < end) return appended;
    record = end;
    if (end == last) break;
    batch.excluded++;  // the one at `end` did not pass
    record++;
  }
  return last;
}

}  // namespace capfleet
