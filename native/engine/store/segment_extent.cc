#include "store/segment_extent.h"

#include <algorithm>
#include <vector>

#include "os/file.h"
#include "store/segment_index.h"

namespace capfleet {
namespace {

void add(const SegmentIndex& index, SegmentExtent& extent) {
  for (const BlockEntry& block : index.blocks) {
    extent.minNs = std::min(extent.minNs, block.minNs);
    extent.maxNs = std::max(extent.maxNs, block.maxNs);
    extent.packets += block.packets;
  }
  extent.bytes = index.endOffset;
  extent.indexBytes += index.blocks.size() * kIndexEntryBytes;
}

Result<SegmentExtent> measureAll(std::span<const uint8_t> bytes, const std::string& path) {
  Result<SegmentIndex> index = parseSegmentIndex(bytes, path);
  if (!index) return index.error();
  SegmentExtent extent;
  extent.indexBytes = kIndexHeaderBytes;
  extent.port = index->port;
  extent.header = index->header;
  add(*index, extent);
  return extent;
}

Result<SegmentExtent> measureTail(std::span<const uint8_t> bytes, const std::string& path,
                                  const SegmentExtent& known) {
  SegmentIndex index;
  index.endOffset = known.bytes;
  if (Status status = appendIndexEntries(bytes, path, index); !status) return status.error();
  SegmentExtent extent = known;
  add(index, extent);
  return extent;
}

}  // namespace

Result<SegmentExtent> measureSegment(const std::string& segment, const SegmentExtent& known) {
  const std::string path = segment + ".idx";
  const auto file = File::openStored(path);
  if (!file) return file.error();
  const auto size = file->size();
  if (!size) return size.error();
  if (*size < kIndexHeaderBytes) return SegmentExtent{};
  if (*size == known.indexBytes) return known;
  const uint64_t from = *size < known.indexBytes ? 0 : known.indexBytes;
  std::vector<uint8_t> bytes(*size - from);
  const auto count = file->readAt(from, bytes);
  if (!count) return count.error();
  bytes.resize(*count);
  return from == 0 ? measureAll(bytes, path) : measureTail(bytes, path, known);
}

}  // namespace capfleet
