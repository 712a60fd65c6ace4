#include "store/segment_removal.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/segment_file.h"
#include "support/growing_segment.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

bool exists(const std::string& segment) {
  return std::filesystem::exists(segment + ".pcap") || std::filesystem::exists(segment + ".idx") ||
         std::filesystem::exists(segment + ".tally") || std::filesystem::exists(segment + ".sieve");
}

bool isRemoved(const std::string& segment, bool evenIfRead = false) {
  const Result<bool> removed = removeSegment(segment, evenIfRead);
  EXPECT_TRUE(removed) << (removed ? "" : removed.error().message);
  return removed && *removed;
}

/// A stream with one flushed segment.
struct OneSegment : GrowingStream {
  OneSegment() {
    append(numberedPacket(1000, 1, 5000));
    flush();
  }
};

TEST(SegmentRemoval, TakesAllFilesOfASegmentThatNobodyReads) {
  OneSegment stream;
  EXPECT_TRUE(isRemoved(stream.segment(1)));
  EXPECT_FALSE(exists(stream.segment(1)));
  EXPECT_TRUE(isRemoved(stream.segment(1))) << "gone is removed";
}

TEST(SegmentRemoval, LeavesASegmentThatIsReadAloneUntilItIsClosed) {
  OneSegment stream;
  auto file = std::make_optional(SegmentFile::open(stream.segment(1)));
  ASSERT_TRUE(*file);
  EXPECT_FALSE(isRemoved(stream.segment(1)));
  std::vector<uint8_t> bytes(100);
  EXPECT_TRUE((*file)->readAt(0, bytes));
  file.reset();
  EXPECT_TRUE(isRemoved(stream.segment(1)));
}

TEST(SegmentRemoval, WithoutPatienceFreesTheSpaceAndFailsTheReader) {
  OneSegment stream;
  const auto file = SegmentFile::open(stream.segment(1));
  ASSERT_TRUE(file);
  const auto other = File::openForRead(stream.segment(1) + ".pcap");
  EXPECT_TRUE(isRemoved(stream.segment(1), true));
  EXPECT_EQ(*other->size(), 0u) << "an open file must not keep the space";
  std::vector<uint8_t> bytes(100);
  EXPECT_EQ(file->readAt(0, bytes).error().code, Code::kAgedOut);
  EXPECT_EQ(SegmentFile::open(stream.segment(1)).error().code, Code::kAgedOut);
}

TEST(SegmentRemoval, LeavesTheBytesOfASecondNameAlone) {
  OneSegment stream;
  const std::string link = stream.segment(1) + ".kept";
  std::filesystem::create_hard_link(stream.segment(1) + ".pcap", link);
  EXPECT_TRUE(isRemoved(stream.segment(1), true));
  EXPECT_GT(std::filesystem::file_size(link), 5000u);
}

TEST(SegmentRemoval, ADownloadGivesWholePacketsOrFailsOpenly) {
  auto random = seededRandom();
  int cut = 0;
  const int rounds = std::getenv("CAPFLEET_LONG") != nullptr ? 1000 : 20;
  for (int round = 0; round < rounds; round++) {
    GrowingStream stream(400'000);  // 99 packets in each of ten segments
    std::vector<StoredPacket> all;
    for (uint32_t i = 0; i < 990; i++) all.push_back(numberedPacket(1000 + i, i, 4000));
    for (const StoredPacket& packet : all) stream.append(packet);
    stream.flush();
    DownloadBench bench;
    const auto download = bench.open(stream.options(10));
    const uint32_t victim = 1 + static_cast<uint32_t>(randomBelow(random, 10));
    const size_t partsBefore = randomBelow(random, 4);
    Bytes body;
    std::optional<Error> error;
    for (size_t parts = 0;; parts++) {
      if (parts == partsBefore) {
        ASSERT_TRUE(isRemoved(stream.segment(victim), true));
      }
      const Download::Answer answer = nextPart(*download);
      if (!answer) error = answer.error();
      if (!answer || *answer == nullptr) break;
      append(body, {(*answer)->bytes.get(), (*answer)->size});
      download->release(answer->get());
    }
    const std::vector<StoredPacket> got = packetsOf(body);
    ASSERT_LE(got.size(), all.size());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), all.begin())) << "never other packets";
    if (error) {
      EXPECT_EQ(error->code, Code::kAgedOut);
      cut++;
    } else {
      EXPECT_EQ(got.size(), all.size()) << "never a silent gap";
    }
  }
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace capfleet::test
