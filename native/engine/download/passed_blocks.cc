#include "download/passed_blocks.h"

#include <utility>

#include "store/sieve_file.h"

namespace capfleet {
namespace {

/// The sieves of a segment are read only where so many times as many bytes are to be read without.
constexpr uint64_t kWorthwhile = 8;

}  // namespace

PassedBlocks::PassedBlocks(const SlicePlan& plan, std::optional<AddressCondition> condition,
                           int64_t beginNs, int64_t endNs)
    : plan_(plan), condition_(std::move(condition)), beginNs_(beginNs), endNs_(endNs) {
  if (!condition_ || !condition_->isUseful()) return;
  segments_ = std::make_unique<Segment[]>(plan.segments.size());
  for (const Run& run : plan.runs) {
    for (const PlannedBlock& block : run.blocks) {
      segments_[block.segment].plannedBytes += block.entry.bytes;
    }
  }
}

bool PassedBlocks::passWhole(const Slice& slice) const {
  if (!segments_) return false;
  for (const SliceInput& input : slice.inputs) {
    const std::vector<PlannedBlock>& blocks = plan_.runs[input.run].blocks;
    for (uint32_t i = input.firstBlock; i < input.endBlock; i++) {
      if (!segments_[blocks[i].segment].isKnown || !isPassed(blocks[i])) return false;
    }
  }
  return true;
}

PassedBlocks::Rest PassedBlocks::leaveOut(const Slice& slice) {
  if (!segments_) return {slice, {}};
  Rest rest{{slice.beginNs, slice.endNs, {}}, {}};
  std::vector<SliceInput>& inputs = rest.slice.inputs;
  for (const SliceInput& input : slice.inputs) {
    const std::vector<PlannedBlock>& blocks = plan_.runs[input.run].blocks;
    bool isOpen = false;  // the last input goes on with this block
    for (uint32_t i = input.firstBlock; i < input.endBlock; i++) {
      readSegment(blocks[i].segment);
      const bool isShared = input.firstIsShared && i == input.firstBlock;
      if (!isPassed(blocks[i])) {
        if (!isOpen) inputs.push_back({input.run, i, i, isShared});
        inputs.back().endBlock = i + 1;
        isOpen = true;
        continue;
      }
      isOpen = false;
      if (!isShared) rest.passed.addPassed(blocks[i].entry.packets, blocks[i].entry.bytes);
    }
  }
  return rest;
}

/// Finds out which blocks of the segment are passed over, unless that is known.
void PassedBlocks::readSegment(uint32_t number) {
  Segment& segment = segments_[number];
  if (segment.isKnown) return;
  const std::lock_guard lock(segment.mutex);
  if (segment.isKnown) return;
  const std::string& path = plan_.segments[number];
  const uint64_t sieveBytes = sieveFileBytes(path);
  if (sieveBytes > 0 && segment.plannedBytes >= kWorthwhile * sieveBytes) {
    // An index that cannot be read leaves the blocks unknown.
    if (const auto index = readSegmentIndex(path)) {
      segment.passed.resize(index->blocks.size());
      readSieves(path, index->blocks, [&](const StoredSieve& stored) {
        const BlockSieve& sieve = stored.sieve;
        const auto mayHold = [&](AddressWord word) { return sieve.mayHold(word); };
        if (condition_->mayAccept(mayHold)) return;
        segment.passed[stored.number] = index->blocks[stored.number].checksum;
      });
    }
  }
  segment.isKnown = true;
}

/// The checksum proves that the sieve was that of the block in the plan.
bool PassedBlocks::isPassed(const PlannedBlock& block) const {
  const std::vector<uint64_t>& passed = segments_[block.segment].passed;
  const BlockEntry& entry = block.entry;
  return block.number < passed.size() && passed[block.number] == entry.checksum &&
         entry.checksum != 0 && entry.minNs >= beginNs_ && entry.maxNs < endNs_;
}

}  // namespace capfleet
