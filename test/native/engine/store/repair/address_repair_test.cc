#include "store/repair/address_repair.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/address_key.h"
#include "store/address_table.h"
#include "support/addressed_packets.h"
#include "support/stored_streams.h"

namespace capfleet::test {
namespace {

bool always() { return true; }

class AddressRepair : public ::testing::Test {
 protected:
  /// Some segments, each of a few blocks.
  void make(uint32_t linkTypeWord = 1) {
    streams_.packetsPerBlock = 10;
    streams_.segmentBytes = 4000;
    std::vector<StoredPacket> packets;
    for (uint32_t i = 0; i < 5000; i++) packets.push_back({1000 + i, 64, ipv4Frame(i, i * 7)});
    streams_.addStream(packets, linkTypeWord);
    ASSERT_GT(streams_.paths()[0].size(), 70u);
    ASSERT_TRUE(transposeAddresses(streams_.streams()[0].folder, 0));
  }

  std::vector<std::string> segments() const { return streams_.paths()[0]; }
  std::string table(uint32_t number) const {
    return addressTablePath(streams_.streams()[0].folder, number);
  }

  uint64_t repaired() const {
    uint64_t count = 0;
    for (const std::string& segment : segments()) {
      const auto result = repairAddresses(segment, always);
      EXPECT_TRUE(result) << (result ? "" : result.error().message);
      count += result && *result ? 1 : 0;
    }
    return count;
  }

  StoredStreams streams_;
};

TEST_F(AddressRepair, MakesTheTablesThatTheWriterWouldHaveMade) {
  make();
  const Bytes full = readFile(table(0));
  const Bytes growing = readFile(table(64));
  EXPECT_EQ(repaired(), 0u);
  removeAddresses(streams_);
  EXPECT_EQ(repaired(), segments().size());
  EXPECT_EQ(readFile(table(0)), full);
  EXPECT_EQ(readFile(table(64)), growing);
  EXPECT_EQ(repaired(), 0u);
}

TEST_F(AddressRepair, ReplacesADamagedTable) {
  make();
  const Bytes full = readFile(table(0));
  for (const size_t at : {size_t{9}, full.size() / 2}) {
    {
      std::fstream file(table(0), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(full[at] ^ 1));
    }
    EXPECT_EQ(repaired(), 63u) << at;
    EXPECT_EQ(readFile(table(0)), full) << at;
  }
}

TEST_F(AddressRepair, ReplacesATableOfAnotherCapture) {
  make();
  const Bytes full = readFile(table(0));
  // The same times and lengths, other addresses.
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 5000; i++) packets.push_back({1000 + i, 64, ipv4Frame(i, i * 11)});
  streams_.addStream(packets);
  const std::string other = streams_.streams()[1].folder;
  ASSERT_TRUE(transposeAddresses(other, 0));
  ASSERT_NE(readFile(addressTablePath(other, 0)), full);
  std::filesystem::copy_file(addressTablePath(other, 0), table(0),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(repaired(), 63u);
  EXPECT_EQ(readFile(table(0)), full);
}

TEST_F(AddressRepair, DoesNotReadASegmentAgainThatHasTooManyAddresses) {
  streams_.packetsPerBlock = 1000;
  std::vector<StoredPacket> packets;
  for (uint32_t i = 0; i < 3000; i++) packets.push_back({1000 + i, 64, ipv4Frame(i * 977, i * 7)});
  streams_.addStream(packets);
  AddressTable made = AddressTable::open(streams_.streams()[0].folder, 1);
  ASSERT_TRUE(made.contentOf(1));
  ASSERT_TRUE(made.mayHold(addressKey({AddressPart::kIpv4, 0xFEFEFEFE}))) << "it is full";
  EXPECT_EQ(repaired(), 0u);
}

TEST_F(AddressRepair, SaysNothingOfASegmentWithADamagedBlock) {
  make();
  const auto index = readSegmentIndex(segments()[3]);
  ASSERT_TRUE(index);
  damage(segments()[3], index->blocks[0]);
  removeAddresses(streams_);
  EXPECT_EQ(repaired(), segments().size() - 1);
}

TEST_F(AddressRepair, HasNothingToDoForOtherLinkTypes) {
  make(113);
  EXPECT_EQ(repaired(), 0u);
  EXPECT_FALSE(std::filesystem::exists(table(0)));
}

TEST_F(AddressRepair, EndsWhenItIsCancelled) {
  make();
  removeAddresses(streams_);
  const auto result = repairAddresses(segments()[0], [] { return false; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(table(0)));
}

}  // namespace
}  // namespace capfleet::test
