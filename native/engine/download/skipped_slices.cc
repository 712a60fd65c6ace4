#include "download/skipped_slices.h"

#include <algorithm>

namespace capfleet {
namespace {

BlockCheck checkOf(const SlicePlan& plan, const PlannedBlock& block) {
  return plan.checks[block.segment]->of(block.number);
}

/// How many slices can be passed over. A block that reaches into the following slice counts as a
/// whole, so that it need not be read to know this: the last slice or two may be kept in vain.
size_t countSlices(const SlicePlan& plan, SkipLimits most) {
  SkipLimits left = most;
  std::vector<uint32_t> endBlocks(plan.runs.size(), 0);  // of those counted
  for (size_t i = 0; i < plan.slices.size(); i++) {
    for (const SliceInput& input : plan.slices[i].inputs) {
      uint32_t& next = endBlocks[input.run];
      for (; next < input.endBlock; next++) {
        const PlannedBlock& block = plan.runs[input.run].blocks[next];
        const BlockCheck check = checkOf(plan, block);
        if (check == BlockCheck::kDamaged) continue;
        const BlockEntry& entry = block.entry;
        if (check == BlockCheck::kUnread || entry.packets > left.packets ||
            entry.bytes > left.bytes) {
          return i;
        }
        left.packets -= entry.packets;
        left.bytes -= entry.bytes;
      }
    }
  }
  return plan.slices.size();
}

void add(SkippedSlices& skipped, uint64_t packets, uint64_t bytes, int64_t firstNs,
         int64_t lastNs) {
  skipped.packets += packets;
  skipped.bytes += bytes;
  skipped.firstNs = std::min(skipped.firstNs.value_or(firstNs), firstNs);
  skipped.lastNs = std::max(skipped.lastNs.value_or(lastNs), lastNs);
}

/// Counts the packets of a block before `endNs`, from its entry if the entry says all.
Status addBlock(ScanContext& context, const PlannedBlock& block, int64_t endNs,
                SkippedSlices& skipped) {
  const BlockEntry& entry = block.entry;
  if (checkOf(context.plan, block) == BlockCheck::kDamaged) {
    skipped.corruptBlocks++;
    return ok();
  }
  if (entry.minNs >= context.beginNs && entry.maxNs < endNs) {
    add(skipped, entry.packets, entry.bytes, entry.minNs, entry.maxNs);
    return ok();
  }
  const auto file = context.reader.open(block.segment);
  if (!file) return file.error();
  auto loaded = context.reader.load(**file, entry);
  if (!loaded) return loaded.error();
  if (!*loaded) {
    skipped.corruptBlocks++;
    return ok();
  }
  const std::vector<int64_t>& timestampsNs = (*loaded)->timestampsNs;
  const auto begin = timestampsNs.begin();
  const auto first = std::lower_bound(begin, timestampsNs.end(), context.beginNs);
  const auto end = std::lower_bound(first, timestampsNs.end(), endNs);
  if (first != end) {
    const std::vector<uint32_t>& offsets = (*loaded)->offsets;
    const uint32_t bytes =
        offsets[static_cast<size_t>(end - begin)] - offsets[static_cast<size_t>(first - begin)];
    add(skipped, static_cast<uint64_t>(end - first), bytes, *first, *(end - 1));
  }
  context.reader.give(std::move(*loaded));
  return ok();
}

}  // namespace

Result<SkippedSlices> skipSlices(ScanContext& context, SkipLimits most) {
  SkippedSlices skipped;
  const SlicePlan& plan = context.plan;
  skipped.slices = countSlices(plan, most);
  // Slices follow each other in time, so the last one that reads a run says how far they all go.
  std::vector<const Slice*> lastSlices(plan.runs.size(), nullptr);
  std::vector<uint32_t> endBlocks(plan.runs.size(), 0);
  for (size_t i = 0; i < skipped.slices; i++) {
    for (const SliceInput& input : plan.slices[i].inputs) {
      lastSlices[input.run] = &plan.slices[i];
      endBlocks[input.run] = input.endBlock;
    }
  }
  for (size_t run = 0; run < plan.runs.size(); run++) {
    for (uint32_t block = 0; block < endBlocks[run]; block++) {
      const Status status =
          addBlock(context, plan.runs[run].blocks[block], lastSlices[run]->endNs, skipped);
      if (!status) return status.error();
    }
  }
  return skipped;
}

}  // namespace capfleet
