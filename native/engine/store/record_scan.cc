#include "store/record_scan.h"

#include <algorithm>
#include <utility>

#include "store/block_checksum.h"
#include "store/block_counter.h"

namespace capfleet {

RecordScan::RecordScan(ReadAt readAt, uint64_t offset, uint64_t end)
    : readAt_(std::move(readAt)),
      offset_(offset),
      end_(end),
      buffer_(std::min<uint64_t>(kMaxBlockBytes, end > offset ? end - offset : 0)) {}

Result<ScannedBlock> RecordScan::next(uint64_t mostPackets) {
  ScannedBlock scanned;
  if (offset_ >= end_) return scanned;
  BlockCounter block;
  const uint64_t wanted = std::min<uint64_t>(buffer_.size(), end_ - offset_);
  const auto count = readAt_(offset_, {buffer_.data(), wanted});
  if (!count) return count.error();
  while (block.entry().packets < mostPackets) {
    const uint32_t recordBytes = wholeRecordAt(block.entry().bytes, *count);
    if (recordBytes == 0 || !block.hasRoom(recordBytes)) break;
    block.add(loadRecordHeader(&buffer_[block.entry().bytes]).timestampNs, recordBytes);
  }
  if (block.isEmpty()) return scanned;
  const std::span<const TallyRow> rows = block.tallyRows();
  scanned = {block.entry(), {rows.begin(), rows.end()}};
  scanned.entry.offset = offset_;
  scanned.entry.checksum = blockChecksum({buffer_.data(), scanned.entry.bytes});
  offset_ += scanned.entry.bytes;
  return scanned;
}

/// Bytes of the record, or 0 when no whole record begins there.
uint32_t RecordScan::wholeRecordAt(uint64_t at, uint64_t end) const {
  if (at + kRecordHeaderBytes > end) return 0;
  const uint32_t fraction = loadLe32(&buffer_[at + 4]);
  const uint32_t capturedLength = loadLe32(&buffer_[at + 8]);
  if (fraction >= kNanosPerSecond || capturedLength > kMaxCapturedLength) return 0;
  const uint32_t bytes = kRecordHeaderBytes + capturedLength;
  return at + bytes <= end ? bytes : 0;
}

}  // namespace capfleet
