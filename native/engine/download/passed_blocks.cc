#include "download/passed_blocks.h"

#include <utility>

#include "store/sieve_file.h"

namespace capfleet {
namespace {

/// The sieves of a segment are only read if without them this many times as many bytes would be
/// read.
constexpr uint64_t kWorthwhile = 8;

BlockConditions usefulOf(BlockConditions conditions) {
  if (conditions.program && !conditions.program->isUsefulForSieves()) conditions.program.reset();
  if (conditions.addresses && !conditions.addresses->needs().isUsefulForSieves()) {
    conditions.addresses.reset();
  }
  return conditions;
}

}  // namespace

PassedBlocks::PassedBlocks(BlockConditions conditions, int64_t beginNs, int64_t endNs)
    : conditions_(usefulOf(std::move(conditions))), beginNs_(beginNs), endNs_(endNs) {}

bool PassedBlocks::passWhole(const SlicePlan& plan, const Slice& slice) const {
  if (!hasConditions()) return false;
  for (const SliceInput& input : slice.inputs) {
    const std::vector<PlannedBlock>& blocks = plan.runs[input.run].blocks;
    for (uint32_t i = input.firstBlock; i < input.endBlock; i++) {
      const IndexedSegment& segment = *plan.segments[blocks[i].segment];
      if (!segment.passed.isKnown || !isPassed(segment, blocks[i])) return false;
    }
  }
  return true;
}

PassedBlocks::Rest PassedBlocks::leaveOut(const SlicePlan& plan, const Slice& slice) {
  if (!hasConditions()) return {slice, {}};
  Rest rest{{slice.beginNs, slice.endNs, {}}, {}};
  std::vector<SliceInput>& inputs = rest.slice.inputs;
  for (const SliceInput& input : slice.inputs) {
    const std::vector<PlannedBlock>& blocks = plan.runs[input.run].blocks;
    bool isOpen = false;  // the last input continues with this block
    for (uint32_t i = input.firstBlock; i < input.endBlock; i++) {
      IndexedSegment& segment = *plan.segments[blocks[i].segment];
      readSegment(segment);
      const bool isShared = input.firstIsShared && i == input.firstBlock;
      if (!isPassed(segment, blocks[i])) {
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

/// Determines which blocks of the segment are skipped, unless that is known.
void PassedBlocks::readSegment(IndexedSegment& segment) const {
  PassedOfSegment& passed = segment.passed;
  if (passed.isKnown) return;
  const std::lock_guard lock(passed.mutex);
  if (passed.isKnown) return;
  const std::vector<BlockEntry>& blocks = segment.index.blocks;
  const uint64_t sieveBytes = sieveFileBytes(segment.path);
  if (sieveBytes > 0 && bytesInRange(segment) >= kWorthwhile * sieveBytes) {
    passed.checksums.resize(blocks.size());
    readSieves(segment.path, blocks, [&](const StoredSieve& stored) {
      if (mayPass(stored.sieve)) return;
      passed.checksums[stored.number] = blocks[stored.number].checksum;
    });
  }
  passed.isKnown = true;
}

bool PassedBlocks::mayPass(const BlockSieve& sieve) const {
  const auto mayHold = [&](AddressWord word) {
    return !isWordOfFrame(word.part) || sieve.mayHold(word);
  };
  const auto& [program, addresses] = conditions_;
  return (!program || program->mayAccept(mayHold)) &&
         (!addresses || addresses->needs().mayMatch(mayHold));
}

uint64_t PassedBlocks::bytesInRange(const IndexedSegment& segment) const {
  uint64_t bytes = 0;
  for (const BlockEntry& entry : segment.index.blocks) {
    if (entry.maxNs >= beginNs_ && entry.minNs < endNs_) bytes += entry.bytes;
  }
  return bytes;
}

/// The checksum proves that the sieve belongs to the block in the plan.
bool PassedBlocks::isPassed(const IndexedSegment& segment, const PlannedBlock& block) const {
  const std::vector<uint64_t>& checksums = segment.passed.checksums;
  const BlockEntry& entry = block.entry;
  return block.number < checksums.size() && checksums[block.number] == entry.checksum &&
         entry.checksum != 0 && entry.minNs >= beginNs_ && entry.maxNs < endNs_;
}

}  // namespace capfleet
