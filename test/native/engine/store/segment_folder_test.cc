#include "store/segment_folder.h"

#include <gtest/gtest.h>

#include "store/segment_path.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

using Found = std::vector<FoundSegment>;

class SegmentFolder : public testing::Test {
 protected:
  void flat(uint32_t number) { directory_.file(zeroPadded(number, 8) + ".pcap", {}); }
  void grouped(uint32_t number, const std::string& ending = ".pcap") {
    directory_.folder(groupName(number / kSegmentsPerGroup));
    std::ofstream(groupedSegmentPath(directory_.path(), number) + ending);
  }
  Found list(uint32_t after = 0) { return *listSegments(directory_.path(), after); }

  TempDirectory directory_;
};

TEST_F(SegmentFolder, HoldsNothingWhenItDoesNotExist) {
  EXPECT_TRUE(listSegments("/nonexistent-capfleet-folder")->empty());
  EXPECT_EQ(newestSegment("/nonexistent-capfleet-folder")->number, 0u);
}

TEST_F(SegmentFolder, ListsFlatAndGroupedSegmentsByNumber) {
  for (const uint32_t number : {3u, 998u}) flat(number);
  for (const uint32_t number : {999u, 1000u, 12'345u}) grouped(number);
  EXPECT_EQ(list(), (Found{{3, true}, {998, true}, {999, false}, {1000, false}, {12'345, false}}));
  EXPECT_EQ(list(998), (Found{{999, false}, {1000, false}, {12'345, false}}));
  EXPECT_EQ(list(1000), (Found{{12'345, false}}));
  EXPECT_TRUE(list(12'345).empty());
  EXPECT_EQ(*newestSegment(directory_.path()), (FoundSegment{12'345, false}));
}

TEST_F(SegmentFolder, TakesASegmentOfWhichOnlyOneFileIsLeft) {
  grouped(5, ".sieve");
  EXPECT_EQ(list(), (Found{{5, false}}));
}

TEST_F(SegmentFolder, LeavesOutWhatIsNoSegment) {
  directory_.folder("00000");
  for (const char* name : {"notes.txt", "1.pcap", "00000001.idx.new", "00000/00001000.pcap",
                           "00000/00000000.pcap", "00000/00000001.idx.new"}) {
    directory_.file(name, {});
  }
  EXPECT_TRUE(list().empty());
  EXPECT_EQ(newestSegment(directory_.path())->number, 0u);
}

TEST_F(SegmentFolder, ReadsNoGroupThatCannotHoldTheNumbers) {
  grouped(999);
  grouped(5000);
  // A file in place of a folder: listing it fails.
  std::filesystem::remove_all(directory_.path() + "/00000");
  directory_.file("00000", {});
  EXPECT_FALSE(listSegments(directory_.path()));
  EXPECT_EQ(list(999), (Found{{5000, false}}));
  EXPECT_EQ(*newestSegment(directory_.path()), (FoundSegment{5000, false}));
}

TEST_F(SegmentFolder, FindsTheNewestSegmentThoughNewerGroupsAreEmpty) {
  flat(7);
  grouped(1500);
  directory_.folder("00002");
  EXPECT_EQ(*newestSegment(directory_.path()), (FoundSegment{1500, false}));
}

}  // namespace
}  // namespace capfleet::test
