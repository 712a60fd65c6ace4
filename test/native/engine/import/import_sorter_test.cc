#include "import/import_sorter.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>

#include "support/seed.h"
#include "support/stored_packets.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

constexpr uint64_t kSortBytes = 20'000;

/// Sorts packets of several ports with little memory, and compares with std::stable_sort.
class ImportSorterPorts : public testing::Test {
 protected:
  ImportSorterPorts() {
    options_.directory = directory_.folder("out");
    options_.scratchDirectory = options_.directory + "/.sort";
    options_.segmentBytes = 50'000;
    options_.sortBytes = kSortBytes;
  }

  void add(uint32_t port, int64_t timestampNs, const Bytes& captured) {
    if (!sorter_) sorter_ = std::make_unique<ImportSorter>(options_);
    CaptureRecord record;
    record.timestampNs = timestampNs;
    record.originalLength = count_++;  // distinguishes ties
    record.captured = captured;
    const auto status = sorter_->add(port, {.linkTypeWord = 1, .snaplen = 262144}, record);
    ASSERT_TRUE(status) << status.error().message;
    expected_[port].push_back({timestampNs, record.originalLength, captured});
  }

  void expectSorted() {
    const auto status = sorter_->finish([] { return true; });
    ASSERT_TRUE(status) << status.error().message;
    for (auto& [port, packets] : expected_) {
      std::stable_sort(packets.begin(), packets.end(),
                       [](const auto& a, const auto& b) { return a.timestampNs < b.timestampNs; });
      const std::string folder = options_.directory + "/cap" + std::to_string(port);
      EXPECT_TRUE(storedPackets(folder) == packets) << folder;
      uint64_t count = 0;
      for (const SegmentSummary& segment : sorter_->segments(port)) count += segment.packets;
      EXPECT_EQ(count, packets.size());
    }
  }

  bool hasScratch() const { return std::filesystem::exists(options_.scratchDirectory); }

  TempDirectory directory_;
  ImportSorterOptions options_;
  std::unique_ptr<ImportSorter> sorter_;
  std::map<uint32_t, std::vector<StoredPacket>> expected_;
  uint32_t count_ = 0;
};

TEST_F(ImportSorterPorts, SortAnyShuffleStably) {
  auto random = seededRandom();
  for (int i = 0; i < 20'000; ++i) {
    add(static_cast<uint32_t>(randomBelow(random, 3)),
        static_cast<int64_t>(randomBelow(random, 500)), Bytes(randomBelow(random, 60), 1));
  }
  EXPECT_TRUE(hasScratch());
  expectSorted();
}

TEST_F(ImportSorterPorts, SortMoreRunsThanFilesMayBeOpen) {
  for (int64_t i = 24'000; i > 0; --i) add(0, i / 2, Bytes(100, 2));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 110;  // there are more than 180 runs
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limited), 0);
  expectSorted();
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(ImportSorterPorts, SortDisorderOverAShortDistanceWithoutScratchFiles) {
  auto random = seededRandom();
  for (int i = 0; i < 10'000; ++i) {
    add(7, 1000 + i + static_cast<int64_t>(randomBelow(random, 20)), Bytes(100, 3));
  }
  EXPECT_FALSE(hasScratch());
  expectSorted();
}

TEST_F(ImportSorterPorts, WriteOrderedInputWithoutScratchFiles) {
  for (int i = 0; i < 10'000; ++i) {
    add(0, i / 3, Bytes(40, 4));
    add(255, i / 5, Bytes(40, 5));
  }
  EXPECT_FALSE(hasScratch());
  expectSorted();
}

TEST_F(ImportSorterPorts, TakePacketsLargerThanTheirMemory) {
  for (int64_t i = 0; i < 12; ++i) add(0, 100 - i, Bytes(kMaxCapturedLength, 6));
  expectSorted();
}

TEST_F(ImportSorterPorts, SortMorePortsThanKeepTheirBuffers) {
  auto random = seededRandom();
  for (int i = 0; i < 5'000; ++i) {
    add(static_cast<uint32_t>(randomBelow(random, 40)),
        static_cast<int64_t>(randomBelow(random, 1000)), Bytes(randomBelow(random, 200), 1));
  }
  expectSorted();
}

TEST_F(ImportSorterPorts, MakeSievesOfWhatStaysOnly) {
  for (int64_t i = 12'000; i > 0; --i) add(0, i, Bytes(100, 2));
  std::set<std::string> endings;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(options_.scratchDirectory)) {
    if (entry.is_regular_file()) endings.insert(entry.path().extension());
  }
  EXPECT_EQ(endings, (std::set<std::string>{".idx", ".pcap", ".tally"}));
  expectSorted();
  EXPECT_GT(std::filesystem::file_size(options_.directory + "/cap0/00000/00000001.sieve"), 0u);
}

TEST_F(ImportSorterPorts, StopInTheMergeWhenCancelled) {
  for (int64_t i = 12'000; i > 0; --i) add(0, i, Bytes(100, 2));
  const auto status = sorter_->finish([] { return false; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace capfleet::test
