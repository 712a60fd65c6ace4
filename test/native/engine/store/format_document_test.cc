// The example bytes of native/FORMAT.md are those that the writer produces.
#include <gtest/gtest.h>

#include <sstream>

#include "store/segment_writer.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

/// The bytes of every ```hex block of the document.
std::vector<Bytes> hexBlocks(const std::string& path) {
  std::vector<Bytes> blocks;
  std::ifstream in(path);
  bool isInside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      isInside = line == "```hex";
      if (isInside) blocks.emplace_back();
      continue;
    }
    if (!isInside) continue;
    std::istringstream fields(line);
    std::string field;
    fields >> field;
    EXPECT_EQ(std::stoul(field, nullptr, 16), blocks.back().size()) << line;
    while (fields >> field) {
      blocks.back().push_back(static_cast<uint8_t>(std::stoul(field, nullptr, 16)));
    }
  }
  return blocks;
}

TEST(FormatDocument, ShowsTheBytesThatTheWriterMakes) {
  const TempDirectory directory;
  SegmentWriterOptions options;
  options.directory = directory.path();
  options.port = 2;
  options.header.linkTypeWord = 1;
  auto writer = SegmentWriter::open(options);
  ASSERT_TRUE(writer);
  const Bytes first = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 6};
  ASSERT_TRUE(writer->append(1'700'000'000'123'456'789, 60, first));
  ASSERT_TRUE(writer->append(1'700'000'001'000'000'000, 64, Bytes(6, 0xFF)));
  ASSERT_TRUE(writer->close());

  const auto blocks = hexBlocks(CAPFLEET_REPOSITORY "/native/FORMAT.md");
  ASSERT_EQ(blocks.size(), 5u);
  EXPECT_EQ(readFile(directory.path() + "/00000/00000001.pcap"), blocks[0]);
  EXPECT_EQ(readFile(directory.path() + "/00000/00000001.idx"), blocks[1]);
  EXPECT_EQ(readFile(directory.path() + "/00000/00000001.tally"), blocks[2]);
  EXPECT_EQ(readFile(directory.path() + "/00000/00000001.sieve"), blocks[3]);
  EXPECT_EQ(readFile(directory.path() + "/00000000.addresses"), blocks[4]);
}

}  // namespace
}  // namespace capfleet::test
