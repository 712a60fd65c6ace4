#include "download/reorder_window.h"

#include "support/seed.h"
#include "support/vendor_packets.h"

namespace capfleet::test {
namespace {

/// The output, in order.
struct Outcome {
  std::vector<int64_t> times;
  std::vector<Bytes> records;
};

void takeOne(ReorderWindow& window, Outcome& outcome) {
  const auto record = window.next();
  outcome.times.push_back(record.timeNs);
  outcome.records.emplace_back(record.bytes.begin(), record.bytes.end());
  window.pop();
}

struct Input {
  int64_t timeNs;
  int64_t nicNs;
  Bytes record;
};

Outcome sortAll(ReorderWindow& window, const std::vector<Input>& inputs) {
  Outcome outcome;
  for (const Input& input : inputs) {
    while (!window.hasRoomFor(input.nicNs, input.record.size())) takeOne(window, outcome);
    uint8_t* const place = window.add(input.timeNs, input.nicNs, input.record.size());
    std::copy(input.record.begin(), input.record.end(), place);
  }
  while (!window.empty()) takeOne(window, outcome);
  return outcome;
}

Bytes numbered(uint32_t number, size_t bytes = 20) {
  Bytes record(bytes, static_cast<uint8_t>(number));
  storeLe32(record.data(), number);
  return record;
}

TEST(ReorderWindow, SortsWhatIsOutOfOrderByLessThanItsWidth) {
  auto random = seededRandom();
  std::vector<Input> inputs;
  std::vector<int64_t> times;
  for (uint32_t i = 0; i < 30'000; i++) {
    const int64_t nicNs = kNowNs + i * int64_t{1000};
    // Within 5 ms of the NIC: at most 10 ms between two packets that change places.
    const int64_t timeNs =
        nicNs + static_cast<int64_t>(randomBelow(random, 10'000'000)) - 5'000'000;
    inputs.push_back({timeNs, nicNs, numbered(i, 16 + randomBelow(random, 1500))});
    times.push_back(timeNs);
  }
  ReorderWindow window({});
  const Outcome outcome = sortAll(window, inputs);
  std::sort(times.begin(), times.end());
  EXPECT_EQ(outcome.times, times);
  EXPECT_EQ(window.latePackets(), 0U);
  for (const Bytes& record : outcome.records) {
    ASSERT_EQ(record, inputs[loadLe32(record.data())].record);
  }
}

TEST(ReorderWindow, KeepsTheOrderOfEqualTimes) {
  ReorderWindow window({});
  std::vector<Input> inputs;
  for (uint32_t i = 0; i < 1000; i++) inputs.push_back({kNowNs + i % 3, kNowNs + i, numbered(i)});
  const Outcome outcome = sortAll(window, inputs);
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const Input& a, const Input& b) { return a.timeNs < b.timeNs; });
  ASSERT_EQ(outcome.records.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) ASSERT_EQ(outcome.records[i], inputs[i].record);
}

TEST(ReorderWindow, ReachesAsFarAsItsWidthInNicTime) {
  for (const int64_t distanceNs : {100, 101}) {
    ReorderWindow window({.nicNs = 100});
    const Outcome outcome = sortAll(window, {{50, 1000, numbered(0)},  //
                                             {40, 1000 + distanceNs, numbered(1)}});
    const bool isSorted = distanceNs == 100;
    EXPECT_EQ(outcome.times,
              isSorted ? (std::vector<int64_t>{40, 50}) : (std::vector<int64_t>{50, 40}));
    EXPECT_EQ(window.latePackets(), isSorted ? 0U : 1U);
  }
}

TEST(ReorderWindow, HoldsAtMostItsNumberOfPackets) {
  ReorderWindow window({.packets = 3});
  const Outcome outcome = sortAll(window, {{50, 0, numbered(0)},
                                           {40, 0, numbered(1)},
                                           {30, 0, numbered(2)},
                                           {20, 0, numbered(3)},
                                           {60, 0, numbered(4)}});
  // The oldest packet must leave, and all with earlier times leave before it.
  EXPECT_EQ(outcome.times, (std::vector<int64_t>{30, 40, 50, 20, 60}));
  EXPECT_EQ(window.latePackets(), 1U);
}

TEST(ReorderWindow, HoldsAtMostItsBytes) {
  ReorderWindow window({.bytes = 100});
  EXPECT_FALSE(window.hasRoomFor(0, 101));
  EXPECT_TRUE(window.hasRoomFor(0, 100));
  window.add(5, 0, 60);
  EXPECT_TRUE(window.hasRoomFor(0, 40));
  EXPECT_FALSE(window.hasRoomFor(0, 41));
}

TEST(ReorderWindow, LosesNothingUnderAnyLimits) {
  auto random = seededRandom();
  for (int round = 0; round < 60; round++) {
    const ReorderWindow::Limits limits{
        .nicNs = static_cast<int64_t>(randomBelow(random, 50)),
        .packets = 1 + static_cast<uint32_t>(randomBelow(random, 20)),
        .bytes = 64 + randomBelow(random, 400)};
    std::vector<Input> inputs;
    for (uint32_t i = 0; i < 2000; i++) {
      inputs.push_back({static_cast<int64_t>(randomBelow(random, 100) + i),
                        static_cast<int64_t>(randomBelow(random, 10) + i),
                        numbered(i, 4 + randomBelow(random, 60))});
    }
    ReorderWindow window(limits);
    const Outcome outcome = sortAll(window, inputs);
    ASSERT_EQ(outcome.records.size(), inputs.size());
    std::vector<bool> seen(inputs.size());
    uint64_t late = 0;
    int64_t latest = 0;
    for (size_t i = 0; i < outcome.records.size(); i++) {
      const uint32_t number = loadLe32(outcome.records[i].data());
      ASSERT_EQ(outcome.records[i], inputs[number].record);
      ASSERT_EQ(outcome.times[i], inputs[number].timeNs);
      ASSERT_FALSE(seen[number]);
      seen[number] = true;
      late += outcome.times[i] < latest ? 1 : 0;
      latest = std::max(latest, outcome.times[i]);
    }
    ASSERT_EQ(window.latePackets(), late);
  }
}

TEST(ReorderWindow, DoesNotWaitWhenTheNicsClockStepsBack) {
  ReorderWindow window({.nicNs = 100});
  window.add(1, 10'000, 20);
  EXPECT_FALSE(window.hasRoomFor(9'899, 20));
  EXPECT_TRUE(window.hasRoomFor(9'900, 20));
}

}  // namespace
}  // namespace capfleet::test
