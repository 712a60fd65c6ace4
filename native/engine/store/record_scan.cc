#include "store/record_scan.h"

#include <algorithm>
#include <utility>

#include "store/block_checksum.h"
#include "store/block_counter.h"

namespace capfleet {
namespace {

/// Zeros parse as records without bytes, and a block of them would take seconds. A full block of
/// 60-byte frames has fewer packets.
constexpr uint32_t kMostSearchedPackets = 4'096;

}  // namespace

RecordScan::RecordScan(ReadAt readAt, uint64_t offset, uint64_t end, ZeroRecords zeroRecords)
    : readAt_(std::move(readAt)),
      offset_(offset),
      end_(end),
      zeroRecords_(zeroRecords),
      buffer_(std::min<uint64_t>(kMaxBlockBytes, end > offset ? end - offset : 0)) {}

Result<ScannedBlock> RecordScan::next(uint64_t mostPackets, const IsProven& isProven) {
  if (offset_ >= end_) return ScannedBlock{};
  const uint64_t wanted = std::min<uint64_t>(buffer_.size(), end_ - offset_);
  const auto count = readAt_(offset_, {buffer_.data(), wanted});
  if (!count) return count.error();
  ScannedBlock block = blockOf(mostPackets, *count);
  if (isProven && !isProven(block)) {
    const uint32_t end = std::min(block.entry.packets, kMostSearchedPackets);
    for (uint32_t packets = 1; packets < end; packets++) {
      ScannedBlock shorter = blockOf(packets, *count);
      if (!isProven(shorter)) continue;
      block = std::move(shorter);
      break;
    }
  }
  offset_ += block.entry.bytes;
  return block;
}

/// The block that a writer would make of the first `bytes` bytes of the buffer.
ScannedBlock RecordScan::blockOf(uint64_t mostPackets, size_t bytes) const {
  BlockCounter counter;
  while (counter.entry().packets < mostPackets) {
    const uint32_t at = counter.entry().bytes;
    const uint32_t recordBytes = wholeRecordAt(at, bytes);
    if (recordBytes == 0 || !counter.hasRoom(recordBytes)) break;
    counter.add(loadRecordHeader(&buffer_[at]).timestampNs, recordBytes);
  }
  if (counter.isEmpty()) return {};
  const std::span<const TallyRow> rows = counter.tallyRows();
  ScannedBlock block{counter.entry(), {rows.begin(), rows.end()}};
  block.entry.offset = offset_;
  block.entry.checksum = blockChecksum({buffer_.data(), block.entry.bytes});
  return block;
}

/// Bytes of the record, or 0 if no whole record begins there.
uint32_t RecordScan::wholeRecordAt(uint64_t at, uint64_t end) const {
  if (at + kRecordHeaderBytes > end) return 0;
  const std::span header(&buffer_[at], kRecordHeaderBytes);
  const auto isZero = [](uint8_t byte) { return byte == 0; };
  if (zeroRecords_ == ZeroRecords::kEnd && std::all_of(header.begin(), header.end(), isZero)) {
    return 0;
  }
  const uint32_t fraction = loadLe32(&buffer_[at + 4]);
  const uint32_t capturedLength = loadLe32(&buffer_[at + 8]);
  if (fraction >= kNanosPerSecond || capturedLength > kMaxCapturedLength) return 0;
  const uint32_t bytes = kRecordHeaderBytes + capturedLength;
  return at + bytes <= end ? bytes : 0;
}

}  // namespace capfleet
