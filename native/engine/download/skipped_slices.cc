#include "download/skipped_slices.h"

#include <algorithm>

namespace capfleet {
namespace {

/// A block that its index marks as damaged need not be read to know that.
BlockCheck checkOf(const IndexedSegment& segment, uint32_t number, const BlockEntry& entry) {
  return entry.isDamaged() ? BlockCheck::kDamaged : segment.checks->of(number);
}

}  // namespace

Result<size_t> SliceSkip::pass(const std::shared_ptr<const SlicePlan>& plan) {
  const size_t slices = countSlices(*plan);
  if (slices < plan->slices.size()) {
    if (Status status = addSlices(*plan, slices); !status) return status.error();
    open_.clear();
    return slices;
  }
  // All open blocks extend into this plan, and are among its blocks.
  std::vector<Block> open;
  for (const Run& run : plan->runs) {
    for (const PlannedBlock& planned : run.blocks) {
      Block block{plan->segments[planned.segment], planned.entry, planned.number};
      if (planned.entry.maxNs >= plan->range.endNs) {
        open.push_back(std::move(block));
      } else if (Status status = add(block, plan->range.endNs); !status) {
        return status.error();
      }
    }
  }
  open_ = std::move(open);
  openEndNs_ = plan->range.endNs;
  return slices;
}

Status SliceSkip::finish() {
  for (const Block& block : open_) {
    if (Status status = add(block, openEndNs_); !status) return status;
  }
  open_.clear();
  return ok();
}

/// How many slices of the plan can be skipped. A block that extends into the following slice counts
/// as a whole, so that it need not be read to know this: the last slice or two may be kept
/// unnecessarily.
size_t SliceSkip::countSlices(const SlicePlan& plan) {
  std::vector<uint32_t> endBlocks(plan.runs.size(), 0);  // of those counted
  for (size_t i = 0; i < plan.slices.size(); i++) {
    for (const SliceInput& input : plan.slices[i].inputs) {
      uint32_t& next = endBlocks[input.run];
      // The previous plan has counted it.
      if (next == 0 && input.firstBlock == 0 && input.firstIsShared) next = 1;
      for (; next < input.endBlock; next++) {
        if (!take(plan, plan.runs[input.run].blocks[next])) return i;
      }
    }
  }
  return plan.slices.size();
}

/// Subtracts the block from the limits. False if it may not be skipped.
bool SliceSkip::take(const SlicePlan& plan, const PlannedBlock& block) {
  const BlockEntry& entry = block.entry;
  const BlockCheck check = checkOf(*plan.segments[block.segment], block.number, entry);
  if (check == BlockCheck::kDamaged) return true;
  if (check == BlockCheck::kUnread || entry.packets > left_.packets || entry.bytes > left_.bytes) {
    return false;
  }
  left_.packets -= entry.packets;
  left_.bytes -= entry.bytes;
  return true;
}

/// Counts what the first slices of a plan deliver, and its open blocks. No other plan follows.
Status SliceSkip::addSlices(const SlicePlan& plan, size_t slices) {
  // Slices follow each other in time, so the last one that reads a run determines how far all of
  // them extend.
  std::vector<int64_t> endsNs(plan.runs.size(), plan.range.beginNs);
  std::vector<uint32_t> endBlocks(plan.runs.size(), 0);
  for (size_t i = 0; i < slices; i++) {
    for (const SliceInput& input : plan.slices[i].inputs) {
      endsNs[input.run] = plan.slices[i].endNs;
      endBlocks[input.run] = input.endBlock;
    }
  }
  for (size_t run = 0; run < plan.runs.size(); run++) {
    // An open block is the first of its run.
    const uint32_t openBlocks = plan.isBegunBefore(plan.runs[run]) ? 1 : 0;
    for (uint32_t i = 0; i < std::max(endBlocks[run], openBlocks); i++) {
      const PlannedBlock& planned = plan.runs[run].blocks[i];
      const Block block{plan.segments[planned.segment], planned.entry, planned.number};
      if (Status status = add(block, endsNs[run]); !status) return status;
    }
  }
  return ok();
}

/// Counts the packets of a block before `endNs`, from its entry if that is sufficient.
Status SliceSkip::add(const Block& block, int64_t endNs) {
  const BlockEntry& entry = block.entry;
  if (checkOf(*block.segment, block.number, entry) == BlockCheck::kDamaged) {
    skipped_.corruptBlocks++;
    return ok();
  }
  if (entry.minNs >= context_.beginNs && entry.maxNs < endNs) {
    add(entry.packets, entry.bytes, entry.minNs, entry.maxNs);
    return ok();
  }
  const auto file = block.segment->file.open();
  if (!file) return file.error();
  auto loaded = context_.reader.load(**file, entry);
  if (!loaded) return loaded.error();
  if (!*loaded) {
    skipped_.corruptBlocks++;
    return ok();
  }
  const std::vector<int64_t>& timestampsNs = (*loaded)->timestampsNs;
  const auto begin = timestampsNs.begin();
  const auto first = std::lower_bound(begin, timestampsNs.end(), context_.beginNs);
  const auto end = std::lower_bound(first, timestampsNs.end(), endNs);
  if (first != end) {
    const std::vector<uint32_t>& offsets = (*loaded)->offsets;
    const uint32_t bytes =
        offsets[static_cast<size_t>(end - begin)] - offsets[static_cast<size_t>(first - begin)];
    add(static_cast<uint64_t>(end - first), bytes, *first, *(end - 1));
  }
  context_.reader.give(std::move(*loaded));
  return ok();
}

void SliceSkip::add(uint64_t packets, uint64_t bytes, int64_t firstNs, int64_t lastNs) {
  skipped_.packets += packets;
  skipped_.bytes += bytes;
  skipped_.firstNs = std::min(skipped_.firstNs.value_or(firstNs), firstNs);
  skipped_.lastNs = std::max(skipped_.lastNs.value_or(lastNs), lastNs);
}

}  // namespace capfleet
