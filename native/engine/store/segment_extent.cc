#include "store/segment_extent.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "os/file.h"
#include "store/index_rebuild.h"
#include "store/segment_file.h"
#include "store/segment_index.h"

namespace capfleet {
namespace {

/// Adds the blocks that the index describes. REQUIRES: they follow those in the extent.
void add(const SegmentIndex& index, SegmentExtent& extent) {
  for (const BlockEntry& block : index.blocks) {
    extent.checksum = addToChecksum(extent.checksum, block);
    if (!block.hasTimes()) continue;
    extent.minNs = std::min(extent.minNs, block.minNs);
    extent.maxNs = std::max(extent.maxNs, block.maxNs);
    extent.packets += block.packets;
  }
  extent.bytes = index.endOffset;
  extent.damagedBlocks += index.damagedBlocks;
  extent.indexBytes += index.blocks.size() * kIndexEntryBytes;
}

SegmentExtent extentOf(const SegmentIndex& index) {
  SegmentExtent extent;
  extent.indexBytes = kIndexHeaderBytes;
  extent.port = index.port;
  extent.header = index.header;
  add(index, extent);
  return extent;
}

Result<SegmentExtent> measureAll(const std::string& segment) {
  const Result<SegmentIndex> index = readSegmentIndex(segment);
  if (!index) return index.error();
  return extentOf(*index);
}

/// Nothing if the new entries are damaged.
std::optional<SegmentExtent> measureTail(std::span<const uint8_t> bytes, const std::string& path,
                                         const SegmentExtent& known) {
  SegmentIndex index;
  index.endOffset = known.bytes;
  if (!appendIndexEntries(bytes, path, index)) return std::nullopt;
  SegmentExtent extent = known;
  add(index, extent);
  return extent;
}

/// No bytes if there is no file.
Result<std::vector<uint8_t>> readUnlessMissing(const std::string& path) {
  const auto file = File::openStored(path);
  if (file) return file->readAll();
  if (file.error().code == Code::kAgedOut) return std::vector<uint8_t>{};
  return file.error();
}

}  // namespace

Result<SegmentExtent> measureFinishedSegment(const std::string& segment) {
  const auto file = SegmentFile::open(segment);
  if (!file) return file.error();
  const auto dataBytes = file->size();
  if (!dataBytes) return dataBytes.error();
  const auto bytes = readUnlessMissing(segment + ".idx");
  if (!bytes) return bytes.error();
  IndexRebuildOptions options;
  options.endOffset = *dataBytes;
  auto index = rebuildIndex(segment, *bytes, options);
  if (!index) return index.error();
  markLostBlocks(*index, *dataBytes);
  return extentOf(*index);
}

Result<SegmentExtent> measureSegment(const std::string& segment, const SegmentExtent& known) {
  const std::string path = segment + ".idx";
  const auto file = File::openStored(path);
  if (!file) return file.error();
  const auto size = file->size();
  if (!size) return size.error();
  if (*size < kIndexHeaderBytes) return SegmentExtent{};
  if (*size == known.indexBytes) return known;
  if (*size < known.indexBytes || known.indexBytes == 0) return measureAll(segment);
  std::vector<uint8_t> bytes(*size - known.indexBytes);
  const auto count = file->readAt(known.indexBytes, bytes);
  if (!count) return count.error();
  bytes.resize(*count);
  const auto extent = measureTail(bytes, path, known);
  return extent ? Result(*extent) : measureAll(segment);
}

}  // namespace capfleet
