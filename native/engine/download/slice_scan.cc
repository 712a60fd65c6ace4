#include "download/slice_scan.h"

#include <algorithm>
#include <cassert>

#include "merge/record_copy.h"
#include "store/block_checksum.h"

namespace capfleet {
namespace {

/// After this much a scan yields the thread.
constexpr uint64_t kPauseBytes = uint64_t{4} << 20;
/// A scan with more concurrent inputs than this opens their files again for each block. A process
/// may be limited to 1,024 open files, and each of a device's four downloads scans two slices at a
/// time, with many inputs each.
constexpr size_t kMostOpenFiles = 64;

/// How many bytes of its block, including tables, an input may hold. A block is checked as a whole,
/// so it is read again for each piece: the fewer inputs there are, the larger these are.
std::optional<size_t> pieceBytesOf(size_t inputs) {
  constexpr size_t kBytesOfAll = size_t{64} << 20;
  constexpr size_t kLeastBytes = size_t{16} << 10;
  if (inputs <= kMostWholeBlocks) return std::nullopt;
  return std::max(kBytesOfAll / inputs, kLeastBytes);
}

/// The records from `first` on that fit into `bytes` bytes with their tables, and at least one.
std::unique_ptr<LoadedBlock> pieceOf(const LoadedBlock& block, uint32_t first, size_t bytes) {
  constexpr size_t kTableBytes = sizeof(uint32_t) + sizeof(int64_t);
  const uint32_t beginByte = block.offsets[first];
  const auto takes = [&](uint32_t end) {
    return block.offsets[end] - beginByte + (end - first) * kTableBytes;
  };
  uint32_t end = first + 1;
  while (end < block.packets() && takes(end + 1) <= bytes) end++;
  auto piece = std::make_unique<LoadedBlock>();
  piece->origin = block.origin;
  piece->bytes.assign(block.bytes.data() + beginByte, block.bytes.data() + block.offsets[end]);
  piece->timestampsNs.assign(block.timestampsNs.data() + first, block.timestampsNs.data() + end);
  piece->offsets.assign(block.offsets.data() + first, block.offsets.data() + end + 1);
  for (uint32_t& offset : piece->offsets) offset -= beginByte;
  return piece;
}

/// Adds a block's bytes, which are in the slab at or after its end, to the batch. After the end
/// means that a corrupt block before it was left out.
void appendWhole(const uint8_t* from, const BlockEntry& entry, PacketBatch& batch) {
  Slab& slab = *batch.slab;
  uint8_t* const to = slab.bytes.get() + slab.size;
  if (to != from) std::memmove(to, from, entry.bytes);
  slab.size += entry.bytes;
  batch.count(entry.packets, entry.minNs, entry.maxNs);
}

}  // namespace

SliceScan::SliceScan(ScanContext& context, const SlicePlan& plan, const Slice& slice, int64_t endNs,
                     std::optional<int64_t> maxSpanNs)
    : context_(context),
      plan_(plan),
      isFinal_(slice.isFinal),
      beginNs_(slice.beginNs),
      endNs_(std::min(slice.endNs, endNs)),
      maxSpanNs_(maxSpanNs),
      filter_(context.transform),
      vendorTimes_(context.vendorTimes.get()),
      inputs_(inputsOf(plan, slice)),
      pieceBytes_(pieceBytesOf(inputs_.size())),
      tree_(keys()) {}

SliceScan::~SliceScan() {
  for (Input& input : inputs_) {
    if (input.block) release(std::move(input.block));
  }
}

std::vector<SliceScan::Input> SliceScan::inputsOf(const SlicePlan& plan, const Slice& slice) {
  std::vector<Input> inputs;
  inputs.reserve(slice.inputs.size());
  for (const SliceInput& from : slice.inputs) {
    const Run& run = plan.runs[from.run];
    const uint32_t sharedBlock = from.firstIsShared ? from.firstBlock : kNoBlock;
    inputs.push_back({&run, from.firstBlock, from.endBlock, sharedBlock, nullptr, 0, nullptr, 0});
  }
  return inputs;
}

std::vector<int64_t> SliceScan::keys() const {
  std::vector<int64_t> keys;
  for (const Input& input : inputs_) keys.push_back(keyOf(input));
  if (keys.empty()) keys.push_back(MergeTree::kEnded);
  return keys;
}

Result<ScanStep> SliceScan::fill(PacketBatch& batch, ScanCounts& counts) {
  if (Status status = filter_.prepare(); !status) return status.error();
  while (hasNext()) {
    if (bytesSincePause_ >= kPauseBytes) {
      bytesSincePause_ = 0;
      return ScanStep::kPause;
    }
    Input& input = inputs_[tree_.winner()];
    if (input.block) {
      const bool hadRoom = context_.transform.keepsEverything() && !maxSpanNs_
                               ? mergeRecords(batch, counts)
                               : appendFromWinner(batch, counts);
      if (!hadRoom) return ScanStep::kFull;
      continue;
    }
    if (Status status = openFile(input); !status) return status.error();
    if (canCopyWhole(input, input.nextBlock)) {
      Result<bool> copied = copyWholeBlocks(input, batch, counts);
      if (!copied) return copied.error();
      if (!*copied) return ScanStep::kFull;
      continue;
    }
    if (Status status = loadBlock(input, batch, counts); !status) return status.error();
  }
  if (isFinal_ && !context_.isCancelled && !vendorTimes_->finish({batch, counts})) {
    return ScanStep::kFull;
  }
  return ScanStep::kDone;
}

bool SliceScan::hasNext() const {
  if (tree_.winnerKey() >= endNs_ || context_.isCancelled) return false;
  return !vendorTimes_ || !vendorTimes_->hasEnded();
}

Status SliceScan::openFile(Input& input) {
  const uint32_t segment = input.run->blocks[input.nextBlock].segment;
  if (input.file && input.fileSegment == segment) return ok();
  Result<std::shared_ptr<SegmentFile>> file = plan_.segments[segment]->file.open();
  if (!file) {
    // Unless it was removed just now, the segment is lost.
    if (file.error().code == Code::kAgedOut) plan_.segments[segment]->checks->suspect();
    return file.error();
  }
  input.file = std::move(*file);
  input.fileSegment = segment;
  return ok();
}

/// Whether the block's packets need not be examined: nothing to merge with, filter or change.
bool SliceScan::canCopyWhole(const Input& input, uint32_t block) const {
  const BlockEntry& entry = input.run->blocks[block].entry;
  const bool isAlone = tree_.winnerStaysBelow() == MergeTree::kEnded;
  return isAlone && input.nextRecord == 0 && !maxSpanNs_ && context_.transform.keepsEverything() &&
         (entry.flags & kBlockUnordered) == 0 && entry.minNs >= beginNs_ && entry.maxNs < endNs_;
}

/// The following blocks that one read can fetch into the room of the batch.
SliceScan::BlockGroup SliceScan::nextGroup(Input& input, size_t room) const {
  const std::vector<PlannedBlock>& blocks = input.run->blocks;
  const PlannedBlock& first = blocks[input.nextBlock];
  BlockGroup group{input.nextBlock, input.nextBlock, 0};
  while (group.end < input.endBlock && canCopyWhole(input, group.end)) {
    const PlannedBlock& next = blocks[group.end];
    const bool isNeighbour =
        next.segment == first.segment && next.entry.offset == first.entry.offset + group.bytes;
    if (!isNeighbour || group.bytes + next.entry.bytes > room) break;
    group.bytes += next.entry.bytes;
    group.end++;
  }
  return group;
}

/// Reads as many whole blocks as fit straight into the slab. False if none fits.
Result<bool> SliceScan::copyWholeBlocks(Input& input, PacketBatch& batch, ScanCounts& counts) {
  const BlockGroup group = nextGroup(input, batch.room());
  if (group.bytes == 0) return false;
  Slab& slab = *batch.slab;
  const uint8_t* from = slab.bytes.get() + slab.size;
  Result<size_t> got = input.file->readAt(input.run->blocks[group.first].entry.offset,
                                          {slab.bytes.get() + slab.size, group.bytes});
  if (!got) return got.error();
  size_t left = *got;
  for (uint32_t i = group.first; i < group.end; i++) {
    const BlockEntry& entry = input.run->blocks[i].entry;
    const bool isIntact =
        entry.bytes <= left && blockChecksum({from, entry.bytes}) == entry.checksum;
    noteCheck(input, i, isIntact, counts);
    if (isIntact) {
      appendWhole(from, entry, batch);
      counts.packets += entry.packets;
      counts.bytes += entry.bytes;
    }
    from += entry.bytes;
    left -= std::min<size_t>(left, entry.bytes);
  }
  input.nextBlock = group.end;
  bytesSincePause_ += group.bytes;
  rekey(input);
  return true;
}

/// Loads the next block, or its next piece after the one that was loaded last.
Status SliceScan::loadBlock(Input& input, PacketBatch& batch, ScanCounts& counts) {
  const PlannedBlock& planned = input.run->blocks[input.nextBlock];
  auto loaded = context_.reader.load(*input.file, planned.entry);
  if (!loaded) return loaded.error();
  if (inputs_.size() > kMostOpenFiles) input.file.reset();
  bytesSincePause_ += planned.entry.bytes;
  std::unique_ptr<LoadedBlock> block = std::move(*loaded);
  const bool isBegun = input.nextRecord > 0;
  if (isBegun && !block) {
    return Error{Code::kStoreCorrupt, plan_.segments[planned.segment]->path +
                                          ".pcap: a block was damaged while it was being read"};
  }
  if (!isBegun) noteCheck(input, input.nextBlock, block != nullptr, counts);
  if (!block) {
    nextBlock(input);
    return ok();
  }
  block->origin = plan_.segments[planned.segment]->origin;
  if (!isBegun) beginBlock(input, *block, batch, counts);
  hold(input, std::move(block));
  return ok();
}

/// Counts the packets of a block just loaded, and advances to its first one of the slice.
void SliceScan::beginBlock(Input& input, const LoadedBlock& block, PacketBatch& batch,
                           ScanCounts& counts) {
  const auto begin = block.timestampsNs.begin();
  const auto end = block.timestampsNs.end();
  const auto first = std::lower_bound(begin, end, beginNs_);
  const auto last = std::lower_bound(first, end, endNs_);
  const auto firstInRange = std::lower_bound(first, last, context_.beginNs);
  input.nextRecord = static_cast<uint32_t>(first - begin);
  counts.packets += static_cast<uint64_t>(last - firstInRange);
  counts.bytes += block.offsets[static_cast<size_t>(last - begin)] -
                  block.offsets[static_cast<size_t>(firstInRange - begin)];
  batch.excluded += countBesideRange(input, block);
}

/// Packets of the block just loaded that are outside the download's range. If two slices read a
/// block, the first counts them.
uint64_t SliceScan::countBesideRange(const Input& input, const LoadedBlock& block) const {
  if (input.nextBlock == input.sharedBlock) return 0;
  const std::vector<int64_t>& timestampsNs = block.timestampsNs;
  const auto first = std::lower_bound(timestampsNs.begin(), timestampsNs.end(), context_.beginNs);
  const auto last = std::lower_bound(first, timestampsNs.end(), context_.endNs);
  return timestampsNs.size() - static_cast<uint64_t>(last - first);
}

/// Makes the records of the block from `nextRecord` the input's, or as many as it may hold.
void SliceScan::hold(Input& input, std::unique_ptr<LoadedBlock> block) {
  const uint32_t first = input.nextRecord;
  const uint32_t packets = block->packets();
  if (first == packets) {
    context_.reader.give(std::move(block));
    nextBlock(input);
    return;
  }
  if (pieceBytes_) {
    input.block = pieceOf(*block, first, *pieceBytes_);
    input.position = 0;
    input.nextRecord = first + input.block->packets();
    if (input.nextRecord < packets) input.nextRecordNs = block->timestampsNs[input.nextRecord];
    context_.reader.give(std::move(block));
  } else {
    input.block = std::move(block);
    input.position = first;
    input.nextRecord = packets;
  }
  rekey(input);
}

/// Appends unchanged records, from whichever input is next, until a block is needed or the slice
/// ends. False if the batch is full.
bool SliceScan::mergeRecords(PacketBatch& batch, ScanCounts& counts) {
  Slab& slab = *batch.slab;
  WinStreak streak;
  while (tree_.winnerKey() < endNs_) {
    Input& input = inputs_[tree_.winner()];
    if (!input.block) return true;
    if (streak.isLongWith(tree_.winner())) {
      if (!appendFromWinner(batch, counts)) return false;
      continue;
    }
    const LoadedBlock& block = *input.block;
    const uint32_t* const offsets = &block.offsets[input.position];
    const size_t bytes = offsets[1] - offsets[0];
    if (bytes > batch.room()) return false;
    copyRecord(slab.bytes.get() + slab.size, block.bytes.data() + offsets[0], bytes);
    slab.size += bytes;
    batch.count(1, tree_.winnerKey(), tree_.winnerKey());
    input.position++;
    if (input.position == block.packets()) {
      finishLoaded(input);
      return true;
    }
    prefetchBytes(block.bytes.data() + offsets[1], block.bytes.data() + offsets[2]);
    tree_.replaceWinner(block.timestampsNs[input.position]);
  }
  return true;
}

/// Appends from the winning input until another is next. False if the batch is full.
bool SliceScan::appendFromWinner(PacketBatch& batch, ScanCounts& counts) {
  Input& input = inputs_[tree_.winner()];
  const uint32_t last = maxSpanNs_ ? input.position + 1 : runEnd(input);
  input.position =
      vendorTimes_
          ? vendorTimes_->take(*input.block, input.position, last, filter_, {batch, counts})
          : appendPackets(*input.block, input.position, last, context_.transform, filter_, batch);
  if (maxSpanNs_ && batch.packets > 0) {
    // Subtracted, because the sum may not fit into 64 bits.
    if (endNs_ - batch.firstNs > *maxSpanNs_) endNs_ = batch.firstNs + *maxSpanNs_;
    maxSpanNs_.reset();
  }
  const bool isWhole = input.position == last;
  if (input.position == input.block->packets()) {
    finishLoaded(input);
  } else {
    rekey(input);
  }
  return isWhole || (vendorTimes_ && vendorTimes_->hasEnded());
}

/// The first record of the winning input that is not next: another input's precedes it, or the
/// slice ends. Searched in growing steps, because inputs usually alternate after a few packets.
uint32_t SliceScan::runEnd(const Input& input) const {
  const int64_t boundNs = std::min(endNs_, tree_.winnerStaysBelow());
  const std::vector<int64_t>& timestampsNs = input.block->timestampsNs;
  size_t step = 1;
  size_t low = input.position;
  while (low + step < timestampsNs.size() && timestampsNs[low + step] < boundNs) {
    low += step;
    step *= 2;
  }
  const auto begin = timestampsNs.begin();
  const auto end = begin + static_cast<ptrdiff_t>(std::min(low + step, timestampsNs.size()));
  const auto from = begin + static_cast<ptrdiff_t>(low);
  const auto found = std::lower_bound(from, end, boundNs);
  assert(found != begin + input.position);
  return static_cast<uint32_t>(found - begin);
}

/// Drops the loaded block, or piece of it, and makes what follows it next.
void SliceScan::finishLoaded(Input& input) {
  release(std::move(input.block));
  if (input.nextRecord < input.run->blocks[input.nextBlock].entry.packets) {
    rekey(input);
  } else {
    nextBlock(input);
  }
}

/// Only whole blocks are kept for reuse: otherwise pieces would grow to blocks.
void SliceScan::release(std::unique_ptr<LoadedBlock> block) {
  if (!pieceBytes_) context_.reader.give(std::move(block));
}

void SliceScan::nextBlock(Input& input) {
  input.nextBlock++;
  input.nextRecord = 0;
  rekey(input);
}

/// The input has nothing earlier left.
int64_t SliceScan::keyOf(const Input& input) const {
  if (input.block) return input.block->timestampsNs[input.position];
  if (input.nextRecord > 0) return input.nextRecordNs;
  if (input.nextBlock == input.endBlock) return MergeTree::kEnded;
  return std::max(input.run->blocks[input.nextBlock].entry.minNs, beginNs_);
}

/// Called after the winning input has advanced.
void SliceScan::rekey(Input& input) {
  const int64_t key = keyOf(input);
  if (key == MergeTree::kEnded) input.file.reset();
  tree_.replaceWinner(key);
}

/// Records whether a block that was read is intact. If two slices read it, the first counts it.
void SliceScan::noteCheck(const Input& input, uint32_t block, bool isIntact, ScanCounts& counts) {
  const PlannedBlock& planned = input.run->blocks[block];
  SegmentChecks& checks = *plan_.segments[planned.segment]->checks;
  checks.note(planned.number, isIntact);
  if (!isIntact && !planned.entry.isDamaged()) checks.suspect();
  if (!isIntact && block != input.sharedBlock) counts.corruptBlocks++;
}

}  // namespace capfleet
