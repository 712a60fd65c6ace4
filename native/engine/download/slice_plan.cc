#include "download/slice_plan.h"

#include <algorithm>
#include <limits>

namespace capfleet {
namespace {

/// Blocks at a time cut are read by both slices, one per run. Slices that grow with the number of
/// runs keep that share small, up to this many times the target size.
constexpr uint64_t kMostGrowth = 256;

int64_t firstNsOf(const Run& run) { return run.blocks.front().entry.minNs; }
int64_t lastNsOf(const Run& run) { return run.blocks.back().entry.maxNs; }

bool reachesInto(const BlockEntry& entry, PlanRange range) {
  return entry.maxNs >= range.beginNs && entry.minNs < range.endNs;
}

void addRuns(const IndexedStream& stream, PlanRange range, SlicePlan& plan) {
  bool isFirst = true;
  for (const std::shared_ptr<IndexedSegment>& segment : stream) {
    const auto number = static_cast<uint32_t>(plan.segments.size());
    plan.segments.push_back(segment);
    const std::vector<BlockEntry>& blocks = segment->index.blocks;
    for (uint32_t i = 0; i < blocks.size(); i++) {
      const BlockEntry& entry = blocks[i];
      if (!reachesInto(entry, range)) continue;
      if (isFirst || entry.minNs < lastNsOf(plan.runs.back())) plan.runs.emplace_back();
      plan.runs.back().blocks.push_back({entry, number, i});
      isFirst = false;
    }
  }
}

/// Runs that overlap in time, directly or through others. Clusters do not overlap.
using Cluster = std::vector<uint32_t>;

std::vector<Cluster> findClusters(const SlicePlan& plan) {
  std::vector<uint32_t> order(plan.runs.size());
  for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return firstNsOf(plan.runs[a]) < firstNsOf(plan.runs[b]);
  });
  std::vector<Cluster> clusters;
  int64_t lastNs = 0;
  for (const uint32_t run : order) {
    if (clusters.empty() || firstNsOf(plan.runs[run]) > lastNs) {
      clusters.emplace_back();
      lastNs = lastNsOf(plan.runs[run]);
    }
    clusters.back().push_back(run);
    lastNs = std::max(lastNs, lastNsOf(plan.runs[run]));
  }
  return clusters;
}

/// A single run needs no time cuts: groups of whole blocks, none of them read twice.
void addBlockSlices(uint32_t run, PlanRange range, uint64_t sliceBytes, SlicePlan& plan) {
  const bool firstIsShared = plan.isBegunBefore(plan.runs[run]);
  const std::vector<PlannedBlock>& blocks = plan.runs[run].blocks;
  uint32_t first = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < blocks.size(); i++) {
    bytes += blocks[i].entry.bytes;
    if (bytes < sliceBytes && i + 1 < blocks.size()) continue;
    const bool isShared = first == 0 && firstIsShared;
    plan.slices.push_back({range.beginNs, range.endNs, {{run, first, i + 1, isShared}}});
    first = i + 1;
    bytes = 0;
  }
}

/// How many runs overlap, on average over the cluster's time, rounded up.
uint64_t overlapOf(const Cluster& cluster, const SlicePlan& plan) {
  double sumNs = 0;
  int64_t firstNs = std::numeric_limits<int64_t>::max();
  int64_t lastNs = std::numeric_limits<int64_t>::min();
  for (const uint32_t run : cluster) {
    sumNs += static_cast<double>(lastNsOf(plan.runs[run]) - firstNsOf(plan.runs[run]) + 1);
    firstNs = std::min(firstNs, firstNsOf(plan.runs[run]));
    lastNs = std::max(lastNs, lastNsOf(plan.runs[run]));
  }
  return static_cast<uint64_t>(sumNs / static_cast<double>(lastNs - firstNs + 1)) + 1;
}

/// Instants at which to cut, so that a slice has about the target size. First and last are the
/// range's ends.
std::vector<int64_t> findCuts(const Cluster& cluster, const SlicePlan& plan, PlanRange range,
                              uint64_t sliceBytes) {
  std::vector<std::pair<int64_t, uint32_t>> starts;  // of blocks, with their bytes
  for (const uint32_t run : cluster) {
    for (const PlannedBlock& block : plan.runs[run].blocks) {
      starts.emplace_back(block.entry.minNs, block.entry.bytes);
    }
  }
  std::sort(starts.begin(), starts.end());
  const uint64_t growth = std::min((overlapOf(cluster, plan) + 1) / 2, kMostGrowth);
  const uint64_t wanted = sliceBytes * growth;
  std::vector<int64_t> cuts{range.beginNs};
  uint64_t bytes = 0;
  for (const auto& [startNs, blockBytes] : starts) {
    if (bytes >= wanted && startNs > cuts.back()) {
      cuts.push_back(startNs);
      bytes = 0;
    }
    bytes += blockBytes;
  }
  cuts.push_back(range.endNs);
  return cuts;
}

/// A run while the slices of its cluster are being cut, from the earliest on.
struct OpenRun {
  uint32_t run;
  uint32_t firstBlock = 0;
  uint32_t endBlock = 0;
};

/// Advances the open run to [beginNs, endNs) and returns what the slice reads of it.
SliceInput inputFor(OpenRun& open, const Run& run, int64_t beginNs, int64_t endNs) {
  const auto& blocks = run.blocks;
  const uint32_t endBefore = open.endBlock;
  while (open.firstBlock < blocks.size() && blocks[open.firstBlock].entry.maxNs < beginNs) {
    open.firstBlock++;
  }
  open.endBlock = std::max(open.endBlock, open.firstBlock);
  while (open.endBlock < blocks.size() && blocks[open.endBlock].entry.minNs < endNs) {
    open.endBlock++;
  }
  return {open.run, open.firstBlock, open.endBlock, open.firstBlock < endBefore};
}

void addTimeSlices(const Cluster& cluster, PlanRange range, uint64_t sliceBytes, SlicePlan& plan) {
  const std::vector<int64_t> cuts = findCuts(cluster, plan, range, sliceBytes);
  std::vector<OpenRun> open;
  size_t next = 0;  // of the cluster: its runs come by first timestamp
  for (size_t i = 0; i + 1 < cuts.size(); i++) {
    while (next < cluster.size() && firstNsOf(plan.runs[cluster[next]]) < cuts[i + 1]) {
      open.push_back({cluster[next++]});
    }
    Slice slice{cuts[i], cuts[i + 1], {}};
    for (OpenRun& run : open) {
      SliceInput input = inputFor(run, plan.runs[run.run], cuts[i], cuts[i + 1]);
      if (input.firstBlock == 0 && plan.isBegunBefore(plan.runs[run.run])) {
        input.firstIsShared = true;
      }
      if (input.firstBlock < input.endBlock) slice.inputs.push_back(input);
    }
    std::erase_if(open,
                  [&](const OpenRun& run) { return lastNsOf(plan.runs[run.run]) < cuts[i + 1]; });
    std::sort(slice.inputs.begin(), slice.inputs.end(),
              [](const SliceInput& a, const SliceInput& b) { return a.run < b.run; });
    if (!slice.inputs.empty()) plan.slices.push_back(std::move(slice));
  }
}

}  // namespace

SlicePlan planSlices(const std::vector<IndexedStream>& streams, PlanRange range,
                     uint64_t sliceBytes) {
  SlicePlan plan;
  plan.range = range;
  for (const IndexedStream& stream : streams) addRuns(stream, range, plan);
  for (const Cluster& cluster : findClusters(plan)) {
    if (cluster.size() == 1) {
      addBlockSlices(cluster.front(), range, sliceBytes, plan);
    } else {
      addTimeSlices(cluster, range, sliceBytes, plan);
    }
  }
  return plan;
}

SlicePlan planOneSlice(const std::vector<IndexedStream>& streams, PlanRange range) {
  SlicePlan plan;
  plan.range = range;
  for (const IndexedStream& stream : streams) addRuns(stream, range, plan);
  if (plan.runs.empty()) return plan;
  Slice slice{range.beginNs, range.endNs, {}};
  for (uint32_t run = 0; run < plan.runs.size(); run++) {
    const auto blocks = static_cast<uint32_t>(plan.runs[run].blocks.size());
    slice.inputs.push_back({run, 0, blocks, plan.isBegunBefore(plan.runs[run])});
  }
  plan.slices.push_back(std::move(slice));
  return plan;
}

}  // namespace capfleet
