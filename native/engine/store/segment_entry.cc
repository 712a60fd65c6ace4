#include "store/segment_entry.h"

#include "os/byte_order.h"
#include "store/segment_path.h"
#include "store/xxh3.h"

namespace capfleet {

namespace {

constexpr size_t kChecksumOffset = 56;
static_assert(kLogEntryBytes == kChecksumOffset + 8);

uint64_t checksumOf(const uint8_t* entry, uint64_t fileOffset) {
  return xxh3({entry, kChecksumOffset}, fileOffset);
}

SegmentEntry loadSegmentEntry(const uint8_t* p) {
  SegmentEntry entry;
  entry.port = p[1];
  entry.flags = loadLe16(p + 2);
  entry.number = loadLe32(p + 4);
  entry.minNs = static_cast<int64_t>(loadLe64(p + 8));
  entry.maxNs = static_cast<int64_t>(loadLe64(p + 16));
  entry.packets = loadLe64(p + 24);
  entry.bytes = loadLe64(p + 32);
  entry.linkTypeWord = loadLe32(p + 40);
  entry.snaplen = loadLe32(p + 44);
  entry.sideBytes = loadLe32(p + 48);
  entry.checksum = loadLe32(p + 52);
  return entry;
}

}  // namespace

std::string StreamSegments::pathOf(const SegmentEntry& segment) const {
  const bool isFlat = (segment.flags & kSegmentFlat) != 0;
  return isFlat ? segmentPath(folder, segment.number) : groupedSegmentPath(folder, segment.number);
}

std::vector<SegmentEntry> parseSegmentEntries(std::span<const uint8_t> bytes) {
  std::vector<SegmentEntry> entries;
  entries.reserve(bytes.size() / kLogEntryBytes);
  for (size_t at = 0; at + kLogEntryBytes <= bytes.size(); at += kLogEntryBytes) {
    entries.push_back(loadSegmentEntry(bytes.data() + at));
  }
  return entries;
}

void sealLogEntries(std::span<uint8_t> bytes, uint64_t fileOffset) {
  for (size_t at = 0; at + kLogEntryBytes <= bytes.size(); at += kLogEntryBytes) {
    uint8_t* entry = bytes.data() + at;
    storeLe64(entry + kChecksumOffset, checksumOf(entry, fileOffset + at));
  }
}

bool isValidLogEntry(const uint8_t* entry, uint64_t fileOffset) {
  return loadLe64(entry + kChecksumOffset) == checksumOf(entry, fileOffset);
}

}  // namespace capfleet
