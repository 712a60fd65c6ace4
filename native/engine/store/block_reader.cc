#include "store/block_reader.h"

#include <algorithm>
#include <numeric>

#include "store/block_checksum.h"

namespace capfleet {
namespace {

/// Fills the table from the bytes. False if the records do not match the index.
bool buildTable(LoadedBlock& block, const BlockEntry& entry) {
  // Sized according to the index, so that nothing needs to grow while the records are parsed.
  block.offsets.resize(size_t{entry.packets} + 1);
  block.timestampsNs.resize(entry.packets);
  uint32_t* const offsets = block.offsets.data();
  int64_t* const timestampsNs = block.timestampsNs.data();
  const uint8_t* const bytes = block.bytes.data();
  uint64_t at = 0;
  bool isInRange = true;
  for (uint32_t i = 0; i < entry.packets; i++) {
    if (at + kRecordHeaderBytes > entry.bytes) return false;
    const RecordHeader header = loadRecordHeader(bytes + at);
    isInRange &= header.timestampNs >= entry.minNs && header.timestampNs <= entry.maxNs;
    offsets[i] = static_cast<uint32_t>(at);
    timestampsNs[i] = header.timestampNs;
    at += uint64_t{kRecordHeaderBytes} + header.capturedLength;
  }
  offsets[entry.packets] = static_cast<uint32_t>(at);
  return isInRange && at == entry.bytes;
}

/// Rewrites the block in timestamp order, keeping the order of equal timestamps.
void sortRecords(LoadedBlock& block) {
  std::vector<uint32_t> order(block.packets());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return block.timestampsNs[a] < block.timestampsNs[b];
  });
  LoadedBlock sorted;
  sorted.origin = block.origin;
  sorted.bytes.resize(block.bytes.size());
  uint32_t at = 0;
  for (const uint32_t record : order) {
    const uint32_t bytes = block.offsets[record + 1] - block.offsets[record];
    std::memcpy(sorted.bytes.data() + at, block.bytes.data() + block.offsets[record], bytes);
    sorted.offsets.push_back(at);
    sorted.timestampsNs.push_back(block.timestampsNs[record]);
    at += bytes;
  }
  sorted.offsets.push_back(at);
  block = std::move(sorted);
}

}  // namespace

Result<std::unique_ptr<LoadedBlock>> BlockReader::load(const SegmentFile& file,
                                                       const BlockEntry& entry) {
  if (entry.isDamaged()) return std::unique_ptr<LoadedBlock>{};
  std::unique_ptr<LoadedBlock> block = take(entry.bytes);
  Result<size_t> got = file.readAt(entry.offset, {block->bytes.data(), entry.bytes});
  if (!got) {
    give(std::move(block));
    return got.error();
  }
  const bool isIntact = *got == entry.bytes &&
                        blockChecksum({block->bytes.data(), entry.bytes}) == entry.checksum &&
                        buildTable(*block, entry);
  if (!isIntact) {
    give(std::move(block));
    return std::unique_ptr<LoadedBlock>{};
  }
  if (!std::is_sorted(block->timestampsNs.begin(), block->timestampsNs.end())) sortRecords(*block);
  return block;
}

void BlockReader::give(std::unique_ptr<LoadedBlock> block) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(block));
}

/// No larger than necessary: a scan of many small captures holds a block of each.
std::unique_ptr<LoadedBlock> BlockReader::take(size_t bytes) {
  std::unique_ptr<LoadedBlock> block;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (!block) block = std::make_unique<LoadedBlock>();
  // In steps, so that the next block of about this size fits.
  constexpr size_t kStep = size_t{64} << 10;
  if (block->bytes.size() < bytes) {
    block->bytes = std::vector<uint8_t>((bytes + kStep - 1) / kStep * kStep);
  }
  return block;
}

}  // namespace capfleet
