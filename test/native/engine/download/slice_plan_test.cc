#include "download/slice_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "support/seed.h"

namespace capfleet::test {
namespace {

/// A stream of one segment whose blocks have these times and 1000 bytes each.
IndexedStream streamOf(const std::string& path, std::vector<std::pair<int64_t, int64_t>> times) {
  SegmentIndex index;
  for (const auto& [minNs, maxNs] : times) {
    BlockEntry entry;
    entry.offset = 24 + 1000 * index.blocks.size();
    entry.minNs = minNs;
    entry.maxNs = maxNs;
    entry.bytes = 1000;
    entry.packets = 10;
    index.blocks.push_back(entry);
  }
  return {std::make_shared<IndexedSegment>(path, index)};
}

TEST(SlicePlan, ReadsOnlyBlocksOfTheRange) {
  const auto stream = streamOf("a", {{0, 9}, {10, 19}, {20, 29}, {30, 39}});
  const SlicePlan plan = planSlices({stream}, {19, 30});
  ASSERT_EQ(plan.runs.size(), 1u);
  ASSERT_EQ(plan.runs[0].blocks.size(), 2u);
  EXPECT_EQ(plan.runs[0].blocks[0].entry.minNs, 10);
  EXPECT_EQ(plan.runs[0].blocks[1].entry.minNs, 20);
  EXPECT_TRUE(planSlices({stream}, {40, 50}).slices.empty());
  EXPECT_TRUE(planSlices({stream}, {20, 20}).slices.empty());
  EXPECT_TRUE(planSlices({}, {0, 100}).slices.empty());
}

TEST(SlicePlan, BeginsANewRunWhereTheClockSteppedBack) {
  const SlicePlan plan =
      planSlices({streamOf("a", {{0, 9}, {9, 20}, {5, 30}, {30, 31}})}, {0, 100});
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].blocks.size(), 2u);
  EXPECT_EQ(plan.runs[1].blocks.size(), 2u);
}

TEST(SlicePlan, TakesStreamsThatFollowEachOtherOneByOne) {
  const SlicePlan plan = planSlices(
      {streamOf("late", {{100, 200}, {200, 300}}), streamOf("early", {{0, 99}})}, {0, 999});
  ASSERT_EQ(plan.slices.size(), 2u);
  EXPECT_EQ(plan.slices[0].inputs.size(), 1u);
  EXPECT_EQ(plan.slices[0].inputs[0].run, 1u) << "by time, not by the order of the streams";
}

TEST(SlicePlan, CutsASingleRunIntoGroupsOfWholeBlocks) {
  // All with one timestamp, so they cannot be split by time.
  const SlicePlan plan = planSlices(
      {streamOf("a", std::vector<std::pair<int64_t, int64_t>>(10, {7, 7}))}, {0, 99}, 3000);
  ASSERT_EQ(plan.slices.size(), 4u);
  uint32_t next = 0;
  for (const Slice& slice : plan.slices) {
    ASSERT_EQ(slice.inputs.size(), 1u);
    EXPECT_EQ(slice.inputs[0].firstBlock, next);
    EXPECT_FALSE(slice.inputs[0].firstIsShared);
    next = slice.inputs[0].endBlock;
  }
  EXPECT_EQ(next, 10u);
}

TEST(SlicePlan, OneSliceHoldsWhatReachesIntoTheRange) {
  const std::vector<IndexedStream> streams{
      streamOf("a", {{0, 9}, {10, 19}, {20, 29}, {15, 39}, {40, 49}}), streamOf("b", {{5, 12}})};
  const SlicePlan plan = planOneSlice(streams, {15, 40});
  ASSERT_EQ(plan.slices.size(), 1u);
  EXPECT_EQ(plan.slices[0].beginNs, 15);
  EXPECT_EQ(plan.slices[0].endNs, 40);
  ASSERT_EQ(plan.runs.size(), 2u) << "a's clock stepped back";
  EXPECT_EQ(plan.runs[0].blocks.front().entry.minNs, 10);
  EXPECT_EQ(plan.runs[1].blocks.size(), 1u);
  EXPECT_EQ(planOneSlice(streams, {0, 40}).runs.size(), 3u);
  EXPECT_TRUE(planOneSlice(streams, {60, 70}).slices.empty());
}

TEST(SlicePlan, SaysWhichBlocksAnEarlierPlanReadsToo) {
  const std::vector<IndexedStream> streams{streamOf("a", {{0, 9}, {9, 19}, {19, 29}}),
                                           streamOf("b", {{10, 12}})};
  for (const int64_t beginNs : {9, 10, 15}) {
    for (const bool isContinued : {false, true}) {
      const SlicePlan plan = planSlices(streams, {beginNs, 40, isContinued}, 1);
      for (const Slice& slice : plan.slices) {
        for (const SliceInput& input : slice.inputs) {
          const int64_t minNs = plan.runs[input.run].blocks[input.firstBlock].entry.minNs;
          EXPECT_TRUE(!isContinued || minNs >= beginNs || input.firstIsShared);
        }
      }
      EXPECT_EQ(plan.slices[0].inputs[0].firstIsShared, isContinued);
    }
  }
}

/// Streams with overlapping blocks and clocks that step back.
std::vector<IndexedStream> randomStreams(std::mt19937_64& random) {
  std::vector<IndexedStream> streams(1 + randomBelow(random, 6));
  for (IndexedStream& stream : streams) {
    std::vector<std::pair<int64_t, int64_t>> times;
    auto nowNs = static_cast<int64_t>(randomBelow(random, 300));
    for (size_t i = randomBelow(random, 60); i > 0; i--) {
      const int64_t beginNs = nowNs;
      nowNs += static_cast<int64_t>(randomBelow(random, 20));
      times.emplace_back(beginNs, nowNs);
      if (random() % 10 == 0) nowNs -= std::min<int64_t>(nowNs, 30);
    }
    stream = streamOf("s", times);
  }
  return streams;
}

TEST(SlicePlan, ReadsEveryInstantOfEveryBlockExactlyOnce) {
  auto random = seededRandom();
  for (int i = 0; i < 300; i++) {
    const SlicePlan plan =
        planSlices(randomStreams(random), {50, 400}, 1000 + randomBelow(random, 9000));
    std::map<std::pair<uint32_t, uint32_t>, std::vector<std::pair<int64_t, int64_t>>> reads;
    for (const Slice& slice : plan.slices) {
      for (const SliceInput& input : slice.inputs) {
        EXPECT_LT(input.firstBlock, input.endBlock);
        for (uint32_t block = input.firstBlock; block < input.endBlock; block++) {
          auto& times = reads[{input.run, block}];
          const bool isShared = block == input.firstBlock && input.firstIsShared;
          EXPECT_EQ(isShared, !times.empty()) << "shared means read before";
          times.emplace_back(slice.beginNs, slice.endNs);
        }
      }
    }
    for (uint32_t run = 0; run < plan.runs.size(); run++) {
      for (uint32_t block = 0; block < plan.runs[run].blocks.size(); block++) {
        const BlockEntry& entry = plan.runs[run].blocks[block].entry;
        for (int64_t ns = std::max<int64_t>(entry.minNs, 50);
             ns <= std::min<int64_t>(entry.maxNs, 399); ns++) {
          const auto& times = reads[{run, block}];
          EXPECT_EQ(std::count_if(
                        times.begin(), times.end(),
                        [ns](const auto& time) { return ns >= time.first && ns < time.second; }),
                    1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace capfleet::test
